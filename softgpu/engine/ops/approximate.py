"""The approximate functions: ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt and div with ``.approx`` or ``.full``.

A GPU's results differ from card to card inside the error bounds of the manual. ``operations(0)`` and ``operations(1)``
are two such cards: both keep to the bounds, the same inputs give some different last bits, and each gives the same bits
on every machine. Special cases are those of the tables of PTX ISA, "Floating-Point Instructions" and "Half Precision
Floating-Point Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops import approximate_powers as powers
from softgpu.engine.ops import approximate_quotients as quotients
from softgpu.engine.ops import approximate_trigonometry as trigonometry
from softgpu.engine.ops.approximate_numbers import (
    SHRINK,
    Unary,
    bfloat,
    flush,
    flushed,
    flushed_operand,
    half,
    packed,
)
from softgpu.engine.ops.operation import Operation


@dataclass(frozen=True)
class Error:
    """A bound of the manual: ``unit`` is ``ulp`` (of the correctly rounded result), ``relative`` or ``absolute``; it
    holds for operands from ``low`` to ``high`` (of div: for magnitudes of the divisor); None: no bound on that side."""

    bound: float
    unit: str
    low: float | None = None
    high: float | None = None


_TWO_PI = 6.283185307179586

ERRORS: dict[str, tuple[Error, ...]] = {
    "rcp.approx.f32": (Error(1.0, "ulp"),),
    "sqrt.approx.f32": (Error(2.0**-23, "relative"),),
    "rsqrt.approx.f32": (Error(2.0**-22.9, "relative"),),
    "div.full.f32": (Error(2.0, "ulp"),),
    "div.approx.f32": (Error(2.0, "ulp", 2.0**-126, 2.0**126),),
    "ex2.approx.f32": (Error(2.0, "ulp"),),
    "lg2.approx.f32": (Error(2.0**-22, "absolute", 0.5, 2.0), Error(2.0**-22, "relative", None, 0.5),
                       Error(2.0**-22, "relative", 2.0, None)),
    "sin.approx.f32": (Error(2.0**-20.5, "absolute", -_TWO_PI, _TWO_PI),
                       Error(2.0**-14.7, "absolute", -50 * _TWO_PI, 50 * _TWO_PI)),
    "cos.approx.f32": (Error(2.0**-20.5, "absolute", -_TWO_PI, _TWO_PI),
                       Error(2.0**-14.7, "absolute", -50 * _TWO_PI, 50 * _TWO_PI)),
    "tanh.approx.f32": (Error(2.0**-11, "relative"),),
    "ex2.approx.f16": (Error(2.0**-9.9, "relative"),),
    "ex2.approx.bf16": (Error(2.0**-7, "relative"),),
    "tanh.approx.f16": (Error(2.0**-10.987, "absolute"),),
    "tanh.approx.bf16": (Error(2.0**-8, "absolute"),),
    # The manual gives none for these three: the precision of the upper word, and what CUDA's math library promises.
    "rcp.approx.f64": (Error(2.0**-20, "relative"),),
    "rsqrt.approx.ftz.f64": (Error(2.0**-20, "relative"),),
    "rsqrt.approx.f64": (Error(2.0**-51, "relative"),),
}
"""By opcode, ``.approx`` or ``.full``, and type, for ``.ftz`` and packed forms alike (PTX ISA 9.1, sections 9.7.3 and
9.7.4). Relative bounds are for normal results: a subnormal one may also be off by one unit in its last place."""


def errors(mnemonic: str) -> tuple[Error, ...]:
    """The bounds of a full mnemonic; KeyError when it has none."""
    return ERRORS.get(mnemonic) or ERRORS[mnemonic.replace(".ftz", "").removesuffix("x2")]


Binary = Callable[[Builder, Value, Value, int], Value]


def _unary(mnemonic: str, kind: str, emit: Unary, canonical: bool = False) -> Operation:
    return Operation(mnemonic, (kind,), (kind,), emit, canonical=canonical)


def _variant(function: Callable[[Builder, Value, int], Value], rounding: int) -> Unary:
    return lambda builder, value: function(builder, value, rounding)


def _single(rounding: int) -> Iterator[Operation]:
    """The forms for f32 with one operand."""

    def of(function: Callable[[Builder, Value, int], Value]) -> Unary:
        return _variant(function, rounding)

    functions: dict[str, tuple[Unary, Unary]] = {
        "ex2": (of(powers.ex2), of(powers.ex2_ftz)),
        "lg2": (of(powers.lg2), of(powers.lg2_ftz)),
        "sin": (of(trigonometry.sin), of(trigonometry.sin_ftz)),
        "cos": (of(trigonometry.cos), of(trigonometry.cos)),
        "rcp": (of(quotients.rcp), flushed(of(quotients.rcp))),
        # Roots and their reciprocals are never subnormal.
        "sqrt": (of(quotients.sqrt), flushed_operand(of(quotients.sqrt))),
        "rsqrt": (of(quotients.rsqrt), flushed_operand(of(quotients.rsqrt))),
    }
    for name, (plain, ftz) in functions.items():
        yield _unary(f"{name}.approx.f32", "f32", plain)
        yield _unary(f"{name}.approx.ftz.f32", "f32", ftz)
    yield _unary("tanh.approx.f32", "f32", of(powers.tanh))


def _quotients(rounding: int) -> Iterator[Operation]:
    for name, function in (("div.full", quotients.div_full), ("div.approx", quotients.div_approx)):
        def plain(builder: Builder, a: Value, b: Value, function: Binary = function) -> Value:
            return function(builder, a, b, rounding)

        def ftz(builder: Builder, a: Value, b: Value, function: Binary = function) -> Value:
            return flush(builder, function(builder, flush(builder, a), flush(builder, b), rounding))

        yield Operation(f"{name}.f32", ("f32", "f32"), ("f32",), plain, canonical=False)
        yield Operation(f"{name}.ftz.f32", ("f32", "f32"), ("f32",), ftz, canonical=False)


def _halves(rounding: int) -> Iterator[Operation]:
    """The 16-bit forms. The f32 function is that of rounding 0 in both variants: its last bits would not be seen."""
    for name, kind, function in (
        ("ex2.approx.f16", "f16", powers.ex2), ("ex2.approx.ftz.bf16", "bf16", powers.ex2_ftz),
        ("tanh.approx.f16", "f16", powers.tanh), ("tanh.approx.bf16", "bf16", powers.tanh),
    ):
        wrap = half if kind == "f16" else bfloat
        emit = wrap(_variant(function, 0), SHRINK[kind] if rounding else 1.0)
        yield _unary(name, kind, emit, canonical=True)
        yield _unary(f"{name}x2", f"{kind}x2", packed(emit), canonical=True)


def _double(rounding: int) -> Iterator[Operation]:
    yield _unary("rcp.approx.ftz.f64", "f64", _variant(quotients.rcp_upper_word, rounding), canonical=True)
    yield _unary("rsqrt.approx.ftz.f64", "f64", _variant(quotients.rsqrt_upper_word, rounding), canonical=True)
    yield _unary("rsqrt.approx.f64", "f64", _variant(quotients.rsqrt, rounding))


def operations(rounding: int = 0) -> Iterator[Operation]:
    """All of them, as the card of that number computes them; ValueError for a number that is not 0 or 1."""
    if rounding not in (0, 1):
        raise ValueError(f"rounding {rounding}: there are cards 0 and 1")
    yield from _single(rounding)
    yield from _quotients(rounding)
    yield from _halves(rounding)
    yield from _double(rounding)
