"""Control flow and what ends a thread (PTX manual 9.7.14, 9.7.21)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table

ROWS: tuple[Opcode, ...] = table(
    "control",
    Row("bra ret", Effect.CONTROL, 0, "uni"),
    Row("brx.idx", Effect.CONTROL, 0, "uni"),
    Row("call", Effect.CALL, 0, "uni"),
    Row("exit trap", Effect.CONTROL, 0, ""),
    Row("brkpt", Effect.MISC, 0, ""),
)
