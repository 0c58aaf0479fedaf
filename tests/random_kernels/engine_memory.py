"""Memory for the engine's kernels: every space, width and vector form, and addresses of all shapes, without races."""

from __future__ import annotations

from tests.random_kernels.arithmetic import number
from tests.random_kernels.builder import Value
from tests.random_kernels.engine_builder import INPUT_WORDS, ROW_BYTES, SHARED_SLOT, EngineBuilder

SCALARS = {"r": ("u8", "s8", "u16", "s16", "b8", "b16", "b32", "u32", "s32"), "rd": ("u8", "s8", "u16", "s16", "u32",
           "s32", "b32", "b64", "u64"), "rs": ("u8", "s8", "b16", "u16", "s16"), "f": ("f32", "b32")}
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
CONST_WORDS = 64
LOCAL_BYTES = 128
CACHES = ("", "", "", ".ca", ".cg", ".cs", ".volatile", ".nc")


def width(type_: str) -> int:
    return BYTES[type_.lstrip("usbf")]


def small_index(b: EngineBuilder, limit: int) -> Value:
    """A 32-bit index of any shape below ``limit`` (a power of two)."""
    x = b.pick("r")
    d = b.fresh("r", limit.bit_length())
    style = b.choose.randrange(5)
    if style == 0:
        b.emit(f"and.b32 {d.name}, {b.linear().name}, {limit - 1}")
    elif style == 1:
        b.emit(f"shr.u32 {d.name}, {b.linear().name}, {b.choose.choice((0, 1, 2, 3, 5))}")
        b.emit(f"and.b32 {d.name}, {d.name}, {limit - 1}")
    elif style == 2:
        b.emit(f"rem.u32 {d.name}, {x.name}, {limit}")
    elif style == 3:
        b.emit(f"mad.lo.s32 {d.name}, {b.linear().name}, {b.choose.choice((1, 2, 3, 4, 8, -1))}, {number(b)}")
        b.emit(f"and.b32 {d.name}, {d.name}, {limit - 1}")
    else:
        b.emit(f"and.b32 {d.name}, {x.name}, {limit - 1}")
    return d


