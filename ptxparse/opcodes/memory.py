"""Loads, stores, cache hints and the stack (PTX manual 9.7.10.8 to 9.7.10.21, 9.7.19)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table
from ptxparse.opcodes.words import (
    EVICTION_1,
    EVICTION_2,
    HINT,
    PARAMETER,
    PREFETCH_SIZE,
    SCOPES,
    SHARED,
    STORAGE,
    VECTOR,
)

_LOAD = (
    f"weak volatile relaxed acquire mmio nc {SCOPES} const global local {PARAMETER} {SHARED} ca cg cs lu cv "
    f"{EVICTION_1} {EVICTION_2} {HINT} {PREFETCH_SIZE} proxy::readonly {VECTOR} {STORAGE}"
)
_STORE = (
    f"weak volatile relaxed release mmio {SCOPES} global local param param::func {SHARED} wb cg cs wt "
    f"{EVICTION_1} {EVICTION_2} {HINT} {VECTOR} {STORAGE}"
)
_ASYNC_STORE = (
    f"weak mmio release gpu sys global shared::cluster mbarrier::complete_tx::bytes v2 v4 {STORAGE}"
)
_POLICY = f"global L2 b64 {EVICTION_2}"

ROWS: tuple[Opcode, ...] = table(
    "memory",
    Row("ld", Effect.LOAD, 1, _LOAD),
    Row("ldu", Effect.LOAD, 1, f"global {VECTOR} {STORAGE}"),
    Row("st", Effect.STORE, 0, _STORE),
    Row("st.async", Effect.STORE, 0, _ASYNC_STORE),
    Row("st.bulk", Effect.BULK, 0, "weak shared::cta"),
    Row(
        "prefetch",
        Effect.PREFETCH,
        0,
        "global local const param tensormap L1 L2 L1::32B valid_addr L2::evict_last L2::evict_normal",
    ),
    Row("prefetchu", Effect.PREFETCH, 0, "L1"),
    Row("applypriority", Effect.PREFETCH, 0, "global L2::evict_normal"),
    Row("discard", Effect.DISCARD, 0, "global L2"),
    Row("createpolicy.fractional createpolicy.range", Effect.PURE, 1, f"{_POLICY} fabric"),
    Row("createpolicy.cvt", Effect.PURE, 1, "L2 b64"),
    Row("alloca stacksave", Effect.MISC, 1, "u32 u64"),
    Row("stackrestore", Effect.MISC, 0, "u32 u64"),
)
