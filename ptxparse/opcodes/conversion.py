"""Moves, conversions and address conversions (PTX manual 9.7.10)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import BITS, FLOAT, HALF, INTEGER, INTEGER_ROUNDING, PARAMETER, ROUNDING, SHARED

_PURE, _CONVERSION = Effect.PURE, Kind.CONVERSION

_SMALL_FLOATS = (
    "e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2 e2m1x4 e4m3x4 e5m2x4 e2m3x4 e3m2x4 ue8m0x2 ue5m3x2 s2f6x2"
)
_CVT = (
    f"{INTEGER_ROUNDING} {ROUNDING} rna rs ftz sat satfinite relu pzo scaled::n1::ue8m0 scaled::n2::ue8m0 "
    f"u8 s8 {INTEGER} {FLOAT} {HALF} tf32 {_SMALL_FLOATS}"
)
_WINDOWS = f"const global local {SHARED} {PARAMETER}"

ROWS: tuple[Opcode, ...] = table(
    "conversion",
    Row("mov", _PURE, 1, f"pred {BITS} b128 {INTEGER} {FLOAT}"),
    Row("prmt", _PURE, 1, "b32 f4e b4e rc8 ecl ecr rc16", Kind.INTEGER, 1),
    Row("cvt", _PURE, 1, _CVT, _CONVERSION, 1),
    Row("cvt.pack", _PURE, 1, "sat u16 s16 u8 s8 u4 s4 u2 s2 s32 b32", _CONVERSION, 2),
    Row("cvta", _PURE, 1, f"to u32 u64 {_WINDOWS}"),
    Row("isspacep", _PURE, 1, _WINDOWS),
    Row("mapa getctarank", _PURE, 1, "shared::cluster u32 u64"),
    Row("tensormap.query", _PURE, 1, "is_large alloc_class_large u32"),
    Row("spcompress", _PURE, 2, "b8 b16 b2 b4 sp::2:4 x1 x2 x4 x8 x16 x32 x64"),
    Row("spdecompress", _PURE, 1, "b8 b16 b2 b4 sp::2:4 x2 x4 x8 x16 x32 x64 x128"),
)
