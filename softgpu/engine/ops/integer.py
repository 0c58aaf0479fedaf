"""Integer arithmetic of one width: add, sub, min, max, abs, neg, sad, and division from its own file.

Source: PTX manual, "Integer Arithmetic Instructions". Products and carries are in ``wide.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from softgpu.engine.ir import Builder, Value, element, lanes
from softgpu.engine.ops import divide
from softgpu.engine.ops.operation import Operation

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
_SIGNED = ("s16", "s32", "s64")
_PACKED = ("u16x2", "s16x2")


def halves(builder: Builder, a: Value) -> Value:
    """Packed 16-bit values of 32-bit lanes as a vector of twice the lanes (2 for a scalar)."""
    return builder.reinterpret(a, f"<{2 * (lanes(a.type) or 1)} x i16>")


def _sum(operation: str, packed: bool, builder: Builder, a: Value, b: Value) -> Value:
    if not packed:
        return builder.binary(operation, a, b)
    result = builder.binary(operation, halves(builder, a), halves(builder, b))
    return builder.reinterpret(result, a.type)


def _saturated(operation: str, builder: Builder, a: Value, b: Value) -> Value:
    return builder.intrinsic(f"llvm.{operation}.sat", "i32", a, b)


def _extreme(operation: str, packed: bool, relu: bool, builder: Builder, a: Value, b: Value) -> Value:
    """``operation``: smin, smax, umin, umax; ``relu`` replaces negative results by zero."""
    x, y = (halves(builder, a), halves(builder, b)) if packed else (a, b)
    kind = element(x.type)
    result = builder.intrinsic(f"llvm.{operation}", kind, x, y)
    if relu:
        result = builder.intrinsic("llvm.smax", kind, result, builder.zero(result.type))
    return builder.reinterpret(result, a.type)


def _abs(builder: Builder, a: Value) -> Value:
    """The smallest integer stays as it is."""
    return builder.intrinsic("llvm.abs", element(a.type), a, extra=(builder.constant(0, "i1"),))


def _neg(builder: Builder, a: Value) -> Value:
    return builder.negate(a)


def _sad(letter: str, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """c + |a - b|, the difference as the larger minus the smaller."""
    kind = element(a.type)
    larger = builder.intrinsic(f"llvm.{letter}max", kind, a, b)
    smaller = builder.intrinsic(f"llvm.{letter}min", kind, a, b)
    return builder.add(c, builder.sub(larger, smaller))


def _own() -> Iterator[Operation]:
    for kind in (*INTEGERS, *_PACKED):
        packed = kind in _PACKED
        for name in ("add",) if packed else ("add", "sub"):
            yield Operation(f"{name}.{kind}", (kind, kind), (kind,), partial(_sum, name, packed))
        for name in ("min", "max"):
            emit = partial(_extreme, f"{kind[0]}{name}", packed, False)
            yield Operation(f"{name}.{kind}", (kind, kind), (kind,), emit)
    for name in ("add", "sub"):
        yield Operation(f"{name}.sat.s32", ("s32", "s32"), ("s32",), partial(_saturated, f"s{name}"))
    for name in ("min", "max"):
        for kind in ("s32", "s16x2"):
            emit = partial(_extreme, f"s{name}", kind in _PACKED, True)
            yield Operation(f"{name}.relu.{kind}", (kind, kind), (kind,), emit)
    for kind in _SIGNED:
        yield Operation(f"abs.{kind}", (kind,), (kind,), _abs)
        yield Operation(f"neg.{kind}", (kind,), (kind,), _neg)
    for kind in INTEGERS:
        yield Operation(f"sad.{kind}", (kind, kind, kind), (kind,), partial(_sad, kind[0]))


def operations() -> Iterator[Operation]:
    """All of them."""
    yield from _own()
    yield from divide.operations()
