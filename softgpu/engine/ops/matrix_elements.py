"""Registers of a fragment as vectors of numbers, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from softgpu.engine.ir import WARP, Builder, Value
from softgpu.engine.ops.fragments import Fragment, Position
from softgpu.engine.ops.matrix_gather import Elements, Place


def _constant(builder: Builder, number: int) -> Value:
    return builder.constant(number, "i32", WARP)


def _float(builder: Builder, register: Value) -> list[Value]:
    return [register]


def _halves(builder: Builder, register: Value) -> list[Value]:
    """f16: exact in f32."""
    upper = builder.lshr(register, _constant(builder, 16))
    return [builder.cast("fpext", builder.bitcast(builder.trunc(part, "i16"), "half"), "float")
            for part in (register, upper)]


def _bfloats(builder: Builder, register: Value) -> list[Value]:
    low = builder.shl(register, _constant(builder, 16))
    high = builder.and_(register, _constant(builder, 0xFFFF0000))
    return [builder.bitcast(low, "float"), builder.bitcast(high, "float")]


def _tf32(builder: Builder, register: Value) -> list[Value]:
    """The 13 low bits are ignored."""
    return [builder.bitcast(builder.and_(register, _constant(builder, 0xFFFFE000)), "float")]


def _integers(builder: Builder, register: Value, width: int, right: str) -> list[Value]:
    """Integers of 4 or 8 bits; ``right``: ``ashr`` for signed ones, ``lshr`` for others."""
    values = []
    for start in range(0, 32, width):
        top = builder.shl(register, _constant(builder, 32 - width - start)) if start < 32 - width else register
        values.append(builder.cast("sitofp", builder.binary(right, top, _constant(builder, 32 - width)), "float"))
    return values


def _bytes(builder: Builder, register: Value) -> list[Value]:
    """The four bytes, each at the top of an i16 with zeros below."""
    upper = builder.lshr(register, _constant(builder, 16))
    halves = [builder.trunc(part, "i16") for part in (register, upper)]
    top = builder.like(0xFF00, halves[0])
    return [byte for half in halves for byte in (builder.shl(half, builder.like(8, half)), builder.and_(half, top))]


def _e5m2(builder: Builder, register: Value) -> list[Value]:
    """The upper byte of an f16."""
    return [builder.cast("fpext", builder.bitcast(byte, "half"), "float") for byte in _bytes(builder, register)]


@dataclass(frozen=True)
class _Small:
    """A format of 4 to 8 bits in a byte: bits of its exponent and mantissa, and of the byte above the sign. What is
    below is ignored. The only NaN has all ones; there are no infinities."""

    exponent: int
    mantissa: int
    unused: int = 0
    has_nan: bool = False

    def unpack(self, builder: Builder, register: Value) -> list[Value]:
        return [self._number(builder, byte) for byte in _bytes(builder, register)]

    def _number(self, builder: Builder, byte: Value) -> Value:
        """Exponent and mantissa, moved to those of f16, give the number times a power of two, subnormal ones too."""
        top = builder.shl(byte, builder.like(self.unused, byte)) if self.unused else byte
        digits = ((1 << (self.exponent + self.mantissa)) - 1) << (10 - self.mantissa)
        shifted = builder.lshr(top, builder.like(5 - self.exponent, top))
        magnitude = builder.and_(shifted, builder.like(digits, top))
        sign = builder.and_(top, builder.like(0x8000, top))
        number = builder.cast("fpext", builder.bitcast(builder.or_(magnitude, sign), "half"), "float")
        number = builder.binary("fmul", number, builder.like(2.0 ** (16 - (1 << (self.exponent - 1))), number))
        if not self.has_nan:
            return number
        all_ones = builder.icmp("eq", magnitude, builder.like(digits, top))
        return builder.select(all_ones, builder.float_bits(0x7FFFFFFF, "float", WARP), number)


UNPACK: dict[str, Callable[[Builder, Value], list[Value]]] = {
    "f32": _float, "f64": _float, "s32": _float, "b32": _float, "f16": _halves, "bf16": _bfloats, "tf32": _tf32,
    "e5m2": _e5m2, "e4m3": _Small(4, 3, has_nan=True).unpack, "e3m2": _Small(3, 2, unused=2).unpack,
    "e2m3": _Small(2, 3, unused=2).unpack, "e2m1": _Small(2, 1, unused=2).unpack,
    "s8": partial(_integers, width=8, right="ashr"), "u8": partial(_integers, width=8, right="lshr"),
    "s4": partial(_integers, width=4, right="ashr"), "u4": partial(_integers, width=4, right="lshr"),
}
"""One vector for each element of a register. Integers of 8 and 4 bits become numbers of f32."""


def elements(builder: Builder, fragment: Fragment, registers: Sequence[Value]) -> Elements:
    """The operand of a matrix instruction; repeated elements are taken from their first register."""
    vectors: list[Value] = []
    places: dict[Position, Place] = {}
    for register, held in zip(registers, fragment.positions, strict=True):
        if held[0][0] in places:
            continue
        for index, positions in enumerate(held):
            for lane, position in enumerate(positions):
                places[position] = (len(vectors) + index, lane)
        vectors += UNPACK[fragment.kind](builder, register)
    return Elements(builder, vectors, places)


def pack_halves(builder: Builder, low: Value, high: Value) -> Value:
    """Two vectors of f32 rounded to f16, as halves of b32 registers; NaN is canonical."""
    parts = []
    for number in (low, high):
        bits = builder.bitcast(builder.cast("fptrunc", number, "half"), "i16")
        parts.append(builder.select(builder.fcmp("uno", number, number), builder.like(0x7FFF, bits), bits))
    lanes = [lane + half * WARP for lane in range(WARP) for half in range(2)]
    return builder.reinterpret(builder.shuffle(parts[0], parts[1], lanes), f"<{WARP} x i32>")
