"""sin and cos of f32.

An argument is reduced to a quadrant and a rest of at most pi/4, and a polynomial for each of the two functions is taken
or not by the quadrant. Up to 2**17 the rest comes from fused multiply-adds with pi/2 in three parts (Cody and Waite).
A warp that has a larger argument takes a slower way for it: the argument is an integer of 24 bits times a power of two,
and turns of that power, modulo one turn, stand in a table with 64 bits each (after Payne and Hanek), so the product
modulo 2**64 is the angle as a fraction of a turn, 2**-40 of a turn at most from the right one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from softgpu.engine.ir import Builder, Value, lanes, shaped
from softgpu.engine.ops.approximate_numbers import flush, magnitude, pattern, polynomial, sign_bit, with_sign

_LARGE = 2.0**17
_ROUNDER = 1.5 * 2.0**23
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""The sum is pi/2 to 75 bits."""

_SINE = (
    # (sin(r) - r) / r**3 as a polynomial in r**2 for abs(r) <= pi/4.
    (-0.16666653752326965, 0.008332112804055214, -0.00019508741388563067),
    (-0.1666666716337204, 0.008333329111337662, -0.00019839232845697552, 2.717366669457988e-06),
)
_COSINE = (
    # cos(r) as a polynomial in r**2.
    (1.0, -0.5, 0.04166664555668831, -0.0013887251261621714, 2.4425680749118328e-05),
    (1.0, -0.5, 0.0416666679084301, -0.0013888883404433727, 2.4799372113193385e-05, -2.719862663980166e-07),
)

_PI_DIGITS = 3141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067982148
"""pi times 10**105: 346 bits, and the largest float has a unit of 2**104."""


def _turns(exponent: int) -> int:
    """A unit in the last place of floats with that exponent field, in turns times 2**64, modulo one turn."""
    turn = 2 * Fraction(_PI_DIGITS, 10**105)
    return int(Fraction(2) ** (exponent - 150) / turn * 2**64) % 2**64


def _table() -> str:
    """The table as a constant array, by exponent field."""
    words = ", ".join([f"i64 {_turns(exponent)}" for exponent in range(255)] + ["i64 0"])
    return f"@softgpu_turns = private unnamed_addr constant [256 x i64] [{words}], align 64"


def _lookup(builder: Builder, index: Value) -> Value:
    """Elements of the table by an i64 below 256."""
    count = lanes(index.type)
    at = builder.emit(f"getelementptr [256 x i64], ptr @softgpu_turns, {shaped('i64', count)} "
                      f"{'zeroinitializer' if count else '0'}, {index.type} {index.ref}", shaped("ptr", count))
    if not count:
        return builder.emit(f"load i64, ptr {at.ref}, align 8", "i64")
    words = f"<{count} x i64>"
    return builder.call(f"llvm.masked.gather.v{count}i64.v{count}p0", words, at, builder.constant(8, "i32"),
                        builder.constant(1, "i1", count), builder.poison(words))


def _reduced_large(builder: Builder, size: Value) -> tuple[Value, Value]:
    """Rest and quadrant (in the low two bits) of an argument that is a finite number from 1 on."""
    count = lanes(size.type)

    def long(number: int) -> Value:
        return builder.constant(number, "i64", count)

    bits = builder.zext(pattern(builder, size), "i64")
    exponent = builder.lshr(bits, long(23))
    mantissa = builder.or_(builder.and_(bits, long((1 << 23) - 1)), long(1 << 23))
    angle = builder.mul(mantissa, _lookup(builder, exponent))
    quadrant = builder.lshr(builder.add(angle, long(1 << 61)), long(62))
    rest = builder.cast("sitofp", builder.sub(angle, builder.shl(quadrant, long(62))), "double")
    radians = builder.binary("fmul", rest, builder.like(2 * math.pi / 2.0**64, rest))
    return builder.cast("fptrunc", radians, "float"), builder.trunc(quadrant, "i32")


def _reduced(builder: Builder, size: Value) -> tuple[Value, Value]:
    """Rest and quadrant of an argument up to 2**17; NaN and some quadrant for infinity and NaN."""
    count = lanes(size.type)
    shifted = builder.fma(size, builder.like(2 / math.pi, size), builder.like(_ROUNDER, size))
    number = builder.binary("fsub", shifted, builder.like(_ROUNDER, size))
    rest = size
    for part in _HALF_PI:
        rest = builder.fma(number, builder.like(-part, size), rest)
    return rest, builder.and_(pattern(builder, shifted), builder.constant(3, "i32", count))


