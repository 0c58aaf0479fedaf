"""from_float64, to_float64, flush: against exact rationals and against numpy's float16."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgpu.reference.numerics import FORMATS, flush, from_float64, join2, split2, to_float64
from softgpu.reference.numerics.rounding import add_odd
from tests import rationals
from tests.patterns import patterns, rows, share
from tests.rationals import NAN, Number

NARROW = ("f16", "bf16", "tf32", "f32", "e4m3", "e5m2")
MODES = ("rn", "rz", "rm", "rp", "rna")


def bits64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64).view(np.float64)


@pytest.mark.parametrize("kind", ["f16", "bf16", "e4m3", "e5m2"])
def test_every_pattern_has_its_value(kind: str) -> None:
    codes = np.arange(1 << (8 * FORMATS[kind].container.itemsize), dtype=FORMATS[kind].container)
    values = to_float64(codes, kind)
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        number = rationals.decode(code, kind)
        if number is NAN:
            assert np.isnan(value)
        elif number.value is None:
            assert np.isinf(value) and (value < 0) == number.negative
        else:
            assert value == number.signed and np.signbit(value) == number.negative


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f16", "bf16", "e4m3", "e5m2"])
def test_every_number_rounds_to_itself(kind: str, mode: str) -> None:
    codes = np.arange(1 << (8 * FORMATS[kind].container.itemsize), dtype=FORMATS[kind].container)
    values = to_float64(codes, kind)
    numbers = ~np.isnan(values)
    assert np.array_equal(from_float64(values, kind, mode)[numbers], codes[numbers])
    assert np.all(from_float64(values, kind, mode)[~numbers] == FORMATS[kind].canonical_nan)


def test_f16_agrees_with_numpy_between_all_neighbours() -> None:
    codes = np.arange(0x7BFF, dtype=np.uint16)
    values = to_float64(codes, "f16")
    for place in (0.25, 0.5, 0.75):
        between = values + (to_float64(codes + np.uint16(1), "f16") - values) * place
        expected = between.astype(np.float16).view(np.uint16)
        assert np.array_equal(from_float64(between, "f16", "rn"), expected)
        assert np.array_equal(from_float64(-between, "f16", "rn"), expected | np.uint16(0x8000))


@pytest.mark.parametrize("kind", NARROW)
@given(data=st.data())
def test_rounding_against_rationals(kind: str, data: st.DataObject) -> None:
    target = FORMATS[kind]
    wide = st.one_of(patterns("f64"), _near(kind))
    sources = data.draw(st.lists(wide, min_size=1, max_size=8))
    for mode, satfinite in product(MODES, (False, True)):
        results = from_float64(bits64(sources), kind, mode, satfinite).tolist()
        for source, result in zip(sources, results, strict=True):
            number = rationals.decode(source, "f64")
            if number is NAN:
                assert result == target.canonical_nan
            else:
                assert result == rationals.encode(number, kind, mode, satfinite)


def _near(kind: str) -> st.SearchStrategy[int]:
    """f64 patterns at, just below and just above numbers of a format and the middles between them."""

    def build(pattern: int, half: bool, step: int) -> int:
        values = to_float64(np.array([pattern], FORMATS[kind].container), kind)
        nearby = to_float64(np.array([pattern ^ (1 << FORMATS[kind].padding)], FORMATS[kind].container), kind)
        with np.errstate(all="ignore"):
            value = (values + nearby) / 2 if half else values
        return max(0, int(value.view(np.uint64)[0]) + step)

    return st.builds(build, patterns(kind), st.booleans(), st.integers(-1, 1))


@given(rows("f32", 2))
def test_round_to_odd_sum_is_exact_or_odd(pairs: list[tuple[int, ...]]) -> None:
    a, b = (to_float64(np.array(column, np.uint32), "f32") for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        sums = add_odd(a, b)
    for (x, y), total in zip(pairs, sums.view(np.uint64).tolist(), strict=True):
        exact = rationals.add(rationals.decode(x, "f32"), rationals.decode(y, "f32"), "rn")
        if exact is NAN or exact.value is None:
            continue
        down, up = (rationals.encode(exact, "f64", mode) for mode in ("rm", "rp"))
        assert total == down == up or (total in (down, up) and total % 2 == 1)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@share(4)
@given(data=st.data())
def test_flush(kind: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(patterns(kind), min_size=1, max_size=20))
    form = FORMATS[kind]
    for source, result in zip(sources, flush(np.array(sources, form.container), kind).tolist(), strict=True):
        number = rationals.decode(source, kind)
        smallest = rationals.decode(form.smallest_normal, kind)
        assert smallest is not None and smallest.value is not None
        subnormal = number is not NAN and number.value is not None and number.value < smallest.value
        assert result == (source & form.sign_mask if subnormal else source)


def test_constants_of_the_formats() -> None:
    assert rationals.decode(FORMATS["e4m3"].largest_bits, "e4m3") == Number(False, 448)
    assert rationals.decode(FORMATS["e5m2"].largest_bits, "e5m2") == Number(False, 57344)
    assert rationals.decode(FORMATS["f16"].largest_bits, "f16") == Number(False, 65504)
    assert FORMATS["tf32"].largest_bits == 0x7F7FE000
    for kind, form in FORMATS.items():
        assert rationals.decode(form.one_bits, kind) == Number(False, 1)
        assert rationals.decode(form.canonical_nan, kind) is NAN


def test_packed_halves() -> None:
    low, high = split2(np.array([0x12345678, 0xFFFF0001], np.uint32))
    assert low.tolist() == [0x5678, 0x0001] and high.tolist() == [0x1234, 0xFFFF]
    assert join2(low, high).tolist() == [0x12345678, 0xFFFF0001]
    assert split2(np.uint16(0xAB12), "e4m3x2") == (0x12, 0xAB)


def test_float_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="bit patterns wanted"):
        to_float64(np.ones(2, np.float32), "f32")
