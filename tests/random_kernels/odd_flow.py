"""Control flow that compilers seldom write: loops without a header, jump tables, indices of 16 bits, moving limits."""

from __future__ import annotations

from tests.random_kernels.addresses import index
from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder
from tests.random_kernels.control import Body, bound, condition


def into_the_middle(b: Builder, body: Body) -> None:
    """A loop that is entered at its head or in its middle: it has no header."""
    i, p, q = b.fresh("r", 6, fixed=True), condition(b), b.fresh("p", 1)
    limit = bound(b).text
    head, middle, end = b.label(), b.label(), b.label()
    b.emit(f"mov.u32 {i.name}, {b.choose.choice((0, 1))}")
    b.declare(i)
    b.emit(f"@{p.name} bra {middle}")
    b.mark(head)
    with b.scope():
        b.depth += 1
        body(b)
        b.depth -= 1
    b.mark(middle)
    with b.scope():
        b.depth += 1
        body(b)
        b.depth -= 1
    b.emit(f"add.s32 {i.name}, {i.name}, 1")
    b.emit(f"setp.lt.s32 {q.name}, {i.name}, {limit}")
    b.emit(f"@{q.name} bra {head}")
    b.mark(end)


def jump_table(b: Builder, body: Body) -> None:
    """``brx.idx`` over a few targets; a value is set on every way."""
    x = b.fresh("r", 2)
    b.emit(f"and.b32 {x.name}, {b.pick('r').name}, {b.choose.choice((1, 3))}")
    names = [b.label() for _ in range(4)]
    table, end = b.label() + "t", b.label()
    d = b.fresh("r", 7)
    b.lines.append(f"{table}: .branchtargets {', '.join(names)};")
    b.emit(f"brx.idx {x.name}, {table}")
    for name in names:
        b.mark(name)
        with b.scope():
            if b.maybe(0.4):
                body(b)
            b.emit(f"mov.u32 {d.name}, {operand(b, 'r', 7)[0]}")
        if b.maybe(0.8):
            b.emit(f"bra {end}")
    b.mark(end)
    b.declare(d)


def crossed_branches(b: Builder, body: Body) -> None:
    """if (p && q) ... or if (p || q) ..., as jumps; or a branch to the next statement."""
    p, q = condition(b), condition(b)
    inside, end = b.label(), b.label()
    style = b.choose.randrange(4)
    if style == 0:
        b.emit(f"@!{p.name} bra {end}")
        b.emit(f"@!{q.name} bra {end}")
    elif style == 1:
        b.emit(f"@{p.name} bra {inside}")
        b.emit(f"@!{q.name} bra {end}")
    elif style == 2:
        b.emit(f"@{p.name} bra {inside}")
        b.emit(f"bra {end}")
    else:
        b.emit(f"@{p.name} bra {inside}")
    b.mark(inside)
    with b.scope():
        body(b)
    b.mark(end)


def endless_with_breaks(b: Builder, body: Body) -> None:
    """while (true) { ...; if (i++ >= n) break; ...; if (p) break; ... }"""
    i, p = b.fresh("r", 6, fixed=True), b.fresh("p", 1)
    limit = bound(b).text
    start = b.choose.choice((0, 1, -2))
    step = b.choose.choice((1, 1, 2))
    b.emit(f"mov.u32 {i.name}, {start}")
    b.declare(i)
    head, end, other = b.label(), b.label(), b.label()
    b.mark(head)
    b.depth += 1
    with b.scope():
        if b.maybe(0.6):
            body(b)
        b.emit(f"setp.ge.s32 {p.name}, {i.name}, {limit}")
        b.emit(f"@{p.name} bra {end}")
        b.emit(f"add.s32 {i.name}, {i.name}, {step}")
        body(b)
        if b.maybe(0.5):
            b.emit(f"@{condition(b).name} bra {b.choose.choice((end, other, head))}")
        if b.maybe(0.15) and not b.suffix:
            b.emit(f"@{condition(b).name} {b.choose.choice(('ret', 'exit'))}")
    b.depth -= 1
    b.emit(f"bra {head}")
    b.mark(other)
    if b.maybe(0.3):
        b.emit(f"add.s32 {i.name}, {i.name}, 1")
    b.mark(end)


