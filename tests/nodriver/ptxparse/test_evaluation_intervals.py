"""Interval arithmetic against every combination of numbers in small intervals."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.evaluation.intervals import apply, multiply
from ptxparse.values import INFINITY
from tests.patterns import share
from tests.symbolic import Oracle, Unspecified, edges

boxes = st.tuples(edges(-40, 40), st.integers(0, 9)).map(lambda drawn: (drawn[0], drawn[0] + drawn[1]))
counts = st.integers(0, 6)
NODES: dict[str, list[tuple[Any, ...]]] = {
    "wrap": [("wrap", None, bits, signed) for bits in (1, 3, 5, 32) for signed in (True, False)],
    "shift_right": [("shift_right", None, count) for count in range(6)],
    "low_bits": [("low_bits", None, count) for count in range(6)],
    **{kind: [(kind, None, None)] for kind in ("divide", "remainder", "minimum", "multiply", "lt", "eq", "shift")},
    **{kind: [(kind, None, None)] for kind in ("and", "or", "xor")},
    "power": [("power", None)],
}


def number(node: tuple[Any, ...], operands: tuple[int, ...]) -> int:
    """The operation by definition."""
    leaves = dict(enumerate(operands))
    sums = [(((i,), 1),) for i in leaves]
    if node[0] in ("wrap", "shift_right", "low_bits"):
        return Oracle([None] * len(sums) + [(node[0], sums[0], *node[2:])], leaves).atom(len(sums))
    return Oracle([None] * len(sums) + [(node[0], *sums)], leaves).atom(len(sums))


@pytest.mark.parametrize("kind", NODES)
@share(2)
@given(st.data())
def test_bounds_hold_every_combination(kind: str, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(NODES[kind]))
    operands = [data.draw(boxes) for part in node[1:] if part is None]
    if kind in ("and", "or", "xor"):
        # Their operands are numbers from 0, as the graph wraps them.
        operands = [(abs(low), abs(low) + high - low) for low, high in operands]
    low, high = apply(node, operands)
    for point in product(*(range(a, b + 1) for a, b in operands)):
        try:
            assert low <= number(node, point) <= high, point
        except Unspecified:
            assert (low, high) == (-INFINITY, INFINITY)


@pytest.mark.parametrize(
    "kind", ["wrap", "low_bits", "divide", "remainder", "minimum", "multiply", "and", "or", "lt", "eq"]
)
@given(st.tuples(st.integers(-9, 9), st.integers(1, 9)))
def test_single_numbers_stay_single(kind: str, numbers: tuple[int, int]) -> None:
    if kind in ("and", "or", "remainder"):
        # Bits of negative numbers are never asked for, and their remainders seldom.
        numbers = (abs(numbers[0]), numbers[1])
    for node in NODES[kind]:
        operands = numbers[: sum(1 for part in node[1:] if part is None)]
        wanted = number(node, operands)
        assert apply(node, [(n, n) for n in operands]) == (wanted, wanted)


def test_no_bound_stays_no_bound() -> None:
    free = (-INFINITY, INFINITY)
    assert multiply(free, free) == free
    assert multiply(free, (0, 0)) == (0, 0)
    assert apply(("shift_right", None, 3), [free])[1] >= INFINITY >> 3
    assert apply(("no such operation", None), [(0, 1)]) == free
