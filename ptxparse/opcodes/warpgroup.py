"""Asynchronous matrix arithmetic of four warps (PTX manual 9.7.17).

The accumulator of ``wgmma.mma_async`` is written, and read unless ``scale-d`` is false.
"""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table

_SHAPES = " ".join(
    [f"m64n{n}k{k}" for k in (8, 16, 32, 64) for n in range(8, 257, 8)]
    + [f"m64n{n}k{k}" for k in (256, 512) for n in (8, 16, 24, *range(32, 257, 16))]
)
_TYPES = "f16 bf16 tf32 f32 s32 s8 u8 b1 e4m3 e5m2"

ROWS: tuple[Opcode, ...] = table(
    "warpgroup",
    Row(
        "wgmma.mma_async wgmma.mma_async.sp",
        Effect.WGMMA,
        1,
        f"sync aligned satfinite and popc {_SHAPES} {_TYPES}",
        Kind.TENSOR,
        2,
    ),
    Row("wgmma.fence wgmma.commit_group wgmma.wait_group", Effect.FENCE, 0, "sync aligned"),
    Row("setmaxnreg", Effect.MISC, 0, "inc dec sync aligned u32"),
)
