"""Matrix arithmetic of a warp, and its loads and stores (PTX manual 9.7.16)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table

_SHAPES = (
    "m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256"
)
_SMALL = "e4m3 e5m2 e3m2 e2m3 e2m1"
_TYPES = f"f16 bf16 tf32 f32 f64 s32 s8 u8 s4 u4 b1 {_SMALL}"
_SCALING = (
    "kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 block_scale scale_vec::1X scale_vec::2X scale_vec::4X "
    "ue8m0 ue4m3"
)
_MMA = f"sync aligned row col rn rz rm rp satfinite xor and popc {_SHAPES} {_TYPES} {_SCALING}"

_WMMA_SHAPES = "m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128"
_WMMA_TYPES = "f16 bf16 tf32 f32 f64 s32 s8 u8 s4 u4 b1"
_WMMA = f"sync aligned row col {_WMMA_SHAPES} {_WMMA_TYPES}"
_WMMA_SPACES = "global shared shared::cta shared::cluster"

ROWS: tuple[Opcode, ...] = table(
    "tensor",
    Row("mma mma.sp mma.sp::ordered_metadata", Effect.TENSOR, 1, _MMA, Kind.TENSOR, 2),
    Row("wmma.mma", Effect.TENSOR, 1, f"{_WMMA} rn rz rm rp satfinite xor and popc", Kind.TENSOR, 2),
    Row("wmma.load.a wmma.load.b wmma.load.c", Effect.MATRIX_LOAD, 1, f"{_WMMA} {_WMMA_SPACES}"),
    Row("wmma.store.d", Effect.MATRIX_STORE, 0, f"{_WMMA} {_WMMA_SPACES}"),
    Row(
        "ldmatrix",
        Effect.SHARED_MATRIX,
        1,
        "sync aligned m8n8 m16n16 m8n16 x1 x2 x4 trans shared shared::cta b16 b8 b8x16 b6x16_p32 b4x16_p64 s8 s4",
    ),
    Row(
        "stmatrix",
        Effect.SHARED_MATRIX,
        0,
        "sync aligned m8n8 m16n8 x1 x2 x4 trans shared shared::cta b16 b8",
    ),
)
