"""Products, and sums with carries: mul, mad, mul24, mad24, add.cc, addc, sub.cc, subc, mad.cc, madc.

Source: PTX manual, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic Instructions". The
carry flag is the carry out of an addition and the borrow of a subtraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, bits, element, lanes
from softgpu.engine.ops.operation import Operation

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_CARRYING = ("u32", "s32", "u64", "s64")

Product = Callable[[Builder, Value, Value], Value]


def multiply_low(builder: Builder, a: Value, b: Value) -> Value:
    """The lower half of the product."""
    return builder.mul(a, b)


def multiply_wide(signed: bool, builder: Builder, a: Value, b: Value) -> Value:
    """The whole product, in twice the width."""
    wider = f"i{2 * bits(a.type)}"
    return builder.mul(*(builder.resize(v, wider, signed) for v in (a, b)))


def multiply_high(signed: bool, builder: Builder, a: Value, b: Value) -> Value:
    """The upper half of the product."""
    width = bits(a.type)
    if width == 64 and lanes(a.type):
        return _high_by_parts(signed, builder, a, b)
    whole = multiply_wide(signed, builder, a, b)
    return builder.trunc(builder.lshr(whole, builder.like(width, whole)), element(a.type))


def _high_by_parts(signed: bool, builder: Builder, a: Value, b: Value) -> Value:
    """Four products of 32-bit halves, which vectors have: (2^32 - 1)^2 + 2 (2^32 - 1) < 2^64, nothing overflows.

    The usual forms with fewer additions are ones that LLVM recognises and turns into 128-bit products, lane by lane.
    """
    low_half, half = builder.like(0xFFFFFFFF, a), builder.like(32, a)

    def low(value: Value) -> Value:
        return builder.and_(value, low_half)

    def high(value: Value) -> Value:
        return builder.lshr(value, half)

    a_low, a_high, b_low, b_high = low(a), high(a), low(b), high(b)
    one, two = builder.mul(a_high, b_low), builder.add(builder.mul(a_low, b_high), high(builder.mul(a_low, b_low)))
    carry = high(builder.add(low(one), low(two)))
    result = builder.add(builder.add(builder.mul(a_high, b_high), builder.add(high(one), high(two))), carry)
    if not signed:
        return result
    # A negative factor was taken as itself plus 2^64.
    sign = builder.like(63, a)
    for factor, other in ((a, b), (b, a)):
        result = builder.sub(result, builder.and_(builder.ashr(factor, sign), other))
    return result


def multiply_24(signed: bool, high: bool, builder: Builder, a: Value, b: Value) -> Value:
    """Bits 0 to 31 or 16 to 47 of the product of the low 24 bits."""
    eight = builder.like(8, a)
    shift = "ashr" if signed else "lshr"
    x, y = (builder.binary(shift, builder.shl(v, eight), eight) for v in (a, b))
    if not high:
        return builder.mul(x, y)
    whole = multiply_wide(signed, builder, x, y)
    return builder.trunc(builder.lshr(whole, builder.like(16, whole)), "i32")


def _mad(multiply: Product, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    return builder.add(multiply(builder, a, b), c)


def _mad_saturated(multiply: Product, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    return builder.intrinsic("llvm.sadd.sat", "i32", multiply(builder, a, b), c)


def _add_carry(builder: Builder, a: Value, b: Value, carry: Value | None, out: bool) -> Value | tuple[Value, Value]:
    partial_sum = builder.add(a, b)
    carried = builder.icmp("ult", partial_sum, a) if out else None
    total = partial_sum
    if carry is not None:
        total = builder.add(partial_sum, builder.zext(carry, element(a.type)))
        if carried is not None:
            carried = builder.or_(carried, builder.icmp("ult", total, partial_sum))
    return total if carried is None else (total, carried)


def _subtract_borrow(builder: Builder, a: Value, b: Value, borrow: Value | None,
                     out: bool) -> Value | tuple[Value, Value]:
    difference = builder.sub(a, b)
    borrowed = builder.icmp("ult", a, b) if out else None
    total = difference
    if borrow is not None:
        taken = builder.zext(borrow, element(a.type))
        total = builder.sub(difference, taken)
        if borrowed is not None:
            borrowed = builder.or_(borrowed, builder.icmp("ult", difference, taken))
    return total if borrowed is None else (total, borrowed)


def _sum(subtract: bool, out: bool, builder: Builder, a: Value, b: Value,
         carry: Value | None = None) -> Value | tuple[Value, Value]:
    return (_subtract_borrow if subtract else _add_carry)(builder, a, b, carry, out)


def _mad_carry(multiply: Product, out: bool, builder: Builder, a: Value, b: Value, c: Value,
               carry: Value | None = None) -> Value | tuple[Value, Value]:
    return _add_carry(builder, multiply(builder, a, b), c, carry, out)


def _products() -> Iterator[Operation]:
    for kind in INTEGERS:
        signed = kind[0] == "s"
        parts: list[tuple[str, str, Product]] = [
            ("lo", kind, multiply_low), ("hi", kind, partial(multiply_high, signed)),
        ]
        if kind in _WIDER:
            parts.append(("wide", _WIDER[kind], partial(multiply_wide, signed)))
        for part, result, multiply in parts:
            yield Operation(f"mul.{part}.{kind}", (kind, kind), (result,), multiply)
            yield Operation(f"mad.{part}.{kind}", (kind, kind, result), (result,), partial(_mad, multiply))
    saturated = partial(_mad_saturated, partial(multiply_high, True))
    yield Operation("mad.hi.sat.s32", ("s32", "s32", "s32"), ("s32",), saturated)


def _products_24() -> Iterator[Operation]:
    for kind, part in product(("u32", "s32"), ("lo", "hi")):
        multiply = partial(multiply_24, kind == "s32", part == "hi")
        yield Operation(f"mul24.{part}.{kind}", (kind, kind), (kind,), multiply)
        yield Operation(f"mad24.{part}.{kind}", (kind, kind, kind), (kind,), partial(_mad, multiply))
    saturated = partial(_mad_saturated, partial(multiply_24, True, True))
    yield Operation("mad24.hi.sat.s32", ("s32", "s32", "s32"), ("s32",), saturated)


def _carries() -> Iterator[Operation]:
    for kind in _CARRYING:
        for name, subtract in (("add", False), ("sub", True)):
            yield Operation(f"{name}.cc.{kind}", (kind, kind), (kind, "cc"), partial(_sum, subtract, True))
            for suffix, results in (("", (kind,)), (".cc", (kind, "cc"))):
                emit = partial(_sum, subtract, bool(suffix))
                yield Operation(f"{name}c{suffix}.{kind}", (kind, kind, "cc"), results, emit)
        high = partial(multiply_high, kind[0] == "s")
        for part, multiply in (("lo", multiply_low), ("hi", high)):
            emit = partial(_mad_carry, multiply, True)
            yield Operation(f"mad.{part}.cc.{kind}", (kind, kind, kind), (kind, "cc"), emit)
            for suffix, results in (("", (kind,)), (".cc", (kind, "cc"))):
                emit = partial(_mad_carry, multiply, bool(suffix))
                yield Operation(f"madc.{part}{suffix}.{kind}", (kind, kind, kind, "cc"), results, emit)


def operations() -> Iterator[Operation]:
    """All of them."""
    yield from _products()
    yield from _products_24()
    yield from _carries()
