"""The approximate functions: ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt and div with ``.approx`` or ``.full``.

A real GPU returns values that differ from card to card inside the error bounds of the manual. This reference returns
the value that float64 gives, rounded once to the destination: deterministic and inside every bound. Special cases are
those of the tables in PTX ISA, "Floating-Point Instructions" and "Half Precision Floating-Point Instructions"; they
coincide with what IEEE 754 functions give, except where said below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics.arithmetic import div, rcp, sqrt
from softgpu.reference.numerics.formats import FORMATS, PACKED, Array, bits_of, flush, is_nan, lanewise, to_float64
from softgpu.reference.numerics.rounding import Float64, from_float64

_NAN_F64 = np.uint64(0x7FFFFFFF00000000)  # what rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 return for a NaN
_HIGH_WORD = np.uint64(0xFFFFFFFF00000000)


def _unary(function: Callable[[Float64], Float64], a: npt.ArrayLike, kind: str, ftz: bool) -> Array:
    if kind in PACKED:
        return lanewise(lambda x: _unary(function, x, PACKED[kind][0], ftz), kind, a)
    bits = flush(a, kind) if ftz else bits_of(a, kind)
    with np.errstate(all="ignore"):
        result = from_float64(function(to_float64(bits, kind)), kind)
    return flush(result, kind) if ftz else result


def ex2(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """2 ** a. ``kind``: f32, f16, f16x2, bf16, bf16x2 (bf16 is always ``.ftz`` in PTX)."""
    return _unary(np.exp2, a, kind, ftz)


def lg2(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """Base-2 logarithm; -inf for both zeros, NaN for negative numbers."""
    return _unary(np.log2, a, kind, ftz)


def sin(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """Sine of radians."""
    return _unary(np.sin, a, kind, ftz)


def cos(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """Cosine of radians."""
    return _unary(np.cos, a, kind, ftz)


def tanh(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """Hyperbolic tangent; subnormal inputs come back unchanged. ``kind``: f32, f16, f16x2, bf16, bf16x2."""
    return _unary(np.tanh, a, kind, ftz)


def rcp_approx(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """1 / a."""
    return _unary(lambda x: 1.0 / x, a, kind, ftz)


def sqrt_approx(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """Square root; -0 gives -0."""
    return _unary(np.sqrt, a, kind, ftz)


def rsqrt_approx(a: npt.ArrayLike, kind: str = "f32", ftz: bool = False) -> Array:
    """1 / sqrt(a); -0 gives -infinity. ``kind``: f32, f64 (there the quotient of two correctly rounded steps)."""
    if kind == "f64":
        if ftz:
            raise KeyError("rsqrt.approx.ftz.f64 is rsqrt_approx_ftz_f64")
        return rcp(sqrt(a, "f64"), "f64")
    return _unary(lambda x: 1.0 / np.sqrt(x), a, kind, ftz)


def div_full(a: npt.ArrayLike, b: npt.ArrayLike, ftz: bool = False) -> Array:
    """div.full.f32: at most 2 ulp in the manual, here the correctly rounded quotient."""
    return div(a, b, "f32", "rn", ftz)


def div_approx(a: npt.ArrayLike, b: npt.ArrayLike, ftz: bool = False) -> Array:
    """div.approx.f32, a * (1 / b): for 2**126 < abs(b) < 2**128 a signed zero, or NaN if a is infinite."""
    result = div_full(a, b, ftz)
    x, y = bits_of(a, "f32"), bits_of(b, "f32")
    divisor = y & np.uint32(0x7FFFFFFF)
    huge = (divisor > np.uint32(0x7E800000)) & (divisor < np.uint32(0x7F800000))
    zero = (x ^ y) & np.uint32(0x80000000)
    not_finite = (x & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    return np.where(huge, np.where(not_finite, np.uint32(FORMATS["f32"].canonical_nan), zero), result)


def _high_word(function: Callable[[Float64], Float64], a: npt.ArrayLike) -> Array:
    """``function`` of the upper 32 bits of f64 operands, as the upper 32 bits (1.11.20 format) of a result."""
    bits = flush(bits_of(a, "f64") & _HIGH_WORD, "f64")
    with np.errstate(all="ignore"):
        exact = np.asarray(function(bits.view(np.float64))).view(np.uint64)
    odd = (exact >> np.uint64(32)) & np.uint64(1)
    rounded = (exact + np.uint64(0x7FFFFFFF) + odd) & _HIGH_WORD  # to 20 mantissa bits, ties to even
    return np.where(is_nan(exact, FORMATS["f64"]), _NAN_F64, flush(rounded, "f64"))


def rcp_approx_ftz_f64(a: npt.ArrayLike) -> Array:
    """rcp.approx.ftz.f64: 1 / a of the upper words; NaN gives 0x7fffffff00000000."""
    return _high_word(lambda x: 1.0 / x, a)


def rsqrt_approx_ftz_f64(a: npt.ArrayLike) -> Array:
    """rsqrt.approx.ftz.f64: 1 / sqrt(a) of the upper words; NaN gives 0x7fffffff00000000."""
    return _high_word(lambda x: 1.0 / np.sqrt(x), a)
