"""Bounds under constraints against all points of small index spaces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptxparse.evaluation.hulls import constraints_of
from ptxparse.evaluation.scope import Constraint, Infeasible, Scope
from ptxparse.values import INFINITY, Graph, Sum, add, constant, scale
from tests.boxes import Box, Plans, Shape, box, box_steps, guard_plans, one_access, program_of, shapes, small
from tests.symbolic import Oracle, Step, Unspecified

BYTE = ((0, 1),)


def meets(found: Box, oracle: Oracle) -> bool:
    """Whether all guards of the box's access hold at a point, taken as what they are: sums, relations and checks."""
    for limit in found.program.accesses[0].guards:
        if oracle.all_hold(limit.checks):
            value = oracle(limit.value)
            if value > 0 if limit.relation == "le" else not value:
                return False
    return True


@given(shapes, box_steps, guard_plans)
def test_bounds_hold_every_point_that_meets_the_constraints(shape: Shape, program: list[Step], plans: Plans) -> None:
    found = box(shape, program, plans, BYTE)
    if small(found) is None:
        return
    compiled = found.compiled()
    scope = found.scope(compiled)
    points = list(found.points())
    try:
        inside = [oracle for oracle in points if meets(found, oracle)]
        values = [oracle(found.offset) for oracle in inside]
    except Unspecified:
        return
    try:
        known = constraints_of(scope, compiled.guards[0])
        terms, constant_part = scope.numbers(compiled.offsets[0])
        shift = found.program.accesses[0].spans[0][0]
        low, high = scope.lower(terms, constant_part, known) + shift, scope.upper(terms, constant_part, known) + shift
    except Infeasible:
        assert not values
        return
    checked = all(scope.check(*check, known) for check in compiled.access_checks[0])
    if checked and values:
        assert low <= min(values) and max(values) <= high


@given(shapes, box_steps, guard_plans, st.integers(-40, 40), st.integers(0, 60))
def test_a_check_that_passes_holds_everywhere(
    shape: Shape, program: list[Step], plans: Plans, low: int, extent: int
) -> None:
    found = box(shape, program, plans, BYTE)
    if small(found) is None or found.program.accesses[0].checks:
        return
    compiled = found.compiled()
    scope = found.scope(compiled)
    shift = found.program.accesses[0].spans[0][0]
    try:
        known = constraints_of(scope, compiled.guards[0])
        passes = scope.check(compiled.offsets[0], low - shift, low + extent - shift, known)
        inside = [oracle(found.offset) for oracle in found.points() if meets(found, oracle)]
    except (Infeasible, Unspecified):
        return
    if passes:
        assert all(low <= value <= low + extent for value in inside)


@given(shapes, box_steps, guard_plans)
def test_every_atom_and_term_lies_in_its_bounds(shape: Shape, program: list[Step], plans: Plans) -> None:
    found = box(shape, program, plans, BYTE)
    if small(found) is None:
        return
    compiled = found.compiled()
    scope = found.scope(compiled)
    for oracle in found.points():
        for term, product in enumerate(compiled.terms):
            try:
                number = 1
                for atom in product:
                    number *= oracle.atom(atom)
                    low, high = scope.atom(atom)
                    assert low <= oracle.atom(atom) <= high, compiled.nodes[atom]
            except Unspecified:
                continue
            low, high = scope.term(term)
            assert low <= number <= high


@given(shapes, box_steps, guard_plans)
def test_launch_values_are_computed_exactly(shape: Shape, program: list[Step], plans: Plans) -> None:
    found = box(shape, program, plans, BYTE)
    if small(found) is None:
        return
    compiled = found.compiled()
    scope = found.scope(compiled)
    form, access = compiled.offsets[0], found.program.accesses[0]
    for oracle in found.points():
        total = scope.values[form.constant]
        for coefficient, term in form.terms:
            number = scope.values[coefficient]
            for atom in compiled.terms[term]:
                number *= oracle.atom(atom)
            total += number
        assert total == oracle(access.offset)


