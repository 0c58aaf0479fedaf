"""Pointer arithmetic and data paths that compilers seldom write: differences, halves, shared or global, copies."""

from __future__ import annotations

from tests.random_kernels.addresses import index, pick_pointer
from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder


def pointer_difference(b: Builder) -> None:
    """(q - p) as a number, or p + (q - p)."""
    p = pick_pointer(b, False)
    assert p is not None
    q, d = b.fresh("rd", p.bits), b.fresh("rd", 12)
    offset = b.fresh("rd")
    b.emit(f"mul.wide.s32 {offset.name}, {index(b, 10).name}, 4")
    b.emit(f"add.s64 {q.name}, {p.name}, {offset.name}")
    if b.maybe(0.5):
        b.emit(f"sub.s64 {d.name}, {q.name}, {p.name}")
        b.declare(d)
    else:
        other = b.choose.choice(b.pointers)
        b.emit(f"sub.s64 {d.name}, {other.name}, {p.name}")
        back = b.fresh("rd", other.bits)
        back.align = min(other.align, 4)
        b.emit(f"add.s64 {back.name}, {p.name}, {d.name}")
        b.declare_pointer(back, other.writable)


def pointer_comparison(b: Builder) -> None:
    """Pointers compared, with each other or with zero."""
    p, d = b.choose.choice(b.pointers), b.fresh("p", 1)
    if b.maybe(0.5):
        b.emit(f"setp.{b.choose.choice(('eq', 'ne'))}.s64 {d.name}, {p.name}, 0")
    else:
        q = b.choose.choice(b.pointers)
        b.emit(f"setp.{b.choose.choice(('eq.s64', 'lt.u64', 'ge.u64'))} {d.name}, {p.name}, {q.name}")
    b.declare(d)


def halves_of_a_pointer(b: Builder) -> None:
    """A pointer taken apart and put together again."""
    p = b.choose.choice(b.pointers)
    low, high, q = b.fresh("r"), b.fresh("r"), b.fresh("rd", p.bits)
    q.align = p.align
    b.emit(f"mov.b64 {{{low.name}, {high.name}}}, {p.name}")
    b.emit(f"mov.b64 {q.name}, {{{low.name}, {high.name}}}")
    b.declare_pointer(q, p.writable)


def bytes_of_number(b: Builder) -> None:
    """A 64-bit parameter added to a pointer as it is: a number of bytes, not known not to be a pointer."""
    p = b.choose.choice(b.pointers)
    n = b.parameters.get("q")
    if n is None:
        return
    q = b.fresh("rd", max(p.bits, 9))
    q.align = 1
    b.emit(f"add.s64 {q.name}, {n().name}, {p.name}")
    b.declare_pointer(q, p.writable)


def shared_or_global(b: Builder) -> None:
    """A generic pointer to shared or to global memory."""
    if b.suffix:
        return
    p, c = b.choose.choice(b.pointers), b.pick("p")
    s, q = b.fresh("rd"), b.fresh("rd")
    b.traits.add("shared")
    b.emit(f"cvta.shared.u64 {s.name}, smem")
    b.emit(f"selp.b64 {q.name}, {s.name}, {p.name}, {c.name}")
    d = b.fresh("r", 32)
    if p.writable and b.maybe(0.5):
        b.emit(f"st.u32 [{q.name}], {b.pick('r').name}" if p.align >= 4 else f"st.u8 [{q.name}], {b.pick('rs').name}")
    elif p.align >= 4:
        b.emit(f"ld.u32 {d.name}, [{q.name}]")
        b.declare(d)


def shared_number(b: Builder) -> None:
    """A number that passes through shared memory, or local memory."""
    if b.suffix:
        return
    b.traits.add("shared")
    x, d = b.pick("r"), b.fresh("r", 32)
    a = b.fresh("rd")
    b.emit(f"mov.u64 {a.name}, smem")
    b.emit(f"st.shared.u32 [{a.name}+64], {x.name}")
    b.emit(f"ld.shared.u32 {d.name}, [{a.name}+64]")
    b.declare(d)
    masked = b.fresh("r", 5)
    b.emit(f"and.b32 {masked.name}, {d.name}, 31")
    b.declare(masked)


def copy_to_shared(b: Builder) -> None:
    """``cp.async`` with and without a source size or an ignoring predicate."""
    if b.suffix:
        return
    found = [p for p in b.pointers if p.align >= 16]
    if not found:
        return
    b.traits.add("shared")
    p = b.choose.choice(found)
    wide, where, to = b.fresh("rd"), b.fresh("rd"), b.fresh("r")
    size = b.choose.choice((4, 8, 16))
    b.emit(f"mul.wide.s32 {wide.name}, {index(b, 12).name}, {size}")
    b.emit(f"add.s64 {where.name}, {p.name}, {wide.name}")
    b.emit(f"mov.u32 {to.name}, smem")
    tail = ""
    style = b.choose.randrange(4)
    if style == 1:
        amount = b.fresh("r", 5)
        b.emit(f"selp.b32 {amount.name}, {b.choose.choice((size, size // 2))}, 0, {b.pick('p').name}")
        tail = f", {amount.name}"
    elif style == 2:
        amount = b.fresh("r", 5)
        b.emit(f"and.b32 {amount.name}, {b.pick('r').name}, {size}")
        tail = f", {amount.name}"
    elif style == 3:
        tail = f", {b.choose.choice((0, size // 2, size))}"
    guard = f"@{b.pick('p').name} " if b.maybe(0.2) else ""
    cache = "cg" if size == 16 and b.maybe(0.5) else "ca"
    b.emit(f"{guard}cp.async.{cache}.shared.global [{to.name}], [{where.name}], {size}{tail}")
    b.emit("cp.async.wait_all")


