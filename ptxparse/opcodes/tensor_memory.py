"""Fifth-generation tensor cores and their memory (PTX manual 9.7.18)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import CTA_GROUP, REPEAT

_COLLECTORS = " ".join(
    f"collector::{operand}::{use}"
    for operand in ("a", "b", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)
_KINDS = "f16 tf32 f8f6f4 i8 ti16 mxf8f6f4 mxf4 mxf4nvf4"
_MMA = (
    f"{CTA_GROUP} {' '.join('kind::' + kind for kind in _KINDS.split())} block_scale scale_vec::1X scale_vec::2X "
    f"scale_vec::4X block16 block32 ashift decompress::lut::b {_COLLECTORS}"
)
_MOVE = f"sync aligned 16x64b 16x128b 16x256b 32x32b 16x32bx2 {REPEAT} b32"
_COMPRESS = "max min abs NaN u32 s32 f32 b2 sp::2:4"
_COPY = (
    f"{CTA_GROUP} 128x256b 4x256b 128x128b 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4 "
    "b8x16 b6x16_p32 b4x16_p64"
)
_COMMIT = (
    f"{CTA_GROUP} mbarrier::arrive::one shared::cluster multicast::cluster multicast::cluster::32b b64 "
    "sync_restrict::shared::read::mma::a"
)

ROWS: tuple[Opcode, ...] = table(
    "tensor memory",
    Row(
        "tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws tcgen05.mma.ws.sp",
        Effect.TCGEN05,
        0,
        _MMA,
        Kind.TENSOR,
        2,
    ),
    Row("tcgen05.ld", Effect.TCGEN05, 1, f"{_MOVE} pack::16b"),
    Row("tcgen05.ld.red tcgen05.ld.spcompress", Effect.TCGEN05, 2, f"{_MOVE} {_COMPRESS}"),
    Row("tcgen05.ld.red.spcompress", Effect.TCGEN05, 3, f"{_MOVE} {_COMPRESS}"),
    Row("tcgen05.st", Effect.TCGEN05, 0, f"{_MOVE} unpack::16b"),
    Row("tcgen05.cp", Effect.TCGEN05, 0, _COPY),
    Row("tcgen05.shift", Effect.TCGEN05, 0, f"{CTA_GROUP} down"),
    Row("tcgen05.alloc tcgen05.dealloc", Effect.TCGEN05, 0, f"exclusive {CTA_GROUP} sync aligned shared::cta b32"),
    Row("tcgen05.relinquish_alloc_permit", Effect.TCGEN05, 0, f"{CTA_GROUP} sync aligned"),
    Row("tcgen05.commit", Effect.TCGEN05, 0, _COMMIT),
    Row("tcgen05.wait::ld tcgen05.wait::st", Effect.TCGEN05, 0, "sync aligned"),
    Row("tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync", Effect.TCGEN05, 0, ""),
)
