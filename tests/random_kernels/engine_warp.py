"""Exchange between threads: within a warp under known member masks, by atomics that commute, by barriers."""

from __future__ import annotations

from tests.random_kernels.builder import Value
from tests.random_kernels.engine_builder import EngineBuilder

GROUPS = 8
"""Words of each kind of atomic: their address is ``kind * 64 + word * 8``."""
WAITING = "$W"
"""Start of the label of a loop that runs as often as others interfere."""
KINDS = ("add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "add.u64", "max.u64", "min.s64")


def member_mask(b: EngineBuilder) -> str:
    assert b.mask is not None
    return b.mask


def warp_statement(b: EngineBuilder) -> None:
    """A warp-wide instruction, where it is known who takes part."""
    if b.mask is None:
        return
    b.choose.choice((shuffle, shuffle, shuffle, vote, vote, match, redux, lanes, halves))(b)


def _target(b: EngineBuilder, kind: str) -> Value:
    return b.destination(kind, 32 if kind != "p" else 1)


def shuffle(b: EngineBuilder) -> None:
    mode = b.choose.choice(("up", "down", "bfly", "idx"))
    source = b.pick(b.choose.choice(("r", "r", "f")))
    clamp = 0 if mode == "up" else 31
    part = b.choose.choice((32, 32, 32, 16, 8, 4, 2))
    control = str((32 - part) << 8 | clamp)
    if b.maybe(0.2):
        d = b.fresh("r", 13)
        b.emit(f"mov.u32 {d.name}, {control}")
        if b.maybe(0.5):
            b.emit(f"and.b32 {d.name}, {b.pick('r').name}, 0x1f1f")
        control = d.name
    by = str(b.choose.choice((1, 2, 4, 8, 16, 0, 31, 5))) if b.maybe(0.7) else b.pick("r").name
    d = b.fresh(source.kind, 32)
    pair = ""
    if b.maybe(0.4):
        p = _target(b, "p")
        pair = f"|{p.name}"
    b.emit(f"shfl.sync.{mode}.b32 {d.name}{pair}, {source.name}, {by}, {control}, {member_mask(b)}")
    b.declare(d)


def vote(b: EngineBuilder) -> None:
    source = ("!" if b.maybe(0.3) else "") + b.pick("p").name
    if b.maybe(0.5):
        d = _target(b, "r")
        b.emit(f"vote.sync.ballot.b32 {d.name}, {source}, {member_mask(b)}")
    else:
        d = b.fresh("p", 1)
        b.emit(f"vote.sync.{b.choose.choice(('all', 'any', 'uni'))}.pred {d.name}, {source}, {member_mask(b)}")
        b.declare(d)


def match(b: EngineBuilder) -> None:
    kind = b.choose.choice(("r", "rd"))
    x = b.pick(kind)
    width = 32 if kind == "r" else 64
    t = b.fresh(kind)
    b.emit(f"and.b{width} {t.name}, {x.name}, {b.choose.choice((1, 3, 7, 0, 0xFF))}")
    d = b.fresh("r", 32)
    if b.maybe(0.5):
        b.emit(f"match.any.sync.b{width} {d.name}, {t.name}, {member_mask(b)}")
    else:
        p = b.fresh("p", 1)
        b.emit(f"match.all.sync.b{width} {d.name}|{p.name}, {t.name}, {member_mask(b)}")
        b.declare(p)
    b.declare(d)


def redux(b: EngineBuilder) -> None:
    d = _target(b, "r")
    name = b.choose.choice(("add.u32", "add.s32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32",
                            "xor.b32"))
    b.emit(f"redux.sync.{name} {d.name}, {b.pick('r').name}, {member_mask(b)}")


def lanes(b: EngineBuilder) -> None:
    """Special registers of the warp, and its barrier."""
    b.emit(f"bar.warp.sync {member_mask(b)}")
    d = b.fresh("r", 32)
    special = b.choose.choice(("laneid", "lanemask_lt", "lanemask_eq", "lanemask_ge", "warpid", "nwarpid",
                               "lanemask_gt", "lanemask_le"))
    b.emit(f"mov.u32 {d.name}, %{special}")
    b.declare(d)


def halves(b: EngineBuilder) -> None:
    """Two or more groups of lanes, each with a mask of its own, in one instruction."""
    if b.mask != "-1":
        return
    m, p = b.fresh("r"), b.fresh("p")
    style = b.choose.randrange(3)
    if style == 0:
        b.emit(f"setp.lt.u32 {p.name}, {_lane(b)}, {b.choose.choice((16, 8, 1, 31))}")
        t = b.fresh("r")
        b.emit(f"vote.sync.ballot.b32 {t.name}, {p.name}, -1")
        b.emit(f"not.b32 {m.name}, {t.name}")
        b.emit(f"selp.b32 {m.name}, {t.name}, {m.name}, {p.name}")
    else:
        t = b.fresh("r")
        b.emit(f"and.b32 {t.name}, {b.pick('r').name}, {b.choose.choice((1, 3, 6))}")
        b.emit(f"match.any.sync.b32 {m.name}, {t.name}, -1")
    before, b.mask = b.mask, m.name
    for _ in range(b.choose.choice((1, 2))):
        b.choose.choice((shuffle, vote, redux, match))(b)
    b.mask = before


def _lane(b: EngineBuilder) -> str:
    d = b.fresh("r", 5)
    b.emit(f"mov.u32 {d.name}, %laneid")
    return d.name


def _atomic_place(b: EngineBuilder, kind: int, shared: bool) -> str:
    x = b.fresh("r", 3)
    style = b.choose.randrange(3)
    if style == 0:
        b.emit(f"mov.u32 {x.name}, {b.choose.randrange(GROUPS)}")
    elif style == 1:
        b.emit(f"and.b32 {x.name}, {b.linear().name}, {GROUPS - 1}")
    else:
        b.emit(f"and.b32 {x.name}, {b.pick('r').name}, {GROUPS - 1}")
    if shared:
        b.traits.add("shared atomics")
        b.emit(f"shl.b32 {x.name}, {x.name}, 3")
        at = b.fresh("r")
        base = b.named("satom", "r", "mov.u32 {d}, satom")
        b.emit(f"add.s32 {at.name}, {x.name}, {base.name}")
        return f"{at.name}+{64 * kind}"
    at = b.fresh("rd")
    b.emit(f"mad.wide.u32 {at.name}, {x.name}, 8, {b.parameter('ATOM').name}")
    return f"{at.name}+{64 * kind}"


def atomic(b: EngineBuilder) -> None:
    """An atomic whose result nobody looks at: those of one word commute."""
    kind = b.choose.randrange(len(KINDS))
    name = KINDS[kind]
    shared = b.maybe(0.4) and not b.suffix
    at = _atomic_place(b, kind, shared)
    value = b.pick("rd" if name.endswith("64") else "r").name
    space = ".shared" if shared else b.space
    guard = f"@{b.pick('p').name} " if b.maybe(0.25) else ""
    if b.maybe(0.6):
        b.emit(f"{guard}red{space}.{name} [{at}], {value}")
    else:
        d = b.fresh("rd" if name.endswith("64") else "r")
        b.emit(f"{guard}atom{space}.{name} {d.name}, [{at}], {value}")


def ticket(b: EngineBuilder) -> None:
    """Numbers drawn from a counter, whose squares are added up: which thread gets which does not matter."""
    if b.tickets >= 16 or b.suffix:
        return
    at = 1024 + 32 * b.tickets
    b.tickets += 1
    base = b.parameter("ATOM").name
    d = b.fresh("r")
    style = b.choose.randrange(3)
    if style == 0:
        b.emit(f"atom{b.space}.add.u32 {d.name}, [{base}+{at}], {b.choose.choice((1, 3))}")
    elif style == 1:
        b.emit(f"atom{b.space}.inc.u32 {d.name}, [{base}+{at}], {b.choose.choice((6, 1000000))}")
    else:
        b.emit(f"atom{b.space}.dec.u32 {d.name}, [{base}+{at}], {b.choose.choice((6, 1000000))}")
    b.emit(f"mul.lo.s32 {d.name}, {d.name}, {d.name}")
    b.emit(f"red{b.space}.add.u32 [{base}+{at + 8}], {d.name}")


def swap_own(b: EngineBuilder) -> None:
    """exch and cas on a word of the thread's own row."""
    row = b.row().name
    at = f"{row}+{8 * b.choose.randrange(8)}"
    d = b.fresh("r", 32)
    wide = b.maybe(0.3)
    kind = "rd" if wide else "r"
    if wide:
        d = b.fresh("rd", 64)
    guard = ""
    if b.maybe(0.2):
        b.emit(f"mov.b{64 if wide else 32} {d.name}, 7")
        guard = f"@{b.pick('p').name} "
    x, y, bits = b.pick(kind).name, b.pick(kind).name, 64 if wide else 32
    if b.maybe(0.5):
        b.emit(f"{guard}atom{b.space}.exch.b{bits} {d.name}, [{at}], {x}")
    else:
        b.emit(f"{guard}atom{b.space}.cas.b{bits} {d.name}, [{at}], {x}, {y}")
    b.declare(d)


def swap_loop(b: EngineBuilder) -> None:
    """An addition written as a loop around cas, as compilers do for types without an atomic."""
    if b.depth > 1 or b.suffix or b.tickets >= 16:
        return
    at = 1024 + 32 * b.tickets
    b.tickets += 1
    old, new, seen, p = b.fresh("r"), b.fresh("r"), b.fresh("r"), b.fresh("p")
    base = b.parameter("ATOM").name
    head = b.label().replace("$L", WAITING)
    b.emit(f"ld{b.space}.u32 {old.name}, [{base}+{at}]")
    b.mark(head)
    b.emit(f"add.s32 {new.name}, {old.name}, {b.pick('r').name}")
    b.emit(f"atom{b.space}.cas.b32 {seen.name}, [{base}+{at}], {old.name}, {new.name}")
    b.emit(f"setp.ne.s32 {p.name}, {seen.name}, {old.name}")
    b.emit(f"mov.u32 {old.name}, {seen.name}")
    b.emit(f"@{p.name} bra {head}")


def count_over_block(b: EngineBuilder) -> None:
    """bar.red, also of the block's first half only."""
    if not b.together or b.suffix:
        return
    source = ("!" if b.maybe(0.3) else "") + b.pick("p").name
    if b.maybe(0.5):
        d = b.fresh("r", 11)
        b.emit(f"bar.red.popc.u32 {d.name}, {b.choose.choice((0, 1, 3))}, {source}")
    else:
        d = b.fresh("p", 1)
        b.emit(f"bar.red.{b.choose.choice(('and', 'or'))}.pred {d.name}, {b.choose.choice((0, 1, 3))}, {source}")
    b.declare(d)


def producer(b: EngineBuilder) -> None:
    """The first warps put values into shared memory and arrive; the others wait for them."""
    if not b.together or b.suffix:
        return
    b.traits.add("shared")
    linear, threads = b.linear().name, b.threads().name
    few, first, all_ = b.fresh("p"), b.fresh("p"), b.fresh("r")
    place, d, other = b.fresh("r"), b.fresh("r", 32), b.fresh("r")
    waits, end = b.label(), b.label()
    b.emit(f"mov.u32 {d.name}, {b.choose.randrange(100)}")
    b.emit("bar.sync 0")
    b.emit(f"setp.le.u32 {few.name}, {threads}, 32")
    b.emit(f"@{few.name} bra {end}")
    b.emit(f"add.s32 {all_.name}, {threads}, 31")
    b.emit(f"and.b32 {all_.name}, {all_.name}, -32")
    b.emit(f"setp.ge.u32 {first.name}, {linear}, 32")
    b.emit(f"@{first.name} bra {waits}")
    b.emit(f"mad.lo.s32 {place.name}, {linear}, 4, smem")
    b.emit(f"st.shared.u32 [{place.name}], {b.pick('r').name}")
    number = b.choose.choice((4, 5, 15))
    b.emit(f"{b.choose.choice(('bar', 'barrier'))}.arrive {number}, {all_.name}")
    b.emit(f"bra {end}")
    b.mark(waits)
    b.emit(f"bar.sync {number}, {all_.name}")
    b.emit(f"and.b32 {other.name}, {linear}, 31")
    b.emit(f"mad.lo.s32 {place.name}, {other.name}, 4, smem")
    b.emit(f"ld.shared.u32 {d.name}, [{place.name}]")
    b.mark(end)
    b.emit("bar.sync 0")
    b.declare(d)


def scattered_barrier(b: EngineBuilder) -> None:
    """Threads of one warp that come to different barrier instructions of one number."""
    if not b.together or b.suffix:
        return
    other, end = b.label(), b.label()
    b.emit(f"@{b.pick('p').name} bra {other}")
    b.emit("barrier.sync 0")
    b.emit(f"bra {end}")
    b.mark(other)
    b.emit("barrier.sync 0")
    b.mark(end)
