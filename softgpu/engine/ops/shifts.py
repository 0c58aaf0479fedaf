"""Shifts: shl, shr, shf (PTX manual, "Logic and Shift Instructions").

LLVM's shifts are poison from the width on, PTX's amounts are clamped. The select forms below are those that LLVM turns
into the vector shifts of x86, which clamp by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from softgpu.engine.ir import Builder, Value, bits
from softgpu.engine.ops.constants import integer_of
from softgpu.engine.ops.operation import Operation


def shift_logical(builder: Builder, operation: str, a: Value, amount: Value) -> Value:
    """``shl`` or ``lshr`` of any unsigned amount (of the type of ``a``): zero from the width on."""
    width = bits(a.type)
    known = integer_of(amount)
    if known is not None:
        return builder.binary(operation, a, amount) if known < width else builder.zero(a.type)
    inside = builder.icmp("ult", amount, builder.like(width, amount))
    return builder.select(inside, builder.binary(operation, a, amount), builder.zero(a.type))


def shift_arithmetic(builder: Builder, a: Value, amount: Value) -> Value:
    """``ashr`` of any unsigned amount (of the type of ``a``): the sign in all bits from the width on."""
    last = bits(a.type) - 1
    known = integer_of(amount)
    if known is not None:
        return builder.ashr(a, builder.like(min(known, last), a))
    return builder.ashr(a, builder.intrinsic("llvm.umin", bits_type(a), amount, builder.like(last, amount)))


def bits_type(a: Value) -> str:
    """The integer type of the elements of an integer."""
    return f"i{bits(a.type)}"


def amount_as(builder: Builder, amount: Value, element_type: str) -> Value:
    """An amount of 32 bits extended to ``element_type``, constants without an instruction."""
    known = integer_of(amount)
    if known is not None:
        return builder.like(known, amount, element_type)
    return builder.zext(amount, element_type)


def _shift(operation: str, builder: Builder, a: Value, amount: Value) -> Value:
    """16-bit shifts go through 32 bits, which plain AVX2 can shift by vectors of amounts."""
    if bits(a.type) > 16:
        return _shift_wide(operation, builder, a, amount_as(builder, amount, bits_type(a)))
    wide = builder.resize(a, "i32", signed=operation == "ashr")
    return builder.trunc(_shift_wide(operation, builder, wide, amount), "i16")


def _shift_wide(operation: str, builder: Builder, a: Value, amount: Value) -> Value:
    if operation == "ashr":
        return shift_arithmetic(builder, a, amount)
    return shift_logical(builder, operation, a, amount)


def _funnel(operation: str, clamps: bool, builder: Builder, low: Value, high: Value, amount: Value) -> Value:
    """``llvm.fshl`` and ``llvm.fshr`` take the amount modulo 32, as .wrap; with .clamp 32 and more shift by 32."""
    shifted = builder.intrinsic(f"llvm.{operation}", "i32", high, low, amount)
    if not clamps:
        return shifted
    inside = builder.icmp("ult", amount, builder.like(32, amount))
    return builder.select(inside, shifted, low if operation == "fshl" else high)


def operations() -> Iterator[Operation]:
    """shl, shr, shf."""
    for width in (16, 32, 64):
        kind = f"b{width}"
        yield Operation(f"shl.{kind}", (kind, "u32"), (kind,), partial(_shift, "shl"))
        for letter, operation in (("b", "lshr"), ("u", "lshr"), ("s", "ashr")):
            kind = f"{letter}{width}"
            yield Operation(f"shr.{kind}", (kind, "u32"), (kind,), partial(_shift, operation))
    for side, operation in (("l", "fshl"), ("r", "fshr")):
        for mode in ("clamp", "wrap"):
            emit = partial(_funnel, operation, mode == "clamp")
            yield Operation(f"shf.{side}.{mode}.b32", ("b32", "b32", "b32"), ("b32",), emit)
