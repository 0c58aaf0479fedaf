"""Approximate functions of the engine: the manual's bounds and special cases, two cards, the same bits anywhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgpu.engine.ops import approximate, collect
from softgpu.engine.ops.approximate import ERRORS, Error, errors
from softgpu.reference.numerics import FORMATS, OPERATIONS, PACKED, to_float64
from tests.nodriver.engine.evaluate import Function, compiled
from tests.nodriver.engine.float_samples import operands, undefined_symbols

Array = npt.NDArray[Any]

TABLES = [collect(approximate.operations(rounding)) for rounding in (0, 1)]
NAMES = list(TABLES[0])
SINGLE = [name for name in NAMES if TABLES[0][name].results == ("f32",)]


@cache
def functions(rounding: int, cpu: str) -> dict[str, Function]:
    return dict(zip(NAMES, compiled(list(TABLES[rounding].values()), cpu, optimize=rounding == 1), strict=True))


@cache
def samples(name: str, count: int = 4000, seed: int = 1) -> tuple[Array, ...]:
    """All 16-bit numbers; else edge values, random patterns, and numbers of ordinary size."""
    kinds = OPERATIONS[name].sources
    given = operands(kinds, count, seed)
    if kinds[0] != "f32":
        return tuple(given)
    random = np.random.default_rng(seed)
    sets = [random.uniform(-8, 8, count), random.uniform(0.4, 2.2, count), random.uniform(-160, 140, count),
            random.uniform(-320, 320, count), random.uniform(-1e5, 1e5, count), np.arange(-160.0, 140.0),
            2.0 ** np.arange(124.0, 128.0), 1.5 * 2.0 ** np.arange(-149.0, 128.0)]
    ordinary = np.concatenate(sets).astype(np.float32).view(np.uint32)
    return tuple(np.concatenate([array, random.permutation(ordinary) if at else ordinary])
                 for at, array in enumerate(given))


def halves(name: str, array: Array) -> Array:
    """Packed numbers one by one."""
    return array.view(np.uint16) if OPERATIONS[name].result in PACKED else array


def kind_of(name: str) -> str:
    result = OPERATIONS[name].result
    return PACKED[result][0] if result in PACKED else result


def special(kind: str, bits: Array) -> Array:
    """Infinities, NaNs and zeros."""
    form = FORMATS[kind]
    size = bits & bits.dtype.type(form.magnitude_mask)
    return np.asarray((size >= form.infinity_bits) | (size == 0))


def one_nan(kind: str, bits: Array) -> Array:
    form = FORMATS[kind]
    nan = bits.dtype.type(form.magnitude_mask)
    return np.where((bits & nan) > form.infinity_bits, nan, bits)


def ordered(bits: Array) -> Array:
    """f32 patterns as integers in the order of the numbers."""
    signed = bits.astype(np.int64)
    return np.where(signed >> 31, -(signed & 0x7FFFFFFF), signed)


def applies(error: Error, name: str, given: tuple[Array, ...]) -> Array:
    """Which operands a bound is for."""
    kind = FORMATS[kind_of(name)].name
    x = to_float64(halves(name, given[-1]), kind)
    x = np.abs(x) if name.startswith("div") else x
    with np.errstate(invalid="ignore"):
        chosen = np.isfinite(x)
        if error.low is not None:
            chosen &= x >= error.low
        if error.high is not None:
            chosen &= x <= error.high
    return np.asarray(chosen)


def exact(name: str, given: tuple[Array, ...]) -> Array:
    """The function in f64, of the flushed operand."""
    kind = kind_of(name)
    values = [to_float64(halves(name, array), kind) for array in given]
    if name.endswith("ftz.f64"):
        values = [np.asarray(given[0] & np.uint64(0xFFFFFFFF00000000)).view(np.float64)]
    family = name.split(".", maxsplit=1)[0]
    with np.errstate(all="ignore"):
        if ".ftz" in name:
            least = FORMATS[kind].smallest_normal
            tiny = float(to_float64(np.array([least], FORMATS[kind].container), kind)[0])
            values = [np.where(np.abs(x) < tiny, np.copysign(0.0, x), x) for x in values]
        function: Any = {"ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt,
                    "rcp": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x), "div": np.divide}[family]
        return np.asarray(function(*values))


def outside(name: str, given: tuple[Array, ...], have: Array, want: Array) -> Array:
    """Numbers of the operands where a bound does not hold. ``want``: correctly rounded."""
    kind = kind_of(name)
    values, truth = to_float64(have, kind), exact(name, given)
    failed = np.zeros(len(have), bool)
    least = 2.0 ** (2 - FORMATS[kind].bias - FORMATS[kind].mantissa_bits - 1)
    with np.errstate(all="ignore"):
        for error in errors(name):
            if error.unit == "ulp":
                wrong = np.abs(ordered(have) - ordered(want)) > error.bound
            else:
                scale = np.abs(truth) if error.unit == "relative" else 1.0
                wrong = np.abs(values - truth) > np.maximum(error.bound * scale, least)
                wrong &= ~special(kind, want) | (to_float64(want, kind) == 0)
            failed |= wrong & applies(error, name, given) & ~(one_nan(kind, have) == one_nan(kind, want))
    return np.flatnonzero(failed)


def test_the_table_has_the_mnemonics_of_the_interpreter() -> None:
    named = {name for name in OPERATIONS if {"approx", "full"} & set(name.split("."))}
    for table in TABLES:
        assert set(table) == named
    for name in named:
        assert errors(name)
    assert {name for name in ERRORS if name not in named} == {"ex2.approx.bf16", "rcp.approx.f64"}


@pytest.mark.parametrize("cpu", ("host", "x86-64-v3"))
@pytest.mark.parametrize("rounding", (0, 1))
def test_results_are_inside_the_bounds(rounding: int, cpu: str) -> None:
    for name in NAMES:
        given = samples(name)
        kind = kind_of(name)
        have, want = halves(name, functions(rounding, cpu)[name](*given)[0]), halves(name, OPERATIONS[name](*given))
        where = outside(name, given, have, want)
        assert not len(where), (name, [hex(int(halves(name, x)[where[0]])) for x in given], hex(int(have[where[0]])))
        # The special cases of the manual's tables, to the bit: wherever an operand is one.
        edges = np.logical_or.reduce([special(kind, halves(name, array)) for array in given])
        assert np.array_equal(one_nan(kind, have)[edges], one_nan(kind, want)[edges]), name
        # What is no number is none anywhere, and ftz leaves no subnormal ones.
        assert np.array_equal(np.isnan(to_float64(have, kind)), np.isnan(to_float64(want, kind))), name
        if ".ftz" in name and kind != "f64":
            size = have & have.dtype.type(FORMATS[kind].magnitude_mask)
            assert not ((size > 0) & (size < FORMATS[kind].smallest_normal)).any(), name


@pytest.mark.long
@pytest.mark.parametrize("cpu", ("host", "x86-64-v3"))
@pytest.mark.parametrize("rounding", (0, 1))
def test_many_results_are_inside_the_bounds(rounding: int, cpu: str) -> None:
    for name in NAMES:
        for seed in range(2, 6):
            given = samples(name, 200_000, seed)
            have = halves(name, functions(rounding, cpu)[name](*given)[0])
            assert not len(outside(name, given, have, halves(name, OPERATIONS[name](*given)))), name


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SINGLE if not name.startswith("div")])
@pytest.mark.parametrize("rounding", (0, 1))
def test_a_part_of_all_floats_is_inside_the_bounds(rounding: int, name: str) -> None:
    """Every 601st pattern."""
    for start in range(0, 1 << 32, 1 << 29):
        given = (np.arange(start, start + (1 << 29), 601, dtype=np.int64).astype(np.uint32),)
        have, want = functions(rounding, "host")[name](*given)[0], np.asarray(OPERATIONS[name](*given))
        assert not len(outside(name, given, have, want))


def test_cards_differ_and_machines_do_not() -> None:
    for name in NAMES:
        given = samples(name)
        one, other = (functions(rounding, "host")[name](*given)[0] for rounding in (0, 1))
        assert (one != other).any(), name
        for rounding, have in ((0, one), (1, other)):
            elsewhere = functions(rounding, "x86-64-v3")[name](*given)[0]
            assert np.array_equal(have, elsewhere), name


def test_powers_of_two_are_exact() -> None:
    whole = np.arange(-149, 128)
    given = whole.astype(np.float32).view(np.uint32)
    for rounding in (0, 1):
        powers = functions(rounding, "host")["ex2.approx.f32"](given)[0].view(np.float32)
        assert np.array_equal(powers.astype(np.float64), 2.0**whole)
        logarithms = functions(rounding, "host")["lg2.approx.f32"](powers.view(np.uint32))[0].view(np.float32)
        assert np.array_equal(logarithms, whole.astype(np.float32))


def test_large_angles() -> None:
    """Beyond what the manual promises: a warp with one large argument takes another way, others must not notice."""
    random = np.random.default_rng(7)
    large = (random.uniform(-1, 1, 32000) * 2.0 ** random.uniform(0, 127, 32000)).astype(np.float32).view(np.uint32)
    small = random.uniform(-9, 9, 32000).astype(np.float32).view(np.uint32)
    mixed = np.where(random.integers(0, 16, 32000) == 0, large, small)
    for rounding in (0, 1):
        for name in ("sin.approx.f32", "cos.approx.ftz.f32"):
            function = functions(rounding, "host")[name]
            for given in (large, mixed):
                difference = to_float64(function(given)[0], "f32") - exact(name, (given,))
                assert np.abs(difference).max() < 2.0**-23
            alone = function(small)[0]
            assert np.array_equal(function(mixed)[0][mixed == small], alone[mixed == small])


def test_division_by_large_numbers() -> None:
    """div.approx for divisors between 2**126 and 2**128: a zero with the sign of the quotient, NaN of an infinity."""
    huge = np.array([2.0**127, -(2.0**127), 2.0**127, 2.0**127, 2.0**126], np.float32).view(np.uint32)
    given = np.array([2.0**127, 2.0**127, np.inf, -1.0, 2.0**126], np.float32).view(np.uint32)
    for rounding in (0, 1):
        for name in ("div.approx.f32", "div.approx.ftz.f32"):
            have = functions(rounding, "host")[name](given, huge)[0].tolist()
            assert have == [0, 0x80000000, 0x7FFFFFFF, 0x80000000, 0x3F800000]


def test_unknown_cards_are_refused() -> None:
    with pytest.raises(ValueError, match="rounding 2"):
        list(approximate.operations(2))


def test_nothing_is_called_from_outside() -> None:
    for table in TABLES:
        assert undefined_symbols(list(table.values())) == set()
