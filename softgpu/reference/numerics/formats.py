"""The number formats of PTX and how their bit patterns are held in numpy arrays.

Sources: PTX ISA, sections "Fundamental Types", "Alternate Floating-Point Data Formats" and "Packed Data Types".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: sign bit, ``exponent_bits``, ``mantissa_bits``, then ``padding`` unused low bits.

    ``canonical_nan`` is the NaN that arithmetic of this type returns here. PTX leaves single and half precision NaN
    results unspecified except with ``.NaN``, ``.relu`` and ``.satfinite``, where "canonical NaN" is this pattern.
    ``f64`` operations pass on the payload of their first NaN operand, made quiet; without one they return
    ``canonical_nan``. ``infinity`` is False for e4m3, whose largest exponent holds numbers.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    container: np.dtype[Any]
    canonical_nan: int
    padding: int = 0
    infinity: bool = True

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def minimum_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def sign_mask(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits + self.padding)

    @property
    def magnitude_mask(self) -> int:
        return self.sign_mask - 1

    @property
    def smallest_normal(self) -> int:
        """Bit pattern of the smallest positive normal number."""
        return 1 << (self.mantissa_bits + self.padding)

    @property
    def infinity_bits(self) -> int:
        """Bit pattern of +infinity; for e4m3 (which has none) that of the largest number + 1, its NaN."""
        if not self.infinity:
            return self.magnitude_mask
        return ((1 << self.exponent_bits) - 1) << (self.mantissa_bits + self.padding)

    @property
    def largest_bits(self) -> int:
        """Bit pattern of the largest finite number (MAX_NORM in the manual)."""
        return self.infinity_bits - (1 << self.padding)

    @property
    def one_bits(self) -> int:
        return self.bias << (self.mantissa_bits + self.padding)


def _format(name: str, exponent: int, mantissa: int, bits: int, nan: int, **more: Any) -> tuple[str, Format]:
    return name, Format(name, exponent, mantissa, np.dtype(f"uint{bits}"), nan, **more)


FORMATS: dict[str, Format] = dict(
    (
        _format("f16", 5, 10, 16, 0x7FFF),
        _format("bf16", 8, 7, 16, 0x7FFF),
        _format("tf32", 8, 10, 32, 0x7FFFFFFF, padding=13),
        _format("f32", 8, 23, 32, 0x7FFFFFFF),
        _format("f64", 11, 52, 64, 0xFFF8000000000000),
        _format("e4m3", 4, 3, 8, 0x7F, infinity=False),
        _format("e5m2", 5, 2, 8, 0x7F),
    )
)

INTEGERS: dict[str, tuple[int, bool]] = {
    f"{kind}{bits}": (bits, kind == "s") for kind in "us" for bits in (8, 16, 32, 64)
}
"""Integer types: width in bits, signed."""

PACKED: dict[str, tuple[str, int]] = {
    "f16x2": ("f16", 16),
    "bf16x2": ("bf16", 16),
    "f32x2": ("f32", 32),
    "e4m3x2": ("e4m3", 8),
    "e5m2x2": ("e5m2", 8),
}
"""Packed types: element format, element width in bits."""


def container(kind: str) -> np.dtype[Any]:
    """The numpy type that holds a PTX type: unsigned of its width, bool for ``pred``. KeyError: unknown type."""
    if kind in FORMATS:
        return FORMATS[kind].container
    if kind in PACKED:
        return np.dtype(f"uint{2 * PACKED[kind][1]}")
    if kind == "pred":
        return np.dtype(bool)
    if kind[0] == "b":
        return np.dtype(f"uint{kind[1:]}")
    return np.dtype(f"uint{INTEGERS[kind][0]}")


def bits_of(values: npt.ArrayLike, kind: str) -> Array:
    """``values`` as an array of the container of ``kind``; wider registers keep their low bits, as PTX operands do."""
    array = np.asarray(values)
    wanted = container(kind)
    if array.dtype == wanted:
        return array
    if array.dtype.kind == "f":
        raise TypeError(f"bit patterns wanted for .{kind}, got an array of {array.dtype}: take a view of it")
    return array.astype(wanted)


def split2(values: npt.ArrayLike, kind: str = "f16x2") -> tuple[Array, Array]:
    """(low, high) elements of packed registers, each of the container of the element format."""
    element, width = PACKED[kind]
    array = bits_of(values, kind)
    narrow = FORMATS[element].container
    return array.astype(narrow), (array >> array.dtype.type(width)).astype(narrow)


def join2(low: npt.ArrayLike, high: npt.ArrayLike, kind: str = "f16x2") -> Array:
    """Packed registers from their low and high elements."""
    width = PACKED[kind][1]
    wide = container(kind).type
    result: Array = np.asarray(low).astype(wide) | (np.asarray(high).astype(wide) << wide(width))
    return result


def lanewise(function: Callable[..., Array], kind: str, *operands: npt.ArrayLike) -> Array:
    """``function`` of packed operands of type ``kind``: applied to low and high elements, results packed again."""
    halves = [split2(operand, kind) for operand in operands]
    low = function(*(half[0] for half in halves))
    high = function(*(half[1] for half in halves))
    return join2(low, high, kind)


def is_nan(bits: Array, form: Format) -> Array:
    """Where a bit pattern is a NaN."""
    magnitude = bits & bits.dtype.type(form.magnitude_mask)
    if not form.infinity:
        return np.asarray(magnitude == form.canonical_nan)
    return np.asarray(magnitude > form.infinity_bits)


def flush(bits: npt.ArrayLike, kind: str) -> Array:
    """Subnormal numbers replaced by zero of the same sign: what ``.ftz`` does to inputs and results."""
    form = FORMATS[kind]
    array = bits_of(bits, kind)
    scalar = array.dtype.type
    tiny = (array & scalar(form.magnitude_mask)) < scalar(form.smallest_normal)
    return np.where(tiny, array & scalar(form.sign_mask), array)


def canonical(bits: Array, form: Format) -> Array:
    """NaNs replaced by the canonical one."""
    return np.where(is_nan(bits, form), bits.dtype.type(form.canonical_nan), bits)


def _e4m3_values() -> npt.NDArray[np.float64]:
    values = np.empty(256)
    for code in range(256):
        exponent, mantissa = (code >> 3) & 15, code & 7
        magnitude = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
        values[code] = -magnitude if code & 0x80 else magnitude
    values[0x7F] = values[0xFF] = np.nan
    return values


E4M3_VALUES = _e4m3_values()
"""The value of each e4m3 code (exponent bias 7, no infinities, codes 0x7f and 0xff are NaN)."""


def to_float64(bits: npt.ArrayLike, kind: str) -> npt.NDArray[np.float64]:
    """The exact values of bit patterns. ``tf32`` ignores the 13 low bits of its register (a NaN stays one)."""
    array = bits_of(bits, kind)
    with np.errstate(all="ignore"):
        if kind == "f64":
            return array.view(np.float64)
        if kind == "f32":
            return array.view(np.float32).astype(np.float64)
        if kind == "f16":
            return array.view(np.float16).astype(np.float64)
        if kind == "bf16":
            return (array.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        if kind == "tf32":
            kept = np.where(is_nan(array, FORMATS["f32"]), array, array & np.uint32(0xFFFFE000))
            return kept.view(np.float32).astype(np.float64)
        if kind == "e5m2":
            return (array.astype(np.uint16) << np.uint16(8)).view(np.float16).astype(np.float64)
        if kind == "e4m3":
            return np.asarray(E4M3_VALUES[array])
    raise KeyError(kind)
