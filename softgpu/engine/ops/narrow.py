"""The formats that the engine computes in f32: f16 and bf16, as bits in i16.

Both fit into f32 exactly. Results go back with one rounding from an f32 number that is exact or rounded to odd.
Any number of lanes; packed pairs are handed over as twice as many halves.
"""

from __future__ import annotations

from softgpu.engine.ir import Builder, Value, bits, lanes
from softgpu.engine.ops.rounding import directed_bits, flush_bits, pattern

NAN = 0x7FFF
"""Canonical NaN of both formats."""

EXPONENTS = {"f16": 0x7C00, "bf16": 0x7F80}
"""Bits of the exponent: the pattern of infinity. The largest finite number is one less."""

PACKED = {"f16x2": "f16", "bf16x2": "bf16"}


def halves(b: Builder, x: Value) -> Value:
    """Integers as twice as many of half the width: the low half first."""
    return b.reinterpret(x, f"<{2 * (lanes(x.type) or 1)} x i{bits(x.type) // 2}>")


def joined(b: Builder, x: Value, count: int) -> Value:
    """The inverse of :func:`halves`; ``count``: lanes of the result, 0 for a scalar."""
    whole = f"i{2 * bits(x.type)}"
    return b.reinterpret(x, f"<{count} x {whole}>" if count else whole)


def widened(b: Builder, x: Value, kind: str) -> Value:
    """f16 or bf16 as f32, exactly."""
    if kind == "f16":
        return b.cast("fpext", b.bitcast(x, "half"), "float")
    return b.bitcast(b.shl(b.zext(x, "i32"), b.like(16, x, "i32")), "float")


def narrowed(b: Builder, x: Value, kind: str, mode: str = "rn", canonical: bool = True) -> Value:
    """f32 rounded to f16 or bf16. ``canonical``: make NaN the canonical one, unless ``x`` is known to be none."""
    is_nan = b.fcmp("uno", x, x) if canonical else None
    if kind == "f16":
        result = _to_f16(b, x, mode)
        return b.select(is_nan, b.like(NAN, result), result) if is_nan else result
    upper = _to_bf16(b, x, mode)
    if is_nan:
        upper = b.select(is_nan, b.like(NAN << 16, upper), upper)
    return b.trunc(b.lshr(upper, b.like(16, upper)), "i16")


def _to_f16(b: Builder, x: Value, mode: str) -> Value:
    half = b.cast("fptrunc", x, "half")
    nearest = b.bitcast(half, "i16")
    if mode == "rn":
        return nearest
    return directed_bits(b, nearest, b.binary("fsub", x, b.cast("fpext", half, "float")), mode)


def _to_bf16(b: Builder, x: Value, mode: str) -> Value:
    """The bits in the upper half of an i32; the lower half is of no meaning."""
    have = pattern(b, x)
    if mode == "rn":
        last = b.and_(b.lshr(have, b.like(16, have)), b.like(1, have))
        have = b.add(b.add(have, b.like(0x7FFF, have)), last)
    elif mode != "rz":
        grows = b.icmp("sgt" if mode == "rp" else "slt", have, b.like(-1 if mode == "rp" else 0, have))
        have = b.add(have, b.select(grows, b.like(0xFFFF, have), b.zero(have.type)))
    return have


def relu(b: Builder, x: Value) -> Value:
    """``.relu`` on bits whose NaNs are canonical (hence positive): what is negative, -0 included, becomes +0."""
    return b.intrinsic("llvm.smax", f"i{bits(x.type)}", x, b.zero(x.type))


def flushed(b: Builder, x: Value, kind: str) -> Value:
    """``.ftz`` on bits."""
    return flush_bits(b, x, EXPONENTS[kind])
