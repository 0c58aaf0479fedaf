"""Tables of atoms against the same atoms computed point by point; known contents of memory."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.evaluation.compiled import Compiled
from ptxparse.evaluation.contents import Contents, Piece
from ptxparse.evaluation.tables import Budget, Enumeration
from ptxparse.transfer import alternatives, compare
from ptxparse.values import Graph, add, constant, scale
from tests.boxes import BOX_LEAVES, Plans, Shape, box, box_steps, guard_plans, one_access, program_of, shapes, small
from tests.symbolic import CONSTANTS, Growth, Oracle, Step, Unspecified, programs

BYTE = ((0, 1),)
X, Y, BLOCK = 1, 2, 3
all_steps = programs(tuple(range(20)), 8)


def compare_tables(graph: Graph, shape: Shape, access_sums: list[object], exact: bool) -> int:
    """Compares every atom that has a table with its value at every point; returns how many had one."""
    program = program_of(graph, tuple(one_access("R", s, BYTE) for s in access_sums))  # type: ignore[arg-type]
    compiled = Compiled(program)
    values = compiled.uniforms(struct.pack("<qi", 0, shape.n), shape.launch, 0)
    boxes = {X: (0, shape.columns - 1), Y: (0, shape.rows - 1), BLOCK: (0, shape.blocks - 1)}
    enumeration = Enumeration(compiled, values, boxes, Contents(), Budget())
    axes = [enumeration.atom(leaf) for leaf in boxes]
    compared = 0
    for atom in compiled.arguments:
        if not compiled.leaves[atom] <= set(boxes):
            assert not enumeration.can(compiled.leaves[atom], 1 << 16)
            continue
        table = enumeration.atom(atom)
        if table is None:
            assert not exact, compiled.nodes[atom]
            continue
        x, y, block, whole = np.broadcast_arrays(*axes, table)  # type: ignore[arg-type]
        assert whole.size == shape.columns * shape.rows * shape.blocks
        for at in np.ndindex(whole.shape):
            point = {0: 0, X: int(x[at]), Y: int(y[at]), BLOCK: int(block[at]), 4: shape.columns, 5: shape.n, 6: 0}
            try:
                assert int(whole[at]) == Oracle(graph.nodes, point).atom(atom), graph.nodes[atom]
            except Unspecified:
                pytest.fail("a table has a value where there is none")
        compared += 1
    return compared


@given(shapes, box_steps)
def test_small_values_have_exact_tables(shape: Shape, program: list[Step]) -> None:
    found = box(shape, program, [], BYTE)
    if small(found) is not None:
        # Without divisions, and with all that the value is made of far from 64 bits, nothing may be missing.
        plain = not any(node[0] in ("divide", "remainder") or (node[0] == "low_bits" and int(str(node[2])) > 62)
                        for node in found.graph.nodes)
        for oracle in found.points():
            oracle(found.offset)
            plain = plain and all(abs(number) < 1 << 56 for number in map(oracle.atom, range(len(oracle.nodes))))
        compare_tables(found.graph, shape, [found.offset], exact=plain)


@given(shapes, all_steps)
def test_tables_of_large_values_are_exact_or_absent(shape: Shape, program: list[Step]) -> None:
    growth = Growth((0, 0, 0, 0, shape.columns, shape.n, 0), BOX_LEAVES, CONSTANTS)
    growth.run(program)
    try:
        compare_tables(growth.graph, shape, list(growth.sums[1:]), exact=False)
    except ArithmeticError:
        # A launch value that divides by zero.
        assert any(node[0] in ("divide", "remainder") for node in growth.graph.nodes)


@given(shapes, box_steps, guard_plans)
def test_tables_of_sums_are_those_of_their_terms(shape: Shape, program: list[Step], plans: Plans) -> None:
    found = box(shape, program, plans, BYTE)
    if small(found) is None:
        return
    compiled = found.compiled()
    scope = found.scope(compiled)
    enumeration = Enumeration(compiled, scope.values, scope.boxes, Contents(), Budget())
    table = enumeration.form(compiled.offsets[0])
    if table is not None:
        wanted = {oracle(found.program.accesses[0].offset) for oracle in found.points()}
        assert set(table.ravel().tolist()) == wanted


def test_a_million_points_are_too_many() -> None:
    graph = Graph()
    x, y = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    program = program_of(graph, (one_access("R", graph.minimum(x, y), BYTE),))
    enumeration = Enumeration(Compiled(program), [], {0: (0, 1023), 1: (0, 1023)}, Contents(), Budget())
    assert enumeration.can(frozenset({0}), 1 << 16) and not enumeration.can(frozenset({0, 1}), 1 << 16)
    assert enumeration.can(frozenset({0, 1}), 1 << 20)


def test_a_spent_budget_makes_no_more_tables() -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    value = graph.shift_right(scale(x, 3), 1)
    budget = Budget()
    enumeration = Enumeration(Compiled(program_of(graph, (one_access("R", value, BYTE),))), [0, 3, 1], {0: (0, 99)},
                              Contents(), budget)
    before = budget.left
    assert enumeration.can(frozenset({0}), 1 << 16) and enumeration.atom(0) is not None
    assert budget.left == before - 100
    budget.left = 50
    assert not enumeration.can(frozenset({0}), 1 << 16)


def test_options_that_nothing_tells_apart_have_no_table() -> None:
    graph = Graph()
    for leaf in BOX_LEAVES:
        graph.leaf(leaf.node, leaf.low, leaf.high)
    x = (((X,), 1),)
    guard = compare(graph, "lt", x, constant(3))
    told = alternatives(graph, ((x, ((guard, True),)), (scale(x, 2), ((guard, False),))))
    untold = alternatives(graph, ((x, ()), (scale(x, 2), ())))
    shape = Shape(8, 1, 1, 0)
    assert compare_tables(graph, shape, [told], exact=False) >= 3
    program = program_of(graph, (one_access("R", add(told, untold), BYTE),))
    compiled = Compiled(program)
    values = compiled.uniforms(bytes(12), shape.launch, 0)
    enumeration = Enumeration(compiled, values, {X: (0, 7), Y: (0, 0), BLOCK: (0, 0)}, Contents(), Budget())
    assert enumeration.atom(told[0][0][0]) is not None
    assert enumeration.atom(untold[0][0][0]) is None


def test_products_past_64_bits_have_no_table() -> None:
    graph = Graph()
    for leaf in BOX_LEAVES:
        graph.leaf(leaf.node, leaf.low, leaf.high)
    # An atom of multiples of 2^40: to the fourth power, nothing of it is left in 64 bits.
    part = graph.minimum(scale((((X,), 1),), 1 << 40), constant(6 << 40))
    product = graph.multiply(graph.multiply(part, part), graph.multiply(part, part))
    compare_tables(graph, Shape(8, 1, 1, 0), [product, graph.shift_right(add(product, (((X,), 1),)), 1)], exact=False)


@pytest.mark.parametrize("bits", [60, 61, 62, 63, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_wide_wraps(bits: int, signed: bool) -> None:
    graph = Graph()
    for leaf in BOX_LEAVES:
        graph.leaf(leaf.node, leaf.low, leaf.high)
    value = graph.wrap(add(scale((((X,), 1),), 3 << 57), constant(-(1 << 58))), bits, signed)
    compare_tables(graph, Shape(8, 1, 1, 0), [graph.shift_right(value, 3)], exact=False)


# Known contents.

ADDRESS = 1 << 20

pieces = st.lists(st.tuples(st.integers(0, 8), st.binary(min_size=1, max_size=24)), max_size=3)


@given(pieces, st.integers(0, 30), st.lists(st.integers(-4, 60), min_size=1, max_size=6), st.sampled_from([1, 2, 4, 8]),
       st.booleans(), st.integers(-1, 60))
def test_gathered_numbers_are_those_in_memory(
    drawn: list[tuple[int, bytes]], behind: int, offsets: list[int], size: int, signed: bool, base: int
) -> None:
    # Pieces of one allocation, with gaps between them.
    length = sum(gap + len(data) for gap, data in drawn) + behind
    placed, memory, end = [], {}, 0
    for gap, data in drawn:
        placed.append(Piece(ADDRESS + end + gap, data, ADDRESS, ADDRESS + length))
        memory.update({end + gap + i: byte for i, byte in enumerate(data)})
        end += gap + len(data)
    contents = Contents(placed)
    assert bool(contents) == bool(placed)
    found = contents.gather(np.array(offsets, np.int64) + ADDRESS, size, signed, [ADDRESS + base])
    if not 0 <= base < length:
        # The pointer is not into this allocation, so nothing is known of what is read through it.
        assert found is None
        return
    within = [o for o in offsets if 0 <= o <= length - size]
    known = [all(o + i in memory for i in range(size)) for o in within]
    if found is None:
        return
    for offset, number in zip(offsets, found.tolist(), strict=True):
        if 0 <= offset <= length - size:
            # In bounds, so the load may happen, and this is what it yields.
            assert all(known)
            assert number == int.from_bytes(bytes(memory[offset + i] for i in range(size)), "little", signed=signed)


def test_an_address_outside_a_whole_allocation_is_never_loaded() -> None:
    data = struct.pack("<4i", 5, -6, 7, 8)
    addresses = np.array([0, 4, 12, 16, 400]) + ADDRESS
    whole = Contents([Piece(ADDRESS, data, ADDRESS, ADDRESS + 16)]).gather(addresses, 4, True, [ADDRESS])
    assert whole is not None and whole.tolist()[:3] == [5, -6, 8]
    larger = Contents([Piece(ADDRESS, data, ADDRESS, ADDRESS + 20)])
    assert larger.gather(addresses, 4, True, [ADDRESS]) is None
    inside = larger.gather(addresses[:3], 4, True, [ADDRESS + 19])
    assert inside is not None and inside.tolist() == [5, -6, 8]


def test_of_two_pointers_one_must_be_the_only_one() -> None:
    contents = Contents([Piece(ADDRESS, bytes(16), ADDRESS, ADDRESS + 16)])
    addresses = np.array([ADDRESS])
    assert contents.gather(addresses, 4, True, [ADDRESS]) is not None
    assert contents.gather(addresses, 4, True, [ADDRESS, 5]) is None
    assert contents.gather(addresses, 4, True, []) is None


@pytest.mark.parametrize("signed", [True, False])
def test_a_load_through_a_known_table(signed: bool) -> None:
    graph = Graph()
    for leaf in BOX_LEAVES:
        graph.leaf(leaf.node, leaf.low, leaf.high)
    table, x = (((0,), 1),), (((X,), 1),)
    numbers = [3, 250, 7, 128]
    low, high = (-128, 127) if signed else (0, 255)
    loaded = graph.load(77, add(table, x), 1, signed, low, high)
    value = graph.shift_right(scale(loaded, 3), 1)
    program = program_of(graph, (one_access("R", add(table, value), BYTE),))
    compiled = Compiled(program)
    values = compiled.uniforms(struct.pack("<qi", ADDRESS, 0), (1, 1, 1, 4, 1, 1), 0)
    contents = Contents([Piece(ADDRESS, bytes(numbers), ADDRESS, ADDRESS + 4)])
    enumeration = Enumeration(compiled, values, {X: (0, 3)}, contents, Budget())
    assert enumeration.can(compiled.leaves[value[0][0][0]], 100)
    found = enumeration.atom(value[0][0][0])
    wanted = [n - 256 if signed and n > 127 else n for n in numbers]
    assert found is not None and found.tolist() == [3 * n >> 1 for n in wanted]
    blind = Enumeration(compiled, values, {X: (0, 3)}, Contents(), Budget())
    assert not blind.can(compiled.leaves[value[0][0][0]], 100)
