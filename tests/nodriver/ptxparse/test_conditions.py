"""Constraints say only what their conditions say, and all of it where they claim to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptxparse.conditions import Condition, Constraint, constraints
from ptxparse.rewrite import Flattener
from ptxparse.transfer import compare, select
from ptxparse.values import INFINITY, ONE, ZERO, Graph, Sum, add, constant, scale
from tests.symbolic import Growth, Oracle, Step, Unspecified, edges, steps, valuations

RELATIONS = ("lt", "le", "eq", "ne", "gt", "ge")
plans = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 60), st.integers(0, 60), st.integers(0, 200)), min_size=1, max_size=10)
"""Programs that build predicates from the values of a :class:`Growth` and from earlier predicates."""


def predicates(growth: Growth, plan: list[Step]) -> list[Sum]:
    """Sums that are 0 or 1 (or, for some, only odd or even)."""
    graph = growth.graph
    made: list[Sum] = [ONE, ZERO]
    for code, i, j, k in plan:
        a, b = growth.sums[i % len(growth.sums)], growth.sums[j % len(growth.sums)]
        p, q = made[i % len(made)], made[j % len(made)]
        width, signed = (16, 32, 64)[k % 3], bool(k % 2)
        if code < 4:
            if code % 2:
                b = constant(k - 20)
            made.append(compare(graph, RELATIONS[k % 6], graph.wrap(a, width, signed), graph.wrap(b, width, signed)))
        elif code == 4:
            made.append(compare(graph, RELATIONS[k % 6], a, b))
        elif code == 5:
            made.append(add(ONE, p, -1))
        elif code in (6, 7, 8):
            made.append(graph.bitwise(("and", "or", "xor")[code - 6], p, q, 1))
        else:
            made.append(select(graph, p, q, made[k % len(made)]))
    return made


def satisfied(oracle: Oracle, constraint: Constraint) -> bool:
    value = oracle(constraint.value)
    return value <= 0 if constraint.relation == "le" else value != 0


@given(valuations(), steps, plans, st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=4))
def test_constraints_follow_from_the_conditions(
    drawn: tuple[int, ...], program: list[Step], plan: list[Step], chosen: list[tuple[int, bool]]
) -> None:
    growth = Growth(drawn)
    growth.run(program)
    made = predicates(growth, plan)
    conditions: list[Condition] = [(made[i % len(made)], truth) for i, truth in chosen]
    found = constraints(growth.graph, Flattener(growth.graph), conditions)
    oracle = growth.oracle()
    try:
        true = all(oracle(value) & 1 == truth for value, truth in conditions)
        usable = [c for c in found.items if oracle.all_hold(c.checks)]
        kept = all(satisfied(oracle, c) for c in usable)
        rest = all(oracle(value) & 1 == truth for value, truth in found.rest)
    except Unspecified:
        return
    if true:
        assert kept and rest and not found.false
    elif len(usable) == len(found.items):
        # All checks hold, so nothing was lost: some constraint, or one of the rest, fails too.
        assert found.false or not kept or not rest
    if found.whole:
        assert not found.rest


@given(edges(-(2**33), 2**33), edges(-(2**31), 2**31 - 1), st.sampled_from(RELATIONS), st.booleans(), st.booleans())
def test_simple_comparisons_are_whole(i: int, n: int, relation: str, signed: bool, truth: bool) -> None:
    graph = Graph()
    index = graph.leaf(("unknown", 0, -(2**33), 2**33), -(2**33), 2**33)
    row = graph.leaf(("tid", "x"), 0, 1023)
    limit = graph.leaf(("param", 0, 4, True), -(2**31), 2**31 - 1)
    value = graph.wrap(add(index, row, 4), 32, signed)
    condition = compare(graph, relation, value, graph.wrap(limit, 32, signed))
    found = constraints(graph, Flattener(graph), [(condition, truth)])
    assert found.whole and not found.false and not found.rest and found.items
    oracle = Oracle(graph.nodes, {index[0][0][0]: i, limit[0][0][0]: n, row[0][0][0]: 3})
    if all(oracle.all_hold(c.checks) for c in found.items):
        assert all(satisfied(oracle, c) for c in found.items) == (oracle(condition) == truth)


@given(edges(-(2**31), 2**31 - 1), edges(-5, 2**31 - 1), st.booleans())
def test_an_unsigned_test_bounds_both_ends(i: int, n: int, strict: bool) -> None:
    # As compilers write 0 <= i < n: one unsigned comparison.
    graph = Graph()
    index = graph.leaf(("unknown", 0, -(2**31), 2**31 - 1), -(2**31), 2**31 - 1)
    other = graph.leaf(("tid", "x"), 0, 1023)
    limit = graph.leaf(("param", 0, 4, True), -(2**31), 2**31 - 1)
    value = graph.wrap(add(index, other), 32, False)
    condition = compare(graph, "lt" if strict else "le", value, graph.wrap(limit, 32, False))
    found = constraints(graph, Flattener(graph), [(condition, True)])
    low = [c for c in found.items if c.value == scale(add(index, other), -1)]
    assert low, "nothing says that the index is not negative"
    oracle = Oracle(graph.nodes, {index[0][0][0]: i, other[0][0][0]: 7, limit[0][0][0]: n})
    if oracle(condition) and all(oracle.all_hold(c.checks) for c in found.items):
        assert 0 <= i + 7 <= n - strict


def test_constants_decide() -> None:
    graph = Graph()
    assert constraints(graph, Flattener(graph), [(ONE, True), (ZERO, False)]) == ((), True, False, ())
    assert constraints(graph, Flattener(graph), [(ONE, False)]).false
    # -1 is how nvcc writes true.
    assert not constraints(graph, Flattener(graph), [(constant(-1), True)]).false


def test_a_disjunction_that_fails_gives_both_sides() -> None:
    graph = Graph()
    x, y = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    either = graph.bitwise("or", compare(graph, "lt", x, constant(5)), compare(graph, "lt", y, constant(7)), 1)
    found = constraints(graph, Flattener(graph), [(either, False)])
    assert {c.value for c in found.items} == {add(constant(5), x, -1), add(constant(7), y, -1)} and found.whole
    # That it holds says nothing linear.
    assert constraints(graph, Flattener(graph), [(either, True)]) == ((), True, False, ((either, True),))


def test_equality_bounds_from_both_sides() -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    equal = compare(graph, "eq", x, constant(5))
    found = constraints(graph, Flattener(graph), [(equal, True)])
    difference = add(x, constant(5), -1)
    assert {(c.value, c.relation) for c in found.items} == {(difference, "le"), (scale(difference, -1), "le")}
    (unequal,) = constraints(graph, Flattener(graph), [(equal, False)]).items
    assert unequal.relation == "ne"


def test_a_selected_predicate_is_resolved_when_one_option_remains() -> None:
    graph = Graph()
    x, y = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    inner, outer = compare(graph, "lt", y, constant(7)), compare(graph, "lt", x, constant(5))
    both = select(graph, outer, inner, ZERO)
    found = constraints(graph, Flattener(graph), [(both, True)])
    assert {c.value for c in found.items} == {add(x, constant(4), -1), add(y, constant(6), -1)} and found.whole


def test_deep_conjunctions_do_not_exhaust_the_stack() -> None:
    graph = Graph()
    total: Sum = ONE
    for number in range(3000):
        x = graph.leaf(("unknown", number, 0, 9), 0, 9)
        total = graph.bitwise("and", total, compare(graph, "lt", x, constant(5)), 1)
    found = constraints(graph, Flattener(graph), [(total, True)])
    assert found.items or found.rest
    assert found.whole == (not found.rest)


def test_bounds_without_end_are_no_constraint_on_launch_values() -> None:
    graph = Graph()
    k = graph.leaf(("loop", 0), 0, INFINITY)
    condition = compare(graph, "lt", graph.wrap(k, 32, True), constant(10))
    (found,) = constraints(graph, Flattener(graph), [(condition, True)]).items
    assert found.value == add(k, constant(9), -1)
    # The counter may be read as 32-bit number only while it is one.
    assert {(c.low, c.high) for c in found.checks} == {(-(2**31), 2**31 - 1)}
