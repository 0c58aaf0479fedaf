"""rcp, rsqrt, sqrt and div of f32 and f64, from the processor's correctly rounded division and square root.

``rounding`` 0 takes them as they are; 1 is a card that cuts off instead of rounding to nearest: the exact remainder,
from a fused multiply-add, says where the rounded result is too large.
"""

from __future__ import annotations

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.approximate_numbers import INFINITY, flush, magnitude, pattern, sign_bit, toward_zero, with_sign

_NAN = {"float": 0x7FFFFFFF, "double": 0x7FFFFFFFFFFFFFFF}
_HIGH_WORD = 0xFFFFFFFF00000000
_NAN_HIGH_WORD = 0x7FFFFFFF00000000
"""The NaN of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64."""


def _quotient(builder: Builder, a: Value, b: Value, rounding: int) -> Value:
    quotient = builder.binary("fdiv", a, b)
    if not rounding:
        return quotient
    opposite = builder.emit(f"fneg {a.type} {a.ref}", a.type)
    excess = with_sign(builder, builder.fma(quotient, b, opposite), sign_bit(builder, a))
    too_large = builder.fcmp("ogt", excess, builder.like(0.0, a))
    finite = builder.fcmp("olt", magnitude(builder, quotient), builder.like(INFINITY, a))
    return toward_zero(builder, quotient, builder.and_(too_large, finite))


def rcp(builder: Builder, a: Value, rounding: int) -> Value:
    """1 / a."""
    return _quotient(builder, builder.like(1.0, a), a, rounding)


def div_full(builder: Builder, a: Value, b: Value, rounding: int) -> Value:
    """a / b over the full range."""
    return _quotient(builder, a, b, rounding)


def div_approx(builder: Builder, a: Value, b: Value, rounding: int) -> Value:
    """a / b, where the reciprocal of a b above 2**126 in magnitude counts as zero."""
    no_reciprocal = builder.fcmp("ogt", magnitude(builder, b), builder.like(2.0**126, b))
    zero = builder.bitcast(sign_bit(builder, b), "float")
    return builder.select(no_reciprocal, builder.binary("fmul", a, zero), _quotient(builder, a, b, rounding))


def sqrt(builder: Builder, a: Value, rounding: int) -> Value:
    """Square root; -0 for -0."""
    root = builder.intrinsic("llvm.sqrt", "float", a)
    if not rounding:
        return root
    opposite = builder.emit(f"fneg {a.type} {a.ref}", a.type)
    too_large = builder.fcmp("ogt", builder.fma(root, root, opposite), builder.like(0.0, a))
    return toward_zero(builder, root, too_large)


def rsqrt(builder: Builder, a: Value, rounding: int) -> Value:
    """1 / sqrt(a), from two rounded steps: the reciprocal of the root, or (1) the root of the reciprocal.

    For the second, small operands are made larger and large ones smaller by an even power of two, so that the
    reciprocal has all its bits."""
    kind = "double" if "double" in a.type else "float"
    one = builder.like(1.0, a)
    if not rounding:
        return builder.binary("fdiv", one, builder.intrinsic("llvm.sqrt", kind, a))
    half_range = 512 if kind == "double" else 64
    size = magnitude(builder, a)
    small = builder.fcmp("olt", size, builder.like(2.0**-half_range, a))
    large = builder.fcmp("ogt", size, builder.like(2.0**half_range, a))

    def power(exponent: int) -> Value:
        above = builder.select(large, builder.like(2.0**-exponent, a), one)
        return builder.select(small, builder.like(2.0**exponent, a), above)

    reciprocal = builder.binary("fdiv", one, builder.binary("fmul", a, power(half_range)))
    root = builder.intrinsic("llvm.sqrt", kind, reciprocal)
    negative_zero = builder.fcmp("oeq", reciprocal, builder.like(-INFINITY, a))
    root = builder.select(negative_zero, reciprocal, root)
    nan = builder.float_bits(_NAN[kind], kind, lanes(a.type))
    root = builder.select(builder.fcmp("olt", a, builder.like(0.0, a)), nan, root)  # of -infinity, too
    return builder.binary("fmul", root, power(half_range // 2))


def _upper_word(builder: Builder, exact: Value, rounding: int) -> Value:
    """An f64 in 20 mantissa bits, rounded to nearest even or (1) cut off, flushed."""
    count = lanes(exact.type)
    word = pattern(builder, exact)
    if not rounding:
        odd = builder.and_(builder.lshr(word, builder.constant(32, "i64", count)), builder.constant(1, "i64", count))
        word = builder.add(builder.add(word, builder.constant(0x7FFFFFFF, "i64", count)), odd)
    kept = builder.bitcast(builder.and_(word, builder.constant(_HIGH_WORD, "i64", count)), "double")
    nan = builder.float_bits(_NAN_HIGH_WORD, "double", count)
    return builder.select(builder.fcmp("uno", exact, exact), nan, flush(builder, kept))


def _operand(builder: Builder, a: Value) -> Value:
    """The upper word of an operand as a number, flushed."""
    word = builder.and_(pattern(builder, a), builder.constant(_HIGH_WORD, "i64", lanes(a.type)))
    return flush(builder, builder.bitcast(word, "double"))


def rcp_upper_word(builder: Builder, a: Value, rounding: int) -> Value:
    """rcp.approx.ftz.f64: 1 / a of upper words."""
    upper = _operand(builder, a)
    return _upper_word(builder, builder.binary("fdiv", builder.like(1.0, a), upper), rounding)


def rsqrt_upper_word(builder: Builder, a: Value, rounding: int) -> Value:
    """rsqrt.approx.ftz.f64: 1 / sqrt(a) of upper words."""
    root = builder.intrinsic("llvm.sqrt", "double", _operand(builder, a))
    return _upper_word(builder, builder.binary("fdiv", builder.like(1.0, a), root), rounding)
