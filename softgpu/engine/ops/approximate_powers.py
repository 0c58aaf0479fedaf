"""ex2, lg2 and tanh of f32: range reduction and a polynomial.

The coefficients are minimax fits (Remez), rounded to f32. ``rounding`` 0 and 1 are two cards: fits of different degree.
"""

from __future__ import annotations

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.approximate_numbers import (
    INFINITY,
    SMALLEST_NORMAL,
    at_least,
    at_most,
    magnitude,
    pattern,
    polynomial,
    sign_bit,
    with_sign,
)

_ROUNDER = 1.5 * 2.0**23
"""Added to a number below 2**22 in magnitude, leaves it rounded to an integer in the low bits of the sum."""

_EX2 = (
    # 2**f for abs(f) <= 1/2; relative errors 2**-23.4 and 2**-28.9. The first is exact, so that powers of two are.
    (1.0, 0.6931470036506653, 0.24022242426872253, 0.05550733581185341, 0.009671512991189957, 0.001326472731307149),
    (1.0, 0.6931471824645996, 0.24022647738456726, 0.055503323674201965, 0.00961843691766262, 0.0013398873852565885,
     0.00015353361959569156),
)
_LG2 = (
    # log2(1 + f) / f for 1 + f from sqrt(1/2) to sqrt(2); relative errors 2**-25.2 and 2**-27.9.
    (1.4426950216293335, -0.7213472127914429, 0.4809102714061737, -0.3607162535190582, 0.2879391014575958,
     -0.23867566883563995, 0.21521224081516266, -0.20893384516239166, 0.12926436960697174),
    (1.4426950216293335, -0.7213473320007324, 0.4808979034423828, -0.3606964349746704, 0.28858527541160583,
     -0.2396365851163864, 0.2042960226535797, -0.19061264395713806, 0.1878267079591751, -0.11297488957643509),
)
_TANH = (
    # (tanh(x) - x) / x**3 as a polynomial in x**2 for abs(x) <= 0.625.
    (-0.3333328068256378, 0.13331441581249237, -0.05373971536755562, 0.0206390880048275, -0.005704987328499556),
    (-0.3333333134651184, 0.1333320587873459, -0.05394676327705383, 0.021700702607631683, -0.008177398703992367,
     0.002142961835488677),
)
_TANH_SMALL = 0.625
_TANH_ONE = 10.0
"""1 - tanh(10) is below half a unit in the last place of 1."""


def _power(builder: Builder, x: Value, rounding: int) -> Value:
    """2**x for -126 <= x <= 128; anything at all for others, NaN included."""
    rounder = builder.like(_ROUNDER, x)
    shifted = builder.binary("fadd", x, rounder)
    fraction = builder.binary("fsub", x, builder.binary("fsub", shifted, rounder))
    power = polynomial(builder, fraction, _EX2[rounding])
    exponent = builder.shl(pattern(builder, shifted), builder.constant(23, "i32", lanes(x.type)))
    return builder.bitcast(builder.add(pattern(builder, power), exponent), "float")


def ex2_ftz(builder: Builder, x: Value, rounding: int) -> Value:
    """2**x, 0 instead of subnormal results."""
    power = _power(builder, at_most(builder, x, 128.0), rounding)
    other = at_least(builder, x, 0.0)  # 0 below the range, NaN for NaN
    return builder.select(builder.fcmp("oge", x, builder.like(-126.0, x)), power, other)


def ex2(builder: Builder, x: Value, rounding: int) -> Value:
    """2**x with subnormal results: small powers are computed 2**64 times as large."""
    low = builder.fcmp("olt", x, builder.like(-126.0, x))
    raised = builder.select(low, builder.binary("fadd", x, builder.like(64.0, x)), x)
    scale = builder.select(low, builder.like(2.0**-64, x), builder.like(1.0, x))
    return builder.binary("fmul", ex2_ftz(builder, raised, rounding), scale)


def _logarithm(builder: Builder, x: Value, bias: Value | None, rounding: int) -> Value:
    """Base-2 logarithm of a positive normal number, plus ``bias``."""
    count = lanes(x.type)
    bits = pattern(builder, x)
    from_root = builder.sub(bits, builder.constant(0x3F3504F3, "i32", count))  # sqrt(1/2)
    exponent_field = builder.and_(from_root, builder.constant(0xFF800000, "i32", count))
    mantissa = builder.bitcast(builder.sub(bits, exponent_field), "float")
    exponent = builder.cast("sitofp", builder.ashr(from_root, builder.constant(23, "i32", count)), "float")
    if bias is not None:
        exponent = builder.binary("fadd", exponent, bias)
    fraction = builder.binary("fsub", mantissa, builder.like(1.0, x))
    return builder.fma(fraction, polynomial(builder, fraction, _LG2[rounding]), exponent)


def _outside(builder: Builder, x: Value, result: Value, smallest: float) -> Value:
    """The special cases of lg2; numbers below ``smallest`` in magnitude count as zero."""
    limit = builder.like(smallest, x)
    zero = builder.fcmp("olt", magnitude(builder, x), limit)
    low = builder.select(zero, builder.like(-INFINITY, x), builder.float_bits(0x7FFFFFFF, "float", lanes(x.type)))
    result = builder.select(builder.fcmp("olt", x, limit), low, result)
    return builder.select(builder.fcmp("uge", x, builder.like(INFINITY, x)), x, result)


def lg2_ftz(builder: Builder, x: Value, rounding: int) -> Value:
    """Base-2 logarithm; -infinity for zeros and subnormals, NaN for negative numbers."""
    return _outside(builder, x, _logarithm(builder, x, None, rounding), SMALLEST_NORMAL["float"])


def lg2(builder: Builder, x: Value, rounding: int) -> Value:
    """Base-2 logarithm, of subnormals too: they are made 2**24 times as large."""
    tiny = builder.fcmp("olt", x, builder.like(SMALLEST_NORMAL["float"], x))
    raised = builder.select(tiny, builder.binary("fmul", x, builder.like(2.0**24, x)), x)
    bias = builder.select(tiny, builder.like(-24.0, x), builder.like(0.0, x))
    return _outside(builder, x, _logarithm(builder, raised, bias, rounding), 2.0**-149)


def tanh(builder: Builder, x: Value, rounding: int) -> Value:
    """Hyperbolic tangent: a polynomial for small arguments, 1 - 2 / (exp(2 x) + 1) for large ones."""
    size = magnitude(builder, x)
    square = builder.binary("fmul", x, x)
    cubic = builder.binary("fmul", polynomial(builder, square, _TANH[rounding]), square)
    small = builder.fma(cubic, size, size)
    twice_log2_e = builder.like(2.8853900817779268, x)
    grown = _power(builder, builder.binary("fmul", at_most(builder, size, _TANH_ONE), twice_log2_e), rounding)
    one = builder.like(1.0, x)
    quotient = builder.binary("fdiv", builder.like(-2.0, x), builder.binary("fadd", grown, one))
    large = builder.binary("fadd", one, quotient)
    # Unordered: a NaN goes the way of the small ones, which keeps it.
    result = builder.select(builder.fcmp("ult", size, builder.like(_TANH_SMALL, x)), small, large)
    return with_sign(builder, result, sign_bit(builder, x))
