"""Building blocks of floating-point instructions: flushing, clamping, and rounding in PTX's four modes.

The machine rounds to nearest; the other modes come from there. Every one of them needs only the nearest value and on
which side of it the exact result lies, so each operation hands over its *error*: a number with the sign of exact minus
rounded, zero when the result is exact. A NaN for an error (from infinities) means exact as well. For sums and products
the errors are the classic error-free transformations (Dekker 1971, Knuth's TwoSum; Handbook of Floating-Point
Arithmetic, chapter 4), which hold for overflow too: the error is then the infinity of the other sign.
"""

from __future__ import annotations

from softgpu.engine.ir import Builder, Value, bits, element

ROUNDINGS = ("rn", "rz", "rm", "rp")
"""To nearest (ties to even), towards zero, down, up."""

INTEGER_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")
"""The same for a result that is an integer."""

EXPONENT_MASKS = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}
"""Bits of the exponent of f16, f32 and f64 by width: infinity."""


def join(*parts: str) -> str:
    """A mnemonic from its parts; empty ones are left out."""
    return ".".join([part for part in parts if part])


def pattern(b: Builder, x: Value) -> Value:
    """The bits of a number as an integer of its width."""
    return b.bitcast(x, f"i{bits(x.type)}")


def flush_bits(b: Builder, x: Value, exponent_mask: int) -> Value:
    """Bit patterns with subnormal numbers replaced by the zero of their sign (``.ftz``)."""
    small = b.icmp("eq", b.and_(x, b.like(exponent_mask, x)), b.zero(x.type))
    return b.select(small, b.and_(x, b.like(1 << (bits(x.type) - 1), x)), x)


def flush(b: Builder, x: Value) -> Value:
    """``.ftz`` on numbers."""
    return b.bitcast(flush_bits(b, pattern(b, x), EXPONENT_MASKS[bits(x.type)]), element(x.type))


def saturate(b: Builder, x: Value) -> Value:
    """``.sat``: into [0, 1]; NaN and -0 become +0. Both steps are one machine instruction each."""
    positive = b.select(b.fcmp("ogt", x, b.like(0.0, x)), x, b.like(0.0, x))
    return b.select(b.fcmp("olt", positive, b.like(1.0, x)), positive, b.like(1.0, x))


def two_sum_error(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """Exactly ``x + y - total`` where ``total`` is ``x + y`` rounded to nearest; NaN when something is not finite."""
    share = b.binary("fsub", total, x)
    rest = b.binary("fsub", x, b.binary("fsub", total, share))
    return b.binary("fadd", rest, b.binary("fsub", y, share))


def ordered_sum_error(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """As :func:`two_sum_error`; no step can overflow unless ``total`` does."""
    swap = b.fcmp("olt", b.intrinsic("llvm.fabs", element(x.type), x), b.intrinsic("llvm.fabs", element(y.type), y))
    large, small = b.select(swap, y, x), b.select(swap, x, y)
    return b.binary("fsub", small, b.binary("fsub", total, large))


def directed_bits(b: Builder, nearest: Value, error: Value, mode: str) -> Value:
    """Bit patterns of numbers (sign and magnitude) from those rounded to nearest.

    One step away in magnitude is one step of the pattern, from zero to the smallest subnormal and from the largest
    number to infinity alike. Modes ``rz``, ``rm``, ``rp``.
    """
    negative = b.icmp("slt", nearest, b.zero(nearest.type))
    below = b.fcmp("olt", error, b.zero(error.type))
    above = b.fcmp("ogt", error, b.zero(error.type))
    one, none = b.like(1, nearest), b.zero(nearest.type)
    if mode == "rz":
        return b.sub(nearest, b.select(b.select(negative, above, below), one, none))
    moves, growing = (above, b.invert(negative)) if mode == "rp" else (below, negative)
    return b.add(nearest, b.select(moves, b.select(growing, one, b.like(-1, nearest)), none))


def directed(b: Builder, nearest: Value, error: Value, mode: str) -> Value:
    """:func:`directed_bits` for numbers; ``rn`` leaves them as they are."""
    if mode == "rn":
        return nearest
    return b.bitcast(directed_bits(b, pattern(b, nearest), error, mode), element(nearest.type))


def odd(b: Builder, nearest: Value, error: Value) -> Value:
    """Rounded to odd: the truncated value with its last bit set if it is not exact.

    A number so rounded can be rounded once more, in any mode, to a format with at least two bits less, as if it were
    exact (Boldo and Melquiond 2008).
    """
    have = pattern(b, nearest)
    inexact = b.fcmp("one", error, b.zero(error.type))
    signs = pattern(b, error)
    if bits(error.type) > bits(have.type):
        signs = b.trunc(b.lshr(signs, b.like(bits(error.type) - bits(have.type), signs)), element(have.type))
    opposite = b.ashr(b.xor(have, signs), b.like(bits(have.type) - 1, have))  # 0 or -1
    truncated = b.add(have, opposite)
    return b.bitcast(b.select(inexact, b.or_(truncated, b.like(1, have)), have), element(nearest.type))


def wide(b: Builder, x: Value) -> Value:
    """f32 as f64, exactly."""
    return b.cast("fpext", x, "double")


def single(b: Builder, x: Value, mode: str) -> Value:
    """f64 to f32 with one rounding; mode ``odd`` rounds to odd."""
    nearest = b.cast("fptrunc", x, "float")
    if mode == "rn":
        return nearest
    error = b.binary("fsub", x, wide(b, nearest))
    return odd(b, nearest, error) if mode == "odd" else directed(b, nearest, error, mode)


def integral(b: Builder, x: Value, mode: str) -> Value:
    """A number rounded to an integer, by ``rni``, ``rzi``, ``rmi`` or ``rpi``; its sign stays."""
    name = {"rni": "llvm.roundeven", "rzi": "llvm.trunc", "rmi": "llvm.floor", "rpi": "llvm.ceil"}[mode]
    return b.intrinsic(name, element(x.type), x)
