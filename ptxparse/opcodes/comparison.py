"""Comparison and selection (PTX manual 9.7.7, 9.7.8)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import BITS, COMPARISON, FLOAT, HALF, INTEGER, PACKED_INTEGER

_PURE = Effect.PURE
_INTEGERS = f"{BITS} {INTEGER}"

ROWS: tuple[Opcode, ...] = table(
    "comparison",
    Row("setp", _PURE, 1, f"{COMPARISON} and or xor ftz {_INTEGERS} {FLOAT} {HALF}", Kind.FLOAT, 1),
    Row(
        "set", _PURE, 1, f"{COMPARISON} and or xor ftz {_INTEGERS} {PACKED_INTEGER} {FLOAT} {HALF}", Kind.FLOAT, 1
    ),
    Row("selp", _PURE, 1, f"{_INTEGERS} {FLOAT}"),
    Row("slct", _PURE, 1, f"ftz {_INTEGERS} {FLOAT}"),
)
