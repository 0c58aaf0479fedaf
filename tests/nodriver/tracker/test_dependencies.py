"""Dependencies are those of single bytes, and enough: what they leave open gives the same bytes in any order."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.session.dependencies import EARLIER, Dependencies, Dependency, Edge, Node
from orchestrator.session.operations import Effect, Operation, What
from tests.nodriver.tracker.work import SIZE, STREAMS, carry_out, operation, programs

Found = dict[tuple[Node, Node, Dependency], tuple[set[int], set[int], set[int]]]
"""By ends and kind: bytes, effects of the source, of the target."""


class Bytes:
    """The oracle: every byte has a list of writers and one of readers, which nothing bounds."""

    def __init__(self) -> None:
        self.writers: dict[int, list[tuple[Operation, list[int]]]] = defaultdict(list)
        self.readers: dict[int, list[tuple[Operation, list[int]]]] = defaultdict(list)

    def take(self, op: Operation) -> Found:
        found: Found = defaultdict(lambda: (set(), set(), set()))
        for byte in range(SIZE + 1):  # the last one only by what may touch anything
            free, opaque = op.what is What.FREE, op.opaque is not None
            hits = [] if opaque else [(i, e.kind) for i, e in enumerate(op.effects) if e.lo <= byte < e.hi]
            reads = [i for i, kind in hits if kind in "RA" and not free]
            writes = [i for i, kind in hits if kind != "R" or free]
            if reads or opaque:
                self.note(found, Dependency.RAW, self.writers, op, reads, byte)
            if writes or opaque:
                self.note(found, Dependency.WAW, self.writers, op, writes, byte)
                self.note(found, Dependency.WAR, self.readers, op, writes, byte)
                if any(op.effects[i].kind == "MUSTW" or free for i in writes):
                    self.writers[byte].clear()
                self.writers[byte].append((op, writes))
                self.readers[byte].clear()
            elif reads:
                self.readers[byte].append((op, reads))
        return found

    def note(self, found: Found, kind: Dependency, before: dict[int, list[tuple[Operation, list[int]]]], op: Operation,
             effects: list[int], byte: int) -> None:
        for other, others in before[byte]:
            entry = found[Node(other.sequence), Node(op.sequence), kind]
            entry[0].add(byte)
            entry[1].update(others)
            entry[2].update(effects)


def as_bytes(edges: list[Edge]) -> Found:
    for edge in edges:
        assert edge.bytes == sum(hi - lo for lo, hi in edge.ranges)
        assert all(a[1] < b[0] for a, b in pairwise(edge.ranges))
    return {(e.source, e.target, e.kind): ({b for lo, hi in e.ranges for b in range(lo, hi)}, set(e.source_effects),
                                           set(e.target_effects)) for e in edges}


@given(programs())
def test_edges_are_those_of_single_bytes(program: list[Operation]) -> None:
    check_edges(program)


def check_edges(program: list[Operation], kind: Callable[..., Dependencies] = Dependencies) -> None:
    dependencies, oracle = kind(most_accesses=1000), Bytes()
    opaque = {Node(op.sequence) for op in program if op.opaque}
    for op in program:
        found, wanted = as_bytes(dependencies.take(op)), oracle.take(op)
        assert found.keys() == wanted.keys()
        for key, entry in wanted.items():
            if not {key[0], key[1]} <= opaque:
                assert found[key] == entry, key
            else:
                assert found[key][0] <= entry[0]


@given(programs(), st.integers(0, 1000), st.booleans())
def test_any_order_that_the_edges_and_streams_allow_gives_the_same_bytes(
    program: list[Operation], seed: int, bounded: bool
) -> None:
    check_orders(program, seed, bounded)


def check_orders(program: list[Operation], seed: int, bounded: bool, kind: Callable[..., Dependencies] = Dependencies
                 ) -> None:
    dependencies = kind(2, 4) if bounded else kind()
    before: dict[int, set[int]] = {}
    for op in program:
        sources = {edge.source for edge in dependencies.take(op)}
        earlier = {other.sequence for other in program[: op.sequence]
                   if other.stream == op.stream or EARLIER in sources}
        before[op.sequence] = earlier | {source.sequence for source in sources - {EARLIER}}
        assert not bounded or dependencies.pieces <= 4
    memory = bytearray(range(SIZE))
    seen = {op.sequence: carry_out(op, memory) for op in program}
    other_memory, chooser, left = bytearray(range(SIZE)), random.Random(seed), dict(before)
    while left:
        ready = sorted([number for number, first in left.items() if not first & left.keys()])
        chosen = chooser.choice(ready)
        del left[chosen]
        assert carry_out(program[chosen], other_memory) == seen[chosen]
    assert other_memory == memory


def edges_of(*operations: Operation) -> list[tuple[int, int, str, tuple[tuple[int, int], ...]]]:
    dependencies = Dependencies()
    return [(e.source.sequence, e.target.sequence, e.kind.value, e.ranges)
            for op in operations for e in dependencies.take(op)]


def test_a_reader_depends_on_every_writer_since_the_last_certain_one() -> None:
    assert edges_of(
        operation(0, (Effect("MUSTW", 0, 8),)),
        operation(1, (Effect("MUSTW", 0, 8),)),
        operation(2, (Effect("MAYW", 0, 4),)),
        operation(3, (Effect("R", 2, 6),)),
    ) == [(0, 1, "WAW", ((0, 8),)), (1, 2, "WAW", ((0, 4),)), (1, 3, "RAW", ((2, 6),)), (2, 3, "RAW", ((2, 4),))]


def test_an_atomic_operation_reads_and_may_write() -> None:
    assert edges_of(
        operation(0, (Effect("MUSTW", 0, 4),)), operation(1, (Effect("A", 0, 4),)), operation(2, (Effect("R", 0, 4),))
    ) == [(0, 1, "RAW", ((0, 4),)), (0, 1, "WAW", ((0, 4),)), (0, 2, "RAW", ((0, 4),)), (1, 2, "RAW", ((0, 4),))]


@pytest.mark.parametrize("kind", ["R", "MUSTW"])
def test_the_end_of_memory_is_a_write(kind: str) -> None:
    wanted = {"R": "WAR", "MUSTW": "WAW"}[kind]
    freed = operation(1, (Effect("R", 0, 64),), what=What.FREE)
    again = operation(2, (Effect("MUSTW", 0, 8),))
    assert edges_of(operation(0, (Effect(kind, 8, 16),)), freed, again) == [
        (0, 1, wanted, ((8, 16),)), (1, 2, "WAW", ((0, 8),))]


def test_what_may_touch_anything_stands_between_all() -> None:
    assert edges_of(
        operation(0, (Effect("R", 0, 8),)), operation(1, what=What.OTHER), operation(2, what=What.OTHER),
        operation(3, (Effect("R", 100, 104),)),
    ) == [(0, 1, "WAR", ((0, 8),)), (1, 2, "RAW", ()), (1, 2, "WAW", ()),
          (1, 3, "RAW", ((100, 104),)), (2, 3, "RAW", ((100, 104),))]


def test_nothing_is_known_after_a_gap() -> None:
    dependencies = Dependencies()
    dependencies.take(operation(0, what=What.OTHER))
    dependencies.take(operation(1, (Effect("MUSTW", 0, 8),)))
    dependencies.forget()
    assert dependencies.take(operation(2, (Effect("A", 0, 8),))) == []


def test_memory_is_bounded_in_long_runs() -> None:
    dependencies = Dependencies(most_pieces=64)
    for number in range(2000):
        dependencies.take(operation(number, (Effect("R", 0, 8), Effect("MAYW", 8 + 16 * number, 16 + 16 * number))))
        assert dependencies.pieces <= 64
    late = dependencies.take(operation(2000, (Effect("R", 24, 32), Effect("R", 16 * 2000 - 8, 16 * 2000))))
    assert [(e.source, e.kind, e.ranges) for e in late] == [
        (EARLIER, Dependency.RAW, ((24, 32), (31992, 32000))), (Node(1999), Dependency.RAW, ((31992, 32000),))]


@pytest.mark.parametrize(("streams", "wanted"), [
    ((0, 1, 0), {Node(1), Node(2)}),  # the first is before the last, by their stream
    ((0, 1, 2), {EARLIER, Node(2)}),
    ((0, 1, 2, 0), {EARLIER, Node(3)}),
])
def test_what_falls_out_of_a_list_is_ordered_otherwise(streams: tuple[int, ...], wanted: set[Node]) -> None:
    dependencies = Dependencies(most_accesses=2)
    for number, stream in enumerate(streams):
        dependencies.take(operation(number, (Effect("R", 0, 8),), STREAMS[stream]))
    assert {e.source for e in dependencies.take(operation(9, (Effect("MUSTW", 0, 8),), STREAMS[1]))} == wanted
