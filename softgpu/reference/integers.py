"""Integer functions on unsigned arrays that numpy does not have, for 16, 32 and 64 bits.

Division by zero gives all ones and a remainder equal to the dividend: the manual leaves both open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]


def bits_of(a: Ints) -> int:
    """Width of the elements."""
    return int(a.dtype.itemsize) * 8


def double(a: Ints) -> Ints:
    """The values in integers of twice the width, of the same signedness (up to 64 bits)."""
    return a.astype(np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}"))


def multiply_high(a: Ints, b: Ints) -> Ints:
    """Upper half of the full product."""
    if a.dtype.itemsize < 8:
        return (double(a) * double(b) >> bits_of(a)).astype(a.dtype)
    low_mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    a_low, a_high, b_low, b_high = ua & low_mask, ua >> half, ub & low_mask, ub >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & low_mask)
    high = a_high * b_high + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, 0).astype(np.uint64) - np.where(b < 0, ua, 0).astype(np.uint64)
    result: Ints = high.view(a.dtype)
    return result


def divide(a: Ints, b: Ints) -> Ints:
    """Quotient rounded toward zero."""
    zero = b == 0
    divisor = np.where(zero, np.ones_like(b), b)
    if a.dtype.kind == "u":
        return np.where(zero, np.array(-1).astype(a.dtype), a // divisor).astype(a.dtype)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    quotient = (magnitude(a) // magnitude(divisor)).view(unsigned)
    negative = (a < 0) != (divisor < 0)
    signed = np.where(negative, 0 - quotient, quotient).astype(unsigned)
    return np.where(zero, np.array(-1).astype(unsigned), signed).astype(unsigned).view(a.dtype)


def remainder(a: Ints, b: Ints) -> Ints:
    """What :func:`divide` leaves: of the sign of the dividend."""
    zero = b == 0
    divisor = np.where(zero, np.ones_like(b), b)
    if a.dtype.kind == "u":
        return np.where(zero, a, a % divisor).astype(a.dtype)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    rest = magnitude(a) % magnitude(divisor)
    signed = np.where(a < 0, 0 - rest, rest).astype(unsigned)
    return np.where(zero, a.view(unsigned), signed).astype(unsigned).view(a.dtype)


def magnitude(a: Ints) -> Ints:
    """Absolute value of signed integers, as unsigned ones (the smallest integer has one too)."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    bits = a.view(unsigned)
    return np.where(a < 0, 0 - bits, bits).astype(unsigned)


def saturate(wide: Ints, bits: int) -> Ints:
    """64-bit signed integers clamped to ``bits``-bit signed ones."""
    limit = 1 << (bits - 1)
    return np.clip(wide, -limit, limit - 1)


def shift_left(a: Ints, amount: Ints) -> Ints:
    """``a`` shifted left by unsigned amounts; zero from the width on."""
    width = bits_of(a)
    clamped = np.minimum(amount, width - 1).astype(a.dtype)
    result: Ints = np.where(amount >= width, np.zeros(1, a.dtype), a << clamped)
    return result


def shift_right(a: Ints, amount: Ints) -> Ints:
    """``a`` shifted right by unsigned amounts, arithmetically if signed; amounts are clamped to the width."""
    width = bits_of(a)
    clamped = np.minimum(amount, width - 1).astype(a.dtype)
    if a.dtype.kind == "i":
        shifted: Ints = a >> clamped
        return shifted
    result: Ints = np.where(amount >= width, np.zeros(1, a.dtype), a >> clamped)
    return result


def population(a: Ints) -> Ints:
    """Number of one bits, as u32."""
    return np.bitwise_count(a).astype(np.uint32)


def leading_zeros(a: Ints) -> Ints:
    """Number of zero bits above the highest one bit, as u32; the width for 0."""
    width = bits_of(a)
    filled = a.copy()
    step = 1
    while step < width:
        filled |= filled >> np.array(step, a.dtype)
        step *= 2
    return (width - np.bitwise_count(filled).astype(np.uint32)).astype(np.uint32)


def reverse_bits(a: Ints) -> Ints:
    """Bits in reverse order."""
    octets = np.ascontiguousarray(a).view(np.uint8).reshape(-1, a.dtype.itemsize)
    reversed_bits = np.packbits(np.unpackbits(octets, axis=1, bitorder="little"), axis=1, bitorder="big")
    return np.ascontiguousarray(reversed_bits[:, ::-1]).view(a.dtype).reshape(a.shape)


def find_leading(a: Ints, signed: bool) -> Ints:
    """Position of the highest one bit (of the highest bit unlike the sign, if signed) as u32; all ones if none."""
    width = bits_of(a)
    if signed:
        negative = (a >> np.array(width - 1, a.dtype)) != 0
        a = np.where(negative, ~a, a)
    zeros = leading_zeros(a)
    return np.where(zeros == width, np.uint32(0xFFFFFFFF), np.uint32(width - 1) - zeros).astype(np.uint32)


def mask_below(count: Ints, dtype: np.dtype[Any]) -> Ints:
    """Integers whose ``count`` low bits are one (all from the width on)."""
    width = dtype.itemsize * 8
    amount = np.minimum(count, width - 1).astype(dtype)
    below = (np.array(1, dtype) << amount) - np.array(1, dtype)
    return np.where(count >= width, ~np.array(0, dtype), below).astype(dtype)


def octets_of(a: Ints, signed: bool) -> Ints:
    """Bytes of 32-bit values as int64, shape (n, 4), the low byte first."""
    return np.ascontiguousarray(a).view(np.int8 if signed else np.uint8).reshape(-1, 4).astype(np.int64)


def halves_of(a: Ints, signed: bool) -> Ints:
    """Halves of 32-bit values as int64, shape (n, 2), the low half first."""
    return np.ascontiguousarray(a).view(np.int16 if signed else np.uint16).reshape(-1, 2).astype(np.int64)
