"""Operations on memory reached through fabric handles (PTX manual 9.7.11)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table
from ptxparse.opcodes.words import DIMENSIONS, HINT, LOAD_MODE, OVERRIDE, REDUCTION, WORD

_COMMON = (
    "async multimem relaxed sys sync shared::cta mbarrier::complete_tx::bytes mbarrier::complete_tx::16B "
    f"mbarrier::report::fabric counted::bytes cp_mask {HINT} l2::cache_hint tensor tiled {DIMENSIONS} "
    f"{LOAD_MODE} {OVERRIDE}"
)
_TYPES = f"b32 b64 b128 {WORD} f16 bf16 f32 f64 e4m3 e5m2"

ROWS: tuple[Opcode, ...] = table(
    "fabric",
    Row("fabric.try_get fabric.try_put", Effect.FABRIC, 0, f"{_COMMON} b128"),
    Row("fabric.try_red", Effect.FABRIC, 0, f"{_COMMON} {REDUCTION} {_TYPES}"),
    Row("fabric.try_pullred", Effect.FABRIC, 0, f"{_COMMON} {REDUCTION} acc::f16 acc::f32 {_TYPES}"),
    Row("fabric.try_atom", Effect.FABRIC, 0, f"{_COMMON} {REDUCTION} exch cas {_TYPES}"),
    Row("fabric.submit", Effect.FABRIC, 0, "op_restrict::fetching commit_group"),
    Row("fabric.wait", Effect.FABRIC, 0, "sync_restrict::reads sync_restrict::read"),
)
