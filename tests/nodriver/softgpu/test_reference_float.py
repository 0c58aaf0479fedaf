"""Floating-point instructions through the interpreter: the decoder passes rounding, .ftz, .sat and NaN rules on.

What the arithmetic itself does is tested with ``numerics``; here each operand and modifier must arrive.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from softgpu.reference import UnsupportedInstruction
from tests.reference_kernels import evaluate, one

F32 = np.float32
CANONICAL_NAN = 0x7FFFFFFF


def f32(*values: float) -> tuple[str, np.ndarray]:
    return "f32", F32(values)


def test_add_rounds_as_told() -> None:
    """1 + 2**-30 lies between two floats; each rounding picks its side."""
    columns = [f32(1, -1), f32(2.0**-30, -(2.0**-30))]
    above, below = np.nextafter(F32(1), F32(2)), np.nextafter(F32(-1), F32(-2))
    for rounding, want in (("rn", [1, -1]), ("rz", [1, -1]), ("rp", [above, -1]), ("rm", [1, below])):
        got = one(f"add.{rounding}.f32 %x, %a, %b;", columns, "f32").view(F32)
        assert got.tolist() == [float(w) for w in want]


def test_operand_order_of_sub_div_fma() -> None:
    columns = [f32(7), f32(2), f32(5)]
    assert one("sub.f32 %x, %a, %b;", columns, "f32").view(F32).tolist() == [5.0]
    assert one("div.rn.f32 %x, %a, %b;", columns, "f32").view(F32).tolist() == [3.5]
    assert one("fma.rn.f32 %x, %a, %b, %c;", columns, "f32").view(F32).tolist() == [19.0]
    assert one("mad.rn.f32 %x, %a, %b, %c;", columns, "f32").view(F32).tolist() == [19.0]
    assert one("div.full.f32 %x, %a, %b;", columns, "f32").view(F32).tolist() == [3.5]


def test_fma_rounds_once() -> None:
    a = F32(1 + 2.0**-12)
    columns = [("f32", np.array([a])), ("f32", np.array([a])), f32(-1)]
    exact = Fraction(float(a)) ** 2 - 1
    got = one("fma.rn.f32 %x, %a, %b, %c;", columns, "f32").view(F32)
    assert Fraction(float(got[0])) == exact


def test_ftz_and_sat() -> None:
    tiny = F32(1e-40)
    columns = [("f32", np.array([tiny, -tiny])), f32(0.0)]
    bits = int(tiny.view(np.uint32))
    assert one("add.f32 %x, %a, %b;", columns, "f32").tolist() == [bits, 1 << 31 | bits]
    assert one("add.ftz.f32 %x, %a, %b;", columns, "f32").tolist() == [0, 0]
    assert one("mul.ftz.f32 %x, %a, 0f3f800000;", columns, "f32").tolist() == [0, 1 << 31]
    columns = [f32(3, -3, np.nan, 0.25), f32(1)]
    assert one("mul.sat.f32 %x, %a, %b;", columns, "f32").view(F32).tolist() == [1, 0, 0, 0.25]
    assert one("cvt.sat.f32.f32 %x, %a;", columns, "f32").view(F32).tolist() == [1, 0, 0, 0.25]


def test_nan_results_are_canonical() -> None:
    signalling = np.array([0x7F800001, 0xFFC12345], np.uint32)
    got = one("add.f32 %x, %a, 0f3f800000;", [("f32", signalling)], "f32")
    assert got.tolist() == [CANONICAL_NAN] * 2
    assert one("mov.f32 %x, %a;", [("f32", signalling)], "f32").tolist() == signalling.tolist()


def test_min_max_ignore_one_nan_unless_told() -> None:
    columns = [f32(np.nan, 1, -0.0), f32(2, np.nan, 0.0)]
    assert one("max.f32 %x, %a, %b;", columns, "f32").view(F32).tolist() == [2, 1, 0]
    assert one("max.NaN.f32 %x, %a, %b;", columns, "f32").tolist() == [CANONICAL_NAN, CANONICAL_NAN, 0]
    assert one("min.f32 %x, %a, %b;", columns, "f32").tolist()[2] == 1 << 31


def test_double_precision() -> None:
    columns = [("f64", np.float64([1, 2])), ("f64", np.float64([3, 0.1]))]
    assert one("div.rn.f64 %x, %a, %b;", columns, "f64").view(np.float64).tolist() == [1 / 3, 2 / 0.1]
    assert one("sqrt.rn.f64 %x, %b;", columns, "f64").view(np.float64).tolist() == [3**0.5, 0.1**0.5]


def test_half_and_packed_half() -> None:
    a, b = np.float16([1.5, 2.5, 65504, 1e-7]), np.float16([2, 0.5, 65504, 1e-7])
    got = one("add.rn.f16 %x, %a, %b;", [("f16", a), ("f16", b)], "f16").view(np.float16)
    with np.errstate(over="ignore"):
        assert got.tolist() == (a + b).tolist()
        pairs = [("b32", v.view(np.uint32)) for v in (a, b)]
        got = one("fma.rn.f16x2 %x, %a, %b, %a;", pairs, "b32").view(np.float16)
        assert got.tolist() == (a.astype(np.float64) * b + a).astype(np.float16).tolist()


def test_bf16_conversion_and_packing() -> None:
    a = F32([1.0, 1 + 2.0**-8, -3.14159])
    got = one("cvt.rn.bf16.f32 %x, %a;", [("f32", a)], "bf16")
    bits = a.view(np.uint32).astype(np.uint64)
    want = bits + 0x7FFF + (bits >> 16 & 1) >> 16
    assert got.tolist() == want.tolist()
    packed = one("cvt.rn.f16x2.f32 %x, %a, %b;", [f32(1.5), f32(-2)], "b32")
    assert packed.view(np.float16).tolist() == [-2, 1.5]


def test_conversions_between_integers_extend_and_truncate() -> None:
    assert one("cvt.s64.s32 %x, %a;", [("s32", [-1, 5])], "s64").tolist() == [2**64 - 1, 5]
    assert one("cvt.u64.u32 %x, %a;", [("s32", [-1, 5])], "u64").tolist() == [2**32 - 1, 5]
    assert one("cvt.u32.u64 %x, %a;", [("u64", [2**40 + 3])], "u32").tolist() == [3]
    # A narrow type in a wide register: the result is extended to the register.
    assert one("cvt.s8.s32 %x, %a;", [("s32", [0x17F, 0x180])], "s32").tolist() == [0x7F, 2**32 - 128]
    assert one("cvt.u8.s32 %x, %a;", [("s32", [0x17F, -1])], "s32").tolist() == [0x7F, 0xFF]
    assert one("cvt.sat.u8.s32 %x, %a;", [("s32", [300, -1])], "s32").tolist() == [255, 0]
    # A narrow source type reads the low bits of a wide register.
    assert one("cvt.s32.s8 %x, %a;", [("u32", [0x1FF, 0x17F])], "s32").tolist() == [2**32 - 1, 0x7F]


def test_conversions_between_integers_and_floats() -> None:
    assert one("cvt.rn.f32.s32 %x, %a;", [("s32", [-7, 2**24 + 1])], "f32").view(F32).tolist() == [-7, 2**24]
    columns = [f32(2.5, 3.5, -2.5, 1e20, -1e20, np.nan)]
    assert one("cvt.rni.s32.f32 %x, %a;", columns, "s32").tolist() == [2, 4, 2**32 - 2, 2**31 - 1, 2**31, 0]
    assert one("cvt.rzi.u32.f32 %x, %a;", columns, "u32").tolist() == [2, 3, 0, 2**32 - 1, 0, 0]


def test_special_functions_stay_close() -> None:
    values = np.linspace(0.1, 4, 40, dtype=F32)
    for name, function in (("ex2.approx.f32", np.exp2), ("lg2.approx.f32", np.log2), ("sin.approx.f32", np.sin),
                           ("cos.approx.f32", np.cos), ("rsqrt.approx.f32", lambda v: v**-0.5),
                           ("rcp.approx.ftz.f32", lambda v: 1 / v), ("sqrt.approx.f32", np.sqrt),
                           ("tanh.approx.f32", np.tanh)):
        got = one(f"{name} %x, %a;", [("f32", values)], "f32").view(F32)
        np.testing.assert_allclose(got, function(values.astype(np.float64)), rtol=1e-3, atol=1e-4)


def test_copysign_takes_the_sign_of_the_first_operand() -> None:
    assert one("copysign.f32 %x, %a, %b;", [f32(-1, 1), f32(5, -6)], "f32").view(F32).tolist() == [-5, 6]


def test_testp_and_abs_neg() -> None:
    columns = [f32(np.inf, np.nan, 1e-40, -2)]
    for kind, want in (("finite", [0, 0, 1, 1]), ("notanumber", [0, 1, 0, 0]), ("subnormal", [0, 0, 1, 0])):
        assert one(f"testp.{kind}.f32 %x, %a;", columns, "pred").tolist() == want
    both = evaluate("abs.f32 %x, %a; neg.f32 %y, %a;", [f32(-2, 3)], ["f32", "f32"])
    assert [v.view(F32).tolist() for v in both] == [[2, 3], [2, -3]]


@pytest.mark.parametrize("text", [
    "add.ftz.f64 %x, %a, %a;", "fma.f32 %x, %a, %a, %a;", "div.f32 %x, %a, %a;", "sin.f32 %x, %a;",
    "cvt.f32.s32 %x, %a;", "cvt.rn.s64.s32 %x, %a;", "add.rx.f32 %x, %a, %a;", "rcp.approx.f64 %x, %a;",
])
def test_forms_that_do_not_exist_are_refused(text: str) -> None:
    kind = "f64" if "f64" in text else "f32"
    with pytest.raises(UnsupportedInstruction):
        one(text, [(kind, [0])], kind)
