"""More idioms of complete and incomplete writes: chunks of a thread, nested loops, warps and lanes, clamped indices."""

from __future__ import annotations

from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.control import condition
from tests.random_kernels.idioms import changed, global_index, guard, put


def _text(b: Builder, *names: str) -> str:
    return b.parameters[b.choose.choice(names)]().name


def _for(b: Builder, start: str, limit: str, step: str, sign: str = "s") -> tuple[Value, str, str, Value]:
    """The head of a top-tested loop: (index, label of the head, label of the end, predicate)."""
    i, p, head, end = b.fresh("r", 9, fixed=True), b.fresh("p", 1), b.label(), b.label()
    b.emit(f"mov.u32 {i.name}, {start}")
    b.mark(head)
    b.emit(f"setp.{b.choose.choice(('ge', 'ge', 'ge', 'gt'))}.{sign}32 {p.name}, {i.name}, {limit}")
    b.emit(f"@{p.name} bra {end}")
    b.depth += 1
    return i, head, end, p


def _next(b: Builder, i: Value, head: str, end: str, step: str) -> None:
    b.emit(f"add.s32 {i.name}, {i.name}, {step}")
    b.emit(f"bra {head}")
    b.mark(end)
    b.depth -= 1


def chunks(b: Builder) -> None:
    """for (i = thread * chunk; i < min(start + chunk, len); i++) out[i] = ..."""
    thread = global_index(b, "x")
    chunk = b.choose.choice(("2", "4", "3", _text(b, "n", "x")))
    start, limit = b.fresh("r", 12), b.fresh("r", 12)
    b.emit(f"mul.lo.s32 {start.name}, {thread.name}, {chunk}")
    b.emit(f"add.s32 {limit.name}, {start.name}, {chunk}")
    if b.maybe(0.7):
        b.emit(f"min.s32 {limit.name}, {limit.name}, {_text(b, 'len', 'len', 'm')}")
    step = b.choose.choice(("1", "1", "2"))
    i, head, end, _ = _for(b, start.name, limit.name, step)
    with b.scope():
        put(b, i)
    _next(b, i, head, end, step)


def nested(b: Builder) -> None:
    """for (i...) for (j...) out[i * pitch + j] = ..., also triangular, also with tid as an addend."""
    n, m = _text(b, "n", "x"), b.choose.choice((_text(b, "m", "y"), "4", "3"))
    i, head, end, _ = _for(b, b.choose.choice(("0", "0", _text(b, "tid.x", "ctaid.x"))), n, "1")
    step = b.choose.choice(("1", "1", _text(b, "ntid.x"), _text(b, "nctaid.x")))
    with b.scope():
        inner = b.choose.choice((m, m, i.name, n))
        start = b.choose.choice(("0", "0", _text(b, "tid.x"), i.name))
        second = b.choose.choice(("1", "1", "2", _text(b, "ntid.x")))
        j, head2, end2, _ = _for(b, start, inner, second)
        where = b.fresh("r", 14)
        b.emit(f"mad.lo.s32 {where.name}, {i.name}, {b.choose.choice((m, m, '16', n))}, {j.name}")
        if b.maybe(0.3):
            b.emit(f"add.s32 {where.name}, {where.name}, {_text(b, 'tid.x', 'tid.y', 'ctaid.x')}")
        with b.scope():
            if b.maybe(0.2):
                b.emit(f"@{condition(b).name} bra {b.choose.choice((end2, end))}")
            put(b, where)
        _next(b, j, head2, end2, second)
        if b.maybe(0.2):
            put(b, j)
    _next(b, i, head, end, step)
    if b.maybe(0.3):
        put(b, i)


def warps(b: Builder) -> None:
    """Indices of tid taken apart: out[(tid >> k) * a + (tid & mask) * c]."""
    tid = b.parameters["tid.x"]().name if b.maybe(0.7) else global_index(b, "x").name
    log = b.choose.choice((1, 2, 3, 4, 5))
    lane, warp, where = b.fresh("r", 5), b.fresh("r", 6), b.fresh("r", 14)
    if b.maybe(0.3):
        b.emit(f"mov.u32 {lane.name}, {b.parameters['laneid']().name}")
    else:
        b.emit(b.choose.choice((f"and.b32 {lane.name}, {tid}, {(1 << log) - 1}",
                                f"rem.u32 {lane.name}, {tid}, {b.choose.choice((3, 5, 1 << log))}")))
    b.emit(b.choose.choice((f"shr.u32 {warp.name}, {tid}, {log}", f"div.u32 {warp.name}, {tid}, {1 << log}",
                            f"shr.s32 {warp.name}, {tid}, {b.choose.choice((log, log + 1))}")))
    one, two = (lane, warp) if b.maybe(0.5) else (warp, lane)
    factor = b.choose.choice((1 << log, 1 << log, 32, 8, 3, 1))
    b.emit(f"mad.lo.s32 {where.name}, {one.name}, {factor}, {two.name}")
    skip = ""
    if b.maybe(0.5):
        skip = guard(b, b.choose.choice((where, lane, warp)), b.choose.choice((_text(b, "len", "n"), "8", "3")))
    with b.scope():
        put(b, where)
    if skip:
        b.mark(skip)


