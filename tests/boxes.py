"""Random access programs over index spaces so small that all their points can be listed."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hypothesis import strategies as st

from ptxparse.conditions import Condition, Constraints, constraints
from ptxparse.evaluation.compiled import Compiled
from ptxparse.evaluation.contents import Contents
from ptxparse.evaluation.hulls import launch_scope
from ptxparse.evaluation.scope import Scope
from ptxparse.program import Access, AccessProgram, Base, Limit
from ptxparse.rewrite import Flattener, arguments
from ptxparse.transfer import compare
from ptxparse.values import Check, Graph, Sum, add, constant, constant_term, scale, without_constant
from tests.symbolic import Growth, Leaf, Oracle, Step, Unspecified, programs

BOX_LEAVES = (
    Leaf(("param", 0, 8, True), -(2**63), 2**63 - 1, 0),
    Leaf(("tid", "x"), 0, 1023, 0),
    Leaf(("tid", "y"), 0, 1023, 0),
    Leaf(("ctaid", "x"), 0, 2**31 - 2, 0),
    Leaf(("ntid", "x"), 1, 1024, 1),
    Leaf(("param", 8, 4, True), -(2**31), 2**31 - 1, 0),
    Leaf(("unknown", 6, 0, 2, "memory"), 0, 2, 0),
)
"""The base pointer, indices, two numbers that a launch gives, and something that memory decides for each thread."""

UNKNOWN = 6
"""Position of the last one; it may be 0, 1 or 2."""

SMALL = (1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 0, -1, -2, -4, -8)
FARTHEST = 1 << 40
RELATIONS = ("lt", "le", "lt", "ge", "lt", "eq", "ne", "le")


class Shape(NamedTuple):
    """A small launch: ``columns`` x ``rows`` threads in each of ``blocks`` blocks, and the parameter ``n``."""

    columns: int
    rows: int
    blocks: int
    n: int

    @property
    def launch(self) -> tuple[int, int, int, int, int, int]:
        return (self.blocks, 1, 1, self.columns, self.rows, 1)


shapes = st.builds(
    Shape, st.sampled_from([1, 4, 5, 8, 16]), st.sampled_from([1, 1, 2, 3]), st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 1, 3, 7, 8, 13, 20, 30, -2]),
)  # fmt: skip
box_steps = programs((0, 0, 0, 1, 2, 2, 2, 3, 4, 6, 8, 8, 10, 11, 12, 13, 14, 15, 18, 17), 7)
"""Programs for a :class:`Growth` over ``BOX_LEAVES``."""

Plans = list[tuple[int, int, int, bool]]
guard_plans = st.integers(0, 2**32 - 1).map(
    lambda seed: [(c.randrange(1, 21), c.randrange(1, 21), c.randrange(100), c.random() < 0.5)
                  for c in [random.Random(seed)] for _ in range(c.randrange(4))])
"""For each guard: two values, which relation, whether the second is a constant."""


class Box(NamedTuple):
    """One random access: its program, and what it means."""

    graph: Graph
    offset: Sum
    conditions: list[Condition]
    found: Constraints
    program: AccessProgram
    spans: tuple[tuple[int, int], ...]
    shape: Shape

    def threads(self) -> Iterator[list[Oracle]]:
        """Every thread of the launch, with a base pointer of 0 and all that memory may decide for it."""
        shape = self.shape
        several = any(UNKNOWN in product for value in self.sums() for product, _ in value) or any(
            UNKNOWN in product for node in self.graph.nodes for value in arguments(node) for product, _ in value)
        for x, y, block in product(range(shape.columns), range(shape.rows), range(shape.blocks)):
            point = dict(enumerate((0, x, y, block, shape.columns, shape.n)))
            yield [Oracle(self.graph.nodes, {**point, UNKNOWN: number}) for number in range(3 if several else 1)]

    def sums(self) -> list[Sum]:
        """What decides where the access goes, and whether it happens."""
        return [self.offset, *(value for value, _ in self.conditions)]

    def points(self) -> Iterator[Oracle]:
        """Every thread with everything that memory may decide for it."""
        for choices in self.threads():
            yield from choices

    def happens(self, oracle: Oracle) -> bool:
        return all(oracle(value) & 1 == truth for value, truth in self.conditions)

    def offsets(self) -> list[int]:
        """Offset of the access wherever it may happen. Raises :class:`Unspecified`."""
        return [oracle(self.offset) for oracle in self.points() if self.happens(oracle)]

    def bytes_of(self, oracle: Oracle) -> set[int]:
        """Bytes that one thread accesses, relative to the base."""
        if not self.happens(oracle):
            return set()
        offset = oracle(self.offset)
        return {byte for low, high in self.spans for byte in range(offset + low, offset + high)}

    def touched(self) -> set[int]:
        """All bytes that may be accessed."""
        return set().union(*map(self.bytes_of, self.points()))

    def sure(self) -> set[int]:
        """Bytes that some thread accesses whatever memory holds."""
        return set().union(*(set.intersection(*map(self.bytes_of, choices)) for choices in self.threads()))

    def compiled(self) -> Compiled:
        return Compiled(self.program)

    def scope(self, compiled: Compiled) -> Scope:
        """The scope of the launch, with a base pointer of 0."""
        values = compiled.uniforms(struct.pack("<qi", 0, self.shape.n), self.shape.launch, 0)
        return launch_scope(compiled, values, self.shape.launch, Contents())


def box(
    shape: Shape, program: list[Step], plans: Plans, spans: tuple[tuple[int, int], ...], kind: str = "W"
) -> Box:
    """An access whose offset is the last value of the random program and multiples of indices, under random guards."""
    growth = Growth((0, 0, 0, 0, shape.columns, shape.n, 0), BOX_LEAVES, SMALL)
    pointer = growth.sums.pop(0)
    del growth.numbers[0]
    growth.run(program)
    graph, sums = growth.graph, growth.sums
    x, y, block = sums[:3]
    weight = sum(step[3] for step in program)
    offset = add(sums[-1], scale(x, (0, 1, 1, 4)[weight % 4]))
    offset = add(add(offset, scale(y, (0, 0, 16, 5)[weight // 4 % 4])), scale(block, (0, 4, 32, 16)[weight // 16 % 4]))
    conditions = []
    for i, j, k, fixed in plans:
        other = constant(SMALL[k % len(SMALL)] * (1 + k % 4)) if fixed else sums[j % len(sums)]
        conditions.append((compare(graph, RELATIONS[k % len(RELATIONS)], graph.wrap(sums[i % len(sums)], 32, True),
                                   graph.wrap(other, 32, True)), k % 5 != 0))
    flattener = Flattener(graph)
    found = constraints(graph, flattener, conditions)
    flat, checks = flattener.flatten(add(pointer, offset))
    guards = tuple(Limit(c.value, c.relation, tuple(sorted(c.checks))) for c in found.items)
    access = one_access(kind, flat, spans, guards, tuple(sorted(checks)), found.whole)
    return Box(graph, offset, conditions, found, program_of(graph, (access,)), spans, shape)


def one_access(
    kind: str, offset: Sum, spans: tuple[tuple[int, int], ...], guards: tuple[Limit, ...] = (),
    checks: tuple[Check, ...] = (), certain: bool = True, loops: tuple[int, ...] = (),
) -> Access:
    """An access through the pointer at word 0; the constant of the offset is moved to the spans."""
    shift = constant_term(offset)
    return Access(kind, (Base(0),), without_constant(offset), tuple((a + shift, b + shift) for a, b in spans), guards,
                  (), checks, certain and kind == "W", loops, (1,), 1)


def program_of(graph: Graph, accesses: tuple[Access, ...], **more: object) -> AccessProgram:
    """A program of these accesses, whose atoms are those of the graph."""
    words: dict[str, object] = {
        "kernel": "k", "line": 1, "parameters": (), "parameter_bytes": 12, "nodes": tuple(graph.nodes),
        "low": tuple(graph.low), "high": tuple(graph.high), "uniform": tuple(graph.uniform), "loops": (),
        "accesses": accesses, "global_sizes": {}, **more,
    }  # fmt: skip
    return AccessProgram(**words)  # type: ignore[arg-type]


def small(found: Box) -> list[int] | None:
    """The offsets, when all are defined and none is far away."""
    try:
        offsets = found.offsets()
    except Unspecified:
        return None
    return offsets if all(abs(offset) < FARTHEST for offset in offsets) else None
