"""Arithmetic in f32 and f64: add, sub, mul, fma, mad, div, rcp, sqrt in all rounding modes, with .ftz and .sat.

Source: PTX ISA, "Floating Point Instructions" and "Mixed Precision Floating Point Instructions". NaN results have
whatever bits come out of the machine: they are not ``canonical``. Saturated results are never NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from softgpu.engine.ir import Builder, Value, element, lanes
from softgpu.engine.ops.directed import DIRECTED, by_instruction
from softgpu.engine.ops.narrow import halves, joined, widened
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import ROUNDINGS, flush, join, pattern, saturate

_FLAGS = (False, True)
_ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3, "div": 2, "rcp": 1, "sqrt": 1}


def _add(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("fadd", x, y)


def _sub(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("fsub", x, y)


def _mul(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("fmul", x, y)


def _fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    return b.fma(x, y, z)


def _div(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("fdiv", x, y)


def _rcp(b: Builder, x: Value) -> Value:
    return b.binary("fdiv", b.like(1.0, x), x)


def _sqrt(b: Builder, x: Value) -> Value:
    return b.intrinsic("llvm.sqrt", element(x.type), x)


NEAREST: dict[str, Callable[..., Value]] = {
    "add": _add, "sub": _sub, "mul": _mul, "fma": _fma, "mad": _fma, "div": _div, "rcp": _rcp, "sqrt": _sqrt,
}
"""Families rounded to nearest even: one machine instruction each. Floating-point mad is fma (sm_20 and later)."""


def _emit(b: Builder, *sources: Value, family: str, rounding: str = "rn", ftz: bool = False, sat: bool = False,
          kind: str = "f32") -> Value:
    """``kind``: the type of all sources but the last, in mixed precision; they are widened."""
    operands = [widened(b, x, kind) for x in sources[:-1]] + [sources[-1]] if kind != "f32" else list(sources)
    if ftz:
        operands = [flush(b, x) for x in operands]
    if rounding == "rn":
        result = NEAREST[family](b, *operands)
    else:
        result = by_instruction(b, family, rounding, *operands) or DIRECTED[family](b, rounding, *operands)
    if ftz:
        result = flush(b, result)
    return saturate(b, result) if sat else result


def _emit_pair(b: Builder, *sources: Value, **options: Any) -> Value:
    """f32x2: both halves at once. A register of 64 bits is not looked at for NaNs later, so they are canonical here."""
    count = lanes(sources[0].type)
    result = _emit(b, *[b.bitcast(halves(b, x), "float") for x in sources], **options)
    have = pattern(b, result)
    return joined(b, b.select(b.fcmp("uno", result, result), b.like(0x7FFFFFFF, have), have), count)


def _operation(parts: tuple[str, ...], sources: tuple[str, ...], sat: bool = False, **options: Any) -> Operation:
    emit = partial(_emit, family=parts[0], sat=sat, **options)
    return Operation(join(*parts), sources, (sources[-1],), emit, canonical=sat)


def _same_type(family: str, default: bool, sat: bool) -> Iterator[Operation]:
    """``default``: the rounding may be left out."""
    arity = _ARITY[family]
    for written in ("", *ROUNDINGS) if default else ROUNDINGS:
        rounding = written or "rn"
        for ftz, clamp in product(_FLAGS, _FLAGS if sat else (False,)):
            parts = (family, written, "ftz" if ftz else "", "sat" if clamp else "", "f32")
            yield _operation(parts, ("f32",) * arity, rounding=rounding, ftz=ftz, sat=clamp)
        yield _operation((family, written, "f64"), ("f64",) * arity, rounding=rounding)


def _mixed(family: str, default: bool) -> Iterator[Operation]:
    """Sources in half precision, the last one and the result in f32."""
    for written, sat, kind in product(("", *ROUNDINGS) if default else ROUNDINGS, _FLAGS, ("f16", "bf16")):
        parts = (family, written, "sat" if sat else "", "f32", kind)
        sources = (*(kind,) * (_ARITY[family] - 1), "f32")
        yield _operation(parts, sources, rounding=written or "rn", sat=sat, kind=kind)


def _pairs(family: str, default: bool) -> Iterator[Operation]:
    for written, ftz in product(("", *ROUNDINGS) if default else ROUNDINGS, _FLAGS):
        mnemonic = join(family, written, "ftz" if ftz else "", "f32x2")
        emit = partial(_emit_pair, family=family, rounding=written or "rn", ftz=ftz)
        yield Operation(mnemonic, ("f32x2",) * _ARITY[family], ("f32x2",), emit)


def operations() -> Iterator[Operation]:
    for family in ("add", "sub", "mul"):
        yield from _same_type(family, default=True, sat=True)
        yield from _pairs(family, default=True)
    for family in ("fma", "mad"):
        yield from _same_type(family, default=False, sat=True)
    for family in ("div", "rcp", "sqrt"):
        yield from _same_type(family, default=False, sat=False)
    yield from _pairs("fma", default=False)
    yield from _mixed("add", default=True)
    yield from _mixed("sub", default=True)
    yield from _mixed("fma", default=False)
