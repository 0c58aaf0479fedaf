"""Logic and shift (PTX manual 9.7.9)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import BITS, INTEGER

_PURE, _INTEGER = Effect.PURE, Kind.INTEGER

ROWS: tuple[Opcode, ...] = table(
    "logic",
    Row("and or xor not", _PURE, 1, f"pred {BITS}", _INTEGER, 1),
    Row("cnot", _PURE, 1, BITS, _INTEGER, 1),
    Row("lop3", _PURE, 1, "and or b32", _INTEGER, 1),
    Row("shf", _PURE, 1, "l r clamp wrap b32", _INTEGER, 1),
    Row("shl", _PURE, 1, BITS, _INTEGER, 1),
    Row("shr", _PURE, 1, f"{BITS} {INTEGER}", _INTEGER, 1),
)
