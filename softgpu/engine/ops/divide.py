"""Integer division and remainder (PTX manual, "Integer Arithmetic Instructions: div, rem").

Division by zero gives all ones and a remainder equal to the dividend, as the reference interpreter has it (the manual
leaves both open); the smallest integer divided by -1 gives itself. x86 traps on both, LLVM calls them undefined.

Vectors of 16 and 32 bits are divided as floating-point numbers. With a = qb + r and r < b, a/b is at least 1/b below
q + 1, which is 1/(b(q + 1)) >= 1/(a + b) > 2^-(n + 1) of q + 1 for n-bit operands: a precision of n + 2 bits or more
does not round a/b up to q + 1, and truncation gives q.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from softgpu.engine.ir import Builder, Value, bits, element, lanes
from softgpu.engine.ops.constants import integer_of
from softgpu.engine.ops.operation import Operation

_FLOATING = {16: "float", 32: "double"}
"""In what a width is divided: 24 and 53 bits of precision."""


def _divisor(builder: Builder, signed: bool, a: Value, b: Value) -> Value:
    """``b``, with 1 for the divisors that must not reach a division. The smallest integer is its own quotient by 1, as
    it is by -1, and 0 the remainder of both."""
    unsafe = builder.icmp("eq", b, builder.zero(b.type))
    if signed:
        smallest = builder.icmp("eq", a, builder.like(1 << bits(a.type) - 1, a))
        unsafe = builder.or_(unsafe, builder.and_(smallest, builder.icmp("eq", b, builder.like(-1, b))))
    return builder.select(unsafe, builder.like(1, b), b)


def _quotient(builder: Builder, signed: bool, a: Value, b: Value) -> Value:
    """The quotient by a safe divisor."""
    width = bits(a.type)
    if not lanes(a.type) or width not in _FLOATING:
        return builder.binary("sdiv" if signed else "udiv", a, b)
    letter = "s" if signed else "u"
    x, y = (builder.cast(f"{letter}itofp", v, _FLOATING[width]) for v in (a, b))
    return builder.cast(f"fpto{letter}i", builder.binary("fdiv", x, y), element(a.type))


def _div(signed: bool, builder: Builder, a: Value, b: Value) -> Value:
    known = integer_of(b)
    if known is not None:
        return _div_constant(builder, signed, a, b, known)
    quotient = _quotient(builder, signed, a, _divisor(builder, signed, a, b))
    return builder.select(builder.icmp("eq", b, builder.zero(b.type)), builder.like(-1, a), quotient)


def _div_constant(builder: Builder, signed: bool, a: Value, b: Value, known: int) -> Value:
    """LLVM turns the division by a constant into a multiplication."""
    if known == 0:
        return builder.like(-1, a)
    if signed and known == (1 << bits(b.type)) - 1:
        return builder.negate(a)
    return builder.binary("sdiv" if signed else "udiv", a, b)


def _rem(signed: bool, builder: Builder, a: Value, b: Value) -> Value:
    known = integer_of(b)
    if known == 0:
        return a
    if known is not None:
        if signed and known == (1 << bits(b.type)) - 1:
            return builder.zero(a.type)
        return builder.binary("srem" if signed else "urem", a, b)
    # For b = 0 the product is 0 and leaves the dividend.
    quotient = _quotient(builder, signed, a, _divisor(builder, signed, a, b))
    return builder.sub(a, builder.mul(quotient, b))


def operations() -> Iterator[Operation]:
    """div, rem."""
    for kind in ("u16", "u32", "u64", "s16", "s32", "s64"):
        for name, emit in (("div", _div), ("rem", _rem)):
            yield Operation(f"{name}.{kind}", (kind, kind), (kind,), partial(emit, kind[0] == "s"))
