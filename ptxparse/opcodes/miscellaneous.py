"""Video instructions and the rest (PTX manual 9.7.20, 9.7.21)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import COMPARISON

_PURE, _INTEGER = Effect.PURE, Kind.INTEGER
_TYPES = "u32 s32"
_SECOND = "add min max"

ROWS: tuple[Opcode, ...] = table(
    "miscellaneous",
    Row("vadd vsub vabsdiff vmin vmax", _PURE, 1, f"sat {_SECOND} {_TYPES}", _INTEGER, 1),
    Row("vshl vshr", _PURE, 1, f"sat clamp wrap {_SECOND} {_TYPES}", _INTEGER, 1),
    Row("vmad", _PURE, 1, f"sat po shr7 shr15 {_TYPES}", _INTEGER, 2),
    Row("vset", _PURE, 1, f"{COMPARISON} {_SECOND} {_TYPES}", _INTEGER, 1),
    Row("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2", _PURE, 1, f"sat add {_TYPES}", _INTEGER, 2),
    Row("vset2", _PURE, 1, f"{COMPARISON} add {_TYPES}", _INTEGER, 2),
    Row("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4", _PURE, 1, f"sat add {_TYPES}", _INTEGER, 4),
    Row("vset4", _PURE, 1, f"{COMPARISON} add {_TYPES}", _INTEGER, 4),
    Row("nanosleep", Effect.MISC, 0, "u32"),
    Row("pmevent", Effect.MISC, 0, "mask"),
)
