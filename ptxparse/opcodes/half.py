"""Half-precision, mixed-precision and eight-bit floating-point arithmetic (PTX manual 9.7.4 to 9.7.6)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import FLOAT8, HALF, ROUNDING

_PURE, _FLOAT, _SPECIAL = Effect.PURE, Kind.FLOAT, Kind.SPECIAL

ROWS: tuple[Opcode, ...] = (
    *table(
        "half",
        Row("add sub mul", _PURE, 1, f"{ROUNDING} ftz sat {HALF}", _FLOAT, 1),
        Row("fma", _PURE, 1, f"{ROUNDING} ftz sat relu oob {HALF}", _FLOAT, 2),
        Row("abs neg", _PURE, 1, f"ftz {HALF}", _FLOAT, 1),
        Row("min max", _PURE, 1, f"ftz NaN xorsign abs {HALF}", _FLOAT, 1),
        Row("ex2 tanh", _PURE, 1, f"approx ftz {HALF}", _SPECIAL, 1),
    ),
    *table(
        "mixed",
        Row("add sub mul", _PURE, 1, f"{ROUNDING} ftz sat f32 f32x2 {HALF}", _FLOAT, 1),
        Row("fma", _PURE, 1, f"{ROUNDING} ftz sat f32 f32x2 {HALF}", _FLOAT, 2),
    ),
    *table(
        "float8",
        Row("add sub mul", _PURE, 1, f"rn satfinite f16x2 bf16x2 f32x2 {FLOAT8}", _FLOAT, 1),
        Row("fma", _PURE, 1, f"rn satfinite f16x2 bf16x2 f32x2 {FLOAT8}", _FLOAT, 2),
    ),
)
