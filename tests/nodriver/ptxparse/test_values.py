"""Symbolic sums against plain integers: rewriting keeps the value, static bounds hold it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.values import (
    INFINITY,
    MOST_FACTORS,
    ONE,
    UNIFORM_LEAVES,
    ZERO,
    Graph,
    Sum,
    add,
    constant,
    constant_of,
    constant_term,
    reduce,
    scale,
    without_constant,
)
from tests.symbolic import COUNTS, LEAVES, Growth, Oracle, Step, edges, steps, truncated, valuations, wrapped


@given(valuations(), steps)
def test_every_operation_keeps_the_value(numbers: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(numbers)
    for sum_, wanted, bits in growth.run(program):
        number = growth.oracle()(sum_)
        assert (number - wanted) % (1 << bits) == 0 if bits else number == wanted


@given(valuations(), steps)
def test_static_bounds_hold_the_value(numbers: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(numbers)
    growth.run(program)
    graph, oracle = growth.graph, growth.oracle()
    for value in growth.sums:
        low, high = graph.bounds(value)
        assert low <= oracle(value) <= high
        assert low >= -INFINITY and high <= INFINITY
    for atom in oracle.found:
        assert graph.low[atom] <= oracle.atom(atom) <= graph.high[atom], graph.nodes[atom]


@given(valuations(), steps)
def test_possible_bits_hold_all_bits(numbers: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(numbers)
    growth.run(program)
    for value in growth.sums:
        assert not growth.oracle()(value) & ~growth.graph.possible_bits(value)


@given(valuations(), valuations(), steps)
def test_uniform_sums_depend_on_uniform_leaves_only(
    numbers: tuple[int, ...], others: tuple[int, ...], program: list[Step]
) -> None:
    growth = Growth(numbers)
    growth.run(program)
    mixed = {
        atom: number if growth.graph.nodes[atom][0] in UNIFORM_LEAVES else other
        for (atom, number), other in zip(growth.leaves.items(), others, strict=True)
    }
    changed = Oracle(growth.graph.nodes, mixed)
    for value in growth.sums:
        if growth.graph.is_uniform(value):
            assert changed(value) == growth.oracle()(value)


@given(valuations(), steps)
def test_sums_are_in_normal_form(numbers: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(numbers)
    growth.run(program)
    for value in growth.sums:
        assert list(value) == sorted(value)
        assert all(coefficient for _, coefficient in value)
        assert len({product for product, _ in value}) == len(value)
        assert all(list(product) == sorted(product) for product, _ in value)
        assert add(value, value, -1) == ZERO
        assert add(without_constant(value), constant(constant_term(value))) == value


def test_equal_operations_give_equal_sums() -> None:
    graph = Graph()
    x, y = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    once = graph.shift_right(add(graph.multiply(x, y), ONE), 3)
    atoms = len(graph.nodes)
    assert graph.shift_right(add(ONE, graph.multiply(y, x)), 3) == once
    assert len(graph.nodes) == atoms


def test_an_unknown_is_like_no_other() -> None:
    graph = Graph()
    assert graph.unknown(0, 5) != graph.unknown(0, 5)
    assert graph.unknown(7, 7) == constant(7)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**70), 2**70)), max_size=5), st.sampled_from([8, 32, 64]))
def test_reduced_coefficients_are_small_and_congruent(terms: list[tuple[int, int]], bits: int) -> None:
    graph = Graph()
    leaves = [graph.leaf(("unknown", i, 0, 9), 0, 9) for i in range(4)]
    value: Sum = ZERO
    for leaf, factor in terms:
        value = add(value, scale(leaves[leaf], factor))
    small = reduce(value, bits)
    assert all(-(1 << bits - 1) <= c < 1 << bits - 1 for _, c in small)
    assert all(c % (1 << bits) == 0 for _, c in add(value, small, -1))


@given(edges(-(2**70), 2**70), edges(-(2**70), 2**70), st.sampled_from([1, 8, 16, 24, 32, 64]), st.sampled_from(COUNTS))
def test_constants_stay_constants(m: int, n: int, bits: int, count: int) -> None:
    graph = Graph()
    a, b = constant(m), constant(n)
    assert constant_of(graph.wrap(a, bits, True)) == wrapped(m, bits, True)
    assert constant_of(graph.wrap(a, bits, False)) == wrapped(m, bits, False)
    assert constant_of(graph.shift_right(a, count)) == m >> count
    assert constant_of(graph.low_bits(a, count)) == m % (1 << count)
    assert constant_of(graph.minimum(a, b)) == min(m, n)
    assert constant_of(graph.multiply(a, b)) == m * n
    for name, wanted in (("and", m & n), ("or", m | n), ("xor", m ^ n)):
        found = constant_of(graph.bitwise(name, a, b, bits))
        assert found is not None and (found - wanted) % (1 << bits) == 0
    assert not graph.nodes


MAGIC = [(3, 0xAAAAAAAB, 33), (5, 0xCCCCCCCD, 34), (6, 0xAAAAAAAB, 34), (7, 613566757, 32), (10, 0xCCCCCCCD, 35),
         (100, 1374389535, 37), (641, 6700417, 32), (1000, 274877907, 38)]


@pytest.mark.parametrize(("divisor", "multiplier", "count"), MAGIC)
@pytest.mark.parametrize("bits", [10, 16, 31, 32, 33, 40, 45])
def test_multiplications_that_stand_for_divisions(divisor: int, multiplier: int, count: int, bits: int) -> None:
    graph = Graph()
    x = graph.leaf(("unknown", 0, 0, (1 << bits) - 1), 0, (1 << bits) - 1)
    found = graph.shift_right(scale(x, multiplier), count)
    top = (1 << bits) - 1
    tried = {0, 1, top, top - 1, *(q * divisor + r for q in (1, 2, top // divisor, top // divisor - 1,
                                                              multiplier, multiplier - 1) for r in (-1, 0, 1))}
    for number in sorted(t for t in tried if 0 <= t <= top):
        assert Oracle(graph.nodes, {x[0][0][0]: number})(found) == number * multiplier >> count, number
    if bits == 16:
        assert found == graph.divide(x, constant(divisor))


@pytest.mark.parametrize("divisor", [3, 7, 12, 28, 641])
def test_signed_multiplication_with_a_negative_multiplier_is_split(divisor: int) -> None:
    # As in x / 7 for signed x: the multiplier has its sign bit set, and x is added back.
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    multiplier = -(-(1 << 34) // divisor)
    negative = multiplier - (1 << 32)
    found = graph.shift_right(scale(x, negative), 32)
    for number in (0, 1, divisor - 1, divisor, 1023):
        assert Oracle(graph.nodes, {x[0][0][0]: number})(found) == number * negative >> 32


def test_masks_of_thread_indices_resolve() -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    low = graph.bitwise("and", x, constant(31), 32)
    assert low == graph.low_bits(x, 5)
    # x - (x & -32) is x & 31.
    assert add(x, graph.bitwise("and", x, constant(-32), 32), -1) == low
    # x | 1024 and x ^ 1024 only add, since the bit is free.
    assert graph.bitwise("or", x, constant(1024), 32) == add(x, constant(1024))
    assert graph.bitwise("xor", scale(x, 2), ONE, 32) == add(scale(x, 2), ONE)
    # The sign of a thread index is zero.
    assert graph.shift_right(x, 31) == ZERO
    assert graph.wrap(x, 32, True) == x
    assert graph.bitwise("and", x, constant(0), 32) == ZERO


def test_shifts_nest_and_take_out_multiples() -> None:
    graph = Graph()
    x, y = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    assert graph.shift_right(graph.shift_right(x, 2), 3) == graph.shift_right(x, 5)
    assert graph.shift_right(add(scale(y, 16), graph.low_bits(x, 4)), 4) == y
    assert graph.low_bits(add(scale(y, 16), graph.low_bits(x, 4)), 4) == graph.low_bits(x, 4)
    assert graph.low_bits(graph.wrap(scale(x, 1 << 40), 64, False), 32) == ZERO


def test_products_past_the_limits_keep_their_value() -> None:
    graph = Graph()
    leaves = [graph.leaf(("unknown", i, -3, 9), -3, 9) for i in range(MOST_FACTORS + 4)]
    product, number = ONE, 1
    total: Sum = ONE
    valuation = {}
    for i, leaf in enumerate(leaves):
        valuation[leaf[0][0][0]] = i - 2
        product, number = graph.multiply(product, leaf), number * (i - 2)
        total = add(total, leaf)
    wide = graph.multiply(graph.multiply(total, total), graph.multiply(total, total))
    oracle = Oracle(graph.nodes, valuation)
    assert oracle(product) == number
    assert oracle(wide) == oracle(total) ** 4
    low, high = graph.bounds(wide)
    assert low <= oracle(wide) <= high


@given(edges(-40, 40), edges(-40, 40).filter(bool))
def test_division_of_small_numbers(m: int, n: int) -> None:
    graph = Graph()
    a = graph.leaf(("unknown", 0, -40, 40), -40, 40)
    b = graph.leaf(("unknown", 1, -40, 40), -40, 40)
    oracle = Oracle(graph.nodes, {a[0][0][0]: m, b[0][0][0]: n})
    for divisor in (b, constant(n)):
        quotient, rest = graph.divide(a, divisor), graph.remainder(a, divisor)
        assert oracle(quotient) == truncated(m, n)
        assert oracle(quotient) * n + oracle(rest) == m
        for value in (quotient, rest):
            low, high = graph.bounds(value)
            assert low <= oracle(value) <= high


def test_the_leaves_of_random_sums_are_of_both_kinds() -> None:
    growth = Growth(tuple(leaf.low for leaf in LEAVES))
    uniform = {growth.graph.is_uniform(value) for value in growth.sums}
    assert uniform == {True, False}
