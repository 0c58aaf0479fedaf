"""What threads of a warp exchange (PTX manual 9.7.10.5, 9.7.15.9 to 9.7.15.15)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table

ROWS: tuple[Opcode, ...] = table(
    "warp",
    Row("shfl", Effect.WARP, 1, "sync up down bfly idx b32"),
    Row("vote", Effect.WARP, 1, "sync all any uni ballot pred b32"),
    Row("match", Effect.WARP, 1, "sync any all b32 b64"),
    Row("redux", Effect.WARP, 1, "sync add min max and or xor abs NaN u32 s32 b32 f32"),
    Row("activemask", Effect.WARP, 1, "b32"),
    Row("elect", Effect.WARP, 1, "sync"),
    Row("movmatrix", Effect.WARP, 1, "sync aligned m8n8 trans b16"),
)
