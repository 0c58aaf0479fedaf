"""One rounding from an exact (or rounded-to-odd) float64 to any narrower format, in every PTX rounding mode.

The method: a value computed in float64 with *round to odd* keeps enough of the exact result that one more rounding, to
a format of at most 51 bits, gives what rounding the exact value would have given (S. Boldo and G. Melquiond, "Emulation
of a FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57, 2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics.formats import E4M3_VALUES, FORMATS, Array, Format, to_float64

Float64 = npt.NDArray[np.float64]

ROUNDINGS = ("rn", "rz", "rm", "rp")
"""Nearest even, toward zero, toward minus infinity, toward plus infinity."""


def two_sum(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """(s, e) with s = a + b rounded to nearest and s + e = a + b exactly (Knuth); no overflow assumed."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def to_odd(total: Float64, error: Float64) -> Float64:
    """``total + error`` rounded to odd, where ``total`` is that sum rounded to nearest.

    An inexact sum whose last bit is even moves one unit in the last place toward the exact sum.
    """
    bits = total.view(np.int64)
    move = (error != 0) & ((bits & 1) == 0) & np.isfinite(total)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(move, bits + step, bits).view(np.float64)


def add_odd(a: Float64, b: Float64) -> Float64:
    """a + b rounded to odd; a and b so far from the ends of the exponent range that the sum does not overflow."""
    return to_odd(*two_sum(a, b))


def zero_sum_sign(total: Float64, a: Float64, b: Float64, rounding: str) -> Float64:
    """The sign of an exactly zero sum of a and b: -0 with ``.rm`` unless both are +0 (IEEE 754, 6.3)."""
    if rounding != "rm":
        return total
    both_positive = ~(np.signbit(a) | np.signbit(b))
    return np.where((total == 0) & ~both_positive, -0.0, total)


def _ties_away(scaled: Float64) -> Float64:
    whole = np.floor(scaled)
    return np.where(scaled - whole >= 0.5, whole + 1, whole)


def rounder(rounding: str, negative: npt.NDArray[np.bool_]) -> Callable[[Float64], Float64]:
    """The function that rounds a magnitude to an integer in a mode, where ``negative`` is the sign of the value."""
    if rounding == "rn":
        return np.rint
    if rounding == "rna":
        return _ties_away
    if rounding == "rz":
        return np.floor
    up = negative if rounding == "rm" else ~negative
    if rounding not in ("rm", "rp"):
        raise KeyError(rounding)
    return lambda scaled: np.where(up, np.ceil(scaled), np.floor(scaled))


def _encode(values: Float64, form: Format) -> Array:
    """Bit patterns of float64 values that are representable in ``form`` (or infinite)."""
    if form.name in ("f32", "tf32"):
        return values.astype(np.float32).view(np.uint32)
    if form.name == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if form.name == "f16":
        return values.astype(np.float16).view(np.uint16)
    if form.name == "e5m2":
        return (values.astype(np.float16).view(np.uint16) >> np.uint16(8)).astype(np.uint8)
    magnitude = np.searchsorted(E4M3_VALUES[:127], np.abs(values)).astype(np.uint8)  # infinity becomes 0x7f, NaN
    return magnitude | (np.signbit(values).astype(np.uint8) << np.uint8(7))


def from_float64(values: npt.ArrayLike, kind: str, rounding: str = "rn", satfinite: bool = False) -> Array:
    """Float64 values rounded once to a format narrower than f64; NaN becomes the canonical NaN.

    Values beyond the largest finite number overflow as IEEE 754 (7.4) says for the mode: nearest to infinity, a
    directed mode to infinity or the largest number. With ``satfinite`` they (and infinities) become the largest
    number of their sign (PTX ISA, "cvt"). Modes: ``rn rz rm rp`` and ``rna`` (ties away from zero).
    """
    form = FORMATS[kind]
    exact = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        if rounding == "rn" and kind in ("f32", "f16") and not satfinite:
            native = np.float32 if kind == "f32" else np.float16
            bits: Array = exact.astype(native).view(form.container)
        else:
            bits = _encode(_round(exact, form, rounding, satfinite), form)
    return np.where(np.isnan(exact), form.container.type(form.canonical_nan), bits)


def _round(exact: Float64, form: Format, rounding: str, satfinite: bool) -> Float64:
    largest = float(to_float64(form.largest_bits, form.name))
    magnitude = np.abs(exact)
    negative = np.signbit(exact)
    exponent = np.maximum(np.frexp(magnitude)[1] - 1, form.minimum_exponent) - form.mantissa_bits
    whole = rounder(rounding, negative)(np.ldexp(magnitude, -exponent))
    rounded = np.ldexp(whole, exponent)
    rounded = np.where(np.isinf(magnitude), np.inf, rounded)
    if satfinite:
        rounded = np.minimum(rounded, largest)
    else:
        truncates = {"rn": False, "rna": False, "rz": True, "rm": ~negative, "rp": negative}[rounding]
        beyond = np.where(np.isfinite(magnitude) & truncates, largest, np.inf)
        rounded = np.where(rounded > largest, beyond, rounded)
    return np.copysign(rounded, exact)
