"""cvt: between all integer and floating-point types, one element at a time or packed.

Source: PTX ISA, "Data Movement and Conversion Instructions: cvt".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics.arithmetic import finish
from softgpu.reference.numerics.formats import (
    FORMATS,
    INTEGERS,
    PACKED,
    Array,
    bits_of,
    canonical,
    container,
    flush,
    join2,
    split2,
    to_float64,
)
from softgpu.reference.numerics.rounding import Float64, from_float64, rounder, to_odd, two_sum

_INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}

INTEGER_ROUNDINGS = tuple(_INTEGRAL)


def integral(values: Float64, rounding: str) -> Float64:
    """Values rounded to integers (rni, rzi, rmi, rpi), still float64; a zero result keeps the sign of its value."""
    whole = rounder(_INTEGRAL[rounding], np.signbit(values))(np.abs(values))
    return np.where(np.isnan(values), values, np.copysign(whole, values))


def integer_limits(kind: str) -> tuple[int, int]:
    """Smallest and largest number of an integer type."""
    bits, signed = INTEGERS[kind]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _signed64(bits: Array, kind: str) -> Array:
    """An integer of up to 64 bits as int64; u64 keeps its bit pattern."""
    width, signed = INTEGERS[kind]
    if signed:
        return bits.view(np.dtype(f"int{width}")).astype(np.int64)
    return bits.astype(np.uint64).view(np.int64)


def float_to_integer(values: Float64, source: str, to: str, rounding: str) -> Array:
    """Rounded, then clamped to the range of ``to``.

    NaN gives 0, but 1 << (width - 1) if the source is f64 or the destination has 64 bits (PTX ISA, cvt, Integer Notes).
    """
    width, _ = INTEGERS[to]
    low, high = integer_limits(to)
    whole = integral(values, rounding)
    not_a_number = np.isnan(whole)
    inside = np.where(not_a_number | (whole < low) | (whole >= float(high)), 0.0, whole)
    big = inside >= 2.0**63  # only u64
    integers = np.where(big, inside - 2.0**63, inside).astype(np.int64).view(np.uint64)
    integers = np.where(big, integers | np.uint64(1 << 63), integers)
    mask = (1 << 64) - 1
    integers = np.where(whole < low, np.uint64(low & mask), integers)
    integers = np.where(whole >= float(high), np.uint64(high), integers)
    nan_result = 1 << (width - 1) if source == "f64" or width == 64 else 0
    return np.asarray(np.where(not_a_number, np.uint64(nan_result), integers).astype(container(to)))


def integer_to_float(bits: Array, source: str, to: str, rounding: str) -> Array:
    """Integers rounded once to a floating-point type: the two 32-bit halves are exact in float64."""
    integers = _signed64(bits, source)
    low = (integers & 0xFFFFFFFF).astype(np.float64)
    if source == "u64":
        high = (integers.view(np.uint64) >> np.uint64(32)).astype(np.float64)
    else:
        high = (integers >> 32).astype(np.float64)
    total, error = two_sum(high * 2.0**32, low)
    if to != "f64":
        return from_float64(to_odd(total, error), to, rounding)
    # total is within one unit of the exact sum; a directed mode steps back where rounding went the other way
    if rounding == "rm":
        total = np.where(error < 0, np.nextafter(total, -np.inf), total)
    elif rounding == "rp":
        total = np.where(error > 0, np.nextafter(total, np.inf), total)
    elif rounding == "rz":
        total = np.where((error != 0) & ((error > 0) != (total > 0)), np.nextafter(total, 0.0), total)
    elif rounding != "rn":
        raise KeyError(rounding)
    return np.asarray(total).view(np.uint64)


def integer_to_integer(bits: Array, source: str, to: str, sat: bool) -> Array:
    """Extended or cut to the width of ``to``; with ``sat`` clamped to its range."""
    integers = _signed64(bits, source)
    result = integers.view(np.uint64)
    if sat:
        low, high = integer_limits(to)
        if source == "u64":
            result = np.minimum(result, np.uint64(high))
        else:
            clamped = np.maximum(integers, max(low, -(1 << 63)))
            clamped = np.where(clamped > min(high, (1 << 63) - 1), min(high, (1 << 63) - 1), clamped)
            result = clamped.view(np.uint64)
    return np.asarray(result.astype(container(to)))


def _widen(values: Float64, bits: Array, source: str, to: str) -> Array:
    """Exact conversion to f64 or f32, or none at all."""
    if source == to:
        return bits if to == "f64" else canonical(bits, FORMATS[to])
    if to != "f64":
        return from_float64(values, to)
    wide = values.view(np.uint64)
    quiet = np.uint64(1 << 51)
    return np.where(np.isnan(values), wide | quiet, wide)


def _float_to_float(bits: Array, source: str, to: str, rounding: str, satfinite: bool) -> Array:
    values = to_float64(bits, source)
    if rounding in _INTEGRAL:
        whole = integral(values, rounding)
        if to == "f64":
            return _widen(whole, whole.view(np.uint64), "f64", "f64")
        return from_float64(whole, to)
    if rounding == "" or to == "f64":
        return _widen(values, bits, source, to)
    return from_float64(values, to, rounding, satfinite)


def convert(
    a: npt.ArrayLike,
    to: str,
    source: str,
    rounding: str = "",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Array:
    """cvt.``rounding``.``to``.``source``: one value each.

    ``rounding``: "" where no rounding is needed, rn rz rm rp rna, or rni rzi rmi rpi. ``ftz`` acts on f32 inputs and
    results only. ``sat`` of a float destination clamps to [0, 1], of an integer one to its range.
    """
    bits = bits_of(a, source)
    with np.errstate(all="ignore"):
        if ftz and source == "f32":
            bits = flush(bits, "f32")
        if to in INTEGERS:
            if source in INTEGERS:
                return integer_to_integer(bits, source, to, sat)
            return float_to_integer(to_float64(bits, source), source, to, rounding)
        if source in INTEGERS:
            result = integer_to_float(bits, source, to, rounding)
        else:
            result = _float_to_float(bits, source, to, rounding, satfinite)
    return finish(result, to, ftz=ftz and to == "f32", sat=sat, relu_=relu)


def convert_pair(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    to: str,
    source: str = "f32",
    rounding: str = "rn",
    ftz: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Array:
    """cvt.``rounding``.``to``.f32 d, a, b with ``to`` packed: a goes to the upper half, b to the lower."""
    element = PACKED[to][0]
    high, low = (convert(x, element, source, rounding, ftz, False, relu, satfinite) for x in (a, b))
    return join2(low, high, to)


def convert_packed(
    a: npt.ArrayLike, to: str, source: str, rounding: str = "rn", relu: bool = False, satfinite: bool = False
) -> Array:
    """cvt.``rounding``.``to``.``source`` d, a between packed types: upper to upper, lower to lower element."""
    low, high = (
        convert(half, PACKED[to][0], PACKED[source][0], rounding, False, False, relu, satfinite)
        for half in split2(a, source)
    )
    return join2(low, high, to)
