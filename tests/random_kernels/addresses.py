"""Addresses from pointers and indices, in the ways compilers write them; loads, stores and atomics through them."""

from __future__ import annotations

from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.conversion import widen

REACH = 36
"""Bits of a byte offset at most: buffers reach 2^37 bytes to either side of the pointers into them."""


def index(b: Builder, most: int = 32) -> Value:
    """An index value; mostly one that is small."""
    found = [v for v in b.values if v.kind == "r" and v.bits <= most]
    near = [v for v in found if v.bits <= 14 and (not v.name.startswith("%rconst"))]
    if near and b.maybe(0.75):
        return b.choose.choice(near[-6:] if b.maybe(0.5) else near)
    return b.choose.choice(found) if found else b.constant("r")


def offset(b: Builder, size: int) -> tuple[str, int]:
    """(64-bit register with a multiple of ``size`` in it, bits)."""
    log = size.bit_length() - 1
    longs = [v for v in b.of("rd") if v.bits + log <= REACH]
    if longs and b.maybe(0.25):
        x = b.choose.choice(longs)
        return _scaled(b, x, size)
    x = index(b)
    style = b.choose.randrange(7)
    d = b.fresh("rd", x.bits + log)
    if style <= 1:
        b.emit(f"mul.wide.s32 {d.name}, {x.name}, {size}")
    elif style == 2:
        b.emit(f"mul.wide.u32 {d.name}, {x.name}, {size}")
        d.bits = 32 + log
    elif style == 3:
        t = b.fresh("r")
        b.emit(f"shl.b32 {t.name}, {x.name}, {log}")
        b.emit(f"cvt.{b.choose.choice(('s64.s32', 'u64.u32'))} {d.name}, {t.name}")
        d.bits = 32
    elif style == 4 and log <= 3:
        t = b.fresh("rd")
        b.emit(f"cvt.u64.u32 {t.name}, {x.name}")
        b.emit(f"shl.b64 {t.name}, {t.name}, 32")
        b.emit(f"shr.s64 {d.name}, {t.name}, {32 - log}")
    else:
        return _scaled(b, widen(b, x), size)
    return d.name, d.bits


def _scaled(b: Builder, x: Value, size: int) -> tuple[str, int]:
    log = size.bit_length() - 1
    d = b.fresh("rd", x.bits + log)
    if b.maybe(0.7):
        b.emit(f"shl.b64 {d.name}, {x.name}, {log}")
    else:
        b.emit(f"mul.lo.s64 {d.name}, {x.name}, {size}")
    return d.name, d.bits


def pick_pointer(b: Builder, writable: bool) -> Value | None:
    found = [p for p in b.pointers if p.writable or not writable]
    if not found:
        return None
    return b.choose.choice(found[-5:] if b.maybe(0.5) else found)


def address(b: Builder, pointer: Value, size: int) -> str:
    """Text of an address, without brackets, for accesses of ``size`` bytes."""
    shift = b.choose.choice((0, 0, 0, 1, 2, 3, -1, -2, 8, 16, -7)) * size
    tail = f"+{shift}" if shift else ""
    if pointer.align < size:
        lowered = b.fresh("rd", 64)
        b.emit(f"and.b64 {lowered.name}, {pointer.name}, {-size}")
        return lowered.name + tail
    if b.maybe(0.12) or pointer.bits > 40:
        return pointer.name + tail
    d = b.fresh("rd", 64)
    if b.maybe(0.2):
        x = index(b)
        b.emit(f"mad.wide.{b.choose.choice('ssu')}32 {d.name}, {x.name}, {size}, {pointer.name}")
        return d.name + tail
    text, _ = offset(b, size)
    if b.maybe(0.15):
        more, _ = offset(b, size)
        t = b.fresh("rd")
        b.emit(f"{b.choose.choice(('add', 'add', 'sub'))}.s64 {t.name}, {text}, {more}")
        text = t.name
    name = "sub" if b.maybe(0.05) else "add"
    b.emit(f"{name}.s64 {d.name}, {pointer.name}, {text}")
    if b.maybe(0.12):
        moved = Value(d.name, "rd", max(pointer.bits, 20), b.depth, True, pointer.writable, min(pointer.align, size))
        b.pointers.append(moved)
    return d.name + tail