@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-4, 4), st.integers(-12, 12)), max_size=4),
    st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5)), shapes,
)
def test_linear_bounds_under_linear_constraints(
    rows: list[tuple[int, int, int, int]], objective: tuple[int, int, int], shape: Shape
) -> None:
    graph = Graph()
    leaves = [graph.leaf(node, 0, 1023) for node in (("tid", "x"), ("tid", "y"), ("ctaid", "x"))]
    total = combine(leaves, objective)
    sums = [total, *(combine(leaves, row[:3]) for row in rows)]
    program = program_of(graph, tuple(one_access("R", value, BYTE) for value in sums))
    found = Box(graph, total, [], None, program, BYTE, shape)  # type: ignore[arg-type]
    compiled = found.compiled()
    scope = found.scope(compiled)
    known = []
    for row, form in zip(rows, compiled.offsets[1:], strict=True):
        terms, _ = scope.numbers(form)
        if terms:
            known.append(Constraint(terms, row[3]))
    terms, base = scope.numbers(compiled.offsets[0])
    points = [(x, y, b) for x in range(shape.columns) for y in range(shape.rows) for b in range(shape.blocks)]
    used = [row for row in rows if varies(row, shape)]
    inside = [dot(objective, p) for p in points if all(dot(row[:3], p) + row[3] <= 0 for row in used)]
    if inside:
        assert scope.lower(terms, base, known) <= min(inside)
        assert scope.upper(terms, base, known) >= max(inside)
    free = [dot(objective, p) for p in points]
    # Without constraints the bounds of a linear sum are reached.
    assert (scope.lower(terms, base, []), scope.upper(terms, base, [])) == (min(free), max(free))


def varies(row: tuple[int, int, int, int], shape: Shape) -> bool:
    """Whether the row's sum varies at this launch; one that is a number is no constraint."""
    extents = (shape.columns, shape.rows, shape.blocks)
    return any(c and extent > 1 for c, extent in zip(row, extents, strict=False))


def combine(leaves: list[Sum], row: tuple[int, ...]) -> Sum:
    total = constant(0)
    for leaf, factor in zip(leaves, row, strict=True):
        total = add(total, scale(leaf, factor))
    return total


def dot(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 5))
def test_a_guard_on_a_linear_index_is_exact(n: int, columns: int, blocks: int) -> None:
    # i = tid + ntid * ctaid < n, accessed at 4 i.
    graph = Graph()
    x, block = graph.leaf(("tid", "x"), 0, 1023), graph.leaf(("ctaid", "x"), 0, 2**31 - 2)
    width = graph.leaf(("ntid", "x"), 1, 1024)
    index = add(x, graph.multiply(width, block))
    program = program_of(graph, (one_access("R", scale(index, 4), BYTE), one_access("R", index, BYTE)))
    found = Box(graph, index, [], None, program, BYTE, Shape(columns, 1, blocks, n))  # type: ignore[arg-type]
    compiled = found.compiled()
    scope = found.scope(compiled)
    limit, base = scope.numbers(compiled.offsets[1])
    known = [Constraint(limit, base + 1 - n)] if limit else []
    terms, base = scope.numbers(compiled.offsets[0])
    if limit and n:
        assert scope.upper(terms, base, known) == 4 * (min(n, columns * blocks) - 1)
    elif not limit:
        assert scope.upper(terms, base, known) == 0


def test_contradictions_are_found() -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    program = program_of(graph, (one_access("R", x, BYTE),))
    found = Box(graph, x, [], None, program, BYTE, Shape(8, 1, 1, 0))  # type: ignore[arg-type]
    compiled = found.compiled()
    scope: Scope = found.scope(compiled)
    terms, base = scope.numbers(compiled.offsets[0])
    # x <= 2 and x >= 5 together leave a bound from above that lies below the one from below.
    known = [Constraint(terms, -2), Constraint({t: -c for t, c in terms.items()}, 5)]
    assert scope.upper(terms, base, known) <= 2 and scope.lower(terms, base, known) >= 5


def test_narrowing_a_leaf_narrows_what_depends_on_it() -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    value = graph.shift_right(scale(x, 3), 1)
    program = program_of(graph, (one_access("R", value, BYTE),))
    found = Box(graph, value, [], None, program, BYTE, Shape(16, 1, 1, 0))  # type: ignore[arg-type]
    compiled = found.compiled()
    scope = found.scope(compiled)
    assert scope.hull(compiled.offsets[0]) == (0, 22)
    assert scope.narrowed({x[0][0][0]: (4, 6)}).hull(compiled.offsets[0]) == (6, 9)
    assert scope.hull(compiled.offsets[0]) == (0, 22)


def test_loops_without_limits_are_unbounded() -> None:
    graph = Graph()
    k = graph.leaf(("loop", 0), 0, INFINITY)
    program = program_of(graph, (one_access("R", scale(k, 4), BYTE),))
    found = Box(graph, k, [], None, program, BYTE, Shape(4, 1, 1, 0))  # type: ignore[arg-type]
    compiled = found.compiled()
    assert found.scope(compiled).hull(compiled.offsets[0]) == (0, 4 * INFINITY)
