"""Integer arithmetic (PTX manual 9.7.1, 9.7.2)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import INTEGER, PACKED_INTEGER, SIGNED, WORD

_PURE, _INTEGER = Effect.PURE, Kind.INTEGER

ROWS: tuple[Opcode, ...] = table(
    "integer",
    Row("add", _PURE, 1, f"sat cc {INTEGER} {PACKED_INTEGER}", _INTEGER, 1),
    Row("sub", _PURE, 1, f"sat cc {INTEGER} {PACKED_INTEGER}", _INTEGER, 1),
    Row("addc subc", _PURE, 1, f"cc {WORD}", _INTEGER, 1),
    Row("mul", _PURE, 1, f"hi lo wide {INTEGER}", _INTEGER, 1),
    Row("mad", _PURE, 1, f"hi lo wide sat cc {INTEGER}", _INTEGER, 2),
    Row("madc", _PURE, 1, f"hi lo cc {WORD}", _INTEGER, 2),
    Row("clmad", _PURE, 1, "hi lo u64", _INTEGER, 2),
    Row("mul24", _PURE, 1, "hi lo u32 s32", _INTEGER, 1),
    Row("mad24", _PURE, 1, "hi lo sat u32 s32", _INTEGER, 2),
    Row("sad", _PURE, 1, INTEGER, _INTEGER, 2),
    Row("div rem", _PURE, 1, INTEGER, _INTEGER, 1),
    Row("abs", _PURE, 1, SIGNED, _INTEGER, 1),
    Row("neg", _PURE, 1, f"{SIGNED} u8x4 s8x4", _INTEGER, 1),
    Row("min max", _PURE, 1, f"relu {INTEGER} {PACKED_INTEGER}", _INTEGER, 1),
    Row("popc clz brev", _PURE, 1, "b32 b64", _INTEGER, 1),
    Row("bfind", _PURE, 1, f"shiftamt {WORD}", _INTEGER, 1),
    Row("fns", _PURE, 1, "b32", _INTEGER, 1),
    Row("bfe", _PURE, 1, WORD, _INTEGER, 1),
    Row("bfi", _PURE, 1, "b32 b64", _INTEGER, 1),
    Row("szext", _PURE, 1, "clamp wrap u32 s32", _INTEGER, 1),
    Row("bmsk", _PURE, 1, "clamp wrap b32", _INTEGER, 1),
    Row("dp4a", _PURE, 1, "u32 s32", _INTEGER, 8),
    Row("dp2a", _PURE, 1, "lo hi u32 s32", _INTEGER, 4),
)
