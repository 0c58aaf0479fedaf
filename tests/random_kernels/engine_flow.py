"""Control flow of the engine's kernels: who runs what together is kept track of."""

from __future__ import annotations

from collections.abc import Callable

from tests.random_kernels import control
from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder
from tests.random_kernels.engine_builder import EngineBuilder
from tests.random_kernels.loops import (
    MOST_DEPTH,
    countdown,
    do_while,
    halving,
    long_index,
    multiply_step,
    rotated,
    top_tested,
    two_ends,
    unrolled,
)
from tests.random_kernels.odd_flow import odd_flow

Body = Callable[[EngineBuilder], None]
LOOPS = (top_tested, rotated, do_while, countdown, unrolled, halving, long_index, two_ends, multiply_step)


def alone(body: Body) -> Callable[[Builder], None]:
    """The body for the statements of the general generator, which may be executed by any threads."""

    def inside(b: Builder) -> None:
        assert isinstance(b, EngineBuilder)
        with b.apart():
            body(b)

    return inside


def flow(b: EngineBuilder, body: Body) -> None:
    """Any branch or loop."""
    style = b.choose.randrange(23)
    if style < 4:
        control.branch(b, alone(body))
    elif style < 8:
        if b.depth < MOST_DEPTH:
            b.choose.choice(LOOPS)(b, alone(body))
    elif style < 11:
        odd_flow(b, alone(body))
    elif style < 14:
        voted_branch(b, body)
    elif style < 16:
        uniform_branch(b, body)
    elif style < 18:
        uniform_loop(b, body)
    elif style < 19:
        goto_graph(b, body)
    elif style < 20:
        warp_branch(b, body)
    elif style < 22:
        voted_loop(b, body)
    else:
        common_graph(b, body)


def voted_branch(b: EngineBuilder, body: Body) -> None:
    """A branch whose sides know who is with them."""
    if b.mask is None:
        return control.branch(b, alone(body))
    p, m, n = control.condition(b), b.fresh("r"), b.fresh("r")
    other, end = b.label(), b.label()
    b.emit(f"vote.sync.ballot.b32 {m.name}, {p.name}, {b.mask}")
    b.emit(f"vote.sync.ballot.b32 {n.name}, !{p.name}, {b.mask}")
    b.emit(f"@!{p.name} bra {other}")
    with b.apart(m.name), b.scope():
        body(b)
    if b.maybe(0.5):
        b.emit(f"bra {end}")
        b.mark(other)
        with b.apart(n.name), b.scope():
            body(b)
        b.mark(end)
    else:
        b.mark(other)
    return None


def uniform_branch(b: EngineBuilder, body: Body) -> None:
    """A condition that is the same for all threads of a block, and may be for all of the grid."""
    p, end = b.fresh("p"), b.label()
    source = b.choose.choice((b.block_index(), b.parameters["n"](), b.parameters["m"](), b.threads()))
    t = b.fresh("r")
    b.emit(f"and.b32 {t.name}, {source.name}, {b.choose.choice((1, 3, 4))}")
    b.emit(f"setp.{b.choose.choice(('eq', 'ne'))}.s32 {p.name}, {t.name}, {b.choose.randrange(2)}")
    b.emit(f"@{p.name} bra {end}")
    with b.scope():
        body(b)
    b.mark(end)


def warp_branch(b: EngineBuilder, body: Body) -> None:
    """A condition that is the same within each warp, though the compiler may not see it."""
    p, end, t = b.fresh("p"), b.label(), b.fresh("r")
    b.emit(f"shr.u32 {t.name}, {b.linear().name}, 5")
    b.emit(f"setp.lt.u32 {p.name}, {t.name}, {b.choose.choice((1, 2))}")
    b.emit(f"@{p.name} bra {end}")
    with b.same(False), b.scope():
        body(b)
    b.mark(end)


def uniform_loop(b: EngineBuilder, body: Body) -> None:
    """As many rounds for all threads of the grid; no thread leaves it by itself."""
    if b.depth >= MOST_DEPTH:
        return
    i, limit, p = b.fresh("r", 4, fixed=True), b.fresh("r", 4, fixed=True), b.fresh("p")
    b.emit(f"and.b32 {limit.name}, {b.parameters[b.choose.choice('nm')]().name}, 3")
    b.emit(f"mov.u32 {i.name}, 0")
    b.declare(i)
    head = b.label()
    b.mark(head)
    b.depth += 1
    b.breaks.append(("", ""))
    with b.scope():
        body(b)
    b.breaks.pop()
    b.depth -= 1
    b.emit(f"add.s32 {i.name}, {i.name}, 1")
    b.emit(f"setp.lt.s32 {p.name}, {i.name}, {limit.name}")
    b.emit(f"@{p.name} bra {head}")


