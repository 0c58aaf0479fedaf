"""Bit patterns for property tests: every class of number, and mantissas that make ties and carries."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from tests.rationals import FIELDS


def share(parts: int) -> settings:
    """Settings for one of many cases of a test: a ``parts``-th of the examples of the profile that is loaded."""
    return settings(max_examples=max(10, settings().max_examples // parts))


def patterns(kind: str) -> st.SearchStrategy[int]:
    """Bit patterns of a floating-point format: subnormals, infinities, NaNs, powers of two and their neighbours."""
    exponent_bits, mantissa_bits, unused = FIELDS[kind]
    top = 2**exponent_bits - 1
    bias = top // 2
    exponents = st.one_of(
        st.integers(0, top),
        st.integers(max(0, bias - 4), bias + 4),
        st.sampled_from([0, 1, 2, top - 2, top - 1, top]),
    )
    full = 2**mantissa_bits - 1
    mantissas = st.one_of(
        st.integers(0, full),
        st.sampled_from([0, 1, full, full - 1, full // 2 + 1, full // 2]),
        st.integers(0, mantissa_bits).map(lambda shift: (1 << shift) & full),
    )

    def assemble(sign: int, exponent: int, mantissa: int) -> int:
        return ((((sign << exponent_bits) | exponent) << mantissa_bits) | mantissa) << unused

    return st.builds(assemble, st.integers(0, 1), exponents, mantissas)


def rows(kind: str, count: int, size: int = 12) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Lists of operand tuples of one format."""
    return st.lists(st.tuples(*[patterns(kind)] * count), min_size=1, max_size=size)