def load(b: Builder, guard: str = "") -> None:
    """A load of a number or of a vector; what was read may serve as an index, mostly after a mask."""
    pointer = pick_pointer(b, False)
    if pointer is None:
        return
    count = b.choose.choice((1, 1, 1, 1, 2, 4))
    kind = b.choose.choice(("u32", "u32", "f32", "s32", "b32", "u8", "s8", "u16", "s16", "u64", "s64", "f64"))
    size = int(kind[1:]) // 8
    if size * count > 16:
        count = 1
    where = address(b, pointer, size * count)
    register = {1: "rs", 2: "rs", 4: "r", 8: "rd"}[size] if kind[0] != "f" else "r" if size == 4 else "rd"
    bits = {"u8": 8, "s8": 7}.get(kind, 8 * size)
    targets = [b.fresh(register, bits) for _ in range(count)]
    text = targets[0].name if count == 1 else "{" + ", ".join(t.name for t in targets) + "}"
    vector = f".v{count}" if count > 1 else ""
    kind = kind.replace("f", "b")
    space = _space(b)
    if guard:
        for t in targets:
            b.emit(f"mov.b{ {'rs': 16, 'r': 32, 'rd': 64}[register] } {t.name}, 1")
    if space == ".global" and not pointer.writable and b.maybe(0.3):
        space = ".global.nc"
    b.emit(f"{guard}ld{space}{vector}.{kind} {text}, [{where}]")
    for t in targets:
        b.declare(t)
    if register == "r" and b.maybe(0.4):
        d = b.fresh("r", 6)
        b.emit(f"and.b32 {d.name}, {targets[0].name}, {b.choose.choice((7, 31, 63))}")
        b.declare(d)


def _space(b: Builder) -> str:
    return "" if "generic" in b.traits or b.maybe(0.04) else ".global"


def store(b: Builder, guard: str = "") -> None:
    pointer = pick_pointer(b, True)
    if pointer is None:
        return
    count = b.choose.choice((1, 1, 1, 1, 2, 4))
    size = b.choose.choice((1, 2, 4, 4, 4, 4, 4, 8))
    if size * count > 16:
        count = 1
    where = address(b, pointer, size * count)
    register = {1: "rs", 2: "rs", 4: "r", 8: "rd"}[size]
    items = [b.pick(register).name for _ in range(count)]
    text = items[0] if count == 1 else "{" + ", ".join(items) + "}"
    vector = f".v{count}" if count > 1 else ""
    b.emit(f"{guard}st{_space(b)}{vector}.{b.choose.choice('bu')}{8 * size} [{where}], {text}")


def atomic(b: Builder, guard: str = "") -> None:
    pointer = pick_pointer(b, True)
    if pointer is None:
        return
    size = b.choose.choice((4, 4, 8))
    where = address(b, pointer, size)
    register, space = ("r", _space(b)) if size == 4 else ("rd", _space(b))
    value = b.pick(register).name
    name, kind = b.choose.choice((("add", "u"), ("max", "s"), ("min", "u"), ("or", "b"), ("exch", "b")))
    if name != "exch" and b.maybe(0.5):
        b.emit(f"{guard}red{space}.{name}.{kind}{8 * size} [{where}], {value}")
        return
    old = b.fresh(register, 8 * size)
    if guard:
        b.emit(f"mov.b{8 * size} {old.name}, 0")
    if b.maybe(0.2):
        b.emit(f"{guard}atom{space}.cas.b{8 * size} {old.name}, [{where}], {value}, {b.pick(register).name}")
    else:
        b.emit(f"{guard}atom{space}.{name}.{kind}{8 * size} {old.name}, [{where}], {value}")
    b.declare(old)


def access(b: Builder) -> None:
    """Any access, sometimes predicated."""
    guard = ""
    if b.maybe(0.12):
        guard = f"@{'!' if b.maybe(0.4) else ''}{b.pick('p').name} "
    kind = b.choose.random()
    if kind < 0.45 and not b.reads_only:
        store(b, guard)
    elif kind < 0.92 or b.reads_only:
        load(b, guard)
    else:
        atomic(b, guard)


def pointer_statement(b: Builder) -> None:
    """A pointer moved, selected or copied."""
    p = b.choose.choice(b.pointers)
    style = b.choose.randrange(4)
    if style == 0 and len(b.pointers) > 1:
        q = b.choose.choice(b.pointers)
        c = b.pick("p")
        d = b.fresh("rd")
        d.align, d.bits = min(p.align, q.align), max(p.bits, q.bits)
        b.emit(f"selp.b64 {d.name}, {p.name}, {q.name}, {c.name}")
        b.declare_pointer(d, p.writable and q.writable)
    elif style == 1:
        d = b.fresh("rd")
        d.align, d.bits = p.align, p.bits
        b.emit(f"mov.u64 {d.name}, {p.name}")
        b.declare_pointer(d, p.writable)
    else:
        size = min(p.align, b.choose.choice((4, 8, 16)))
        text, bits = offset(b, size)
        d = b.fresh("rd")
        d.align, d.bits = min(p.align, size), max(p.bits, bits) + 1
        if d.bits < REACH:
            b.emit(f"add.s64 {d.name}, {p.name}, {text}")
            b.declare_pointer(d, p.writable)
