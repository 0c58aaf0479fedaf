"""cvt with .relu or .satfinite, to tf32, and to packed pairs of f16 and bf16.

Source: PTX ISA, "cvt". Of two f32 sources the first goes to the upper half of the result. ``.satfinite`` replaces
infinity by the largest finite number, ``.relu`` what is negative by +0; NaN stays the canonical NaN through both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, element
from softgpu.engine.ops.narrow import EXPONENTS, PACKED, narrowed, relu
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import join, pattern

_FLAGS = (False, True)


def _to_tf32(b: Builder, x: Value, mode: str) -> Value:
    """f32 with 13 digits less, as bits in i32. ``rna``: to nearest, ties away from zero."""
    have = pattern(b, x)
    if mode == "rn":
        last = b.and_(b.lshr(have, b.like(13, have)), b.like(1, have))
        rounded = b.add(b.add(have, b.like(0xFFF, have)), last)
    else:
        rounded = b.add(have, b.like(0x1000, have)) if mode == "rna" else have
    return b.select(b.fcmp("uno", x, x), b.like(0x7FFFFFFF, have), b.and_(rounded, b.like(-0x2000, have)))


def _finite(b: Builder, x: Value, infinity: int, step: int) -> Value:
    """Bits with both infinities replaced by the largest number, ``step`` below."""
    sign = 1 << (int(element(x.type)[1:]) - 1)
    infinite = b.icmp("eq", b.and_(x, b.like(sign - 1, x)), b.like(infinity, x))
    return b.select(infinite, b.sub(x, b.like(step, x)), x)


def _one(b: Builder, x: Value, *, to: str, mode: str, positive: bool, finite: bool) -> Value:
    """One f32 number; ``positive``: ``.relu``, ``finite``: ``.satfinite``."""
    result = _to_tf32(b, x, mode) if to == "tf32" else narrowed(b, x, to, mode)
    if finite:
        result = _finite(b, result, *((0x7F800000, 0x2000) if to == "tf32" else (EXPONENTS[to], 1)))
    return relu(b, result) if positive else result


def _pair(b: Builder, x: Value, y: Value, *, half: str, mode: str, positive: bool, finite: bool) -> Value:
    upper, lower = (_one(b, v, to=half, mode=mode, positive=positive, finite=finite) for v in (x, y))
    upper = b.zext(upper, "i32")
    return b.or_(b.shl(upper, b.like(16, upper)), b.zext(lower, "i32"))


def orders(positive: bool, finite: bool) -> tuple[str, ...]:
    """The manual writes .relu and .satfinite in both orders."""
    if positive and finite:
        return ("relu.satfinite", "satfinite.relu")
    return ("relu" if positive else "satfinite" if finite else "",)


def operations() -> Iterator[Operation]:
    for mode, positive, finite in product(("rn", "rz"), _FLAGS, _FLAGS):
        for order in orders(positive, finite):
            for to in ("f16", "bf16", "tf32"):
                if to == "tf32" or order:  # without modifiers f16 and bf16 are plain conversions
                    emit = partial(_one, to=to, mode=mode, positive=positive, finite=finite)
                    yield Operation(join("cvt", mode, order, to, "f32"), ("f32",), (to,), emit)
            for to, half in PACKED.items():
                pair = partial(_pair, half=half, mode=mode, positive=positive, finite=finite)
                yield Operation(join("cvt", mode, order, to, "f32"), ("f32", "f32"), (to,), pair)
    for finite in _FLAGS:
        emit = partial(_one, to="tf32", mode="rna", positive=False, finite=finite)
        yield Operation(join("cvt", "rna", "satfinite" if finite else "", "tf32.f32"), ("f32",), ("tf32",), emit)
