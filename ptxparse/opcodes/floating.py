"""Floating-point arithmetic in f32 and f64 (PTX manual 9.7.3)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Kind, Opcode, Row, table
from ptxparse.opcodes.words import FLOAT, ROUNDING

_PURE, _FLOAT, _SPECIAL = Effect.PURE, Kind.FLOAT, Kind.SPECIAL

ROWS: tuple[Opcode, ...] = table(
    "floating",
    Row("add sub mul", _PURE, 1, f"{ROUNDING} ftz sat {FLOAT} f32x2", _FLOAT, 1),
    Row("fma mad", _PURE, 1, f"{ROUNDING} ftz sat {FLOAT} f32x2", _FLOAT, 2),
    Row("abs neg", _PURE, 1, f"ftz {FLOAT}", _FLOAT, 1),
    Row("min max", _PURE, 1, f"ftz NaN xorsign abs {FLOAT}", _FLOAT, 1),
    Row("copysign", _PURE, 1, FLOAT, _FLOAT, 1),
    Row("testp", _PURE, 1, f"finite infinite number notanumber normal subnormal {FLOAT}", _FLOAT, 1),
    Row("div", _PURE, 1, f"approx full {ROUNDING} ftz {FLOAT}", _SPECIAL, 1),
    Row("rcp sqrt", _PURE, 1, f"approx {ROUNDING} ftz {FLOAT}", _SPECIAL, 1),
    Row("rsqrt", _PURE, 1, f"approx ftz {FLOAT}", _SPECIAL, 1),
    Row("sin cos", _PURE, 1, "approx ftz 2pi f32", _SPECIAL, 1),
    Row("lg2 ex2 tanh", _PURE, 1, "approx ftz f32", _SPECIAL, 1),
)
