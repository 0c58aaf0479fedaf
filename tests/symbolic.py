"""Sums of the analysis by definition: their values in plain Python integers, and random sums with those values."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ptxparse.rewrite import arguments
from ptxparse.transfer import compare, select
from ptxparse.values import INFINITY, Check, Graph, Sum, add, constant, scale

Valuation = Mapping[int, int]
"""A number for each leaf atom."""


class Unspecified(ArithmeticError):
    """A division by zero, or a choice of which no option applies: PTX gives no value."""


def wrapped(value: int, bits: int, signed: bool) -> int:
    """The signed or unsigned number in the low bits of an integer."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    """Quotient rounded toward zero."""
    if not b:
        raise Unspecified
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


class Oracle:
    """Values of sums and atoms of a graph (or of a program's nodes) when every leaf has the given number."""

    def __init__(self, nodes: Any, leaves: Valuation) -> None:
        self.nodes = nodes
        self.found: dict[int, int] = dict(leaves)

    def __call__(self, value: Sum) -> int:
        total = 0
        for product, coefficient in value:
            part = coefficient
            for atom in product:
                part *= self.atom(atom)
            total += part
        return total

    def atom(self, atom: int) -> int:
        """The number an atom stands for."""
        if atom not in self.found:
            self.found[atom] = self._compute(self.nodes[atom])
        return self.found[atom]

    def holds(self, check: Check) -> bool:
        return check.low <= self(check.value) <= check.high

    def all_hold(self, checks: Any) -> bool:
        return all(self.holds(check) for check in checks)

    def _compute(self, node: tuple[Any, ...]) -> int:
        kind = node[0]
        if kind == "alternatives":
            for value, guards in node[1]:
                if all(self(condition) & 1 == int(truth) for condition, truth in guards):
                    return self(value)
            raise Unspecified
        if kind == "provided":
            return self(node[1])
        if kind in ("wrap", "shift_right", "low_bits"):
            a = self(node[1])
            if kind == "wrap":
                return wrapped(a, node[2], node[3])
            return a >> node[2] if kind == "shift_right" else a % (1 << node[2])
        operations: dict[str, Callable[..., int]] = {
            "divide": truncated,
            "remainder": lambda a, b: a - b * truncated(a, b),
            "minimum": min,
            "multiply": lambda a, b: a * b,
            "and": lambda a, b: a & b,
            "or": lambda a, b: a | b,
            "xor": lambda a, b: a ^ b,
            "lt": lambda a, b: int(a < b),
            "eq": lambda a, b: int(a == b),
            "power": lambda a: 1 << max(min(a, 64), 0),
            "shift": lambda a, b: a >> max(min(b, 64), 0),
        }
        return operations[kind](*map(self, node[1:]))


def atoms_of(nodes: Any, value: Sum) -> set[int]:
    """All atoms that a sum is made of, those inside its other atoms included."""
    found: set[int] = set()
    work = [atom for product, _ in value for atom in product]
    while work:
        atom = work.pop()
        if atom not in found:
            found.add(atom)
            work += [a for inner in arguments(nodes[atom]) for product, _ in inner for a in product]
    return found


def leaves_of(nodes: Any, value: Sum) -> set[int]:
    """The leaf atoms that a sum depends on."""
    return {atom for atom in atoms_of(nodes, value) if not list(arguments(nodes[atom]))}


class Leaf(NamedTuple):
    """A leaf of random sums: its node, static bounds, and numbers it may take that are worth trying."""

    node: tuple[Any, ...]
    low: int
    high: int
    most: int


LEAVES = (
    Leaf(("tid", "x"), 0, 1023, 1023),
    Leaf(("tid", "y"), 0, 1023, 1023),
    Leaf(("ctaid", "x"), 0, 2**31 - 2, 2**31 - 2),
    Leaf(("ntid", "x"), 1, 1024, 1024),
    Leaf(("loop", 0), 0, INFINITY, 2**33),
    Leaf(("param", 0, 8, True), -(2**63), 2**63 - 1, 2**63 - 1),
    Leaf(("param", 8, 4, True), -(2**31), 2**31 - 1, 2**31 - 1),
    Leaf(("param", 12, 4, False), 0, 2**32 - 1, 2**32 - 1),
    Leaf(("unknown", 100, 0, 255, "memory"), 0, 255, 255),
    Leaf(("unknown", 101, -6, 9, "memory"), -6, 9, 9),
    Leaf(("unknown", 102, 0, 2**64 - 1, "value"), 0, 2**64 - 1, 2**64 - 1),
)


def edges(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers of a range, its ends and their neighbours more often than others."""
    near = sorted({x for x in (low, low + 1, high - 1, high, 0, 1, -1, 7, 8, 31, 32) if low <= x <= high})
    return st.one_of(st.sampled_from(near), st.integers(low, high))


def valuations(leaves: tuple[Leaf, ...] = LEAVES) -> st.SearchStrategy[tuple[int, ...]]:
    """Numbers for the leaves, in their order."""
    return st.tuples(*(edges(leaf.low, leaf.most) for leaf in leaves))


CONSTANTS = (0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 24, 31, 32, 33, 60, 63, 64, 100, 127, 128, 255, 256, 1000, 4096,
             0x7FFFFFFF, 0x80000000, 0xAAAAAAAB, 0xFFFFFFF0, 0xFFFFFFFF, 1 << 32, 3435973837, -1, -2, -4, -8, -16, -128,
             (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 16)
WIDTHS = (1, 8, 16, 24, 32, 64)
COUNTS = (0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 35, 63)
LARGEST = 1 << 190
"""Random sums stay smaller than this, far beyond any register, since INFINITY stands for no bound."""

Step = tuple[int, int, int, int]


def programs(codes: tuple[int, ...], most: int) -> st.SearchStrategy[list[Step]]:
    """Programs for :class:`Growth` of these operations: short ones, which shrink well, and long ones from a seed."""
    drawn = st.lists(
        st.tuples(st.sampled_from(codes), st.integers(0, 40), st.integers(0, 40), st.integers(0, 1000)),
        min_size=1, max_size=most,
    )

    def long(seed: int) -> list[Step]:
        choice = random.Random(seed)
        return [(choice.choice(codes), choice.randrange(41), choice.randrange(41), choice.randrange(1000))
                for _ in range(choice.randrange(most // 2, most))]

    return st.one_of(drawn, *[st.integers(0, 2**32 - 1).map(long)] * 3)


steps = programs(tuple(range(20)), 14)
"""Programs for :class:`Growth`."""


class Grown(NamedTuple):
    """One value of a random program: the graph's sum, what it was asked to be, and modulo 2^bits of what that holds
    (0: exactly)."""

    sum: Sum
    wanted: int
    bits: int


class Growth:
    """A graph with leaves, and values made by a random program through the graph's own operations.

    ``wanted`` numbers are computed from the operands' numbers, not from the graph. An operation that is only defined
    modulo a power of two goes on with the number that the graph chose.
    """

    def __init__(
        self, numbers: tuple[int, ...], leaves: tuple[Leaf, ...] = LEAVES, constants: tuple[int, ...] = CONSTANTS
    ) -> None:
        self.graph = Graph()
        self.constants = constants
        self.leaves: dict[int, int] = {}
        self.sums: list[Sum] = []
        self.numbers: list[int] = []
        for leaf, number in zip(leaves, numbers, strict=True):
            value = self.graph.leaf(leaf.node, leaf.low, leaf.high)
            self.leaves[value[0][0][0]] = number
            self.sums.append(value)
            self.numbers.append(number)
        self.booleans: list[int] = []

    def oracle(self) -> Oracle:
        return Oracle(self.graph.nodes, self.leaves)

    def run(self, program: list[Step]) -> list[Grown]:
        """The values of all steps that are defined and small enough; they may be operands of later ones."""
        made = []
        for step in program:
            try:
                grown = self.step(step)
            except Unspecified:
                continue
            if grown is None or abs(grown.wanted) >= LARGEST:
                continue
            number = grown.wanted if not grown.bits else self.oracle()(grown.sum)
            self.sums.append(grown.sum)
            self.numbers.append(number)
            made.append(grown)
        return made

    def step(self, step: Step) -> Grown | None:
        graph = self.graph
        code, i, j, k = step
        x, y = i % len(self.sums), j % len(self.sums)
        a, b, m, n = self.sums[x], self.sums[y], self.numbers[x], self.numbers[y]
        number, width = self.constants[k % len(self.constants)], WIDTHS[k % len(WIDTHS)]
        count = COUNTS[k % len(COUNTS)]
        if k % 3 == 0 and code not in (3,):
            b, n = constant(number), number
        if code == 0:
            return Grown(add(a, b), m + n, 0)
        if code == 1:
            return Grown(add(a, b, -1), m - n, 0)
        if code == 2:
            return Grown(scale(a, number), m * number, 0)
        if code == 3:
            return Grown(graph.multiply(a, b), m * n, 0) if abs(m) < 1 << 90 and abs(n) < 1 << 90 else None
        if code in (4, 5):
            return Grown(graph.wrap(a, width, code == 4), wrapped(m, width, code == 4), 0)
        if code in (6, 7):
            return Grown(graph.shift_right(a, count), m >> count, 0)
        if code in (8, 9):
            return Grown(graph.low_bits(a, count), m % (1 << count), 0)
        if code == 10:
            return Grown(graph.divide(a, b), truncated(m, n), 0)
        if code == 11:
            return Grown(graph.remainder(a, b), m - n * truncated(m, n), 0)
        if code == 12:
            return Grown(graph.minimum(a, b), min(m, n), 0)
        if code == 13:
            return Grown(graph.maximum(a, b), max(m, n), 0)
        if code in (14, 15, 16):
            name = ("and", "or", "xor")[code - 14]
            wanted = {"and": m & n, "or": m | n, "xor": m ^ n}[name]
            return Grown(graph.bitwise(name, a, b, width), wanted, width)
        if code == 17:
            relation = ("lt", "le", "eq", "ne", "gt", "ge")[k % 6]
            holds = {"lt": m < n, "le": m <= n, "eq": m == n, "ne": m != n, "gt": m > n, "ge": m >= n}[relation]
            self.booleans.append(len(self.sums))
            return Grown(compare(graph, relation, a, b), int(holds), 0)
        if code == 18:
            condition = self.booleans[k % len(self.booleans)] if self.booleans else 0
            truth = self.numbers[condition] & 1
            return Grown(select(graph, self.sums[condition], a, b), m if truth else n, 0)
        return Grown(graph.bitwise("and", a, constant(-(1 << count)), 64), m & -(1 << count), 64)
