"""Quotients traded for remainders: the value stays, and there is less to bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.recombine import recombine
from ptxparse.values import Graph, Sum, add, constant, scale
from tests.symbolic import Growth, Oracle, Step, Unspecified, steps, valuations


@given(valuations(), steps)
def test_the_value_stays(drawn: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(drawn)
    growth.run(program)
    for value in list(growth.sums):
        assert growth.oracle()(recombine(growth.graph, value)) == growth.oracle()(value)


@given(
    st.sampled_from([2, 3, 8, 10, 64, "n"]), st.integers(-3, 3), st.integers(-30, 30), st.integers(-2, 2),
    st.integers(0, 1023), st.integers(0, 1023), st.integers(1, 40), st.booleans(),
)
def test_sums_of_a_number_and_its_quotient(
    divisor: int | str, whole: int, quotient: int, factor: int, x: int, y: int, n: int, scaled: bool
) -> None:
    graph = Graph()
    leaf, other = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    parameter = graph.leaf(("param", 8, 4, False), 0, 2**32 - 1)
    d = parameter if divisor == "n" else constant(int(divisor))
    inner = add(leaf, scale(other, 3))
    part = graph.divide(inner, d)
    value = add(scale(inner, whole), scale(part, quotient))
    value = add(value, graph.multiply(graph.multiply(d, part), constant(factor)))
    if scaled:
        value = graph.multiply(value, other)
    oracle = Oracle(graph.nodes, {leaf[0][0][0]: x, other[0][0][0]: y, parameter[0][0][0]: n})
    try:
        wanted = oracle(value)
    except Unspecified:
        return
    assert oracle(recombine(graph, value)) == wanted


@pytest.mark.parametrize("divisor", [4, 16, 7, 100, "n"])
def test_a_number_without_its_multiple_is_the_remainder(divisor: int | str) -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    d: Sum = graph.leaf(("param", 8, 4, False), 0, 2**32 - 1) if divisor == "n" else constant(int(divisor))
    value = add(x, graph.multiply(d, graph.divide(x, d)), -1)
    assert recombine(graph, value) == graph.remainder(x, d)
    # The same with a stride: 12 x - 12 d (x / d).
    assert recombine(graph, scale(value, 12)) == scale(graph.remainder(x, d), 12)


def test_rows_and_columns_of_a_linear_index() -> None:
    # (i % 16) + (i / 16) * 16 is i, and (i % 16) + (i / 16) * 17 keeps one of the two.
    graph = Graph()
    i = graph.leaf(("tid", "x"), 0, 1023)
    row, column = graph.shift_right(i, 4), graph.low_bits(i, 4)
    assert recombine(graph, add(scale(i, 1), scale(row, -16))) == column
    skewed = recombine(graph, add(i, row))
    assert skewed == add(i, row)


def test_what_does_not_get_shorter_stays() -> None:
    graph = Graph()
    i, j = (graph.leaf(("tid", axis), 0, 1023) for axis in "xy")
    value = add(scale(graph.shift_right(i, 4), 16), j)
    assert recombine(graph, value) == value
    assert recombine(graph, constant(5)) == constant(5)


def test_a_divisor_of_zero_is_left_alone() -> None:
    graph = Graph()
    i = graph.leaf(("tid", "x"), 0, 1023)
    value = add(i, graph.divide(i, ()))
    assert recombine(graph, value) == value
