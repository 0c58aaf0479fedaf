"""Idioms whose writes should be seen to be complete, and often are not complete: guarded element-wise stores, rows
walked by a block, tiles, two-dimensional grids. Every part is varied on its own."""

from __future__ import annotations

from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.control import condition

FACTORS = (1, 1, 1, 1, 2, 3, 4, -1)


def _output(b: Builder) -> Value:
    return b.choose.choice([p for p in b.pointers if p.writable])


def put(b: Builder, index: Value, pointer: Value | None = None) -> None:
    """A store of one to four elements at an index."""
    out = pointer or _output(b)
    size = min(b.choose.choice((1, 2, 4, 4, 4, 8)), out.align)
    wide, where = b.fresh("rd"), b.fresh("rd")
    b.emit(f"mul.wide.{b.choose.choice('sssu')}32 {wide.name}, {index.name}, {size * b.choose.choice((1, 1, 1, 1, 2))}")
    b.emit(f"add.s64 {where.name}, {out.name}, {wide.name}")
    register = {1: "rs", 2: "rs", 4: "r", 8: "rd"}[size]
    for step in range(b.choose.choice((1, 1, 1, 2, 4))):
        guard = f"@{b.pick('p').name} " if b.maybe(0.04) else ""
        b.emit(f"{guard}st.global.b{8 * size} [{where.name}+{step * size * b.choose.choice((1, 1, 1, 2))}], "
               f"{b.pick(register).name}")


def changed(b: Builder, index: Value) -> Value:
    """The index itself, or a simple function of it."""
    if b.maybe(0.6):
        return index
    d = b.fresh("r", index.bits + 4)
    style = b.choose.randrange(9)
    number = b.choose.choice((1, 2, 3, 4, 7, 8, 16))
    if style <= 2:
        b.emit(f"{b.choose.choice(('add.s32', 'sub.s32', 'xor.b32', 'mul.lo.s32', 'and.b32', 'or.b32'))} {d.name}, "
               f"{index.name}, {b.choose.choice((number, -number))}")
    elif style == 3:
        b.emit(f"{b.choose.choice(('div', 'rem'))}.{b.choose.choice('su')}32 {d.name}, {index.name}, {number}")
    elif style == 4:
        b.emit(f"sub.s32 {d.name}, {b.parameters['len']().name}, {index.name}")
    elif style == 5:
        b.emit(f"{b.choose.choice(('min', 'max'))}.s32 {d.name}, {index.name}, {b.pick('r', 9).name}")
    elif style == 6:
        b.emit(f"mad.lo.s32 {d.name}, {index.name}, {number}, {b.pick('r', 9).name}")
    elif style == 7:
        # Bits of the index exchanged, as in a transposed tile.
        low, high = b.fresh("r"), b.fresh("r")
        log = b.choose.choice((1, 2, 3))
        b.emit(f"and.b32 {low.name}, {index.name}, {(1 << log) - 1}")
        b.emit(f"shr.u32 {high.name}, {index.name}, {log}")
        b.emit(f"mad.lo.s32 {d.name}, {low.name}, {b.choose.choice((8, 16, 32))}, {high.name}")
    else:
        b.emit(f"shl.b32 {d.name}, {index.name}, {b.choose.choice((1, 2))}")
    return b.declare(d)


def global_index(b: Builder, axis: str) -> Value:
    names = {k: b.parameters[f"{k}.{axis}"]().name for k in ("tid", "ntid", "ctaid")}
    i = b.fresh("r", 9)
    b.emit(f"mad.lo.s32 {i.name}, {names['ctaid']}, {names['ntid']}, {names['tid']}")
    return b.declare(i)