def _input_index(b: EngineBuilder) -> Value:
    """Elements of 8 bytes from the middle of the read-only buffer, whose ends are INPUT_WORDS / 4 away."""
    style = b.choose.randrange(6)
    if style == 0:
        return small_index(b, INPUT_WORDS // 8)
    d = b.fresh("r", 12)
    base = b.choose.choice((b.linear(), b.linear(), b.thread())).name
    if style == 1:  # the thread before or behind
        b.emit(f"add.s32 {d.name}, {b.linear().name}, {b.choose.choice((-1, -2, 1, -32, 5))}")
    elif style == 2:
        b.emit(f"mul.lo.s32 {d.name}, {base}, {b.choose.choice((1, 2, -1, 0))}")
        b.emit(f"max.s32 {d.name}, {d.name}, -1900")
        b.emit(f"min.s32 {d.name}, {d.name}, 1900")
    elif style == 3:
        b.emit(f"sub.s32 {d.name}, {b.choose.choice((0, 31, 100))}, {b.linear().name}")
    elif style == 4:
        x = b.pick("r")
        b.emit(f"rem.s32 {d.name}, {x.name}, 1000")
    else:  # in blocks of four with holes
        b.emit(f"and.b32 {d.name}, {b.linear().name}, {b.choose.choice((-4, 3, 28, -2, 0x1F, 0))}")
    return d


def _offset(b: EngineBuilder, x: Value, size: int, start: str) -> tuple[Value, str]:
    """Address of element x of ``size`` bytes; and the guard under which it may be used."""
    at = b.fresh("rd")
    style = b.choose.randrange(5)
    guard = ""
    if style == 0:
        b.emit(f"mad.wide.s32 {at.name}, {x.name}, {size}, {start}")
    elif style == 1:
        b.emit(f"cvt.s64.s32 {at.name}, {x.name}")
        b.emit(f"shl.b64 {at.name}, {at.name}, {size.bit_length() - 1}")
        b.emit(f"add.s64 {at.name}, {start}, {at.name}")
    elif style == 2:
        b.emit(f"mul.wide.s32 {at.name}, {x.name}, {size}")
        b.emit(f"add.s64 {at.name}, {at.name}, {start}")
    else:
        # Extended with zeros: good only where the index is not negative, and the rest must not be touched.
        p = b.fresh("p")
        b.emit(f"setp.ge.s32 {p.name}, {x.name}, 0")
        guard = f"@{p.name} "
        if style == 3:
            b.emit(f"mad.wide.u32 {at.name}, {x.name}, {size}, {start}")
        else:
            b.emit(f"cvt.u64.u32 {at.name}, {x.name}")
            b.emit(f"mad.lo.s64 {at.name}, {at.name}, {size}, {start}")
    return at, guard


def _results(b: EngineBuilder, guard: str, count: int, kind: str) -> list[Value]:
    """Registers for loaded values: set before the load where that is guarded."""
    found = []
    for _ in range(count):
        old = [v for v in b.of(kind) if not v.fixed and v not in found]
        if old and b.maybe(0.3):
            value = b.choose.choice(old)
            value.bits = 64 if kind == "rd" else 32
        else:
            value = b.fresh(kind, {"rs": 16, "rd": 64}.get(kind, 32))
            if guard:
                zero = "0f00000000" if kind == "f" else "0"
                b.emit(f"mov.{ {'rs': 'u16', 'r': 'u32', 'rd': 'u64', 'f': 'f32'}[kind] } {value.name}, {zero}")
        found.append(value)
    return found


def _load(b: EngineBuilder, space: str, at: str, guard: str, most: int, aligned: int = 16) -> None:
    """Load one value or a vector of at most ``most`` bytes."""
    kind = b.choose.choice(("r", "r", "rd", "rs", "f"))
    if b.maybe(0.35):
        forms = [(c, t) for c in (2, 4) for t in (("b8", "u8"), ("b16", "u16"), ("b32", "u32"), ("b64", "u64"))[
            {"rs": 1, "r": 2, "f": 2, "rd": 3}[kind]][:2] if c * width(t) <= min(most, aligned)]
        if forms:
            count, type_ = b.choose.choice(forms)
            found = _results(b, guard, count, kind)
            names = [v.name for v in found]
            if b.maybe(0.15):
                names[b.choose.randrange(count)] = "_"
            b.emit(f"{guard}ld{space}.v{count}.{type_} {{{', '.join(names)}}}, [{at}]")
            for v, name in zip(found, names, strict=True):
                if name != "_" and v not in b.values:
                    b.declare(v)
            return
    kind = kind if most >= 4 or kind != "f" else "rs"
    type_ = b.choose.choice([t for t in SCALARS[kind] if width(t) <= most])
    (value,) = _results(b, guard, 1, kind)
    b.emit(f"{guard}ld{space}.{type_} {value.name}, [{at}]")
    if value not in b.values:
        b.declare(value)


def _guard(b: EngineBuilder, guard: str) -> str:
    if guard or b.maybe(0.8):
        return guard
    return f"@{'!' if b.maybe(0.5) else ''}{b.pick('p').name} "


def load_into(b: EngineBuilder, space: str, at: str, most: int) -> None:
    """Load one value or a vector of at most ``most`` bytes, perhaps under a guard."""
    _load(b, space, at, _guard(b, ""), most)


def load_input(b: EngineBuilder) -> None:
    """From the read-only buffer, in any way."""
    start = b.parameter("IN").name
    size = b.choose.choice((1, 2, 4, 4, 4, 8, 8, 16, 16))
    x = _input_index(b)
    if size == 16:
        b.emit(f"shr.s32 {x.name}, {x.name}, 1")
    at, guard = _offset(b, x, size, start)
    cache = b.choose.choice(CACHES)
    space = f"{cache}{b.space}" if cache == ".volatile" else f"{b.space}{cache}"
    if cache == ".nc" and b.space != ".global":
        space = b.space
    shift = b.choose.choice((0, 0, size, -size, 4 * size, -8 * size))
    where = f"{at.name}{shift:+d}" if shift else at.name
    _load(b, space, where, _guard(b, guard), size)


def store_row(b: EngineBuilder) -> None:
    """Into the thread's own row, and often back again."""
    row = b.row().name
    kind = b.choose.choice(("r", "r", "rd", "rs", "f"))
    type_ = b.choose.choice(SCALARS[kind])
    count = b.choose.choice((1, 1, 1, 2, 4)) if width(type_) * 4 <= 16 or width(type_) == 8 else 1
    count = 2 if width(type_) == 8 and count == 4 else count
    place = b.choose.randrange(ROW_BYTES // (width(type_) * count)) * width(type_) * count
    values = ", ".join(b.pick(kind).name for _ in range(count))
    vector = f".v{count}" if count > 1 else ""
    guard = _guard(b, "")
    b.emit(f"{guard}st{b.space}{vector}.{type_} [{row}+{place}], {{{values}}}" if count > 1 else
           f"{guard}st{b.space}.{type_} [{row}+{place}], {values}")
    if b.maybe(0.4):
        size = b.choose.choice((1, 2, 4, 8, 16))
        at = b.choose.randrange(ROW_BYTES // size) * size
        _load(b, b.space, f"{row}+{at}", _guard(b, ""), size)


def local_access(b: EngineBuilder) -> None:
    """Own local memory, at fixed and at computed places."""
    b.traits.add("local")
    b.named("cleared", "r", *[f"st.local.v2.u64 [loc+{o}], {{{{0, 0}}}}" for o in range(0, LOCAL_BYTES, 16)],
            "mov.u32 {d}, 0")
    _own(b, "local", "loc", LOCAL_BYTES)


def shared_own(b: EngineBuilder) -> None:
    """The thread's own slot in the second array of shared memory, at any time."""
    b.traits.add("shared")
    slot = b.named("slot", "r", f"mad.lo.s32 {{d}}, {b.linear().name}, {SHARED_SLOT}, own")
    size = b.choose.choice((1, 2, 4, 8, 16))
    place = b.choose.randrange(SHARED_SLOT // size) * size
    _store(b, ".shared", f"{slot.name}+{place}", size)
    size = b.choose.choice((1, 2, 4, 8, 16))
    place = b.choose.randrange(SHARED_SLOT // size) * size
    _load(b, ".shared", f"{slot.name}+{place}", _guard(b, ""), size)


def _store(b: EngineBuilder, space: str, at: str, most: int) -> None:
    kind = b.choose.choice(("r", "r", "rd", "rs", "f"))
    type_ = b.choose.choice([t for t in SCALARS[kind] if width(t) <= most] or ["b8"])
    if type_ == "b8":
        kind = "r"
    if width(type_) > most:
        return
    guard = _guard(b, "")
    if 2 * width(type_) <= most and b.maybe(0.4):
        b.emit(f"{guard}st{space}.v2.{type_} [{at}], {{{b.pick(kind).name}, {b.pick(kind).name}}}")
    else:
        b.emit(f"{guard}st{space}.{type_} [{at}], {b.pick(kind).name}")


def _own(b: EngineBuilder, space: str, name: str, size: int) -> None:
    for load in b.choose.choice(((False, True), (True,), (False,), (True, False))):
        wide = b.choose.choice((1, 2, 4, 8, 16))
        generic = b.maybe(0.25)
        if b.maybe(0.5) and not generic:
            where = f"{name}+{b.choose.randrange(size // wide) * wide}"
        else:
            x = small_index(b, size // wide)
            offset, base = b.fresh("rd"), b.fresh("rd")
            b.emit(f"mul.wide.u32 {offset.name}, {x.name}, {wide}")
            b.emit(f"mov.u64 {base.name}, {name}")
            if generic:
                b.emit(f"cvta.{space}.u64 {base.name}, {base.name}")
            b.emit(f"add.s64 {base.name}, {base.name}, {offset.name}")
            where = base.name
        prefix = "" if generic else f".{space}"
        if load:
            _load(b, prefix, where, _guard(b, ""), wide)
        else:
            _store(b, prefix, where, wide)


def load_const(b: EngineBuilder) -> None:
    """From a table of constants in the module."""
    b.traits.add("const")
    x = small_index(b, CONST_WORDS // 4)
    at, base = b.fresh("rd"), b.fresh("rd")
    b.emit(f"mul.wide.u32 {at.name}, {x.name}, 16")
    b.emit(f"mov.u64 {base.name}, ctab")
    b.emit(f"add.s64 {at.name}, {at.name}, {base.name}")
    _load(b, ".const", at.name, _guard(b, ""), 16)


def load_parameter(b: EngineBuilder) -> None:
    """Words of the struct parameter, at fixed or computed places."""
    if b.maybe(0.5):
        _load(b, ".param", f"S+{8 + 4 * b.choose.randrange(4)}", "", 4)
        return
    x, at, base = small_index(b, 4), b.fresh("rd"), b.fresh("rd")
    b.emit(f"mul.wide.u32 {at.name}, {x.name}, 4")
    b.emit(f"mov.b64 {base.name}, S")
    b.emit(f"add.s64 {at.name}, {at.name}, {base.name}")
    _load(b, ".param", f"{at.name}+8", _guard(b, ""), 4)


def exchange(b: EngineBuilder) -> None:
    """Through shared memory, with barriers between: every thread writes one slot and reads another."""
    if not b.together or b.suffix:
        return
    b.traits.add("shared")
    linear, threads = b.linear().name, b.threads().name
    slot, other, p = b.fresh("r"), b.fresh("r"), b.fresh("p")
    size = b.choose.choice((4, 4, 8, 16))
    b.emit(f"mad.lo.s32 {slot.name}, {linear}, {size}, smem")
    if b.maybe(0.3):  # backwards
        b.emit(f"sub.s32 {slot.name}, {threads}, {linear}")
        b.emit(f"mad.lo.s32 {slot.name}, {slot.name}, {size}, smem")
        b.emit(f"sub.s32 {slot.name}, {slot.name}, {size}")
    kind, type_ = b.choose.choice((("r", "b32"), ("f", "f32"))) if size == 4 else ("rd", "b64")
    barrier(b)
    if size == 16:
        b.emit(f"st.shared.v2.b64 [{slot.name}], {{{b.pick(kind).name}, {b.pick(kind).name}}}")
    else:
        b.emit(f"st.shared.{type_} [{slot.name}], {b.pick(kind).name}")
    barrier(b)
    style = b.choose.randrange(6)
    if style == 0:
        b.emit(f"xor.b32 {other.name}, {linear}, {b.choose.choice((1, 2, 16, 32, 64))}")
    elif style == 1:
        b.emit(f"add.s32 {other.name}, {linear}, {b.choose.choice((1, -1, 5, -32))}")
    elif style == 2:
        b.emit(f"and.b32 {other.name}, {linear}, {b.choose.choice((0, -2, -32, 31, 7))}")
    elif style == 3:
        b.emit(f"shr.u32 {other.name}, {linear}, {b.choose.choice((1, 2, 5))}")
    elif style == 4:
        b.emit(f"mul.lo.s32 {other.name}, {linear}, {b.choose.choice((2, 3))}")
    else:
        b.emit(f"rem.u32 {other.name}, {b.pick('r').name}, {threads}")
    d = b.fresh(kind, 64)
    b.emit(f"mov.{type_} {d.name}, {b.pick(kind).name}")
    b.emit(f"setp.lt.u32 {p.name}, {other.name}, {threads}")
    b.emit(f"mad.lo.s32 {other.name}, {other.name}, {size}, smem")
    guard = f"@{p.name} "
    if b.maybe(0.4):
        label = b.label()
        b.emit(f"@!{p.name} bra {label}")
        b.emit(f"ld.shared.{type_} {d.name}, [{other.name}]")
        b.mark(label)
    elif size == 16:
        e = b.fresh(kind, 64)
        b.emit(f"mov.b64 {e.name}, 0")
        b.emit(f"{guard}ld.shared.v2.b64 {{{d.name}, {e.name}}}, [{other.name}]")
        b.declare(e)
    else:
        b.emit(f"{guard}ld.shared.{type_} {d.name}, [{other.name}]")
    b.declare(d)
    barrier(b)


def barrier(b: EngineBuilder) -> None:
    """One of the ways to write a barrier of the whole block."""
    b.emit(b.choose.choice(("bar.sync 0", "bar.sync 0", "barrier.sync 0", "bar.sync 1", "barrier.sync.aligned 2")))
