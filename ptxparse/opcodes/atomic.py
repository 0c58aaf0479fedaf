"""Atomics, reductions and multimem operations (PTX manual 9.7.10.15, 9.7.15.5 to 9.7.15.8)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table
from ptxparse.opcodes.words import FLOAT, HALF, HINT, REDUCTION, SCOPES, SHARED, STORAGE, VECTOR, WORD

_TYPES = f"b16 b32 b64 b128 {WORD} {FLOAT} {HALF}"
_COMMON = f"relaxed release {SCOPES} global {SHARED} {REDUCTION} noftz {HINT} {VECTOR}"
_SMALL = "e5m2 e5m2x2 e5m2x4 e4m3 e4m3x2 e4m3x4"
_MULTIMEM = f"weak relaxed {SCOPES} global {VECTOR} b32 b64 {WORD} {FLOAT} {HALF} {_SMALL}"

ROWS: tuple[Opcode, ...] = table(
    "atomic",
    Row("atom", Effect.ATOMIC, 1, f"acquire acq_rel exch cas {_COMMON} {_TYPES}"),
    Row("red", Effect.ATOMIC, 0, f"{_COMMON} {_TYPES}"),
    Row(
        "red.async",
        Effect.ATOMIC,
        0,
        f"mmio relaxed release {SCOPES} global shared::cluster mbarrier::complete_tx::bytes {REDUCTION} b32 {WORD}",
    ),
    Row(
        "multimem.ld_reduce",
        Effect.MULTIMEM,
        1,
        f"acquire {_MULTIMEM} min max add and or xor acc::f32 acc::f16",
    ),
    Row("multimem.st", Effect.MULTIMEM, 0, f"release {_MULTIMEM}"),
    Row("multimem.red", Effect.MULTIMEM, 0, f"release {_MULTIMEM} min max add and or xor"),
    Row("multimem.st.async", Effect.MULTIMEM, 0, f"release gpu sys global {STORAGE}"),
    Row("multimem.red.async", Effect.MULTIMEM, 0, f"release gpu sys global {REDUCTION} b32 b64 {WORD}"),
)
