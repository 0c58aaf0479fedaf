"""The formats of at most eight bits that are converted to and from wider ones, as bits in integers.

Source: PTX ISA, "Alternate Floating-Point Data Formats" and "cvt"; for ue8m0 and the NaNs of the narrowest formats also
the host side of CUDA's cuda_fp8.h, cuda_fp6.h and cuda_fp4.h.
"""

from __future__ import annotations

from typing import NamedTuple

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops.narrow import NAN, widened
from softgpu.engine.ops.rounding import pattern


class Format(NamedTuple):
    """``digits``: of the mantissa, without the leading one. ``nan``: what NaN becomes, which is the canonical one, or
    the largest number where there is none."""

    width: int
    digits: int
    bias: int
    largest: float
    nan: int


FORMATS = {
    "e4m3": Format(8, 3, 7, 448.0, 0x7F),
    "e5m2": Format(8, 2, 15, 57344.0, 0x7F),
    "e3m2": Format(6, 2, 3, 28.0, 0x1F),
    "e2m3": Format(6, 3, 1, 7.5, 0x1F),
    "e2m1": Format(4, 1, 1, 6.0, 0x7),
}


def to_small(b: Builder, x: Value, kind: str, positive: bool) -> Value:
    """f32 to nearest even with ``.satfinite``, in i8; ``positive``: and with ``.relu``."""
    form = FORMATS[kind]
    if positive:
        x = b.select(b.fcmp("ugt", x, b.like(0.0, x)), x, b.like(0.0, x))  # NaN stays
    have = pattern(b, x)
    limit = b.like(form.largest, x)
    magnitude = b.intrinsic("llvm.fabs", "float", x)
    bounded = b.select(b.fcmp("olt", magnitude, limit), magnitude, limit)
    # Normal numbers: round the pattern, then move from one bias to the other.
    cut = 23 - form.digits
    shape = pattern(b, bounded)
    last = b.and_(b.lshr(shape, b.like(cut, shape)), b.like(1, shape))
    rounded = b.lshr(b.add(b.add(shape, b.like((1 << (cut - 1)) - 1, shape)), last), b.like(cut, shape))
    normal = b.sub(rounded, b.like((127 - form.bias) << form.digits, shape))
    # Subnormal ones: a number whose last digit is worth as much as theirs makes the addition round to it.
    ruler = b.like(2.0 ** (23 + 1 - form.bias - form.digits), x)
    small = b.sub(pattern(b, b.binary("fadd", bounded, ruler)), pattern(b, ruler))
    is_small = b.fcmp("olt", bounded, b.like(2.0 ** (1 - form.bias), x))
    result = b.select(is_small, small, normal)
    if not positive:
        sign = b.and_(b.lshr(have, b.like(32 - form.width, have)), b.like(1 << (form.width - 1), have))
        result = b.or_(result, sign)
    return b.trunc(b.select(b.fcmp("uno", x, x), b.like(form.nan, have), result), "i8")


def from_small(b: Builder, x: Value, kind: str) -> Value:
    """The low bits of an integer as bits of f16, exactly, NaN canonical."""
    form = FORMATS[kind]
    sign = 1 << (form.width - 1)
    have = b.resize(x, "i16") if x.type != "i16" else x
    magnitude = b.and_(have, b.like(sign - 1, have))
    result = b.shl(magnitude, b.like(10 - form.digits, have))
    if form.bias != 15:
        # With the exponent in f16's place the number is too small by a power of 2: multiplying is exact.
        number = widened(b, result, "f16")
        number = b.binary("fmul", number, b.like(2.0 ** (15 - form.bias), number))
        result = b.bitcast(b.cast("fptrunc", number, "half"), "i16")
    result = b.or_(result, b.shl(b.and_(have, b.like(sign, have)), b.like(16 - form.width, have)))
    if form.width < 8:
        return result
    first = 0x7D if kind == "e5m2" else 0x7F  # the least NaN
    return b.select(b.icmp("uge", magnitude, b.like(first, have)), b.like(NAN, have), result)


def to_exponent(b: Builder, x: Value, mode: str, finite: bool) -> Value:
    """The magnitude of an f32 number as ue8m0, a power of 2 (0xFF: NaN), in i8; ``finite``: ``.satfinite``.

    Rounded towards zero (to 2**-127 at least) or, by ``rp``, up. The least one, 2**-127, is half the smallest normal
    number, which is why the pattern of the exponent alone is not enough there.
    """
    have = pattern(b, x)
    magnitude = b.and_(have, b.like(0x7FFFFFFF, have))
    result = b.lshr(magnitude, b.like(23, have))
    number = b.icmp("ule", magnitude, b.like(0x7F800000, have))
    if mode == "rp":
        inexact = b.icmp("ne", b.and_(have, b.like(0x7FFFFF, have)), b.zero(have.type))
        above = b.icmp("ugt", magnitude, b.like(0x400000, have))
        grows = b.and_(b.and_(inexact, above), number)
        result = b.add(result, b.select(grows, b.like(1, have), b.zero(have.type)))
    if finite:
        over = b.and_(number, b.icmp("eq", result, b.like(0xFF, have)))
        result = b.select(over, b.like(0xFE, have), result)
    return b.trunc(result, "i8")


def from_exponent(b: Builder, x: Value) -> Value:
    """ue8m0 in i8 as bits of bf16, exactly, NaN canonical."""
    have = b.zext(x, "i16")
    result = b.shl(have, b.like(7, have))
    result = b.select(b.icmp("eq", have, b.zero(have.type)), b.like(0x40, have), result)
    return b.select(b.icmp("eq", have, b.like(0xFF, have)), b.like(NAN, have), result)
