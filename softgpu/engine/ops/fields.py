"""Bit fields: bfe, bfi, bmsk, szext (PTX manual, "Integer Arithmetic Instructions").

All are built from shifts that clamp: ``~(-1 << n)`` is the mask of the n low bits for every n.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from softgpu.engine.ir import Builder, Value, bits, element
from softgpu.engine.ops.constants import integer_of
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.shifts import amount_as, shift_arithmetic, shift_logical


def mask_below(builder: Builder, count: Value) -> Value:
    """The ``count`` low bits set, all of them from the width on; of the type of ``count``."""
    known = integer_of(count)
    if known is not None:
        return builder.like((1 << min(known, bits(count.type))) - 1, count)
    return builder.invert(shift_logical(builder, "shl", builder.like(-1, count), count))


def extend_sign(builder: Builder, a: Value, count: Value) -> Value:
    """The ``count`` low bits of ``a`` as a signed number; 0 for no bits, ``a`` itself from the width on."""
    width = builder.like(bits(a.type), count)
    known = integer_of(count)
    if known is None:
        rest = builder.intrinsic("llvm.usub.sat", element(a.type), width, count)
    else:
        rest = builder.like(max(bits(a.type) - known, 0), count)
    return shift_arithmetic(builder, shift_logical(builder, "shl", a, rest), rest)


def _octet(builder: Builder, value: Value, element_type: str) -> Value:
    """The low eight bits of a position or length, as an amount to shift by."""
    known = integer_of(value)
    low = builder.and_(value, builder.like(0xFF, value)) if known is None else builder.like(known & 0xFF, value)
    return amount_as(builder, low, element_type)


def _bfe(signed: bool, builder: Builder, a: Value, position: Value, length: Value) -> Value:
    start, count = (_octet(builder, v, element(a.type)) for v in (position, length))
    if signed:
        return extend_sign(builder, shift_arithmetic(builder, a, start), count)
    return builder.and_(shift_logical(builder, "lshr", a, start), mask_below(builder, count))


def _bfi(builder: Builder, a: Value, b: Value, position: Value, length: Value) -> Value:
    start, count = (_octet(builder, v, element(a.type)) for v in (position, length))
    mask = shift_logical(builder, "shl", mask_below(builder, count), start)
    moved = shift_logical(builder, "shl", a, start)
    return builder.or_(builder.and_(moved, mask), builder.and_(b, builder.invert(mask)))


def _wrapped(builder: Builder, mode: str, value: Value) -> Value:
    """A number of bits modulo 32 with .wrap; .clamp is what the shifts do."""
    return builder.and_(value, builder.like(31, value)) if mode == "wrap" else value


def _bmsk(mode: str, builder: Builder, position: Value, width: Value) -> Value:
    start, count = (_wrapped(builder, mode, v) for v in (position, width))
    return shift_logical(builder, "shl", mask_below(builder, count), start)


def _szext(mode: str, signed: bool, builder: Builder, a: Value, width: Value) -> Value:
    count = _wrapped(builder, mode, width)
    return extend_sign(builder, a, count) if signed else builder.and_(a, mask_below(builder, count))


def operations() -> Iterator[Operation]:
    """bfe, bfi, bmsk, szext."""
    for kind in ("u32", "u64", "s32", "s64"):
        yield Operation(f"bfe.{kind}", (kind, "u32", "u32"), (kind,), partial(_bfe, kind[0] == "s"))
    for kind in ("b32", "b64"):
        yield Operation(f"bfi.{kind}", (kind, kind, "u32", "u32"), (kind,), _bfi)
    for mode in ("clamp", "wrap"):
        yield Operation(f"bmsk.{mode}.b32", ("b32", "b32"), ("b32",), partial(_bmsk, mode))
        for kind in ("u32", "s32"):
            emit = partial(_szext, mode, kind == "s32")
            yield Operation(f"szext.{mode}.{kind}", (kind, "u32"), (kind,), emit)
