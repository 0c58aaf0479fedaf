"""Substitution keeps values; flattening keeps them wherever its checks hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.rewrite import Flattener, Rewriter, arguments, provided
from ptxparse.transfer import compare, select
from ptxparse.values import INFINITY, Check, Graph, Sum, add, constant, scale
from tests.symbolic import LEAVES, Growth, Oracle, Step, Unspecified, atoms_of, edges, leaves_of, steps, valuations

numbers = valuations()
X, Y, COUNTER, LOADED, SMALL, WORD = 0, 1, 4, 8, 9, 10
"""Positions of leaves in ``LEAVES``: thread indices, a loop counter, three unknowns."""


def replacement(graph: Graph, sums: list[Sum], position: int, form: int) -> Sum:
    """A sum of the thread indices that stays inside the bounds of the leaf it replaces."""
    x, y = sums[X], sums[Y]
    forms: dict[int, list[Sum]] = {
        COUNTER: [constant(3), add(x, scale(y, 3)), graph.multiply(x, y), graph.shift_right(x, 2), constant(1 << 33)],
        LOADED: [constant(255), graph.low_bits(x, 8), graph.minimum(y, constant(255)), constant(0),
                 graph.divide(y, constant(5))],
        SMALL: [constant(-6), add(graph.low_bits(x, 3), constant(-6)), constant(9),
                graph.remainder(y, constant(10)), constant(1)],
        WORD: [constant(2**64 - 1), constant(2**63), constant(0), add(constant(2**64 - 1024), x),
               graph.bitwise("or", x, y, 64)],
    }  # fmt: skip
    return forms[position][form % 5]


@given(numbers, steps, st.tuples(*[st.integers(0, 4)] * 4), st.integers(1, 15))
def test_substitution_keeps_the_value(
    drawn: tuple[int, ...], program: list[Step], forms: tuple[int, ...], chosen: int
) -> None:
    growth = Growth(drawn)
    graph = growth.graph
    mapping: dict[int, Sum] = {}
    for bit, (position, form) in enumerate(zip((COUNTER, LOADED, SMALL, WORD), forms, strict=True)):
        if chosen >> bit & 1:
            value = replacement(graph, growth.sums, position, form)
            leaf = growth.sums[position][0][0][0]
            mapping[leaf] = value
            growth.leaves[leaf] = growth.numbers[position] = growth.oracle()(value)
    growth.run(program)
    rewriter = Rewriter(graph, mapping)
    for value in list(growth.sums):
        found = rewriter(value)
        oracle = growth.oracle()
        assert oracle(found) == oracle(value)
        low, high = graph.bounds(found)
        assert low <= oracle(found) <= high
        assert not leaves_of(graph.nodes, found) & set(mapping)


@given(numbers, steps)
def test_without_a_mapping_nothing_changes_in_value(drawn: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(drawn)
    growth.run(program)
    rewriter = Rewriter(growth.graph)
    for value in list(growth.sums):
        assert growth.oracle()(rewriter(value)) == growth.oracle()(value)


@given(numbers, steps)
def test_flattening_keeps_the_value_where_its_checks_hold(drawn: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(drawn)
    growth.run(program)
    flattener = Flattener(growth.graph)
    for value in list(growth.sums):
        flat, checks = flattener.flatten(value)
        oracle = growth.oracle()
        if all_hold(oracle, checks):
            assert oracle(flat) == oracle(value)


def all_hold(oracle: Oracle, checks: frozenset[Check]) -> bool:
    """Whether all checks hold; one that divides by zero does not."""
    try:
        return oracle.all_hold(checks)
    except Unspecified:
        return False


@given(numbers, steps, st.integers(0, 1000), st.integers(-40, 40), st.integers(0, 2000), st.integers(0, 7))
def test_what_a_value_is_provided_with_is_checked(
    drawn: tuple[int, ...], program: list[Step], which: int, low: int, extent: int, use: int
) -> None:
    growth = Growth(drawn)
    growth.run(program)
    graph = growth.graph
    value, tested = growth.sums[which % len(growth.sums)], growth.sums[(which // 7) % len(growth.sums)]
    check = Check(tested, low, low + extent)
    kept = provided(graph, value, (check,))
    other = growth.sums[(which // 3) % len(growth.sums)]
    used = [
        add(kept, other), graph.shift_right(kept, 3), graph.wrap(kept, 32, True), graph.minimum(kept, other),
        compare(graph, "lt", kept, constant(12)), graph.low_bits(add(kept, kept), 5), graph.multiply(kept, other),
        provided(graph, kept, (Check(kept, -(1 << 80), 1 << 80),)),
    ][use]  # fmt: skip
    flat, checks = Flattener(graph).flatten(used)
    oracle = growth.oracle()
    if all_hold(oracle, checks):
        assert oracle(flat) == oracle(used)
        assert oracle.holds(check) or not depends(graph, used, kept)
    assert "provided" not in {graph.nodes[a][0] for a in atoms_of(graph.nodes, flat)}


def depends(graph: Graph, value: Sum, part: Sum) -> bool:
    """Whether the atom ``part`` is still in ``value`` (a use may have cancelled it)."""
    return part[0][0][0] in atoms_of(graph.nodes, value)


def small_graph() -> tuple[Graph, Sum, Sum, Sum]:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    n = graph.leaf(("param", 8, 4, True), -(2**31), 2**31 - 1)
    k = graph.leaf(("loop", 0), 0, INFINITY)
    return graph, x, n, k


def test_a_wrap_around_a_sum_becomes_a_check() -> None:
    graph, x, n, k = small_graph()
    total = add(add(scale(k, 4), x), n)
    flat, checks = Flattener(graph).flatten(graph.wrap(total, 32, True))
    assert flat == total
    assert checks == {Check(total, -(2**31), 2**31 - 1)}


def test_a_wrap_of_what_is_known_at_launch_stays() -> None:
    graph, _, n, _ = small_graph()
    value = graph.wrap(scale(n, 12), 32, True)
    assert Flattener(graph).flatten(value) == (value, frozenset())


def test_a_wrap_around_a_single_unknown_stays() -> None:
    graph, *_ = small_graph()
    leaf = graph.leaf(("unknown", 9, 0, 2**32 - 1), 0, 2**32 - 1)
    value = graph.wrap(leaf, 32, True)
    assert Flattener(graph).flatten(value) == (value, frozenset())


def test_checks_inside_checks_are_collected() -> None:
    graph, x, n, _ = small_graph()
    inner = graph.wrap(add(x, n), 32, True)
    outer = graph.wrap(add(scale(inner, 4), x), 32, True)
    flat, checks = Flattener(graph).flatten(outer)
    assert flat == add(scale(n, 4), scale(x, 5))
    assert checks == {
        Check(add(x, n), -(2**31), 2**31 - 1), Check(add(scale(n, 4), scale(x, 5)), -(2**31), 2**31 - 1)}


@given(edges(0, 1023), edges(-(2**31), 2**31 - 1), st.integers(-5, 1100))
def test_an_option_is_checked_only_where_it_is_the_one(x: int, n: int, limit: int) -> None:
    graph, leaf, parameter, _ = small_graph()
    # x + n may wrap, but is used only for the threads below the limit.
    risky = graph.wrap(add(leaf, parameter), 32, True)
    value = select(graph, compare(graph, "lt", leaf, constant(limit)), risky, leaf)
    flat, checks = Flattener(graph).flatten(value)
    oracle = Oracle(graph.nodes, {leaf[0][0][0]: x, parameter[0][0][0]: n})
    fits = -(2**31) <= x + n < 2**31
    assert oracle.all_hold(checks) == (fits or x >= limit)
    if oracle.all_hold(checks):
        assert oracle(flat) == oracle(value)


def test_all_ones_in_a_64_bit_register_stay_an_unsigned_number() -> None:
    graph = Graph()
    a, b = (graph.leaf(("unknown", i, 0, 2**64 - 1), 0, 2**64 - 1) for i in range(2))
    for operation, wanted in (("xor", 2**64 - 8), ("or", 2**64 - 1), ("and", 7)):
        value = graph.bitwise(operation, a, b, 64)
        found = Rewriter(graph, {b[0][0][0]: constant(2**64 - 1)})(value)
        assert Oracle(graph.nodes, {a[0][0][0]: 7})(found) == wanted
        low, high = graph.bounds(found)
        assert low <= wanted <= high


def test_long_chains_do_not_exhaust_the_stack() -> None:
    graph, x, n, _ = small_graph()
    value = x
    for _ in range(5000):
        value = graph.minimum(add(value, n), constant(1 << 40))
    found = Rewriter(graph, {x[0][0][0]: constant(7)})(value)
    assert not leaves_of(graph.nodes, found) & {x[0][0][0]}


@pytest.mark.parametrize("position", range(len(LEAVES)))
def test_leaves_have_no_arguments(position: int) -> None:
    assert not list(arguments(LEAVES[position].node))


@given(numbers, steps)
def test_arguments_rebuild_their_node(drawn: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(drawn)
    growth.run(program)
    graph = growth.graph
    rewriter = Rewriter(graph)
    oracle = growth.oracle()
    for atom in range(len(graph.nodes)):
        sums = list(arguments(graph.nodes[atom]))
        if sums:
            try:
                number = oracle.atom(atom)
            except Unspecified:
                continue
            assert growth.oracle()(rewriter.construct(graph.nodes[atom], sums)) == number
