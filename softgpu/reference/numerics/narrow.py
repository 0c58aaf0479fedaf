"""cvt to and from the formats of four and six bits, and the exponent-only format ue8m0.

Source: PTX ISA, "Alternate Floating-Point Data Formats" and "cvt". e2m1, e2m3 and e3m2 have neither infinity nor NaN:
``.satfinite``, which they require, gives the largest number of the sign, and the largest positive one for NaN. ue8m0 is
a power of two from 2**-127 on, 0xff is NaN; where the manual is silent (signs, the smallest numbers) it follows the
host code of CUDA's ``cuda_fp8.hpp``: the sign does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics.formats import Array, bits_of, join2, split2, to_float64
from softgpu.reference.numerics.rounding import from_float64

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Narrow:
    """A format without infinity and NaN; codes are right-aligned, the sign above exponent and mantissa."""

    exponent_bits: int
    mantissa_bits: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def magnitudes(self) -> Float64:
        """The values of the codes without sign, in order."""
        bias = (1 << (self.exponent_bits - 1)) - 1
        codes = np.arange(1 << (self.bits - 1))
        exponent, mantissa = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        whole = mantissa + np.where(exponent > 0, 1 << self.mantissa_bits, 0)
        values: Float64 = np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - bias - self.mantissa_bits)
        return values


NARROW = {"e2m1": Narrow(2, 1), "e2m3": Narrow(2, 3), "e3m2": Narrow(3, 2)}


def encode(a: npt.ArrayLike, kind: str, source: str, relu: bool = False) -> Array:
    """Codes (uint8) of numbers, to nearest even, clamped to the largest."""
    form = NARROW[kind]
    values = to_float64(a, source)
    magnitudes = form.magnitudes
    not_a_number = np.isnan(values)
    size = np.where(not_a_number, np.inf, np.abs(values))
    # Halfway points between neighbours; an even code wins there.
    below = np.searchsorted((magnitudes[1:] + magnitudes[:-1]) / 2, size, side="left")
    above = np.searchsorted((magnitudes[1:] + magnitudes[:-1]) / 2, size, side="right")
    code = np.where(below % 2 == 0, below, above)
    negative = np.signbit(values) & ~not_a_number
    if relu:
        code = np.where(negative, 0, code)
        negative = np.zeros_like(negative)
    return np.asarray(code | (negative.astype(np.int64) << (form.bits - 1))).astype(np.uint8)


def decode(codes: Array, kind: str) -> Float64:
    """The values of codes; bits above the format's do not count."""
    form = NARROW[kind]
    unsigned = codes.astype(np.int64)
    magnitude: Float64 = form.magnitudes[unsigned & ((1 << (form.bits - 1)) - 1)]
    return np.asarray(np.where(unsigned >> (form.bits - 1) & 1, -magnitude, magnitude))


def pack(a: npt.ArrayLike, b: npt.ArrayLike, kind: str, relu: bool = False) -> Array:
    """cvt.rn.satfinite.``kind``x2.f32 d, a, b: a in the upper four bits or byte, b in the lower."""
    high, low = encode(a, kind, "f32", relu), encode(b, kind, "f32", relu)
    if kind == "e2m1":
        return np.asarray(high << np.uint8(4) | low)
    return np.asarray(high.astype(np.uint16) << np.uint16(8) | low)


def unpack(a: npt.ArrayLike, kind: str, relu: bool = False) -> Array:
    """cvt.rn.f16x2.``kind``x2 d, a: exact."""
    shift = 4 if kind == "e2m1" else 8
    bits = np.asarray(a).astype(np.uint16)
    halves = [from_float64(decode(part, kind), "f16") for part in (bits, bits >> np.uint16(shift))]
    if relu:
        halves = [np.where(half & np.uint16(0x8000), np.uint16(0), half) for half in halves]
    return join2(halves[0], halves[1])


def exponent(a: npt.ArrayLike, source: str, rounding: str, satfinite: bool) -> Array:
    """ue8m0 codes (uint8) of f32 or bf16 numbers: the exponent, one more with ``rp`` unless the number is a power."""
    bits = bits_of(a, source).astype(np.uint32)
    if source == "bf16":
        bits = bits << np.uint32(16)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    code = magnitude >> np.uint32(23)
    if rounding == "rp":
        up = (magnitude & np.uint32(0x7FFFFF) != 0) & (magnitude > 0x400000) & (magnitude < 0x7F800000)
        code = code + up
    if satfinite:
        code = np.where((code == 0xFF) & (magnitude <= 0x7F800000), 0xFE, code)
    return np.asarray(code).astype(np.uint8)


def pack_exponents(a: npt.ArrayLike, b: npt.ArrayLike, rounding: str, satfinite: bool) -> Array:
    """cvt.ue8m0x2.f32 d, a, b: a in the upper byte."""
    high, low = (exponent(x, "f32", rounding, satfinite).astype(np.uint16) for x in (a, b))
    return np.asarray(high << np.uint16(8) | low)


def pack_exponents_of_pair(a: npt.ArrayLike, rounding: str, satfinite: bool) -> Array:
    """cvt.ue8m0x2.bf16x2 d, a: upper to upper."""
    low, high = (exponent(half, "bf16", rounding, satfinite).astype(np.uint16) for half in split2(a, "bf16x2"))
    return np.asarray(high << np.uint16(8) | low)


def unpack_exponents(a: npt.ArrayLike) -> Array:
    """cvt.rn.bf16x2.ue8m0x2 d, a: exact; 0 is the subnormal 2**-127."""
    bits = np.asarray(a).astype(np.uint16)
    halves = []
    for code in (bits & np.uint16(0xFF), bits >> np.uint16(8)):
        number = np.where(code == 0, np.uint16(0x40), code << np.uint16(7))
        halves.append(np.where(code == 0xFF, np.uint16(0x7FFF), number))
    return join2(halves[0], halves[1], "bf16x2")