def goto_graph(b: EngineBuilder, body: Body) -> None:
    """A few blocks with jumps between any of them, bounded by a count: often a graph without structure."""
    if b.depth >= MOST_DEPTH:
        return
    count = b.choose.choice((2, 3, 4, 5))
    left, p = b.fresh("r", 4, fixed=True), b.fresh("p")
    state = b.fresh("r", 32, fixed=True)
    labels, end = [b.label() for _ in range(count)], b.label()
    b.emit(f"mov.u32 {left.name}, {b.choose.choice((3, 5, 9))}")
    b.emit(f"mov.u32 {state.name}, {operand(b, 'r')[0]}")
    b.declare(state)
    for label in labels:
        b.mark(label)
        b.emit(f"add.s32 {left.name}, {left.name}, -1")
        b.emit(f"setp.lt.s32 {p.name}, {left.name}, 0")
        b.emit(f"@{p.name} bra {end}")
        b.depth += 1
        b.breaks.append((end, ""))
        with b.apart(), b.scope():
            body(b)
            b.emit(f"mad.lo.s32 {state.name}, {state.name}, {b.choose.choice((3, 5, 1))}, {operand(b, 'r')[0]}")
            for _ in range(b.choose.choice((0, 1, 1, 2))):
                q = control.condition(b)
                b.emit(f"@{q.name} bra {b.choose.choice([*labels, end])}")
        b.breaks.pop()
        b.depth -= 1
        if b.maybe(0.3):
            b.emit(f"bra {b.choose.choice([*labels, end])}")
    b.mark(end)


def voted_loop(b: EngineBuilder, body: Body) -> None:
    """A loop that lanes leave one by one, while those that stay know one another."""
    if b.depth >= MOST_DEPTH or b.mask is None:
        return
    i, limit, mask = b.fresh("r", 4, fixed=True), b.fresh("r", 4, fixed=True), b.fresh("r", 32, fixed=True)
    p, more = b.fresh("p"), b.fresh("r")
    b.emit(f"and.b32 {limit.name}, {b.pick('r').name}, {b.choose.choice((1, 3))}")
    b.emit(f"mov.u32 {i.name}, 0")
    b.emit(f"mov.u32 {mask.name}, {b.mask}")
    b.declare(i)
    head = b.label()
    b.mark(head)
    b.depth += 1
    b.breaks.append(("", ""))
    with b.apart(mask.name), b.scope():
        body(b)
    b.breaks.pop()
    b.depth -= 1
    b.emit(f"add.s32 {i.name}, {i.name}, 1")
    b.emit(f"setp.le.s32 {p.name}, {i.name}, {limit.name}")
    b.emit(f"vote.sync.ballot.b32 {more.name}, {p.name}, {mask.name}")
    if b.maybe(0.5):
        b.emit(f"@{p.name} mov.u32 {mask.name}, {more.name}")
    else:
        b.emit(f"mov.u32 {mask.name}, {more.name}")
    b.emit(f"@{p.name} bra {head}")


def common_graph(b: EngineBuilder, body: Body) -> None:
    """A graph with jumps between any of its blocks, in which all threads of a block go the same way."""
    if b.depth >= MOST_DEPTH:
        return
    left, p, t = b.fresh("r", 4, fixed=True), b.fresh("p"), b.fresh("r")
    labels, end = [b.label() for _ in range(b.choose.choice((2, 3, 4)))], b.label()
    source = b.choose.choice((b.block_index(), b.parameters["n"](), b.parameters["m"]())).name
    b.emit(f"mov.u32 {left.name}, {b.choose.choice((3, 5))}")
    for label in labels:
        b.mark(label)
        b.emit(f"add.s32 {left.name}, {left.name}, -1")
        b.emit(f"setp.lt.s32 {p.name}, {left.name}, 0")
        b.emit(f"@{p.name} bra {end}")
        b.depth += 1
        b.breaks.append(("", ""))
        with b.scope():
            body(b)
        b.breaks.pop()
        b.depth -= 1
        b.emit(f"mad.lo.s32 {t.name}, {source}, {b.choose.choice((1, 3, 5))}, {left.name}")
        b.emit(f"and.b32 {t.name}, {t.name}, {b.choose.choice((1, 2, 3))}")
        b.emit(f"setp.eq.s32 {p.name}, {t.name}, 1")
        b.emit(f"@{p.name} bra {b.choose.choice([*labels, end])}")
    b.mark(end)
