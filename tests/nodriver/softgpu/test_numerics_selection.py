"""min, max, abs, neg, copysign, testp, set, setp: against the manual's pseudo-code on exact numbers."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgpu.reference.numerics import COMPARISONS, FORMATS, OPERATIONS, join2
from tests import rationals
from tests.patterns import patterns, rows, share
from tests.rationals import NAN, Number

KINDS = ("f16", "bf16", "f32", "f64")


def columns(operands: list[tuple[int, ...]], kind: str) -> list[np.ndarray]:
    return [np.array(column, FORMATS[kind].container) for column in zip(*operands, strict=True)]


def order(number: Number) -> tuple[bool, object, bool]:
    """A key: numbers by value, -0 before +0, infinities outside."""
    if number.value is None:
        return (not number.negative, 0, False) if number.negative else (True, float("inf"), True)
    return (True, number.signed, not number.negative)


def flushed(bits: int, kind: str) -> int:
    form = FORMATS[kind]
    return bits & form.sign_mask if (bits & form.magnitude_mask) < form.smallest_normal else bits


@pytest.mark.parametrize("modifiers", ["", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"])
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f32.ftz", "f16.ftz", "f64"])
@pytest.mark.parametrize("name", ["min", "max"])
@share(10)
@given(data=st.data())
def test_min_and_max(name: str, kind: str, modifiers: str, data: st.DataObject) -> None:
    if kind == "f64" and modifiers:
        assert f"{name}{modifiers}.f64" not in OPERATIONS
        return
    kind, _, ftz = kind.partition(".")
    operands = data.draw(rows(kind, 2))
    operation = OPERATIONS[f"{name}{'.ftz' if ftz else ''}{modifiers}.{kind}"]
    sign = FORMATS[kind].sign_mask
    for row, result in zip(operands, operation(*columns(operands, kind)).tolist(), strict=True):
        a, b = (flushed(bits, kind) for bits in row) if ftz else row
        new_sign = (a ^ b) & sign
        if "xorsign" in modifiers:
            a, b = a & ~sign, b & ~sign
        x, y = rationals.decode(a, kind), rationals.decode(b, kind)
        if x is NAN or y is NAN:
            both = x is NAN and y is NAN
            wanted = FORMATS[kind].canonical_nan if both or "NaN" in modifiers else (b if x is NAN else a)
            if both or "NaN" in modifiers:
                assert result == wanted
                continue
        else:
            pair = sorted([(order(x), a), (order(y), b)])
            wanted = pair[0 if name == "min" else 1][1]
        assert result == (wanted & ~sign | new_sign if "xorsign" in modifiers else wanted)


@pytest.mark.parametrize("kind", KINDS)
@share(4)
@given(data=st.data())
def test_sign_operations(kind: str, data: st.DataObject) -> None:
    operands = data.draw(rows(kind, 2))
    a, b = columns(operands, kind)
    sign = FORMATS[kind].sign_mask
    assert OPERATIONS[f"abs.{kind}"](a).tolist() == [x & ~sign for x, _ in operands]
    assert OPERATIONS[f"neg.{kind}"](a).tolist() == [x ^ sign for x, _ in operands]
    if kind in ("f32", "f64"):
        assert OPERATIONS[f"copysign.{kind}"](a, b).tolist() == [x & sign | y & ~sign for x, y in operands]
    if kind in ("f32", "f16"):
        assert OPERATIONS[f"abs.ftz.{kind}"](a).tolist() == [flushed(x, kind) & ~sign for x, _ in operands]


@pytest.mark.parametrize("kind", ["f32", "f64"])
@share(2)
@given(data=st.data())
def test_testp(kind: str, data: st.DataObject) -> None:
    sources = data.draw(st.lists(patterns(kind), min_size=1, max_size=12))
    results = {
        test: OPERATIONS[f"testp.{test}.{kind}"](np.array(sources, FORMATS[kind].container)).tolist()
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    }
    smallest = rationals.decode(FORMATS[kind].smallest_normal, kind)
    assert smallest is not None and smallest.value is not None
    for index, bits in enumerate(sources):
        number = rationals.decode(bits, kind)
        finite = number is not None and number.value is not None
        subnormal = finite and 0 < number.value < smallest.value
        assert results["finite"][index] == finite
        assert results["infinite"][index] == (number is not None and number.value is None)
        assert results["number"][index] == (number is not None)
        assert results["notanumber"][index] == (number is None)
        assert results["subnormal"][index] == subnormal
        assert results["normal"][index] == (finite and not subnormal)


def holds(op: str, x: Number | None, y: Number | None) -> bool:
    if op == "num":
        return x is not None and y is not None
    if op == "nan":
        return x is None or y is None
    if x is None or y is None:
        return op.endswith("u") and op != "nu"
    left, right = (_key(number) for number in (x, y))
    return {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}[op[:2]](left, right)


def _key(number: Number) -> tuple[int, object]:
    if number.value is None:
        return (-1, 0) if number.negative else (1, 0)
    return (0, number.signed)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "f32.ftz", "f16.ftz"])
@share(4)
@given(data=st.data())
def test_comparisons(kind: str, data: st.DataObject) -> None:
    kind, _, ftz = kind.partition(".")
    operands = data.draw(rows(kind, 2)) + [(x, x) for x, _ in data.draw(rows(kind, 2, 3))]
    for op in COMPARISONS:
        results = OPERATIONS[f"setp.{op}{'.ftz' if ftz else ''}.{kind}"](*columns(operands, kind)).tolist()
        for row, result in zip(operands, results, strict=True):
            a, b = (flushed(bits, kind) for bits in row) if ftz else row
            assert result == holds(op, rationals.decode(a, kind), rationals.decode(b, kind)), (op, row)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_comparison_gives_low_and_high(kind: str) -> None:
    one, two = FORMATS[kind].one_bits, FORMATS[kind].one_bits + 1
    a, b = join2(np.uint16(one), np.uint16(two)), join2(np.uint16(two), np.uint16(two))
    low, high = OPERATIONS[f"setp.lt.{kind}x2"](a, b)
    assert (low, high) == (True, False)
    assert OPERATIONS[f"set.lt.{kind}x2.{kind}x2"](a, b) == one
    assert OPERATIONS[f"set.lt.u32.{kind}x2"](a, b) == 0xFFFF
    assert OPERATIONS[f"set.eq.s32.{kind}x2"](a, b) == 0xFFFF0000


def test_set_results() -> None:
    a, b = np.float32([1, 2]).view(np.uint32), np.float32([2, 2]).view(np.uint32)
    for to, true in (("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000), ("f16", 0x3C00), ("bf16", 0x3F80)):
        assert OPERATIONS[f"set.lt.{to}.f32"](a, b).tolist() == [true, 0]
    assert OPERATIONS["set.ge.u16.f16"](np.uint16(0x3C00), np.uint16(0)) == 0xFFFF
