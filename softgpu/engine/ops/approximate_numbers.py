"""Pieces that the approximate functions share: subnormals, signs, clamps, polynomials, 16-bit formats.

All take and give values of any number of lanes, scalars included, and use nothing but IEEE 754 operations, so that
every machine computes the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softgpu.engine.ir import Builder, Value, bits, element, lanes

Unary = Callable[[Builder, Value], Value]

SIGN = {"float": 0x80000000, "double": 1 << 63}
INTEGER = {"float": "i32", "double": "i64"}
SMALLEST_NORMAL = {"float": 2.0**-126, "double": 2.0**-1022}
INFINITY = float("inf")


def pattern(builder: Builder, value: Value) -> Value:
    """The bits of a float as an integer."""
    return builder.bitcast(value, INTEGER[element(value.type)])


def magnitude(builder: Builder, value: Value) -> Value:
    """The value without its sign; NaNs stay NaNs."""
    cleared = builder.and_(pattern(builder, value), _mask(builder, value, SIGN[element(value.type)] - 1))
    return builder.bitcast(cleared, element(value.type))


def sign_bit(builder: Builder, value: Value) -> Value:
    """The bits of a zero of the same sign, as an integer."""
    return builder.and_(pattern(builder, value), _mask(builder, value, SIGN[element(value.type)]))


def with_sign(builder: Builder, value: Value, sign: Value) -> Value:
    """The value with its sign flipped where ``sign`` (of :func:`sign_bit`) is set."""
    return builder.bitcast(builder.xor(pattern(builder, value), sign), element(value.type))


def _mask(builder: Builder, value: Value, number: int) -> Value:
    return builder.constant(number, INTEGER[element(value.type)], lanes(value.type))


def flush(builder: Builder, value: Value) -> Value:
    """Subnormals replaced by a zero of their sign, as ``.ftz`` does with operands and results."""
    kind = element(value.type)
    tiny = builder.fcmp("olt", magnitude(builder, value), builder.like(SMALLEST_NORMAL[kind], value))
    zero = builder.bitcast(sign_bit(builder, value), kind)
    return builder.select(tiny, zero, value)


def flushed(function: Unary) -> Unary:
    """The function with operand and result flushed."""
    return lambda builder, value: flush(builder, function(builder, flush(builder, value)))


def flushed_operand(function: Unary) -> Unary:
    """The function with its operand flushed."""
    return lambda builder, value: function(builder, flush(builder, value))


def at_most(builder: Builder, value: Value, limit: float) -> Value:
    """The smaller of value and limit; a NaN stays (the order of operands is that of x86's ``minps``)."""
    bound = builder.like(limit, value)
    return builder.select(builder.fcmp("olt", bound, value), bound, value)


def at_least(builder: Builder, value: Value, limit: float) -> Value:
    """The larger of value and limit; a NaN stays."""
    bound = builder.like(limit, value)
    return builder.select(builder.fcmp("ogt", bound, value), bound, value)


def polynomial(builder: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """c[0] + c[1] x + c[2] x**2 + ..., by Horner's rule with fused multiply-adds."""
    result = builder.like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        result = builder.fma(result, x, builder.like(coefficient, x))
    return result


def toward_zero(builder: Builder, value: Value, too_large: Value) -> Value:
    """The next number toward zero where the condition holds; the value is a finite float that is not zero there."""
    step = builder.zext(too_large, INTEGER[element(value.type)])
    return builder.bitcast(builder.sub(pattern(builder, value), step), element(value.type))


# 16-bit formats: computed in f32, rounded once at the end. ``shrink`` multiplies the result before it is rounded, which
# moves the borders between neighbours by a quarter of their distance at most: another card's last bits.

SHRINK = {"f16": 1.0 - 2.0**-13, "bf16": 1.0 - 2.0**-10}


def half(function: Unary, shrink: float) -> Unary:
    """The function on f16 bits (``i16``), through f32."""

    def emit(builder: Builder, value: Value) -> Value:
        wide = builder.cast("fpext", builder.bitcast(value, "half"), "float")
        result = _scaled(builder, function(builder, wide), shrink)
        narrow = builder.bitcast(builder.cast("fptrunc", result, "half"), "i16")
        return _canonical(builder, result, narrow)

    return emit


def bfloat(function: Unary, shrink: float) -> Unary:
    """The function on bf16 bits (``i16``), through f32. Rounded with integers: processors that have an instruction for
    it flush subnormals there."""

    def emit(builder: Builder, value: Value) -> Value:
        count = lanes(value.type)
        wide = builder.shl(builder.zext(value, "i32"), builder.constant(16, "i32", count))
        result = _scaled(builder, function(builder, builder.bitcast(wide, "float")), shrink)
        exact = pattern(builder, result)
        sixteen = builder.constant(16, "i32", count)
        odd = builder.and_(builder.lshr(exact, sixteen), builder.constant(1, "i32", count))
        rounded = builder.add(builder.add(exact, builder.constant(0x7FFF, "i32", count)), odd)
        return _canonical(builder, result, builder.trunc(builder.lshr(rounded, sixteen), "i16"))

    return emit


def _scaled(builder: Builder, value: Value, shrink: float) -> Value:
    return value if shrink == 1.0 else builder.binary("fmul", value, builder.like(shrink, value))


def _canonical(builder: Builder, exact: Value, narrow: Value) -> Value:
    """0x7fff where the exact result is a NaN."""
    return builder.select(builder.fcmp("uno", exact, exact), builder.like(0x7FFF, narrow), narrow)


def packed(function: Unary) -> Unary:
    """A function on ``i16`` elements, for two of them in an ``i32``."""

    def emit(builder: Builder, value: Value) -> Value:
        assert bits(value.type) == 32
        count = lanes(value.type) or 1
        return builder.reinterpret(function(builder, builder.reinterpret(value, f"<{2 * count} x i16>")), value.type)

    return emit
