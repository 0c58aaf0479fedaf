"""Comparison, selection and moves of the interpreter."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgpu.reference import UnsupportedInstruction
from tests.reference_kernels import evaluate, one

INTEGERS = {"s16": 16, "u16": 16, "s32": 32, "u32": 32, "s64": 64, "u64": 64}
ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}
UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_comparisons(kind: str) -> None:
    width = INTEGERS[kind]
    low = -(1 << width - 1) if kind[0] == "s" else 0
    edge = [low, low + 1, -1 if low else 1, 0, 1, low + (1 << width) - 1]
    pairs = list(itertools.product(edge, repeat=2))
    columns = [(kind, [a for a, _ in pairs]), (kind, [b for _, b in pairs])]
    names = [*ORDERED, *(UNSIGNED_NAMES if kind[0] == "u" else ())]
    for name in names:
        got = one(f"setp.{name}.{kind} %x, %a, %b;", columns, "pred")
        function = ORDERED[UNSIGNED_NAMES.get(name, name)]
        assert got.tolist() == [int(function(a, b)) for a, b in pairs]


FLOATS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-40, -1e-40]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_float_comparisons_with_nan(kind: str) -> None:
    dtype = np.float32 if kind == "f32" else np.float64
    pairs = list(itertools.product([dtype(v) for v in FLOATS], repeat=2))
    columns = [(kind, np.array([p[i] for p in pairs], dtype)) for i in (0, 1)]
    for name, function in ORDERED.items():
        ordered = [not (math.isnan(a) or math.isnan(b)) for a, b in pairs]
        plain = [bool(function(float(a), float(b))) for a, b in pairs]
        got = one(f"setp.{name}.{kind} %x, %a, %b;", columns, "pred")
        assert got.tolist() == [int(o and p) for o, p in zip(ordered, plain, strict=True)]
        got = one(f"setp.{name}u.{kind} %x, %a, %b;", columns, "pred")
        assert got.tolist() == [int(not o or p) for o, p in zip(ordered, plain, strict=True)]
    numbers = one(f"setp.num.{kind} %x, %a, %b;", columns, "pred")
    nans = one(f"setp.nan.{kind} %x, %a, %b;", columns, "pred")
    assert numbers.tolist() == [int(o) for o in ordered]
    assert (numbers ^ nans).all()


def test_ftz_comparison_sees_zero() -> None:
    columns = [("f32", np.float32([1e-40, 1e-40])), ("f32", np.float32([0, -1e-40]))]
    assert one("setp.eq.f32 %x, %a, %b;", columns, "pred").tolist() == [0, 0]
    assert one("setp.eq.ftz.f32 %x, %a, %b;", columns, "pred").tolist() == [1, 1]


@pytest.mark.parametrize("boolean", ["and", "or", "xor"])
@pytest.mark.parametrize("bang", ["", "!"])
def test_both_predicates_and_boolean_operators(boolean: str, bang: str) -> None:
    rows = list(itertools.product([1, 2], [1, 2], [0, 1]))
    columns = [("s32", [r[0] for r in rows]), ("s32", [r[1] for r in rows]), ("pred", [r[2] for r in rows])]
    p, q = evaluate(f"setp.lt.{boolean}.s32 %x|%y, %a, %b, {bang}%c;", columns, ["pred", "pred"])
    combine = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[boolean]
    third = [r[2] ^ (bang == "!") for r in rows]
    assert p.tolist() == [combine(int(a < b), c) for (a, b, _), c in zip(rows, third, strict=True)]
    assert q.tolist() == [combine(int(a >= b), c) for (a, b, _), c in zip(rows, third, strict=True)]


def test_float_comparison_with_boolean_and_sink() -> None:
    columns = [("f32", np.float32([1, 2, math.nan])), ("pred", [1, 0, 1])]
    assert one("setp.lt.or.ftz.f32 _|%x, %a, 0f3fc00000, %b;", columns, "pred").tolist() == [1, 1, 1]
    assert one("setp.lt.and.f32 %x|_, %a, 0f3fc00000, %b;", columns, "pred").tolist() == [1, 0, 0]


def test_packed_comparison_gives_one_predicate_per_half() -> None:
    halves = np.array([[1, 2], [3, 1], [np.nan, 0]], np.float16)
    others = np.array([[2, 1], [3, 3], [1, 1]], np.float16)
    columns = [("b32", halves.view(np.uint32).reshape(-1)), ("b32", others.view(np.uint32).reshape(-1))]
    p, q = evaluate("setp.lt.f16x2 %x|%y, %a, %b;", columns, ["pred", "pred"])
    assert p.tolist() == [1, 0, 0]
    assert q.tolist() == [0, 1, 1]


def test_set() -> None:
    a, b = [1, 2, -3], [2, 1, -3]
    columns = [("s32", a), ("s32", b), ("pred", [1, 1, 0])]
    assert one("set.lt.u32.s32 %x, %a, %b;", columns, "u32").tolist() == [0xFFFFFFFF, 0, 0]
    assert one("set.le.f32.s32 %x, %a, %b;", columns, "f32").view(np.float32).tolist() == [1.0, 0.0, 1.0]
    assert one("set.le.and.u32.s32 %x, %a, %b, %c;", columns, "u32").tolist() == [0xFFFFFFFF, 0, 0]
    floats = [("f32", np.float32([1, 2, math.nan])), ("f32", np.float32([2, 1, 1])), ("pred", [1, 0, 1])]
    assert one("set.gtu.s32.f32 %x, %a, %b;", floats, "s32").tolist() == [0, 0xFFFFFFFF, 0xFFFFFFFF]
    assert one("set.lt.xor.f32.f32 %x, %a, %b, %c;", floats, "f32").view(np.float32).tolist() == [0, 0, 1]


@pytest.mark.parametrize(("kind", "width"), [("b16", 16), ("u32", 32), ("f32", 32), ("b64", 64), ("f64", 64)])
def test_selp(kind: str, width: int) -> None:
    a, b = [(1 << width) - 1, 3, 5], [1 << (width - 1), 4, 6]
    columns = [(kind, np.array(v, np.dtype(f"u{width // 8}"))) for v in (a, b)]
    got = one(f"selp.{kind} %x, %a, %b, %c;", [*columns, ("pred", [1, 0, 1])], kind)
    assert got.tolist() == [a[0], b[1], a[2]]
    got = one(f"selp.{kind} %x, %a, %b, !%c;", [*columns, ("pred", [1, 0, 1])], kind)
    assert got.tolist() == [b[0], a[1], b[2]]


def test_slct() -> None:
    columns = [("u32", [10] * 5), ("u32", [20] * 5)]
    by_sign = [*columns, ("s32", [1, 0, -1, 2**31 - 1, -(2**31)])]
    assert one("slct.u32.s32 %x, %a, %b, %c;", by_sign, "u32").tolist() == [10, 10, 20, 10, 20]
    by_float = [*columns, ("f32", np.float32([1, -0.0, -1, math.nan, -1e-40]))]
    assert one("slct.u32.f32 %x, %a, %b, %c;", by_float, "u32").tolist() == [10, 10, 20, 20, 20]
    assert one("slct.ftz.u32.f32 %x, %a, %b, %c;", by_float, "u32").tolist() == [10, 10, 20, 20, 10]


def test_mov_packs_and_unpacks_with_the_first_element_lowest() -> None:
    columns = [("b64", [0x8877665544332211])]
    body = "mov.b64 {%r0, %r1}, %a; mov.b64 %x, {%r1, %r0}; mov.b32 {%h0, %h1}, %r0; mov.b32 %y, {%h1, %h0};"
    swapped, halves = evaluate(body, columns, ["b64", "b32"])
    assert swapped.tolist() == [0x4433221188776655]
    assert halves.tolist() == [0x22114433]
    body = "mov.b64 {%h0, _, %h2, %h3}, %a; mov.b64 %x, {%h3, %h2, %h0, %h0};"
    assert one(body, columns, "b64").tolist() == [0x2211221166558877]
    body = ".reg .b8 %o<4>; mov.b64 {%r0, _}, %a; mov.b32 {%o0, %o1, %o2, %o3}, %r0; mov.b32 %x, {%o3, %o0, %o2, %o1};"
    assert one(body, columns, "b32").tolist() == [0x22331144]


def test_predicate_constants() -> None:
    for constant, want in (("0", 0), ("1", 1), ("-1", 1)):
        assert one(f"mov.pred %x, {constant};", [("u32", [0])], "pred").tolist() == [want]


def test_mov_of_constants_and_128_bit_registers() -> None:
    assert one("mov.f32 %x, 0f3f800000;", [("u32", [0])], "f32").view(np.float32).tolist() == [1.0]
    assert one("mov.f64 %x, 0d3ff8000000000000;", [("u32", [0])], "f64").view(np.float64).tolist() == [1.5]
    assert one("mov.f32 %x, 2.5;", [("u32", [0])], "f32").view(np.float32).tolist() == [2.5]
    body = ".reg .b128 %q<2>; mov.b128 %q0, {%a, %b}; mov.b128 %q1, %q0; mov.b128 {%x, %y}, %q1;"
    low, high = evaluate(body, [("b64", [1, 2]), ("b64", [3, 2**64 - 1])], ["b64", "b64"])
    assert (low.tolist(), high.tolist()) == ([1, 2], [3, 2**64 - 1])


def test_a_register_copied_is_not_the_same_register() -> None:
    body = """
        mov.u32 %r0, %a; mov.u32 %r1, %r0; setp.gt.u32 %p0, %a, 1;
        @%p0 add.u32 %r0, %r0, 100; @!%p0 add.u32 %r1, %r1, 7;
        mov.u32 %x, %r0; mov.u32 %y, %r1;
    """
    first, second = evaluate(body, [("u32", [0, 1, 2, 3])], ["u32", "u32"])
    assert first.tolist() == [0, 1, 102, 103]
    assert second.tolist() == [7, 8, 2, 3]


@pytest.mark.parametrize("text", [
    "setp.lt.b32 %x, %a, %a;", "setp.lo.s32 %x, %a, %a;", "setp.eq.nand.s32 %x, %a, %a, %x;",
    "selp.pred %x, %x, %x, %x;", "setp.eq.ftz.s32 %x, %a, %a;", "setp.foo.f32 %x, %a, %a;",
    "mov.b32 {%h0, %h1, %h2}, %a;", "mov.v2.u32 %x, %a;",
])
def test_what_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        one(text, [("u32", [1])], "pred")
