"""add, sub, mul, fma, div, rcp, sqrt: correctly rounded, with ``.ftz``, ``.sat`` and ``.relu``.

Source: PTX ISA, "Floating-Point Instructions", "Half Precision Floating-Point Instructions" and "Mixed Precision
Floating-Point Instructions". Types below f64 are computed in float64 (exactly, or rounded to odd) and rounded once:

* sums and fused multiply-adds: the product of two 24-bit significands is exact, the sum is rounded to odd;
* quotients and roots: a quotient of 24-bit significands that is not a rounding boundary of a format of at most 24 bits
  (25-bit number) is at least 2**-49 of its size away from one, a root 2**-51; float64 rounding errs by at most 2**-53
  and therefore never crosses or reaches a boundary.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics import double
from softgpu.reference.numerics.formats import FORMATS, PACKED, Array, canonical, flush, is_nan, lanewise, to_float64
from softgpu.reference.numerics.rounding import Float64, add_odd, from_float64, zero_sum_sign


def saturate(bits: Array, kind: str) -> Array:
    """``.sat``: clamped to [+0.0, 1.0], NaN to +0.0."""
    form = FORMATS[kind]
    scalar = bits.dtype.type
    zero = is_nan(bits, form) | ((bits & scalar(form.sign_mask)) != 0)
    result: Array = np.where(zero, scalar(0), np.minimum(bits, scalar(form.one_bits)))
    return result


def relu(bits: Array, kind: str) -> Array:
    """``.relu``: negative results (and -0) become +0.0, NaN the canonical NaN."""
    form = FORMATS[kind]
    negative = (bits & bits.dtype.type(form.sign_mask)) != 0
    return canonical(np.where(negative & ~is_nan(bits, form), bits.dtype.type(0), bits), form)


def finish(bits: Array, kind: str, *, ftz: bool = False, sat: bool = False, relu_: bool = False) -> Array:
    """The modifiers that act on a rounded result, in the order flush, saturate, relu."""
    if ftz:
        bits = flush(bits, kind)
    if sat:
        bits = saturate(bits, kind)
    if relu_:
        bits = relu(bits, kind)
    return bits


_Narrow = Callable[..., Float64]


def _apply(
    wide: Callable[..., Array] | None,
    narrow: _Narrow,
    operands: tuple[npt.ArrayLike, ...],
    kind: str,
    rounding: str,
    ftz: bool = False,
    sat: bool = False,
    relu_: bool = False,
) -> Array:
    """``wide(*bits, rounding)`` for f64, else ``narrow(*values, rounding)`` in float64 and one rounding."""
    if kind in PACKED:

        def one(*halves: npt.ArrayLike) -> Array:
            return _apply(wide, narrow, halves, PACKED[kind][0], rounding, ftz, sat, relu_)

        return lanewise(one, kind, *operands)
    with np.errstate(all="ignore"):
        if kind == "f64":
            if wide is None or ftz:
                raise KeyError(kind)
            return finish(wide(*operands, rounding), kind, sat=sat, relu_=relu_)
        values = [to_float64(flush(operand, kind) if ftz else operand, kind) for operand in operands]
        bits = from_float64(narrow(*values, rounding), kind, rounding)
    return finish(bits, kind, ftz=ftz, sat=sat, relu_=relu_)


def _sum(a: Float64, b: Float64, rounding: str) -> Float64:
    a, b = np.broadcast_arrays(a, b)
    return zero_sum_sign(add_odd(a, b), a, b, rounding)


def _difference(a: Float64, b: Float64, rounding: str) -> Float64:
    return _sum(a, -b, rounding)


def _product(a: Float64, b: Float64, rounding: str) -> Float64:
    return a * b


def _fused(a: Float64, b: Float64, c: Float64, rounding: str) -> Float64:
    return _sum(a * b, c, rounding)


def _quotient(a: Float64, b: Float64, rounding: str) -> Float64:
    return a / b


def _root(a: Float64, rounding: str) -> Float64:
    return np.sqrt(a)


def _negated(b: npt.ArrayLike) -> Array:
    (bits,) = double.operands(b)
    return np.where(is_nan(bits, FORMATS["f64"]), bits, bits ^ np.uint64(1 << 63))


def add(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    kind: str,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Array:
    """a + b. ``kind``: f32, f64, f16, bf16, f16x2, bf16x2."""
    return _apply(double.add, _sum, (a, b), kind, rounding, ftz, sat, relu)


def sub(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    kind: str,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Array:
    """a - b."""
    if kind == "f64":
        return add(a, _negated(b), kind, rounding, ftz, sat, relu)
    return _apply(None, _difference, (a, b), kind, rounding, ftz, sat, relu)


def mul(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    kind: str,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Array:
    """a * b."""
    return _apply(double.mul, _product, (a, b), kind, rounding, ftz, sat, relu)


def fma(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    kind: str,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Array:
    """a * b + c rounded once (also ``mad`` of floating-point types)."""
    return _apply(double.fma, _fused, (a, b, c), kind, rounding, ftz, sat, relu)


def div(a: npt.ArrayLike, b: npt.ArrayLike, kind: str, rounding: str = "rn", ftz: bool = False) -> Array:
    """a / b, IEEE 754 rounding. ``kind``: f32, f64."""
    return _apply(double.div, _quotient, (a, b), kind, rounding, ftz)


def rcp(a: npt.ArrayLike, kind: str, rounding: str = "rn", ftz: bool = False) -> Array:
    """1 / a, IEEE 754 rounding. ``kind``: f32, f64."""
    return div(FORMATS[kind].one_bits, a, kind, rounding, ftz)


def sqrt(a: npt.ArrayLike, kind: str, rounding: str = "rn", ftz: bool = False) -> Array:
    """Square root, IEEE 754 rounding. ``kind``: f32, f64."""
    return _apply(double.sqrt, _root, (a,), kind, rounding, ftz)


def add_mixed(a: npt.ArrayLike, c: npt.ArrayLike, a_kind: str, rounding: str = "rn", sat: bool = False) -> Array:
    """add.f32.{f16,bf16}: a of ``a_kind`` plus c of f32, in f32."""
    return add(from_float64(to_float64(a, a_kind), "f32"), c, "f32", rounding, sat=sat)


def sub_mixed(a: npt.ArrayLike, c: npt.ArrayLike, a_kind: str, rounding: str = "rn", sat: bool = False) -> Array:
    """sub.f32.{f16,bf16}: a of ``a_kind`` minus c of f32, in f32."""
    return sub(from_float64(to_float64(a, a_kind), "f32"), c, "f32", rounding, sat=sat)


def fma_mixed(
    a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, kind: str, rounding: str = "rn", sat: bool = False
) -> Array:
    """fma.f32.{f16,bf16}: a and b of ``kind``, c of f32, in f32."""
    x, y = (from_float64(to_float64(operand, kind), "f32") for operand in (a, b))
    return fma(x, y, c, "f32", rounding, sat=sat)
