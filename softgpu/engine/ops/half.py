"""Arithmetic in half precision: add, sub, mul and fma of f16, bf16 and their packed pairs, with .ftz, .sat and .relu.

Source: PTX ISA, "Half Precision Floating Point Instructions". All is done in f32 and rounded once more. For sums and
products that gives the same as rounding once, as f32 has more than twice the digits (Figueroa 1995). A fused
multiply-add does not have that luck: its product is exact in f32, so its error is that of one sum, and the result is
rounded to odd in between. (A bf16 product can leave the range of f32 below, but then it is less than half of the last
digit of any bf16 number, and never close enough to that half for its own rounding to matter: 65535 * 2**k, the only
16-digit pattern that close, is not a product of two 8-digit numbers.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.narrow import PACKED, flushed, halves, joined, narrowed, relu, widened
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import join, odd, saturate, two_sum_error

_FLAGS = (False, True)
_F16 = ("f16", "f16x2")
_BF16 = ("bf16", "bf16x2")
_STEPS = {"add": "fadd", "sub": "fsub", "mul": "fmul"}


def _fused(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z rounded to odd in f32."""
    total = b.fma(x, y, z)
    return odd(b, total, two_sum_error(b, b.binary("fmul", x, y), z, total))


def _emit(b: Builder, *sources: Value, family: str, kind: str, ftz: bool = False, sat: bool = False,
          clamp: bool = False) -> Value:
    """``clamp``: ``.relu``."""
    count = lanes(sources[0].type)
    half = PACKED.get(kind, kind)
    operands = [halves(b, x) for x in sources] if kind in PACKED else list(sources)
    if ftz:
        operands = [flushed(b, x, half) for x in operands]
    numbers = [widened(b, x, half) for x in operands]
    value = _fused(b, *numbers) if family == "fma" else b.binary(_STEPS[family], numbers[0], numbers[1])
    if sat:
        value = saturate(b, value)
    result = narrowed(b, value, half, canonical=not sat)
    if ftz:
        result = flushed(b, result, half)
    if clamp:
        result = relu(b, result)
    return joined(b, result, count) if kind in PACKED else result


def _operation(parts: tuple[str, ...], arity: int, **options: Any) -> Operation:
    kind = parts[-1]
    return Operation(join(*parts), (kind,) * arity, (kind,), partial(_emit, family=parts[0], kind=kind, **options))


def _family(family: str, arity: int, written: tuple[str, ...]) -> Iterator[Operation]:
    for kind, rounding, ftz, sat in product(_F16, written, _FLAGS, _FLAGS):
        parts = (family, rounding, "ftz" if ftz else "", "sat" if sat else "", kind)
        yield _operation(parts, arity, ftz=ftz, sat=sat)
    for kind, rounding in product(_BF16, written):
        yield _operation((family, rounding, kind), arity)


def operations() -> Iterator[Operation]:
    for family in _STEPS:
        yield from _family(family, 2, ("", "rn"))
    yield from _family("fma", 3, ("rn",))
    for kind, ftz in product(_F16, _FLAGS):
        yield _operation(("fma", "rn", "ftz" if ftz else "", "relu", kind), 3, ftz=ftz, clamp=True)
    for kind in _BF16:
        yield _operation(("fma", "rn", "relu", kind), 3, clamp=True)