def guard(b: Builder, index: Value, limit: str) -> str:
    """A branch past the end of an array; returns the label to which it goes."""
    p, skip = b.fresh("p", 1), b.label()
    relation = b.choose.choice(("ge.s32", "ge.s32", "ge.u32", "gt.s32", "eq.s32", "ge.u32"))
    if b.maybe(0.15):
        b.emit(f"setp.{relation.replace('ge', 'le')} {p.name}, {limit}, {index.name}")
    elif b.maybe(0.15):
        q = condition(b)
        b.emit(f"setp.{relation[:2]}.{b.choose.choice(('or', 'or', 'and'))}.{relation[3:]} {p.name}, {index.name}, "
               f"{limit}, {q.name}")
    else:
        b.emit(f"setp.{relation} {p.name}, {index.name}, {limit}")
    b.emit(f"@{p.name} bra {skip}")
    return skip


def element_wise(b: Builder) -> None:
    """if (i < len) out[f(i)] = ..."""
    i = global_index(b, b.choose.choice("xxxy"))
    tested = i if b.maybe(0.7) else changed(b, i)
    skip = guard(b, tested, b.parameters[b.choose.choice(("len", "len", "n"))]().name if b.maybe(0.85) else "20")
    with b.scope():
        put(b, i if b.maybe(0.5) else changed(b, i))
    b.mark(skip)


def matrix(b: Builder) -> None:
    """if (row < m && column < n) out[row * n + column] = ..."""
    row, column = global_index(b, "y"), global_index(b, "x")
    n, m = b.parameters[b.choose.choice(("n", "len", "x"))]().name, b.parameters[b.choose.choice(("m", "y"))]().name
    if b.maybe(0.2):
        m = str(b.choose.choice((4, 8, 3)))
    p, q, skip = b.fresh("p", 1), b.fresh("p", 1), b.label()
    b.emit(f"setp.{b.choose.choice(('ge.s32', 'ge.s32', 'ge.u32'))} {p.name}, {column.name}, {n}")
    if b.maybe(0.5):
        b.emit(f"setp.ge.s32 {q.name}, {row.name}, {m}")
        b.emit(f"or.pred {p.name}, {p.name}, {q.name}")
        b.emit(f"@{p.name} bra {skip}")
    elif b.maybe(0.5):
        b.emit(f"@{p.name} bra {skip}")
        b.emit(f"setp.ge.s32 {q.name}, {row.name}, {m}")
        b.emit(f"@{q.name} bra {skip}")
    else:
        b.emit(f"setp.lt.and.s32 {q.name}, {row.name}, {m}, !{p.name}")
        b.emit(f"@!{q.name} bra {skip}")
    i = b.fresh("r", 15)
    pitch = n if b.maybe(0.7) else b.choose.choice((b.parameters["ntid.x"]().name, "16", "32", m))
    first, second = (row, column) if b.maybe(0.8) else (column, row)
    b.emit(f"mad.lo.s32 {i.name}, {first.name}, {pitch}, {second.name}")
    with b.scope():
        put(b, changed(b, i) if b.maybe(0.2) else i)
    b.mark(skip)


def rows(b: Builder) -> None:
    """for (i = tid; i < n; i += ntid) out[ctaid * n + i] = ..., with the start, step and limit varied."""
    tid, ntid, ctaid = (b.parameters[f"{k}.x"]().name for k in ("tid", "ntid", "ctaid"))
    n = b.parameters[b.choose.choice(("n", "m", "len"))]().name
    i, start = b.fresh("r", 9, fixed=True), b.fresh("r", 10)
    b.emit(f"mul.lo.s32 {start.name}, {ctaid}, {b.choose.choice((n, n, ntid, '32'))}")
    b.emit(f"mov.u32 {i.name}, {b.choose.choice((tid, tid, '0', ctaid))}")
    step = b.choose.choice((ntid, ntid, "1", "2", "4", b.parameters["nctaid.x"]().name))
    head, end, again = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    rotated = b.maybe(0.5)
    sign = b.choose.choice("sssu")
    if rotated:
        b.emit(f"setp.ge.{sign}32 {p.name}, {i.name}, {n}")
        b.emit(f"@{p.name} bra {end}")
        b.mark(head)
    else:
        b.mark(head)
        b.emit(f"setp.ge.{sign}32 {p.name}, {i.name}, {n}")
        b.emit(f"@{p.name} bra {end}")
    index = b.fresh("r", 11)
    b.emit(f"add.s32 {index.name}, {start.name}, {i.name}")
    b.depth += 1
    with b.scope():
        if b.maybe(0.15):
            b.emit(f"@{condition(b).name} bra {b.choose.choice((again, again, end))}")
        put(b, changed(b, index) if b.maybe(0.2) else index)
        if b.maybe(0.05):
            b.emit(f"@{condition(b).name} bra {b.choose.choice((again, end))}")
    b.depth -= 1
    b.mark(again)
    b.emit(f"add.s32 {i.name}, {i.name}, {step}")
    if rotated:
        _again_if(b, p, f"lt.{sign}32", i, n)
        b.emit(f"@{p.name} bra {head}")
    else:
        b.emit(f"bra {head}")
    b.mark(end)
    b.declare(i)


