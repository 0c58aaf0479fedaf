"""f64 arithmetic on bit patterns: the machine's own operations for ``.rn``, exact integers for the other modes.

NaN rule: the payload of the first NaN operand, made quiet, as PTX says payloads of double-precision NaNs are kept
(PTX ISA, "Floating-Point Instructions"); an invalid operation gives 0xfff8000000000000.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics import exact
from softgpu.reference.numerics.formats import FORMATS, Array, bits_of, is_nan
from softgpu.reference.numerics.rounding import Float64, to_odd, two_sum

Bool = npt.NDArray[np.bool_]

_F64 = FORMATS["f64"]
_QUIET = np.uint64(1 << 51)
_NAN = np.uint64(_F64.canonical_nan)


def operands(*values: npt.ArrayLike) -> list[Array]:
    """Arrays of f64 bit patterns broadcast to one shape."""
    return [np.ascontiguousarray(array) for array in np.broadcast_arrays(*(bits_of(v, "f64") for v in values))]


def keep_nan(result: Float64, *sources: Array) -> Array:
    """Bits of ``result`` with the NaN rule of this module applied."""
    bits = np.asarray(result).view(np.uint64)
    bits = np.where(np.isnan(result), _NAN, bits)
    for source in reversed(sources):
        bits = np.where(is_nan(source, _F64), source | _QUIET, bits)
    return bits


def _redo(bits: Array, where: Bool, function: Callable[..., int], rounding: str, *args: Array) -> Array:
    """``bits`` with the elements chosen by ``where`` recomputed exactly."""
    if not where.any():
        return bits
    chosen = [argument[where].tolist() for argument in args]
    bits = bits.copy()
    bits[where] = np.array([function(*row, rounding) for row in zip(*chosen, strict=True)], dtype=np.uint64)
    return bits


def _finite(*arrays: Array) -> Bool:
    result = np.isfinite(arrays[0].view(np.float64))
    for array in arrays[1:]:
        result = result & np.isfinite(array.view(np.float64))
    return np.asarray(result)


def add(a: npt.ArrayLike, b: npt.ArrayLike, rounding: str) -> Array:
    x, y = operands(a, b)
    bits = keep_nan(x.view(np.float64) + y.view(np.float64), x, y)
    return bits if rounding == "rn" else _redo(bits, _finite(x, y), exact.add, rounding, x, y)


def mul(a: npt.ArrayLike, b: npt.ArrayLike, rounding: str) -> Array:
    x, y = operands(a, b)
    bits = keep_nan(x.view(np.float64) * y.view(np.float64), x, y)
    return bits if rounding == "rn" else _redo(bits, _finite(x, y), exact.mul, rounding, x, y)


def div(a: npt.ArrayLike, b: npt.ArrayLike, rounding: str) -> Array:
    x, y = operands(a, b)
    bits = keep_nan(x.view(np.float64) / y.view(np.float64), x, y)
    if rounding == "rn":
        return bits
    return _redo(bits, _finite(x, y) & (y.view(np.float64) != 0), exact.div, rounding, x, y)


def sqrt(a: npt.ArrayLike, rounding: str) -> Array:
    (x,) = operands(a)
    bits = keep_nan(np.sqrt(x.view(np.float64)), x)
    if rounding == "rn":
        return bits
    return _redo(bits, _finite(x) & (x.view(np.float64) >= 0), exact.sqrt, rounding, x)


def two_product(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """(p, e) with p = a * b rounded to nearest and p + e = a * b exactly (Dekker); exponents not near the ends."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _split(a: Float64) -> tuple[Float64, Float64]:
    scaled = a * 134217729.0  # 2**27 + 1 (Veltkamp)
    high = scaled - (scaled - a)
    return high, a - high


def _roomy(x: Float64, y: Float64, z: Float64) -> Bool:
    """Where no step of the error-free transforms can overflow or lose bits to underflow."""
    p, q, r = (np.frexp(value)[1] for value in (x, y, z))
    safe = (np.abs(p) < 480) & (np.abs(q) < 480) & (np.abs(r) < 900)
    return np.asarray(safe & (np.abs(p + q) < 860))


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, rounding: str) -> Array:
    """a * b + c rounded once (Boldo and Melquiond, algorithm Fmac, where exponents allow; else exact integers)."""
    bits_a, bits_b, bits_c = operands(a, b, c)
    x, y, z = (bits.view(np.float64) for bits in (bits_a, bits_b, bits_c))
    finite = _finite(bits_a, bits_b, bits_c)
    infinite_addend = np.isinf(z) & np.isfinite(x) & np.isfinite(y)
    special = np.where(infinite_addend, z, x * y + z)  # a finite product of any size cannot change an infinity
    if rounding != "rn":
        return _redo(keep_nan(special, bits_a, bits_b, bits_c), finite, exact.fma, rounding, bits_a, bits_b, bits_c)
    product, product_error = two_product(x, y)
    low, low_error = two_sum(z, product_error)
    high, high_error = two_sum(product, low)
    fast = high + to_odd(*two_sum(low_error, high_error))
    no_product = (x == 0) | (y == 0)  # then the sum is exact without further ado
    roomy = finite & ~no_product & _roomy(x, y, z)
    bits = keep_nan(np.where(roomy, fast, special), bits_a, bits_b, bits_c)
    return _redo(bits, finite & ~no_product & ~roomy, exact.fma, rounding, bits_a, bits_b, bits_c)
