"""Branches, ways out of loops, and bounds of loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.conversion import predicate

Body = Callable[[Builder], None]


def condition(b: Builder) -> Value:
    return predicate(b) if b.maybe(0.6) or not b.of("p") else b.pick("p")


def branch(b: Builder, body: Body) -> None:
    """A guard around statements, with or without an else part."""
    p = condition(b)
    negated = "!" if b.maybe(0.5) else ""
    other, end = b.label(), b.label()
    style = b.choose.randrange(4)
    if style <= 1:
        b.emit(f"@{negated}{p.name} bra {end}")
        with b.scope():
            body(b)
        b.mark(end)
    elif style == 2:
        b.emit(f"@{negated}{p.name} bra {other}")
        with b.scope():
            body(b)
        b.emit(f"bra{b.choose.choice(('', '.uni'))} {end}")
        b.mark(other)
        with b.scope():
            body(b)
        b.mark(end)
    else:
        # A value, sometimes a pointer, that is one of two.
        pointer = b.maybe(0.4) and len(b.pointers) > 1
        kind = "rd" if pointer else b.choose.choice(("r", "r", "rd"))
        d = b.fresh(kind, 8)
        b.emit(f"@{negated}{p.name} bra {other}")
        first = _arm(b, d, kind, pointer, body)
        b.emit(f"bra {end}")
        b.mark(other)
        second = _arm(b, d, kind, pointer, body)
        b.mark(end)
        d.bits = max(first.bits, second.bits)
        d.align = min(first.align, second.align)
        if pointer:
            b.declare_pointer(d, first.writable and second.writable)
        else:
            b.declare(d)


def _arm(b: Builder, d: Value, kind: str, pointer: bool, body: Body) -> Value:
    with b.scope():
        if b.maybe(0.4):
            body(b)
        if pointer:
            source = b.choose.choice(b.pointers)
            b.emit(f"mov.u64 {d.name}, {source.name}")
            return source
        text, bits = operand(b, kind)
        b.emit(f"mov.u{32 if kind == 'r' else 64} {d.name}, {text}")
        return Value(text, kind, bits)


def early_exit(b: Builder) -> None:
    p = condition(b)
    if b.suffix or b.maybe(0.5):
        b.emit(f"@{p.name} bra $END{b.suffix}")
    else:
        b.emit(f"@{'!' if b.maybe(0.3) else ''}{p.name} {b.choose.choice(('ret', 'exit'))}")


def leave_loop(b: Builder) -> None:
    """``break`` or ``continue`` under a condition."""
    out, again = b.breaks[-1]
    target = b.choose.choice([t for t in (out, again) if t] or [""])
    if target:
        p = condition(b)
        b.emit(f"@{'!' if b.maybe(0.3) else ''}{p.name} bra {target}")


class Bound(NamedTuple):
    """How often a loop may run at most, as text of a 32-bit operand."""

    text: str


def bound(b: Builder) -> Bound:
    chance = b.choose.random()
    if chance < 0.45:
        return Bound(b.parameters[b.choose.choice(("n", "m"))]().name)
    if chance < 0.6:
        return Bound(str(b.choose.choice((1, 2, 3, 4, 5, 8))))
    if chance < 0.75:
        # Bounded by the thread, or by a loop around: triangular.
        x = b.pick("r", 8)
        d = b.fresh("r", 4)
        b.emit(f"{b.choose.choice(('and.b32', 'rem.u32', 'min.u32'))} {d.name}, {x.name}, 7")
        return Bound(d.name)
    if chance < 0.85:
        x, y = b.pick("r", 6), b.parameters["n"]()
        d = b.fresh("r", 6)
        b.emit(f"{b.choose.choice(('sub.s32', 'add.s32'))} {d.name}, {y.name}, {x.name}")
        b.emit(f"min.s32 {d.name}, {d.name}, 9")
        return Bound(d.name)
    if chance < 0.93:
        return Bound(b.pick("r", 5).name)
    x = b.pick("r")
    d = b.fresh("r", 4)
    b.emit(f"and.b32 {d.name}, {x.name}, 7")
    return Bound(d.name)


class Inside:
    """The inside of a loop: definitions made there are forgotten after it, as it may not run."""

    def __init__(self, b: Builder, out: str, again: str) -> None:
        self.b = b
        self.scope = b.scope()
        self.jumps = (out, again)

    def __enter__(self) -> None:
        self.scope.__enter__()
        self.b.depth += 1
        self.b.breaks.append(self.jumps)

    def __exit__(self, *problem: object) -> None:
        self.b.breaks.pop()
        self.b.depth -= 1
        self.scope.__exit__(None, None, None)