def flag(b: Builder) -> None:
    """A predicate redefined in place, by itself or under another one."""
    found = b.of("p")
    if len(found) < 2:
        return
    p, q = b.choose.sample(found, 2)
    b.emit(b.choose.choice((
        f"not.pred {p.name}, {p.name}", f"xor.pred {p.name}, {p.name}, {q.name}", f"mov.pred {p.name}, {q.name}",
        f"@{q.name} not.pred {p.name}, {p.name}", f"and.pred {p.name}, {p.name}, {q.name}",
        f"setp.lt.or.s32 {p.name}, {b.pick('r').name}, {operand(b, 'r')[0]}, {p.name}",
        f"setp.ge.s32 {p.name}, {b.choose.choice((3, 5, 17))}, {b.pick('r').name}",
        f"@!{q.name} setp.lt.s32 {p.name}, {b.pick('r').name}, {operand(b, 'r')[0]}",
    )))  # fmt: skip


def struct_words(b: Builder) -> None:
    """Several fields of the struct parameter in one vector load, or bytes of one."""
    if b.suffix:
        return
    style = b.choose.randrange(3)
    if style == 0:
        x, y = b.fresh("r", 6), b.fresh("r", 6)
        b.emit(f"ld.param.v2.u32 {{{x.name}, {y.name}}}, [S+8]")
        b.declare(x)
        b.declare(y)
    elif style == 1:
        x, y = b.fresh("rd", 8), b.fresh("rd", 4)
        y.align = 256
        b.emit(f"ld.param.v2.u64 {{{x.name}, {y.name}}}, [S+16]")
        b.declare(x)
        b.declare_pointer(y, False)
    else:
        x = b.fresh("r", 8)
        b.emit(f"ld.param.{b.choose.choice(('u8', 's8', 'u16'))} {x.name}, [S+{b.choose.choice((8, 12, 16))}]")
        b.declare(x)


def through_floats(b: Builder) -> None:
    """A number that is a float for a while: moved as bits, or converted there and back."""
    x, f, d = b.pick("r", 12), b.fresh("f"), b.fresh("r", 14)
    if b.maybe(0.5):
        b.emit(f"mov.b32 {f.name}, {x.name}")
        b.emit(f"mov.b32 {d.name}, {f.name}")
    else:
        b.emit(f"cvt.rn.f32.{b.choose.choice('su')}32 {f.name}, {x.name}")
        if b.maybe(0.6):
            b.emit(f"mul.f32 {f.name}, {f.name}, {b.choose.choice(('0f3F000000', '0f40000000', '0fBF800000'))}")
        b.emit(f"cvt.rzi.{b.choose.choice('su')}32.f32 {d.name}, {f.name}")
        d.bits = 32 if x.bits > 12 else 14
    b.declare(d)
    if b.maybe(0.3):
        p = b.fresh("p", 1)
        b.emit(f"setp.{b.choose.choice(('lt', 'gtu', 'eq'))}.f32 {p.name}, {f.name}, 0f41000000")
        b.declare(p)


def fixed_predicate(b: Builder) -> None:
    p = b.fresh("p", 1)
    b.emit(f"mov.pred {p.name}, {b.choose.choice((0, 1, -1))}")
    b.declare(p)


STATEMENTS = (pointer_difference, pointer_comparison, halves_of_a_pointer, bytes_of_number, shared_or_global,
              shared_number, copy_to_shared, flag, flag, flag, struct_words, struct_words, through_floats,
              fixed_predicate)  # fmt: skip


def odd_statement(b: Builder) -> None:
    statement = b.choose.choice(STATEMENTS)
    if b.pointers:
        statement(b)


def with_neighbours(b: Builder) -> None:
    """What needs all threads of the warp: only at the start of a kernel."""
    x, d = b.pick("r", 10), b.fresh("r", 12)
    style = b.choose.randrange(4)
    if style <= 1:
        kind = b.choose.choice(("up", "down", "bfly", "idx"))
        b.emit(f"shfl.sync.{kind}.b32 {d.name}, {x.name}, {b.choose.choice((0, 1, 2, 16))}, "
               f"{0 if kind == 'up' else 31}, -1")
    elif style == 2:
        b.emit(f"vote.sync.ballot.b32 {d.name}, {b.pick('p').name}, -1")
        d.bits = 32
    else:
        b.emit("bar.sync 0")
        b.emit(f"mov.u32 {d.name}, {x.name}")
    b.declare(d)
