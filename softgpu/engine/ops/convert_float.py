"""cvt between f16, bf16, f32 and f64, and to integers in the same format.

Source: PTX ISA, "cvt". ``.ftz`` concerns f32 only, as source and as result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops.narrow import EXPONENTS, NAN, narrowed, widened
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import INTEGER_ROUNDINGS, ROUNDINGS, flush, integral, join, saturate, single, wide

_FLAGS = (False, True)
_FORMATS = ("f16", "bf16", "f32", "f64")
_ROUNDED_BRAIN = (("bf16", "f32"), ("bf16", "f64"))
"""Exact conversions that assemblers take with a rounding too, which then has nothing to do."""
_EXACT = {("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")}
"""(source, destination) pairs that lose nothing and take no rounding modifier."""


def _emit(b: Builder, x: Value, *, source: str, to: str, mode: str, ftz: bool, sat: bool) -> Value:
    if source == to and not mode and not sat and to in EXPONENTS:
        is_nan = b.icmp("ugt", b.and_(x, b.like(NAN, x)), b.like(EXPONENTS[to], x))
        return b.select(is_nan, b.like(NAN, x), x)
    value = widened(b, x, source) if source in EXPONENTS else x
    if ftz and source == "f32":
        value = flush(b, value)
    if mode in INTEGER_ROUNDINGS:
        value, mode = integral(b, value, mode), "rn"
    if to == "f64" and source != "f64":
        value = wide(b, value)
    if to != "f64" and source == "f64":
        value = single(b, value, mode if to == "f32" else "odd")
    if ftz and to == "f32" and source != "f32":
        value = flush(b, value)
    if sat:  # before a narrowing, which keeps 0 and 1
        value = saturate(b, value)
    return narrowed(b, value, to, mode or "rn", canonical=not sat) if to in EXPONENTS else value


def _roundings(source: str, to: str) -> tuple[str, ...]:
    if source == to:
        return ("", *INTEGER_ROUNDINGS)
    return ("",) if (source, to) in _EXACT else ROUNDINGS


def operations() -> Iterator[Operation]:
    for to, source in product(_FORMATS, repeat=2):
        flushes = _FLAGS if "f32" in (to, source) else (False,)
        saturations = _FLAGS if "bf16" not in (to, source) else (False,)
        for mode, ftz, sat in product(_roundings(source, to), flushes, saturations):
            mnemonic = join("cvt", mode, "ftz" if ftz else "", "sat" if sat else "", to, source)
            emit = partial(_emit, source=source, to=to, mode=mode, ftz=ftz, sat=sat)
            yield Operation(mnemonic, (source,), (to,), emit, canonical=sat or to in EXPONENTS)
    for source, to in _ROUNDED_BRAIN:
        for mode, ftz in product(ROUNDINGS, _FLAGS if to == "f32" else (False,)):
            emit = partial(_emit, source=source, to=to, mode="", ftz=ftz, sat=False)
            mnemonic = join("cvt", mode, "ftz" if ftz else "", to, source)
            yield Operation(mnemonic, (source,), (to,), emit, canonical=False)
