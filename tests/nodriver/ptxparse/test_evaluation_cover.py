"""Runs of bytes without gaps against sets of bytes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.conditions import constraints
from ptxparse.evaluation.cover import factors, pieces_of
from ptxparse.evaluation.hulls import constraints_of
from ptxparse.evaluation.pieces import pieces
from ptxparse.evaluation.scope import Infeasible
from ptxparse.program import Limit
from ptxparse.rewrite import Flattener
from ptxparse.transfer import compare
from ptxparse.values import Graph, Sum, add, constant, scale
from tests.boxes import Box, Plans, Shape, box, box_steps, guard_plans, one_access, program_of, shapes, small
from tests.symbolic import Step

digits_ = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 5)), max_size=4)
spans_ = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=4).map(
    lambda parts: tuple((lo, lo + n) for lo, n in separated(parts)))
some_spans = st.one_of(st.sampled_from([((0, 1),), ((0, 4),), ((0, 2), (4, 6)), ((0, 4), (8, 12), (16, 20))]), spans_)


def separated(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with gaps as drawn, one after the other."""
    found, end = [], 0
    for gap, length in parts:
        found.append((end + gap, length))
        end += gap + length + 1
    return found


def is_run(touched: set[int], length: int) -> bool:
    """Whether the bytes are ``length`` ones without a gap."""
    return len(touched) == length and max(touched) - min(touched) + 1 == length


def run_length(digits: list[tuple[int, int]], spans: tuple[tuple[int, int], ...]) -> int:
    """Length of the run that the bytes form; 0 when they have gaps."""
    made = pieces(spans, digits, most=1)
    ((lo, hi),) = made.intervals
    return hi - lo if made.full else 0


@given(digits_, some_spans)
def test_run_length_is_that_of_the_bytes(digits: list[tuple[int, int]], spans: tuple[tuple[int, int], ...]) -> None:
    touched = {
        sum(values) + byte
        for values in product(*([step * i for i in range(count)] for step, count in digits))
        for low, high in spans for byte in range(low, high)
    }
    length = run_length(digits, spans)
    assert length == (len(touched) if is_run(touched, max(touched) + 1 - min(touched)) else 0)


@pytest.mark.parametrize(("digits", "spans", "length"), [
    ([], ((0, 4),), 4),
    ([(4, 32)], ((0, 4),), 128),
    ([(4, 32), (128, 3)], ((0, 4),), 384),
    ([(16, 8)], ((0, 4), (4, 8), (8, 12), (12, 16)), 128),
    ([(16, 8)], ((0, 8),), 0),
    ([(4, 32), (256, 2)], ((0, 4),), 0),
    ([(8, 4)], ((0, 4), (4, 8)), 32),
    ([(4, 2)], ((0, 4), (8, 12), (16, 20)), 24),
    ([(2, 5)], ((0, 4),), 12),
    ([(100, 1)], ((0, 4),), 4),
])  # fmt: skip
def test_runs_that_occur(digits: list[tuple[int, int]], spans: tuple[tuple[int, int], ...], length: int) -> None:
    assert run_length(digits, spans) == length


def run_of(found: Box) -> int:
    """Length of the run that the box's access covers under its guards; 0 when that is not known."""
    compiled = found.compiled()
    scope = found.scope(compiled)
    try:
        known = constraints_of(scope, compiled.guards[0])
        terms, _ = scope.numbers(compiled.offsets[0])
    except Infeasible:
        return 0
    taken = factors(scope, terms, known)
    if taken is None:
        return 0
    made = pieces_of(taken, 0, found.program.accesses[0].spans, 1)
    ((lo, hi),) = made.intervals
    return hi - lo if made.full else 0


@given(shapes, box_steps, some_spans)
def test_runs_without_guards(shape: Shape, program: list[Step], spans: tuple[tuple[int, int], ...]) -> None:
    found = box(shape, program, [], spans)
    if small(found) is None or found.program.accesses[0].checks:
        return
    length = run_of(found)
    assert length == 0 or is_run(found.sure(), length)


@given(shapes, box_steps, guard_plans, some_spans)
def test_runs_under_guards(
    shape: Shape, program: list[Step], plans: Plans, spans: tuple[tuple[int, int], ...]
) -> None:
    found = box(shape, program, plans, spans)
    if small(found) is None or found.program.accesses[0].checks or not found.found.whole or found.found.false:
        return
    if any(limit.relation != "le" or limit.checks for limit in found.program.accesses[0].guards):
        # What is no constraint cannot be taken into account; the evaluation asks only when all guards are.
        return
    length = run_of(found)
    assert length == 0 or is_run(found.sure(), length)


