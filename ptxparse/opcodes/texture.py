"""Textures and surfaces (PTX manual 9.7.12, 9.7.13)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table
from ptxparse.opcodes.words import WORD

_GEOMETRY = "1d 2d 3d a1d a2d cube acube 2dms a2dms"
_TYPES = "u32 s32 f32 f16 f16x2"
_QUERIES = (
    "width height depth channel_data_type channel_order normalized_coords force_unnormalized_coords filter_mode "
    "addr_mode_0 addr_mode_1 addr_mode_2 array_size num_mipmap_levels num_samples memory_layout"
)
_SURFACE = "1d 2d 3d a1d a2d trap clamp zero v2 v4"

ROWS: tuple[Opcode, ...] = table(
    "texture",
    Row("tex", Effect.TEXTURE, 1, f"base level grad v2 v4 {_GEOMETRY} {_TYPES}"),
    Row("tld4", Effect.TEXTURE, 1, f"r g b a v2 v4 {_GEOMETRY} {_TYPES}"),
    Row("txq", Effect.TEXTURE, 1, f"level b32 {_QUERIES}"),
    Row("istypep", Effect.TEXTURE, 1, "texref samplerref surfref"),
    Row("suld.b", Effect.SURFACE, 1, f"{_SURFACE} ca cg cs cv b8 b16 b32 b64"),
    Row("sust.b sust.p", Effect.SURFACE, 0, f"{_SURFACE} wb cg cs wt b8 b16 b32 b64 u32 s32 f32"),
    Row("sured.b sured.p", Effect.SURFACE, 0, f"{_SURFACE} add min max and or b32 b64 {WORD}"),
    Row("suq", Effect.SURFACE, 1, f"b32 {_QUERIES}"),
)