def tiles(b: Builder) -> None:
    """A few elements a thread at distance ntid, or next to each other; a constant number of iterations."""
    i = global_index(b, "x")
    count = b.choose.choice((2, 3, 4))
    k, where, p = b.fresh("r", 3, fixed=True), b.fresh("r", 11), b.fresh("p", 1)
    b.emit(f"mov.u32 {k.name}, 0")
    head = b.label()
    b.mark(head)
    if b.maybe(0.5):
        b.emit(f"mad.lo.s32 {where.name}, {i.name}, {b.choose.choice((count, count, 2, 4))}, {k.name}")
    else:
        ntid, nctaid = b.parameters["ntid.x"]().name, b.parameters["nctaid.x"]().name
        t = b.fresh("r")
        b.emit(f"mul.lo.s32 {t.name}, {ntid}, {nctaid if b.maybe(0.6) else 1}")
        b.emit(f"mad.lo.s32 {where.name}, {k.name}, {t.name}, {i.name}")
    b.depth += 1
    with b.scope():
        if b.maybe(0.5):
            skip = guard(b, where, b.parameters["len"]().name)
            put(b, where)
            b.mark(skip)
        else:
            put(b, where)
    b.depth -= 1
    b.emit(f"add.s32 {k.name}, {k.name}, 1")
    _again_if(b, p, b.choose.choice(("lt.s32", "ne.s32", "lt.u32")), k, str(count))
    b.emit(f"@{p.name} bra {head}")
    b.declare(k)


def _again_if(b: Builder, p: Value, relation: str, i: Value, limit: str) -> None:
    """The test at the end of a loop, sometimes of two conditions."""
    if b.maybe(0.2):
        q = condition(b)
        name, kind = relation.split(".")
        b.emit(f"setp.{name}.and.{kind} {p.name}, {i.name}, {limit}, {'!' if b.maybe(0.3) else ''}{q.name}")
    else:
        b.emit(f"setp.{relation} {p.name}, {i.name}, {limit}")


def one_thread(b: Builder) -> None:
    """if (tid == c) out[ctaid] = ..."""
    p, skip = b.fresh("p", 1), b.label()
    b.emit(f"setp.{b.choose.choice(('ne.s32', 'ne.s32', 'gt.u32', 'eq.s32'))} {p.name}, "
           f"{b.parameters[b.choose.choice(('tid.x', 'tid.x', 'tid.y'))]().name}, {b.choose.choice((0, 0, 0, 1, 3))}")
    b.emit(f"@{p.name} bra {skip}")
    with b.scope():
        ctaid = b.fresh("r", 4)
        b.emit(f"mov.u32 {ctaid.name}, {b.parameters['ctaid.x']().name}")
        put(b, changed(b, ctaid))
    b.mark(skip)


def halves(b: Builder) -> None:
    """Both ways of a branch write: together everything, or not."""
    i = global_index(b, "x")
    p, other, end = condition(b), b.label(), b.label()
    out = _output(b)
    b.emit(f"@{p.name} bra {other}")
    with b.scope():
        put(b, i, out)
    b.emit(f"bra {end}")
    b.mark(other)
    with b.scope():
        put(b, changed(b, i), out)
    b.mark(end)


IDIOMS = (element_wise, element_wise, matrix, matrix, rows, rows, tiles, one_thread, halves)
