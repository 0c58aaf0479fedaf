"""add, sub, mul, fma, div, rcp, sqrt of all types and modes against exact rationals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgpu.reference import numerics
from softgpu.reference.numerics import FORMATS, OPERATIONS, exact
from tests import rationals
from tests.patterns import patterns, rows, share
from tests.rationals import NAN, Number

MODES = ("rn", "rz", "rm", "rp")
Oracle = Callable[..., Number | None]

OPERATORS: dict[str, tuple[int, Oracle]] = {
    "add": (2, rationals.add),
    "sub": (2, lambda x, y, mode: rationals.add(x, _negative(y), mode)),
    "mul": (2, lambda x, y, mode: rationals.mul(x, y)),
    "fma": (3, rationals.fma),
}


def _negative(number: Number | None) -> Number | None:
    return number if number is None else Number(not number.negative, number.value)


def arrays(operands: list[tuple[int, ...]], kind: str) -> list[np.ndarray]:
    return [np.array(column, FORMATS[kind].container) for column in zip(*operands, strict=True)]


def flushed(bits: int, kind: str) -> int:
    form = FORMATS[kind]
    return bits & form.sign_mask if (bits & form.magnitude_mask) < form.smallest_normal else bits


def expected(oracle: Oracle, operands: tuple[int, ...], kind: str, mode: str, ftz: bool) -> int:
    if ftz:
        operands = tuple(flushed(operand, kind) for operand in operands)
    result = oracle(*(rationals.decode(operand, kind) for operand in operands), mode)
    bits = rationals.rounded(result, kind, mode, FORMATS[kind].canonical_nan)
    return flushed(bits, kind) if ftz else bits


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
def test_f32(name: str, data: st.DataObject) -> None:
    count, oracle = OPERATORS[name]
    operands = data.draw(rows("f32", count))
    for mode, ftz in product(MODES, (False, True)):
        operation = OPERATIONS[f"{name}.{mode}{'.ftz' if ftz else ''}.f32"]
        for row, result in zip(operands, operation(*arrays(operands, "f32")).tolist(), strict=True):
            assert result == expected(oracle, row, "f32", mode, ftz), [hex(bits) for bits in row]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", OPERATORS)
@share(4)
@given(data=st.data())
def test_half_precision(name: str, kind: str, data: st.DataObject) -> None:
    count, oracle = OPERATORS[name]
    operands = data.draw(rows(kind, count))
    for row, result in zip(operands, OPERATIONS[f"{name}.rn.{kind}"](*arrays(operands, kind)).tolist(), strict=True):
        assert result == expected(oracle, row, kind, "rn", False), [hex(bits) for bits in row]


@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("name", OPERATORS)
@share(4)
@given(data=st.data())
def test_packed_is_two_halves(name: str, ftz: str, data: st.DataObject) -> None:
    count, _ = OPERATORS[name]
    low, high = (arrays(data.draw(st.lists(st.tuples(*[patterns("f16")] * count), min_size=4, max_size=4)), "f16")
                 for _ in range(2))  # fmt: skip
    packed = [numerics.join2(x, y) for x, y in zip(low, high, strict=True)]
    one = OPERATIONS[f"{name}.rn{ftz}.f16"]
    two = OPERATIONS[f"{name}.rn{ftz}.f16x2"]
    assert np.array_equal(two(*packed), numerics.join2(one(*low), one(*high)))


@pytest.mark.parametrize("modifier", ["sat", "relu"])
@pytest.mark.parametrize("kind", ["f16", "f32"])
@share(4)
@given(data=st.data())
def test_saturation_and_relu_act_on_the_rounded_result(kind: str, modifier: str, data: st.DataObject) -> None:
    operands = data.draw(rows(kind, 3))
    results = numerics.fma(*arrays(operands, kind), kind, "rn", **{modifier: True}).tolist()
    form = FORMATS[kind]
    for row, result in zip(operands, results, strict=True):
        plain = expected(rationals.fma, row, kind, "rn", False)
        number = rationals.decode(plain, kind)
        if number is NAN:
            assert result == (0 if modifier == "sat" else form.canonical_nan)
        elif number.negative:
            assert result == 0
        elif modifier == "sat" and (number.value is None or number.value > 1):
            assert result == form.one_bits
        else:
            assert result == plain


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@share(4)
@given(data=st.data())
def test_quotient_reciprocal_root(kind: str, mode: str, data: st.DataObject) -> None:
    operands = data.draw(rows(kind, 2, 6))
    a, b = arrays(operands, kind)
    quotients = numerics.div(a, b, kind, mode).tolist()
    reciprocals = numerics.rcp(b, kind, mode).tolist()
    roots = numerics.sqrt(a, kind, mode).tolist()
    one = rationals.decode(FORMATS[kind].one_bits, kind)
    for index, row in enumerate(operands):
        x, y = (rationals.decode(bits, kind) for bits in row)
        for result, correct in (
            (quotients[index], rationals.div(x, y)),
            (reciprocals[index], rationals.div(one, y)),
            (roots[index], rationals.sqrt(x)),
        ):
            if correct is NAN:
                assert np.isnan(numerics.to_float64(result, kind))
            else:
                assert result == rationals.encode(correct, kind, mode), [hex(bits) for bits in row]


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
def test_f64(name: str, data: st.DataObject) -> None:
    count, oracle = OPERATORS[name]
    operands = data.draw(rows("f64", count, 6))
    for mode in MODES:
        results = OPERATIONS[f"{name}.{mode}.f64"](*arrays(operands, "f64")).tolist()
        for row, result in zip(operands, results, strict=True):
            correct = oracle(*(rationals.decode(bits, "f64") for bits in row), mode)
            if correct is NAN:
                assert result == _f64_nan(row)
            else:
                assert result == rationals.encode(correct, "f64", mode), [hex(bits) for bits in row]


def _f64_nan(row: tuple[int, ...]) -> int:
    """The first NaN operand made quiet, or the NaN of an invalid operation."""
    for bits in row:
        if rationals.decode(bits, "f64") is NAN:
            return bits | 1 << 51
    return 0xFFF8000000000000


@share(10)
@given(seed=st.integers(0, 2**32 - 1))
def test_f64_fma_fast_and_exact_paths_agree(seed: int) -> None:
    """Operands of moderate exponents, with the addend near the product, so that sums cancel and tie."""
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(300) * 2.0 ** random.integers(-30, 30, 300) for _ in range(2))
    a[::5] = np.ldexp(random.integers(1, 1 << 27, 60).astype(float), 10)
    c = -(a * b) * (1 + random.integers(-2, 3, 300) * 2.0 ** random.integers(-60, 1, 300))
    _check_f64_fma(a, b, c)


def test_f64_fma_just_beside_ties() -> None:
    """c plus half a unit of its last place, less or more a little: rounding twice would call it a tie."""
    shifts = np.arange(27, 50)
    for sign in (1.0, -1.0):
        a, b = (1 + 2.0**-shifts) * 2.0**-53, sign * (1 - 2.0**-shifts)  # a * b = +-2**-53 * (1 - 4**-shift)
        for c in (1 + 2.0**-52, 1 + 2.0**-51, 1.5 - 2.0**-52):
            _check_f64_fma(a, b, np.full(shifts.shape, c))


def test_f64_fma_at_the_ends_of_the_range() -> None:
    random = np.random.default_rng(8)
    a, b, c = (1 + random.random((3, 60))) * 2.0 ** np.array([[1000], [-990], [5]])
    _check_f64_fma(a, b, c)
    _check_f64_fma(a, b, -(a * b))
    _check_f64_fma(a, a, np.full(60, -1.0))
    _check_f64_fma(a, a, np.full(60, -np.inf))  # a product that overflows cannot cancel an infinity
    _check_f64_fma(b * 2.0**-30, b, c)
    _check_f64_fma(b, b, np.full(60, 2.0**-1074))
    _check_f64_fma(np.zeros(60), b, c)
    _check_f64_fma(-np.zeros(60), a, np.zeros(60))


def _check_f64_fma(*operands: np.ndarray) -> None:
    bits = [np.ascontiguousarray(x).view(np.uint64) for x in operands]
    for row, result in zip(zip(*(x.tolist() for x in bits), strict=True), numerics.fma(*bits, "f64"), strict=True):
        correct = rationals.fma(*(rationals.decode(x, "f64") for x in row), "rn")
        assert correct is not NAN and result == rationals.encode(correct, "f64", "rn"), [hex(x) for x in row]


def test_integer_path_of_f64_equals_the_machine() -> None:
    """Round to nearest, which the machine does itself, through the integers that serve the other modes."""
    random = np.random.default_rng(2)
    a, b = ((1 + random.random(1000)) * 2.0 ** random.integers(-1000, 1000, 1000) for _ in range(2))
    a[:100], b[:100] = 2.0 ** random.integers(-1074, -1010, 100), 1 + random.random(100)
    with np.errstate(all="ignore"):
        native = {"add": a + b, "mul": a * b, "div": a / b, "sqrt": np.sqrt(a)}
    rows_ = list(zip(a.view(np.uint64).tolist(), b.view(np.uint64).tolist(), strict=True))
    for name, values in native.items():
        function = getattr(exact, name)
        results = [function(x, "rn") if name == "sqrt" else function(x, y, "rn") for x, y in rows_]
        assert results == values.view(np.uint64).tolist(), name


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
@share(10)
@given(data=st.data())
def test_mixed_precision(kind: str, mode: str, data: st.DataObject) -> None:
    halves = data.draw(rows(kind, 2, 6))
    addends = data.draw(st.lists(patterns("f32"), min_size=len(halves), max_size=len(halves)))
    (a, b), c = arrays(halves, kind), np.array(addends, np.uint32)
    sums = OPERATIONS[f"add.{mode}.f32.{kind}"](a, c).tolist()
    differences = OPERATIONS[f"sub.{mode}.f32.{kind}"](a, c).tolist()
    fused = OPERATIONS[f"fma.{mode}.f32.{kind}"](a, b, c).tolist()
    for index, ((x, y), addend) in enumerate(zip(halves, addends, strict=True)):
        left, right, last = rationals.decode(x, kind), rationals.decode(y, kind), rationals.decode(addend, "f32")
        for result, correct in (
            (sums[index], rationals.add(left, last, mode)),
            (differences[index], rationals.add(left, _negative(last), mode)),
            (fused[index], rationals.fma(left, right, last, mode)),
        ):
            assert result == rationals.rounded(correct, "f32", mode, 0x7FFFFFFF)


def test_f16_sum_agrees_with_numpy_on_all_patterns() -> None:
    a = np.arange(65536, dtype=np.uint16)
    random = np.random.default_rng(1)
    for _ in range(3):
        b = random.permutation(a)
        with np.errstate(all="ignore"):
            for name, native in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
                expected_values = native(a.view(np.float16), b.view(np.float16))
                bits = np.where(np.isnan(expected_values), np.uint16(0x7FFF), expected_values.view(np.uint16))
                assert np.array_equal(OPERATIONS[f"{name}.f16"](a, b), bits)


def test_operands_broadcast_and_stay_unchanged() -> None:
    a = np.arange(6, dtype=np.uint32).reshape(2, 3)
    before = a.copy()
    assert numerics.add(a, np.uint32(0x3F800000), "f32").shape == (2, 3)
    assert numerics.fma(a.astype(np.uint64), np.uint64(1), np.uint64(0), "f64").shape == (2, 3)
    assert numerics.add(a, np.uint32(0), "f16x2").shape == (2, 3)
    assert np.array_equal(a, before)