def indices() -> tuple[Graph, Sum, Sum, Sum, Sum]:
    """A graph with the leaves of :mod:`tests.boxes`, and of them tid.x, tid.y, ctaid.x, ntid.x."""
    graph = Graph()
    graph.leaf(("param", 0, 8, True), -(2**63), 2**63 - 1)
    x, y = graph.leaf(("tid", "x"), 0, 1023), graph.leaf(("tid", "y"), 0, 1023)
    block = graph.leaf(("ctaid", "x"), 0, 2**31 - 2)
    width = graph.leaf(("ntid", "x"), 1, 1024)
    graph.leaf(("param", 8, 4, True), -(2**31), 2**31 - 1)
    graph.leaf(("unknown", 6, 0, 2, "memory"), 0, 2)
    return graph, x, y, block, width


def shaped(graph: Graph, offset: Sum, shape: Shape, spans: tuple[tuple[int, int], ...] = ((0, 4),)) -> Box:
    access = one_access("W", add((((0,), 1),), offset), spans)
    return Box(graph, offset, [], None, program_of(graph, (access,)), spans, shape)  # type: ignore[arg-type]


@given(st.sampled_from([1, 4, 32]), st.integers(1, 3), st.integers(1, 4))
def test_one_element_per_thread_covers(columns: int, rows: int, blocks: int) -> None:
    graph, x, y, block, width = indices()
    row = add(y, scale(block, rows))
    found = shaped(graph, scale(add(x, graph.multiply(width, row)), 4), Shape(columns, rows, blocks, 0))
    assert run_of(found) == 4 * columns * rows * blocks == len(found.touched())


def test_a_tile_of_a_matrix_does_not_cover() -> None:
    # Rows 100 elements apart, 16 of each written.
    graph, x, y, _, _ = indices()
    found = shaped(graph, scale(add(x, scale(y, 100)), 4), Shape(16, 3, 1, 0))
    assert run_of(found) == 0 and len(found.touched()) == 192


def test_a_permutation_by_bits_covers() -> None:
    # (x & 3) * 8 + x / 4, as swizzled stores write: every one of 32 elements, out of order.
    graph, x, _, _, _ = indices()
    swizzled = add(scale(graph.low_bits(x, 2), 8), graph.shift_right(x, 2))
    found = shaped(graph, scale(swizzled, 4), Shape(32, 1, 1, 0))
    assert run_of(found) == 128 == len(found.touched())


def test_dependent_digits_are_not_taken_for_independent_ones() -> None:
    # x + 16 block < 27 and x & 24: both depend on x, and what lies between is never written.
    graph, x, _, block, _ = indices()
    index = add(x, scale(block, 16))
    found = box_with_guard(graph, add(index, graph.bitwise("and", x, constant(24), 32)), index, 27, Shape(16, 1, 2, 0))
    assert sorted(found.touched()) == [*range(8), *range(16, 24), *range(32, 35)]
    assert run_of(found) == 0


def box_with_guard(graph: Graph, offset: Sum, index: Sum, limit: int, shape: Shape) -> Box:
    """An access of one byte where ``index < limit``."""
    conditions = [(compare(graph, "lt", index, constant(limit)), True)]
    flattener = Flattener(graph)
    found = constraints(graph, flattener, conditions)
    flat, _ = flattener.flatten(add((((0,), 1),), offset))
    guards = tuple(Limit(c.value, c.relation, tuple(sorted(c.checks))) for c in found.items)
    access = one_access("W", flat, ((0, 1),), guards)
    return Box(graph, offset, conditions, found, program_of(graph, (access,)), ((0, 1),), shape)


@given(st.integers(1, 40))
def test_a_bound_on_the_whole_index_cuts_the_run(limit: int) -> None:
    graph, x, _, block, _ = indices()
    index = add(x, scale(block, 16))
    found = box_with_guard(graph, index, index, limit, Shape(16, 1, 2, 0))
    assert run_of(found) == min(limit, 32) == len(found.touched())


def test_what_depends_on_memory_is_never_sure() -> None:
    graph, x, _, _, _ = indices()
    loaded = graph.load(50, add((((0,), 1),), x), 1, False, 0, 255)
    assert run_of(shaped(graph, scale(loaded, 4), Shape(8, 1, 1, 0))) == 0
    unknown = graph.leaf(("unknown", 99, 0, 7, "value"), 0, 7)
    assert run_of(shaped(graph, scale(unknown, 4), Shape(8, 1, 1, 0))) == 0
