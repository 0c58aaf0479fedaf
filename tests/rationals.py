"""An oracle for floating-point results that shares nothing with the code under test: exact rationals, one rounding.

A number is ``NAN``, or a :class:`Number` (finite or infinite, with its sign, since zeros have one).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import isqrt

# name: exponent bits, mantissa bits, unused low bits
FIELDS = {
    "f16": (5, 10, 0),
    "bf16": (8, 7, 0),
    "tf32": (8, 10, 13),
    "f32": (8, 23, 0),
    "f64": (11, 52, 0),
    "e5m2": (5, 2, 0),
    "e4m3": (4, 3, 0),
}


@dataclass(frozen=True)
class Number:
    """``value`` is the magnitude, None for infinity."""

    negative: bool
    value: Fraction | None

    @property
    def signed(self) -> Fraction:
        assert self.value is not None
        return -self.value if self.negative else self.value


NAN = None


def decode(bits: int, kind: str) -> Number | None:
    """The number that a bit pattern means."""
    exponent_bits, mantissa_bits, unused = FIELDS[kind]
    bits >>= unused
    negative = bool(bits >> (exponent_bits + mantissa_bits))
    field = (bits >> mantissa_bits) % 2**exponent_bits
    fraction = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if kind == "e4m3":
        if field == 15 and fraction == 7:
            return NAN
    elif field == 2**exponent_bits - 1:
        return NAN if fraction else Number(negative, None)
    if field == 0:
        return Number(negative, fraction * _power(1 - bias - mantissa_bits))
    return Number(negative, (2**mantissa_bits + fraction) * _power(field - bias - mantissa_bits))


def _largest_field(kind: str) -> int:
    """The bit pattern of the largest finite number, without unused bits."""
    exponent_bits, mantissa_bits, _ = FIELDS[kind]
    return 0x7E if kind == "e4m3" else ((2**exponent_bits - 1) << mantissa_bits) - 1


def encode(number: Number, kind: str, mode: str, satfinite: bool = False) -> int:
    """Bits of a number rounded to a format: its magnitude is compared with the two neighbours and their middle."""
    exponent_bits, mantissa_bits, unused = FIELDS[kind]
    sign = int(number.negative) << (exponent_bits + mantissa_bits)
    largest = _largest_field(kind)
    infinity = largest + 1
    if number.value is None:
        return (sign | (largest if satfinite else infinity)) << unused
    low = min(_last_not_above(number.value, kind), largest)
    below = _magnitude(low, kind)
    assert below <= number.value and (low == largest or number.value < _magnitude(low + 1, kind))
    if below == number.value:
        return (sign | low) << unused
    if low < largest:
        above = _magnitude(low + 1, kind)
    else:  # what would be the next number if the exponent went on
        above = below + (below - _magnitude(low - 1, kind))
    upward = _goes_up(number, below, above, low, mode)
    if low == largest and satfinite:
        upward = False
    return (sign | (low + upward)) << unused


def _last_not_above(value: Fraction, kind: str) -> int:
    """The largest pattern whose magnitude does not exceed ``value``; patterns are ordered like magnitudes."""
    if value == 0:
        return 0
    exponent_bits, mantissa_bits, _ = FIELDS[kind]
    least = 2 - 2 ** (exponent_bits - 1)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < _power(exponent):
        exponent -= 1
    exponent = max(exponent, least)
    return int(value / _power(exponent - mantissa_bits)) + ((exponent - least) << mantissa_bits)


@cache
def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@lru_cache(4096)
def _magnitude(pattern: int, kind: str) -> Fraction:
    number = decode(pattern << FIELDS[kind][2], kind)
    assert number is not None and number.value is not None
    return number.value


def _goes_up(number: Number, below: Fraction, above: Fraction, pattern: int, mode: str) -> bool:
    assert number.value is not None
    if mode == "rz":
        return False
    if mode == "rm":
        return number.negative
    if mode == "rp":
        return not number.negative
    middle = (below + above) / 2
    if number.value == middle:
        return mode == "rna" or pattern % 2 == 1
    return number.value > middle


def exact_zero(mode: str) -> Number:
    """The zero that x - x gives."""
    return Number(mode == "rm", Fraction(0))


def _number(value: Fraction, zero: Number) -> Number:
    return zero if value == 0 else Number(value < 0, abs(value))


def add(x: Number | None, y: Number | None, mode: str) -> Number | None:
    if x is None or y is None:
        return NAN
    if x.value is None or y.value is None:
        if x.value is None and y.value is None:
            return x if x.negative == y.negative else NAN
        return x if x.value is None else y
    same = Number(x.negative, Fraction(0)) if x.negative == y.negative else exact_zero(mode)
    zero = same if x.value == 0 and y.value == 0 else exact_zero(mode)
    return _number(x.signed + y.signed, zero)


def mul(x: Number | None, y: Number | None) -> Number | None:
    if x is None or y is None:
        return NAN
    negative = x.negative != y.negative
    if x.value is None or y.value is None:
        return NAN if x.value == 0 or y.value == 0 else Number(negative, None)
    return Number(negative, x.value * y.value)


def div(x: Number | None, y: Number | None) -> Number | None:
    if x is None or y is None:
        return NAN
    negative = x.negative != y.negative
    if x.value is None:
        return NAN if y.value is None else Number(negative, None)
    if y.value is None:
        return Number(negative, Fraction(0))
    if y.value == 0:
        return NAN if x.value == 0 else Number(negative, None)
    return Number(negative, x.value / y.value)


def fma(x: Number | None, y: Number | None, z: Number | None, mode: str) -> Number | None:
    return add(mul(x, y), z, mode)


def sqrt(x: Number | None) -> Number | None:
    """The root itself if rational, else a rational so near that no format of ours can tell the difference."""
    if x is None or (x.negative and x.value != 0):
        return NAN
    if x.value is None or x.value == 0:
        return x
    scale = 2**2400
    square = x.value.numerator * x.value.denominator * scale**2
    root = isqrt(square)
    exact = root * root == square
    return Number(False, (root + (0 if exact else Fraction(1, 2))) / (Fraction(scale) * x.value.denominator))


def rounded(number: Number | None, kind: str, mode: str, nan: int) -> int:
    """Bits of a result; ``nan`` is the pattern that a NaN is to have."""
    return nan if number is None else encode(number, kind, mode)
