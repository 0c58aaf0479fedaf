"""Accesses with gaps as separate pieces, against sets of bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.api import AccessProgram, Allocations, Evaluation, Range, analyze, evaluate
from ptxparse.conditions import constraints
from ptxparse.evaluation.pieces import digits_of, joined, pieces
from ptxparse.program import Limit
from ptxparse.rewrite import Flattener
from ptxparse.transfer import compare
from ptxparse.values import Graph, Sum, add, constant, scale
from tests.boxes import BOX_LEAVES, UNKNOWN, Box, Shape, one_access, program_of
from tests.ptxtext import REGISTERS, module

Spans = tuple[tuple[int, int], ...]
Guards = Sequence[tuple[str, tuple[int, ...], int]]
POINTER = 1 << 20
SIZE = 1 << 21

steps = st.sampled_from([1, 2, 4, 7, 8, 16, 40, 64, 100, 256, 1000])
digits_ = st.lists(st.tuples(steps, st.integers(1, 6)), max_size=4)
lists_ = st.lists(
    st.lists(st.integers(1, 300), min_size=1, max_size=6, unique=True).map(lambda v: np.array([0, *sorted(v)])),
    max_size=1)
some_spans = st.sampled_from([
    ((0, 1),), ((0, 4),), ((-3, 1),), ((0, 4), (8, 12)), ((0, 2), (100, 104)), ((0, 4), (16, 20), (32, 36), (48, 52))])


@given(digits_, lists_, some_spans, st.sampled_from([1, 2, 5, 64]))
def test_pieces_are_those_of_the_bytes(
    digits: list[tuple[int, int]], lists: list[np.ndarray[tuple[int], np.dtype[np.int64]]], spans: Spans, most: int
) -> None:
    values = [[step * i for i in range(count)] for step, count in digits] + [each.tolist() for each in lists]
    touched = {sum(chosen) + byte for chosen in product(*values) for lo, hi in spans for byte in range(lo, hi)}
    real = joined((byte, byte + 1) for byte in touched)
    made = pieces(spans, digits, lists, most)
    assert len(made.intervals) <= most
    assert all(a[1] < b[0] for a, b in zip(made.intervals, made.intervals[1:], strict=False))
    assert all(lo in touched and hi - 1 in touched for lo, hi in made.intervals)
    inside = {byte for lo, hi in made.intervals for byte in range(lo, hi)}
    assert inside == touched if made.full else inside > touched
    if len(real) <= most and prod(map(len, values)) * len(spans) <= 256:
        assert made.intervals == real and made.full


@given(st.lists(st.integers(0, 100), min_size=1, unique=True))
def test_digits_are_the_values(drawn: list[int]) -> None:
    values = np.array(sorted(drawn))
    found = digits_of(values)
    if found is not None:
        sums = {sum(each) for each in product(*([step * i for i in range(count)] for step, count in found))}
        assert sums == {value - min(drawn) for value in drawn}


def test_the_outer_digits_stay_when_inner_ones_are_too_many() -> None:
    # Six rows of every second element: rows, but not elements, are told apart.
    made = pieces(((0, 4),), [(8, 1000), (100_000, 6)])
    assert made.intervals == [(row * 100_000, row * 100_000 + 7996) for row in range(6)] and not made.full


def test_numbers_of_any_size() -> None:
    made = pieces(((0, 4),), [(4, 1 << 40), (1 << 60, 1 << 62)])
    assert made.intervals == [(0, (1 << 60) * ((1 << 62) - 1) + (1 << 42))] and not made.full


# Accesses of random strides.

coefficients = st.tuples(*(st.sampled_from([0, 1, 4, 8, -4, 20, 64, 100, -100, 400, 1000]) for _ in range(3)))
small_shapes = st.builds(
    Shape, st.sampled_from([1, 4, 5, 16]), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 4]),
    st.sampled_from([0, 1, 3, 7, 12]))
forms = st.tuples(*(st.integers(-3, 3) for _ in range(3)))
guards_ = st.lists(st.tuples(st.sampled_from(["lt", "le", "ge", "eq", "ne"]), forms, st.integers(-2, 20)), max_size=2)
twists = st.sampled_from(["", "", "half", "low", "memory"])
kinds = st.sampled_from("RWWA")


def strided(
    shape: Shape, weights: tuple[int, ...], twist: str, guards: Guards, spans: Spans, kind: str
) -> Box:
    """An access at multiples of three indices, the first of which may be halved, cut, or have a number out of memory
    beside it; each guard compares a sum of the indices with a number."""
    graph = Graph()
    leaves = [graph.leaf(leaf.node, leaf.low, leaf.high) for leaf in BOX_LEAVES]
    indices = leaves[1:4]
    first = {"half": graph.shift_right(indices[0], 1), "low": graph.low_bits(indices[0], 2)}.get(twist, indices[0])
    offset: Sum = scale(leaves[UNKNOWN], 300) if twist == "memory" else ()
    for value, weight in zip([first, *indices[1:]], weights, strict=True):
        offset = add(offset, scale(value, weight))
    conditions = []
    for relation, factors, bound in guards:
        index: Sum = ()
        for value, factor in zip(indices, factors, strict=True):
            index = add(index, scale(value, factor))
        conditions.append((compare(graph, relation, graph.wrap(index, 32, True), constant(bound)), True))
    flattener = Flattener(graph)
    found = constraints(graph, flattener, conditions)
    flat, checks = flattener.flatten(add(leaves[0], offset))
    limits = tuple(Limit(c.value, c.relation, tuple(sorted(c.checks))) for c in found.items)
    access = one_access(kind, flat, spans, limits, tuple(sorted(checks)), found.whole)
    return Box(graph, offset, conditions, found, program_of(graph, (access,)), spans, shape)


def evaluated(found: Box) -> Evaluation:
    return evaluate(found.program, found.shape.launch[:3], found.shape.launch[3:],
                    struct.pack("<qi", POINTER, found.shape.n), [("a", 0, SIZE)])


@given(small_shapes, coefficients, twists, guards_, some_spans, kinds)
def test_every_byte_lies_inside_and_sure_ones_are_written(
    shape: Shape, weights: tuple[int, ...], twist: str, guards: Guards, spans: Spans, kind: str
) -> None:
    found = strided(shape, weights, twist, guards, spans, kind)
    if found.found.false:
        return
    touched, sure = found.touched(), found.sure()
    ranges = evaluated(found).ranges
    assert len(ranges) <= 64
    assert touched <= {byte - POINTER for r in ranges for byte in range(r.lo, r.hi)}
    for r in ranges:
        lo, hi = r.lo - POINTER, r.hi - POINTER
        if r.kind == "MUSTW":
            assert sure >= set(range(lo, hi))
        if r.exact:
            assert {lo, hi - 1} <= touched


@given(small_shapes, coefficients, some_spans, kinds)
def test_without_guards_the_bytes_are_exact(
    shape: Shape, weights: tuple[int, ...], spans: Spans, kind: str
) -> None:
    found = strided(shape, weights, "", [], spans, kind)
    real = joined((byte + POINTER, byte + POINTER + 1) for byte in found.touched())
    values = shape.columns * shape.rows * shape.blocks
    if len(real) > 64 or values * len(spans) > 256:
        return
    said = {"W": "MUSTW"}.get(kind, kind)
    # Reads and atomics of one_access are not certain: their pieces are right, but not told to be.
    assert evaluated(found).ranges == tuple(Range(said, "a", lo, hi, kind == "W") for lo, hi in real)


@given(st.integers(1, 12), st.integers(1, 12))
def test_a_bound_on_rows_or_columns_cuts_the_pieces(rows: int, columns: int) -> None:
    """Rows 400 bytes apart; as many rows and columns as the guards admit."""
    guards = [("lt", (1, 0, 0), columns), ("lt", (0, 1, 3), rows)]
    found = strided(Shape(8, 3, 4, 0), (4, 400, 1200), "", guards, ((0, 4),), "W")
    width = 4 * min(columns, 8)
    assert evaluated(found).ranges == tuple(
        Range("MUSTW", "a", POINTER + 400 * row, POINTER + 400 * row + width, True) for row in range(min(rows, 12)))


def test_a_bound_that_cuts_no_digit_still_cuts_the_pieces() -> None:
    """x + 100 y <= 205: the whole of the offset is bounded, though which columns of which rows are left is not seen."""
    found = strided(Shape(8, 4, 1, 0), (4, 400, 0), "", [("le", (1, 100, 0), 205)], ((0, 4),), "R")
    assert evaluated(found).ranges == tuple(
        Range("R", "a", POINTER + lo, POINTER + hi, False) for lo, hi in [(0, 32), (400, 432), (800, 824)])


def test_a_number_out_of_memory_leaves_gaps_but_is_not_sure() -> None:
    found = strided(Shape(16, 1, 1, 0), (4, 0, 0), "memory", [], ((0, 4),), "W")
    assert evaluated(found).ranges == tuple(
        Range("MAYW", "a", POINTER + 300 * n, POINTER + 300 * n + 64, False) for n in range(3))


# Launches.


def kernel(body: str, parameters: str = ".param .u64 a") -> AccessProgram:
    return analyze(module(f"\n.visible .entry k({parameters})\n{{\n{REGISTERS}{body}\nret;\n}}\n"))[0]


def rows(stride: int, operation: str = "st.global.u32 [%rd3], %r1") -> str:
    """One element of each thread, in rows of the blocks ``stride`` bytes apart."""
    return (f"ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; "
            f"add.s64 %rd3, %rd1, %rd2; mul.wide.u32 %rd4, %r2, {stride}; add.s64 %rd3, %rd3, %rd4; {operation};")


def launched(program: AccessProgram, grid: int, address: int, allocations: Allocations, block: int = 8) -> Evaluation:
    return evaluate(program, (grid, 1, 1), (block, 1, 1), struct.pack("<Q", address), allocations)


def extents(found: Evaluation) -> list[tuple[str, object, int, int]]:
    return [(r.kind, r.allocation, r.lo, r.hi) for r in found.ranges]


A = Allocations([("a", 0x10000, 4096)])


@pytest.mark.parametrize(("operation", "kind"), [
    ("st.global.u32 [%rd3], %r1", "MUSTW"), ("ld.global.u32 %r5, [%rd3]", "R"),
    ("red.global.add.u32 [%rd3], %r1", "A")])  # fmt: skip
def test_rows_of_a_matrix(operation: str, kind: str) -> None:
    found = launched(kernel(rows(256, operation)), 6, 0x10000, A)
    assert found.ranges == tuple(Range(kind, "a", 256 * row, 256 * row + 32, True) for row in range(6))
    assert len(found.bases) == 6 and len(set(found.bases)) == 1


def test_rows_that_are_too_many_are_one_hull() -> None:
    program = kernel(rows(256))
    large = Allocations([("a", 0x10000, 1 << 20)])
    assert len(launched(program, 64, 0x10000, large).ranges) == 64
    assert extents(launched(program, 65, 0x10000, large)) == [("MAYW", "a", 0, 256 * 64 + 32)]


def test_many_pieces_of_many_accesses_are_hulls() -> None:
    """Five times 60 pieces are more than one launch may have; each access is a hull then."""
    large = Allocations([("a", 0x10000, 1 << 24)])

    def stores(times: int) -> AccessProgram:
        return kernel(rows(4096) + "".join(
            f"mul.wide.u32 %rd4, %r2, {4096 * number}; add.s64 %rd5, %rd1, %rd2; add.s64 %rd5, %rd5, %rd4; "
            f"st.global.u32 [%rd5+{number << 20}], %r1;" for number in range(2, times + 1)))

    assert len(launched(stores(4), 60, 0x10000, large).ranges) == 240
    found = launched(stores(5), 60, 0x10000, large).ranges
    assert len(found) <= 5 and {r.kind for r in found} == {"MAYW"}


def test_a_piece_outside_of_the_allocation_is_not_touched() -> None:
    """Rows that a guard nobody understands keeps inside: those that lie outside are left out."""
    body = rows(256, "ld.global.u32 %r5, [%rd3+-256]")
    found = launched(kernel(body), 4, 0x10000, A)
    assert extents(found) == [("R", "a", 0, 32), ("R", "a", 256, 288), ("R", "a", 512, 544)]
    beyond = launched(kernel(rows(256, "ld.global.u32 %r5, [%rd3+3840]")), 4, 0x10000, A)
    assert extents(beyond) == [("R", "a", 3840, 3872)]


def test_a_pointer_between_two_allocations_may_mean_either() -> None:
    two = Allocations([("a", 0x10000, 4096), ("b", 0x11000, 4096)])
    found = launched(kernel(rows(256, "st.global.u32 [%rd3+-256], %r1")), 2, 0x11000, two)
    assert ("MAYW", "a", 3840, 3872) in extents(found)
    assert all(any(r.allocation == "b" and r.lo <= byte < r.hi for r in found.ranges) for byte in range(32))


def test_blocks_of_a_paged_cache() -> None:
    """A table of blocks of 1024 bytes, of which each launch reads a few."""
    body = ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [t]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; "
            "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r3, [%rd4]; "
            "mul.wide.u32 %rd5, %r3, 1024; mul.wide.u32 %rd6, %r1, 4; add.s64 %rd7, %rd1, %rd5; "
            "add.s64 %rd7, %rd7, %rd6; ld.global.u32 %r5, [%rd7];")
    program = kernel(body, ".param .u64 a, .param .u64 t")
    where = Allocations([("a", 0x100000, 1 << 20), ("t", 0x10000, 64)])
    blocks = [700, 3, 4, 90]
    found = evaluate(program, (4, 1, 1), (256, 1, 1), struct.pack("<QQ", 0x100000, 0x10000), where,
                     contents=[("t", 0, struct.pack("<4I", *blocks))])
    assert [r for r in extents(found) if r[1] == "a"] == [
        ("R", "a", 3 << 10, 5 << 10), ("R", "a", 90 << 10, 91 << 10), ("R", "a", 700 << 10, 701 << 10)]