def clamped(b: Builder) -> None:
    """out[min(i, len - 1)], out[max(i - 1, 0)], out[len - 1 - i], out[i % len]: no guard is needed."""
    i = global_index(b, "x")
    n = _text(b, "len", "n")
    last, where = b.fresh("r", 9), b.fresh("r", 9)
    b.emit(f"add.s32 {last.name}, {n}, -1")
    style = b.choose.randrange(5)
    if style == 0:
        b.emit(f"min.{b.choose.choice('su')}32 {where.name}, {i.name}, {last.name}")
    elif style == 1:
        b.emit(f"add.s32 {where.name}, {i.name}, -1")
        b.emit(f"max.s32 {where.name}, {where.name}, 0")
    elif style == 2:
        b.emit(f"sub.s32 {where.name}, {last.name}, {i.name}")
    elif style == 3:
        b.emit(f"or.b32 {last.name}, {last.name}, 1")
        b.emit(f"rem.{b.choose.choice('su')}32 {where.name}, {i.name}, {last.name}")
    else:
        p = b.fresh("p", 1)
        b.emit(f"setp.lt.s32 {p.name}, {i.name}, {n}")
        b.emit(f"selp.b32 {where.name}, {i.name}, {operand(b, 'r', 6)[0]}, {p.name}")
    skip = guard(b, i, n) if b.maybe(0.4) else ""
    with b.scope():
        put(b, where)
    if skip:
        b.mark(skip)


def punctured(b: Builder) -> None:
    """All indices but one, or but some: if (i != c) out[i] = ...; if (i & 1) ..."""
    i, p, skip = global_index(b, "x"), b.fresh("p", 1), b.label()
    if b.maybe(0.5):
        b.emit(f"setp.eq.s32 {p.name}, {i.name}, {b.choose.choice(('0', '5', _text(b, 'n', 'm', 'len')))}")
    else:
        t = b.fresh("r", 3)
        b.emit(f"and.b32 {t.name}, {i.name}, {b.choose.choice((1, 3, 4))}")
        b.emit(f"setp.{b.choose.choice(('ne', 'eq', 'lt'))}.s32 {p.name}, {t.name}, {b.choose.choice((0, 1, 2))}")
    b.emit(f"@{p.name} bra {skip}")
    with b.scope():
        put(b, changed(b, i))
    b.mark(skip)


def after_loop(b: Builder) -> None:
    """What a loop leaves behind: the index where it ended, and the last element written in it."""
    n = _text(b, "n", "m", "len")
    start = b.choose.choice(("0", _text(b, "tid.x", "tid.x", "ctaid.x")))
    step = b.choose.choice(("1", "2", "3", _text(b, "ntid.x")))
    i, head, end, _ = _for(b, start, n, step)
    lagging = b.fresh("r", 9, fixed=True)
    b.lines.insert(len(b.lines) - 3, f"\tmov.u32 {lagging.name}, 7;")
    with b.scope():
        if b.maybe(0.3):
            put(b, i)
        if b.maybe(0.3):
            b.emit(f"@{condition(b).name} bra {end}")
        b.emit(f"mov.u32 {lagging.name}, {i.name}")
    _next(b, i, head, end, step)
    put(b, b.choose.choice((i, lagging)))
    b.declare(i)
    b.declare(lagging)


def tree(b: Builder) -> None:
    """for (s = ntid / 2; s > 0; s /= 2) if (tid < s) out[tid + s] = ..."""
    s, p, q, head, end = b.fresh("r", 7, fixed=True), b.fresh("p", 1), b.fresh("p", 1), b.label(), b.label()
    b.emit(f"shr.u32 {s.name}, {_text(b, 'ntid.x', 'ntid.x', 'len')}, {b.choose.choice((0, 1))}")
    b.mark(head)
    b.emit(f"setp.{b.choose.choice(('eq.s32', 'lt.u32'))} {p.name}, {s.name}, {b.choose.choice((0, 0, 1))}")
    b.emit(f"@{p.name} bra {end}")
    b.depth += 1
    skip, where = b.label(), b.fresh("r", 8)
    b.emit(f"setp.ge.{b.choose.choice('su')}32 {q.name}, {_text(b, 'tid.x')}, {s.name}")
    b.emit(f"@{q.name} bra {skip}")
    b.emit(f"add.s32 {where.name}, {_text(b, 'tid.x')}, {b.choose.choice((s.name, s.name, '0'))}")
    with b.scope():
        put(b, where)
    b.mark(skip)
    b.emit(f"shr.{b.choose.choice('su')}32 {s.name}, {s.name}, 1")
    b.emit(f"setp.eq.s32 {p.name}, {s.name}, 0")
    b.emit(f"@{p.name} bra {end}")
    b.emit(f"bra {head}")
    b.depth -= 1
    b.mark(end)


NESTED = (chunks, chunks, nested, nested, warps, warps, clamped, punctured, after_loop, after_loop, tree)