def short_index(b: Builder, body: Body) -> None:
    """A loop whose index has 16 bits."""
    i, p = b.fresh("rs", 6, fixed=True), b.fresh("p", 1)
    limit = b.fresh("rs", 6)
    b.emit(f"cvt.u16.u32 {limit.name}, {index(b, 6).name}")
    b.emit(f"and.b16 {limit.name}, {limit.name}, 15")
    b.emit(f"mov.u16 {i.name}, {b.choose.choice((0, 1, 3))}")
    b.declare(i)
    head, end = b.label(), b.label()
    b.mark(head)
    b.emit(f"setp.ge.{b.choose.choice('su')}16 {p.name}, {i.name}, {limit.name}")
    b.emit(f"@{p.name} bra {end}")
    b.depth += 1
    with b.scope():
        wide = b.fresh("r", 6)
        b.emit(f"cvt.{b.choose.choice(('s32.s16', 'u32.u16'))} {wide.name}, {i.name}")
        b.declare(wide)
        body(b)
    b.depth -= 1
    b.emit(f"add.s16 {i.name}, {i.name}, {b.choose.choice((1, 2))}")
    b.emit(f"bra {head}")
    b.mark(end)


def down_to_zero(b: Builder, body: Body) -> None:
    """for (i = n - 1; i >= 0; i--), with a signed or an unsigned test, or ``while (i-- > 0)``."""
    i, p = b.fresh("r", 6, fixed=True), b.fresh("p", 1)
    b.emit(f"min.s32 {i.name}, {bound(b).text if b.maybe(0.8) else index(b, 5).name}, 12")
    b.declare(i)
    head, end = b.label(), b.label()
    style = b.choose.randrange(3)
    if style:
        b.emit(f"add.s32 {i.name}, {i.name}, -1")
    b.mark(head)
    if style == 0:
        b.emit(f"setp.le.s32 {p.name}, {i.name}, 0")
        b.emit(f"@{p.name} bra {end}")
        b.emit(f"add.s32 {i.name}, {i.name}, -1")
    elif style == 1:
        b.emit(f"setp.lt.s32 {p.name}, {i.name}, 0")
        b.emit(f"@{p.name} bra {end}")
    else:
        # The test is unsigned: -1 is large.
        b.emit(f"setp.gt.u32 {p.name}, {i.name}, 15")
        b.emit(f"@{p.name} bra {end}")
    b.depth += 1
    with b.scope():
        body(b)
    b.depth -= 1
    if style:
        b.emit(f"add.s32 {i.name}, {i.name}, {b.choose.choice((-1, -1, -2, -4))}")
    b.emit(f"bra {head}")
    b.mark(end)


def moving_limit(b: Builder, body: Body) -> None:
    """A loop whose limit or step changes while it runs."""
    i, n, s, p = b.fresh("r", 6, fixed=True), b.fresh("r", 6, fixed=True), b.fresh("r", 4, fixed=True), b.fresh("p", 1)
    b.emit(f"mov.u32 {i.name}, 0")
    b.emit(f"mov.u32 {n.name}, {bound(b).text}")
    b.emit(f"mov.u32 {s.name}, 1")
    for v in (i, n, s):
        b.declare(v)
    head, end = b.label(), b.label()
    b.mark(head)
    b.emit(f"setp.ge.s32 {p.name}, {i.name}, {n.name}")
    b.emit(f"@{p.name} bra {end}")
    b.depth += 1
    with b.scope():
        body(b)
        text = b.choose.choice((f"add.s32 {n.name}, {n.name}, -1", f"add.s32 {s.name}, {s.name}, 1",
                                f"min.s32 {n.name}, {n.name}, {index(b, 6).name}", f"xor.b32 {s.name}, {s.name}, 3",
                                f"shr.s32 {n.name}, {n.name}, 1"))
        guard = f"@{condition(b).name} " if b.maybe(0.4) else ""
        b.emit(guard + text)
    b.depth -= 1
    b.emit(f"add.s32 {i.name}, {i.name}, {s.name}")
    b.emit(f"bra {head}")
    b.mark(end)


LOOPS = (into_the_middle, jump_table, crossed_branches, crossed_branches, endless_with_breaks, endless_with_breaks,
         short_index, down_to_zero, down_to_zero, moving_limit)  # fmt: skip


def odd_flow(b: Builder, body: Body) -> None:
    if b.depth < 2:
        b.choose.choice(LOOPS)(b, body)