def _reduction(builder: Builder, count: int) -> str:
    """Declares the function that reduces any argument: {float, i32} (float), or of vectors; gives its name."""
    name = f"softgpu_quadrant{count or ''}"
    if name in builder.helpers:
        return name
    inner = Builder()
    size = Value("%size", shaped("float", count))
    rest, quadrant = _reduced(inner, size)
    large = inner.and_(inner.fcmp("ogt", size, inner.like(_LARGE, size)),
                       inner.fcmp("olt", size, inner.like(float("inf"), size)))
    any_large = inner.icmp("ne", inner.mask_bits(large), inner.constant(0, "i32")) if count else large
    inner.line(f"  br i1 {any_large.ref}, label %slow, label %done")
    inner.line("slow:")
    # Lanes that are not large get a number that is, so that the table is read in range.
    slow_rest, slow_quadrant = _reduced_large(inner, inner.select(large, size, inner.like(_LARGE, size)))
    slow_rest, slow_quadrant = inner.select(large, slow_rest, rest), inner.select(large, slow_quadrant, quadrant)
    inner.line("  br label %done")
    inner.line("done:")
    rest = inner.emit(f"phi {rest.type} [{rest.ref}, %entry], [{slow_rest.ref}, %slow]", rest.type)
    quadrant = inner.emit(f"phi {quadrant.type} [{quadrant.ref}, %entry], [{slow_quadrant.ref}, %slow]", quadrant.type)
    result = f"{{{rest.type}, {quadrant.type}}}"
    first = inner.emit(f"insertvalue {result} poison, {rest.type} {rest.ref}, 0", result)
    both = inner.emit(f"insertvalue {result} {first.ref}, {quadrant.type} {quadrant.ref}, 1", result)
    inner.line(f"  ret {result} {both.ref}")
    builder.declarations.update(inner.declarations)
    builder.helpers.setdefault("softgpu_turns", _table())
    builder.helpers[name] = "\n".join(
        [f"define internal {result} @{name}({size.type} %size) {{", "entry:", *inner.lines, "}"])
    return name


def _circular(builder: Builder, x: Value, rounding: int, cosine: bool) -> tuple[Value, Value]:
    """The function of the magnitude of x without its last change of sign, and the quadrant that decides on that."""
    count = lanes(x.type)
    size = magnitude(builder, x)
    name = _reduction(builder, count)
    pair = builder.call(name, f"{{{shaped('float', count)}, {shaped('i32', count)}}}", size)
    rest = builder.emit(f"extractvalue {pair.type} {pair.ref}, 0", shaped("float", count))
    quadrant = builder.emit(f"extractvalue {pair.type} {pair.ref}, 1", shaped("i32", count))
    square = builder.binary("fmul", rest, rest)
    cubic = builder.binary("fmul", polynomial(builder, square, _SINE[rounding]), square)
    sine = builder.fma(cubic, rest, rest)
    other = polynomial(builder, square, _COSINE[rounding])
    odd = builder.trunc(quadrant, "i1")
    return (builder.select(odd, sine, other) if cosine else builder.select(odd, other, sine)), quadrant


def _half_turn(builder: Builder, quadrant: Value) -> Value:
    """The sign bit where the quadrant is 2 or 3."""
    count = lanes(quadrant.type)
    second = builder.and_(quadrant, builder.constant(2, "i32", count))
    return builder.shl(second, builder.constant(30, "i32", count))


def sin(builder: Builder, x: Value, rounding: int) -> Value:
    """Sine of radians; -0 for -0, NaN for infinities."""
    result, quadrant = _circular(builder, x, rounding, False)
    return with_sign(builder, result, builder.xor(_half_turn(builder, quadrant), sign_bit(builder, x)))


def sin_ftz(builder: Builder, x: Value, rounding: int) -> Value:
    """Sine; results are subnormal for subnormal operands only."""
    return sin(builder, flush(builder, x), rounding)


def cos(builder: Builder, x: Value, rounding: int) -> Value:
    """Cosine of radians; 1 for zeros and subnormals, NaN for infinities."""
    result, quadrant = _circular(builder, x, rounding, True)
    one = builder.constant(1, "i32", lanes(x.type))
    return with_sign(builder, result, _half_turn(builder, builder.add(quadrant, one)))
