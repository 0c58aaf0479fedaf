"""f64 arithmetic in any rounding mode through Python integers, one element at a time.

Slow and plainly right: used for ``.rz``, ``.rm``, ``.rp`` and for the fused multiply-adds whose exponents leave no
room for the error-free transforms of :mod:`softgpu.reference.numerics.double`.
"""

from __future__ import annotations

from math import isqrt

_MANTISSA = 52
_BIAS = 1023
_LEAST = -1074  # exponent of the last bit of a subnormal number
_LARGEST = 0x7FEFFFFFFFFFFFFF
_INFINITY = 0x7FF0000000000000
_SIGN = 1 << 63
_SPARE = 60  # bits of a quotient or root before the sticky bit: more than 53 and a rounding bit


def _parts(bits: int) -> tuple[int, int]:
    """(signed significand, exponent) of a finite f64: its value is significand * 2**exponent."""
    field = (bits >> _MANTISSA) & 0x7FF
    fraction = bits & ((1 << _MANTISSA) - 1)
    significand = fraction if field == 0 else fraction | (1 << _MANTISSA)
    return (-significand if bits & _SIGN else significand), max(field, 1) - _BIAS - _MANTISSA


def _rounds_up(negative: bool, odd: bool, half: int, rounding: str) -> bool:
    """``half``: -1, 0, 1 for a remainder below, at, above one half of the last place."""
    if rounding == "rn":
        return half > 0 or (half == 0 and odd)
    if rounding == "rz":
        return False
    return negative == (rounding == "rm")


def pack(negative: bool, magnitude: int, exponent: int, sticky: bool, rounding: str) -> int:
    """Bits of ``magnitude * 2**exponent`` (a little more if ``sticky``) rounded to f64; ``magnitude`` is not zero.

    With ``sticky`` the magnitude has at least 55 bits, so that what is missing lies below the rounding bit.
    """
    sign = _SIGN if negative else 0
    drop = max(magnitude.bit_length() - (_MANTISSA + 1), _LEAST - exponent)
    if drop <= 0:
        kept, inexact, half = magnitude << -drop, False, -1
    else:
        kept = magnitude >> drop
        rest = magnitude - (kept << drop)
        inexact = bool(rest or sticky)
        middle = 1 << (drop - 1)
        half = (rest > middle) - (rest < middle) or int(sticky)
    if inexact and _rounds_up(negative, bool(kept & 1), half, rounding):
        kept += 1
    if kept == 0:
        return sign
    place = exponent + drop  # of the last bit of kept
    # A carry out of the significand and the step from subnormal to normal both fall out of adding, not or-ing.
    bits = ((place - _LEAST) << _MANTISSA) + kept
    if bits > _LARGEST:
        return sign | (_INFINITY if _rounds_up(negative, True, 1, rounding) else _LARGEST)
    return sign | bits


def _pack_signed(value: int, exponent: int, rounding: str) -> int:
    return pack(value < 0, abs(value), exponent, False, rounding)


def fma(a: int, b: int, c: int, rounding: str) -> int:
    """a * b + c of finite f64 bit patterns, rounded once."""
    (x, p), (y, q), (z, r) = _parts(a), _parts(b), _parts(c)
    product, place = x * y, p + q
    low = min(place, r)
    total = (product << (place - low)) + (z << (r - low))
    if total:
        return _pack_signed(total, low, rounding)
    product_sign, addend_sign = (a ^ b) & _SIGN, c & _SIGN
    if product_sign == addend_sign and not (product or z):
        return product_sign
    return _SIGN if rounding == "rm" else 0


def add(a: int, b: int, rounding: str) -> int:
    """a + b of finite f64 bit patterns."""
    return fma(a, _BIAS << _MANTISSA, b, rounding)


def mul(a: int, b: int, rounding: str) -> int:
    """a * b of finite f64 bit patterns."""
    (x, p), (y, q) = _parts(a), _parts(b)
    if x == 0 or y == 0:
        return (a ^ b) & _SIGN
    return _pack_signed(x * y, p + q, rounding)


def div(a: int, b: int, rounding: str) -> int:
    """a / b of finite f64 bit patterns, b not zero."""
    (x, p), (y, q) = _parts(a), _parts(b)
    negative = bool((a ^ b) & _SIGN)
    if x == 0:
        return (a ^ b) & _SIGN
    shift = max(0, _SPARE + abs(y).bit_length() - abs(x).bit_length())
    quotient, rest = divmod(abs(x) << shift, abs(y))
    return pack(negative, quotient, p - q - shift, rest != 0, rounding)


def sqrt(a: int, rounding: str) -> int:
    """Square root of a finite f64 bit pattern that is not negative; -0 gives -0."""
    x, p = _parts(a)
    if x == 0:
        return a
    shift = max(0, 2 * _SPARE - x.bit_length())
    shift += (p - shift) % 2
    root = isqrt(x << shift)
    return pack(False, root, (p - shift) // 2, root * root != x << shift, rounding)
