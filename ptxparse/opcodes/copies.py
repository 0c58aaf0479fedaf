"""Asynchronous copies, bulk and tensor copies, tensor maps (PTX manual 9.7.10.18, .19, .28, .29, 9.7.15.17)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table
from ptxparse.opcodes.words import (
    COMPLETION,
    CTA_GROUP,
    DIMENSIONS,
    EVICTION_2,
    HALF,
    HINT,
    LOAD_MODE,
    MULTICAST,
    OVERRIDE,
    PREFETCH_SIZE,
    REDUCTION,
    REPORT,
    SCOPES,
    SHARED,
    WORD,
)

_ORDER = f"weak relaxed {SCOPES}"
_BULK = f"{_ORDER} global shared::cta shared::cluster {COMPLETION} {HINT}"
_REDUCE = f"{_BULK} {REDUCTION} noftz b32 b64 {WORD} f32 f64 {HALF}"
_TENSOR = f"{DIMENSIONS} global shared::cta shared::cluster {COMPLETION} {LOAD_MODE} {HINT} {OVERRIDE}"
_FIELDS = (
    "global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout swizzle_mode "
    "swizzle_atomicity fill_mode alloc_class"
)

ROWS: tuple[Opcode, ...] = table(
    "copies",
    Row("cp.async", Effect.COPY, 0, f"ca cg shared shared::cta global {HINT} {PREFETCH_SIZE}"),
    Row("cp.async.commit_group cp.async.wait_group cp.async.wait_all", Effect.FENCE, 0, ""),
    Row("cp.async.mbarrier.arrive", Effect.MBARRIER, 0, "noinc shared shared::cta b64"),
    Row("cp.async.bulk", Effect.BULK, 0, f"{_BULK} {MULTICAST} {REPORT} ignore_oob cp_mask b128"),
    Row("cp.async.bulk.tensor", Effect.BULK, 0, f"{_TENSOR} {MULTICAST} {REPORT} {CTA_GROUP}"),
    Row("cp.reduce.async.bulk", Effect.BULK, 0, _REDUCE),
    Row("cp.reduce.async.bulk.tensor", Effect.BULK, 0, f"{_TENSOR} {REDUCTION}"),
    Row("cp.async.bulk.prefetch", Effect.PREFETCH, 0, f"L2 global {HINT} {EVICTION_2}"),
    Row(
        "cp.async.bulk.prefetch.tensor",
        Effect.PREFETCH,
        0,
        f"{DIMENSIONS} L2 global {LOAD_MODE} {HINT} {OVERRIDE} {EVICTION_2}",
    ),
    Row(
        "applypriority.async.bulk applypriority.async.bulk.tensor",
        Effect.PREFETCH,
        0,
        f"{DIMENSIONS} global bulk_group {LOAD_MODE} L2::evict_normal {OVERRIDE}",
    ),
    Row(
        "cp.async.bulk.commit_group cp.async.bulk.wait_group",
        Effect.FENCE,
        0,
        "read sync_restrict::proxy::async",
    ),
    Row("multimem.cp.async.bulk", Effect.MULTIMEM, 0, f"{_BULK} cp_mask b128"),
    Row("multimem.cp.reduce.async.bulk", Effect.MULTIMEM, 0, _REDUCE),
    Row("tensormap.replace", Effect.TENSORMAP, 0, f"tile {_FIELDS} global shared::cta b1024 b32 b64"),
    Row(
        "tensormap.cp_fenceproxy",
        Effect.TENSORMAP,
        0,
        f"global {SHARED} tensormap::generic release {SCOPES} sync aligned",
    ),
)
