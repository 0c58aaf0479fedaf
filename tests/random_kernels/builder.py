"""A PTX function being written: registers by type with rough bounds of what they hold, statements, labels.

Registers are not in SSA form: a definition may take a register that is already in use, as compilers' output does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

WIDTH = {"rs": 16, "r": 32, "rd": 64}
"""Bits of a register by its kind."""
PREFIX = {"rs": ".b16", "r": ".b32", "rd": ".b64", "p": ".pred", "f": ".f32"}


@dataclass(eq=False)
class Value:
    """A register. ``bits``: its signed number lies within 2^bits of zero (as far as small parameters are small).
    ``fixed`` registers are not redefined by arithmetic. ``grows``: the loop depth at which it was defined."""

    name: str
    kind: str
    bits: int
    depth: int = 0
    fixed: bool = False
    writable: bool = False
    align: int = 1


class Builder:
    """One function's text. ``pools`` are the values that may be used here, innermost scope last."""

    def __init__(self, choose: random.Random, suffix: str = "") -> None:
        self.choose = choose
        self.suffix = suffix
        self.prologue: list[str] = []
        self.lines: list[str] = []
        self.counters = dict.fromkeys(PREFIX, 0)
        self.labels = 0
        self.values: list[Value] = []
        self.pointers: list[Value] = []
        self.depth = 0
        self.nesting = 0
        self.breaks: list[tuple[str, str]] = []
        """(break label, continue label) of the loops around; "" where that jump is not possible."""
        self.parameters: dict[str, Callable[[], Value]] = {}
        self.functions: list[Callable[[Builder], None]] = []
        self.traits: set[str] = set()
        self.reads_only = False

    # -- names

    def fresh(self, kind: str, bits: int = 32, *, fixed: bool = False) -> Value:
        """A new register, not yet to be picked by others."""
        self.counters[kind] += 1
        return Value(f"%{kind}{self.counters[kind]}", kind, bits, self.depth, fixed)

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}{self.suffix}"

    # -- statements

    def emit(self, text: str) -> None:
        self.lines.append(f"\t{text};")

    def mark(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def declare(self, value: Value) -> Value:
        """Makes a defined value available."""
        self.values.append(value)
        return value

    def declare_pointer(self, value: Value, writable: bool) -> Value:
        value.writable = writable
        value.fixed = True
        self.pointers.append(value)
        return value

    def destination(self, kind: str, bits: int, *sources: Value | str) -> Value:
        """Where a result goes: mostly a new register, sometimes one in use. Declared already."""
        used = [v for v in self.of(kind) if not v.fixed]
        if used and self.choose.random() < 0.18:
            value = self.choose.choice(used)
            carried = value.depth < self.depth or self.nesting > 0
            if kind != "rd" or not carried or bits <= 20:
                # What is carried round a loop may grow with every iteration.
                value.bits = max(value.bits, bits + (6 if carried else 0))
                if kind != "rd":
                    value.bits = min(value.bits, 16 if kind == "rs" else 32)
                return value
        return self.declare(self.fresh(kind, bits))

    # -- choices

    def of(self, kind: str) -> list[Value]:
        return [v for v in self.values if v.kind == kind]

    def pick(self, kind: str, most: int = 64) -> Value:
        """A value of the kind, with a bias to recent ones; a constant in a register when there is none."""
        found = [v for v in self.values if v.kind == kind and v.bits <= most]
        if not found:
            return self.constant(kind)
        if self.choose.random() < 0.4:
            return self.choose.choice(found[-4:])
        return self.choose.choice(found)

    def constant(self, kind: str) -> Value:
        value = self.fresh(kind, 4)
        if kind == "p":
            source = self.pick("r")
            self.emit(f"setp.ne.s32 {value.name}, {source.name}, {self.choose.randrange(4)}")
        else:
            self.emit(f"mov.{ {'rs': 'u16', 'r': 'u32', 'rd': 'u64'}[kind] } {value.name}, {self.choose.randrange(9)}")
        return self.declare(value)

    def maybe(self, chance: float) -> bool:
        return self.choose.random() < chance

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is defined inside is not known after it."""
        values, pointers = list(self.values), list(self.pointers)
        self.nesting += 1
        yield
        self.nesting -= 1
        self.values, self.pointers = values, pointers

    def declarations(self) -> list[str]:
        return [f"\t.reg {PREFIX[kind]} %{kind}<{count + 1}>;" for kind, count in self.counters.items()]

    def body(self) -> list[str]:
        return [*self.declarations(), *self.prologue, *self.lines]
