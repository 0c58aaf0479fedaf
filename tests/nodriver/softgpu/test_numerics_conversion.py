"""cvt between all types: against exact rationals, Python integers and the manual's rules for NaN and clamping."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgpu.reference.numerics import FORMATS, INTEGERS, OPERATIONS, convert
from softgpu.reference.numerics.formats import container
from tests import rationals
from tests.patterns import patterns, share
from tests.rationals import NAN, Number

FLOATS = ("f16", "bf16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")


def limits(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind[0] == "s" else (0, 2**bits - 1)


def whole(value: Fraction, mode: str) -> int:
    if mode == "rni":
        return round(value)  # ties to even
    return {"rzi": int, "rmi": floor, "rpi": ceil}[mode](value)


def unsigned(value: int, kind: str) -> int:
    return value % 2 ** int(kind[1:])


def integers(kind: str) -> st.SearchStrategy[int]:
    low, high = limits(kind)
    bits = int(kind[1:])
    near = st.builds(lambda power, step: min(high, max(low, 2**power + step)), st.integers(0, bits), st.integers(-2, 2))
    return st.one_of(st.integers(low, high), near, st.sampled_from([low, low + 1, 0, 1, high - 1, high]))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
@share(5)
@given(data=st.data())
def test_float_to_integer(to: str, source: str, data: st.DataObject) -> None:
    low, high = limits(to)
    near = integers(to).map(lambda value: rationals.encode(Number(value < 0, Fraction(abs(value))), source, "rn"))
    sources = data.draw(st.lists(st.one_of(patterns(source), near), min_size=1, max_size=12))
    for mode in ("rni", "rzi", "rmi", "rpi"):
        results = OPERATIONS[f"cvt.{mode}.{to}.{source}"](np.array(sources, FORMATS[source].container)).tolist()
        for bits, result in zip(sources, results, strict=True):
            number = rationals.decode(bits, source)
            if number is NAN:
                wide = source == "f64" or to in ("s64", "u64")
                assert result == (2 ** (int(to[1:]) - 1) if wide else 0)
            elif number.value is None:
                assert result == unsigned(low if number.negative else high, to)
            else:
                assert result == unsigned(min(high, max(low, whole(number.signed, mode))), to)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("to", FLOATS)
@share(5)
@given(data=st.data())
def test_integer_to_float(to: str, source: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(integers(source), min_size=1, max_size=12))
    bits = np.array([unsigned(value, source) for value in sources], container(source))
    for mode in MODES:
        for value, result in zip(sources, OPERATIONS[f"cvt.{mode}.{to}.{source}"](bits).tolist(), strict=True):
            assert result == rationals.encode(Number(value < 0, Fraction(abs(value))), to, mode)


@pytest.mark.parametrize("source", INTEGERS)
@share(4)
@given(data=st.data())
def test_integer_to_integer(source: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(integers(source), min_size=1, max_size=12))
    bits = np.array([unsigned(value, source) for value in sources], container(source))
    for to, sat in product(INTEGERS, (False, True)):
        low, high = limits(to)
        results = convert(bits, to, source, sat=sat)
        assert results.dtype == container(to)
        for value, result in zip(sources, results.tolist(), strict=True):
            assert result == unsigned(min(high, max(low, value)) if sat else value, to)


@pytest.mark.parametrize(("source", "to"), [pair for pair in product(FLOATS, FLOATS) if pair[0] != pair[1]])
@share(5)
@given(data=st.data())
def test_float_to_float(source: str, to: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(patterns(source), min_size=1, max_size=12))
    for mode in MODES:
        widening = OPERATIONS.get(f"cvt.{to}.{source}")  # takes no rounding
        operation = widening or OPERATIONS[f"cvt.{mode}.{to}.{source}"]
        for bits, result in zip(sources, operation(np.array(sources, FORMATS[source].container)).tolist(), strict=True):
            number = rationals.decode(bits, source)
            if number is NAN:
                assert rationals.decode(result, to) is NAN
            else:
                assert result == rationals.encode(number, to, mode)


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("kind", FLOATS)
@share(5)
@given(data=st.data())
def test_rounding_to_integral_floats(kind: str, mode: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(patterns(kind), min_size=1, max_size=12))
    results = OPERATIONS[f"cvt.{mode}.{kind}.{kind}"](np.array(sources, FORMATS[kind].container)).tolist()
    for bits, result in zip(sources, results, strict=True):
        number = rationals.decode(bits, kind)
        if number is NAN:
            assert rationals.decode(result, kind) is NAN
        elif number.value is None:
            assert result == bits
        else:
            assert rationals.decode(result, kind) == Number(number.negative, Fraction(abs(whole(number.signed, mode))))


def test_all_f16_patterns_to_every_type() -> None:
    codes = np.arange(65536, dtype=np.uint16)
    values = codes.view(np.float16)
    with np.errstate(all="ignore"):
        wide = values.astype(np.float32)
        bits = np.where(np.isnan(values), np.uint32(0x7FFFFFFF), wide.view(np.uint32))
        assert np.array_equal(OPERATIONS["cvt.f32.f16"](codes), bits)
        assert np.array_equal(OPERATIONS["cvt.rn.f16.f32"](bits), np.where(np.isnan(values), np.uint16(0x7FFF), codes))
        assert np.array_equal(
            OPERATIONS["cvt.f64.f16"](codes).view(np.float64), values.astype(np.float64), equal_nan=True
        )
        clipped = np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), -32768, 32767)
        assert np.array_equal(OPERATIONS["cvt.rni.s16.f16"](codes).view(np.int16), np.rint(clipped).astype(np.int16))


@pytest.mark.parametrize(("name", "to", "mode"), [
    ("cvt.rna.tf32.f32", "tf32", "rna"),
    ("cvt.rn.tf32.f32", "tf32", "rn"),
    ("cvt.rz.tf32.f32", "tf32", "rz"),
    ("cvt.rna.satfinite.tf32.f32", "tf32", "rna"),
    ("cvt.rz.relu.satfinite.bf16.f32", "bf16", "rz"),
    ("cvt.rn.satfinite.relu.f16.f32", "f16", "rn"),
])  # fmt: skip
@share(3)
@given(data=st.data())
def test_special_destinations(name: str, to: str, mode: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(patterns("f32"), min_size=1, max_size=12))
    for bits, result in zip(sources, OPERATIONS[name](np.array(sources, np.uint32)).tolist(), strict=True):
        number = rationals.decode(bits, "f32")
        if number is NAN:
            assert result == FORMATS[to].canonical_nan
        elif "relu" in name and number.negative:
            assert result == 0
        else:
            assert result == rationals.encode(number, to, mode, "satfinite" in name)


@pytest.mark.parametrize("to", ["f16x2", "bf16x2", "e4m3x2", "e5m2x2"])
@given(data=st.data())
def test_first_operand_goes_to_the_upper_half(to: str, data: st.DataObject) -> None:
    a, b = data.draw(patterns("f32")), data.draw(patterns("f32"))
    element = to.removesuffix("x2")
    satfinite = element in ("e4m3", "e5m2")
    name = f"cvt.rn{'.satfinite' if satfinite else ''}.{to}.f32"
    width = 8 if satfinite else 16
    packed = int(OPERATIONS[name](np.uint32(a), np.uint32(b)))
    for bits, result in ((a, packed >> width), (b, packed % 2**width)):
        number = rationals.decode(bits, "f32")
        if number is NAN:
            assert result == FORMATS[element].canonical_nan
        else:
            assert result == rationals.encode(number, element, "rn", satfinite)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_eight_bit_formats_to_half_and_back(kind: str) -> None:
    codes = np.arange(65536, dtype=np.uint16)
    halves = OPERATIONS[f"cvt.rn.f16x2.{kind}x2"](codes)
    back = OPERATIONS[f"cvt.rn.satfinite.{kind}x2.f16x2"](halves)
    for low in range(256):
        number = rationals.decode(low, kind)
        if number is NAN:
            assert back[low] & 0xFF == FORMATS[kind].canonical_nan and halves[low] & 0xFFFF == 0x7FFF
        elif number.value is None:
            largest = FORMATS[kind].largest_bits
            assert back[low] & 0xFF == largest | (low & 0x80)
        else:
            assert back[low] & 0xFF == low
            assert rationals.decode(int(halves[low]) & 0xFFFF, "f16") == number
    assert np.array_equal(halves >> np.uint32(16), np.repeat(halves[:256] & np.uint32(0xFFFF), 256))


def test_ftz_and_sat() -> None:
    tiny, negative = np.uint32(0x00000001), np.uint32(0x80000001)
    assert OPERATIONS["cvt.ftz.f32.f32"](tiny) == 0
    assert OPERATIONS["cvt.ftz.f32.f32"](negative) == 0x80000000
    assert OPERATIONS["cvt.rpi.s32.f32"](tiny) == 1
    assert OPERATIONS["cvt.rpi.ftz.s32.f32"](tiny) == 0
    assert OPERATIONS["cvt.rp.f16.f32"](tiny) == 1
    assert OPERATIONS["cvt.rp.ftz.f16.f32"](tiny) == 0
    assert OPERATIONS["cvt.rn.f32.f64"](np.float64(2.0**-200).view(np.uint64)) == 0
    assert OPERATIONS["cvt.rn.ftz.f32.f64"](np.float64(2.0**-130).view(np.uint64)) == 0
    assert OPERATIONS["cvt.f64.f32"](tiny) == np.float64(2.0**-149).view(np.uint64)
    assert OPERATIONS["cvt.ftz.f64.f32"](tiny) == 0
    assert OPERATIONS["cvt.sat.f32.f32"](np.uint32(0x7FC00000)) == 0
    assert OPERATIONS["cvt.sat.f32.f32"](np.float32(2).view(np.uint32)) == 0x3F800000
    assert OPERATIONS["cvt.sat.f32.f32"](np.uint32(0x80000000)) == 0
    assert OPERATIONS["cvt.rn.sat.f16.s32"](np.uint32(7)) == 0x3C00


def test_wider_registers_keep_their_low_bits() -> None:
    assert OPERATIONS["cvt.u32.u8"](np.array([0x1234], np.uint32)).tolist() == [0x34]
    assert OPERATIONS["cvt.s32.s8"](np.array([0x12F4], np.uint16)).tolist() == [0xFFFFFFF4]
