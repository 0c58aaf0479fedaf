"""abs, neg, min, max, copysign and testp of floating-point types.

Source: PTX ISA, "Floating Point Instructions" and "Half Precision Floating Point Instructions". abs, neg and copysign
act on the bits; PTX leaves open which NaN comes of a NaN, so f32 and f64 are not ``canonical`` here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, bits, element, lanes
from softgpu.engine.ops.narrow import EXPONENTS, NAN, PACKED, flushed, halves, joined
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import EXPONENT_MASKS, flush, join, pattern

_FLAGS = (False, True)
_SINGLES = ("f32", "f64")
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_FTZ = ("f32", "f16", "f16x2")
"""Types that take ``.ftz``."""


def _sign(x: Value) -> int:
    return 1 << (bits(x.type) - 1)


def _change_sign(b: Builder, x: Value, *, family: str, kind: str, ftz: bool) -> Value:
    if kind in _SINGLES:
        value = flush(b, x) if ftz else x
        if family == "abs":
            return b.intrinsic("llvm.fabs", element(x.type), value)
        return b.emit(f"fneg {x.type} {value.ref}", x.type)
    count = lanes(x.type)
    value = halves(b, x) if kind in PACKED else x
    if ftz:
        value = flushed(b, value, PACKED.get(kind, kind))
    sign = b.like(_sign(value), value)
    value = b.and_(value, b.invert(sign)) if family == "abs" else b.xor(value, sign)
    return joined(b, value, count) if kind in PACKED else value


def _copysign(b: Builder, x: Value, y: Value) -> Value:
    """The magnitude of ``y`` with the sign of ``x``."""
    return b.intrinsic("llvm.copysign", element(x.type), y, x)


def _extreme(b: Builder, x: Value, y: Value, *, family: str, kind: str, ftz: bool, nan: bool, xorsign: bool) -> Value:
    """``min`` and ``max``; ``nan``: a NaN wins instead of losing. ``xorsign``: of the magnitudes, with both signs."""
    if kind in _SINGLES:
        return extreme_number(b, x, y, family, ftz, nan, xorsign)
    count = lanes(x.type)
    half = PACKED.get(kind, kind)
    operands = [halves(b, v) if kind in PACKED else v for v in (x, y)]
    if ftz:
        operands = [flushed(b, v, half) for v in operands]
    signs = b.and_(b.xor(*operands), b.like(_sign(operands[0]), operands[0]))
    if xorsign:
        operands = [b.and_(v, b.like(0x7FFF, v)) for v in operands]
    result = _extreme_pattern(b, *operands, family=family, half=half, nan=nan)
    if xorsign:
        number = b.icmp("ne", result, b.like(NAN, result))
        result = b.or_(result, b.select(number, signs, b.zero(signs.type)))
    return joined(b, result, count) if kind in PACKED else result


def extreme_number(b: Builder, x: Value, y: Value, family: str, ftz: bool, nan: bool, xorsign: bool) -> Value:
    """``min`` or ``max`` of f32 or f64; any NaN may come out."""
    if ftz:
        x, y = flush(b, x), flush(b, y)
    signs = b.xor(pattern(b, x), pattern(b, y))
    if xorsign:
        x, y = (b.intrinsic("llvm.fabs", element(v.type), v) for v in (x, y))
    name = f"llvm.{family}imum" if nan else f"llvm.{family}imumnum"
    result = b.intrinsic(name, element(x.type), x, y)
    if xorsign:
        result = b.intrinsic("llvm.copysign", element(x.type), result, b.bitcast(signs, element(x.type)))
    return result


def _extreme_pattern(b: Builder, x: Value, y: Value, *, family: str, half: str, nan: bool) -> Value:
    """On bits, as integers in the order of the numbers: negative ones have their magnitude inverted.

    NaNs go to the end where they lose, or win with ``nan``; -0 lies below +0 by itself.
    """
    last = (family == "min") != nan  # NaNs above all numbers
    place = b.like(0x7FFF if last else 0x8000, x)
    keys = []
    for value in (x, y):
        is_nan = b.icmp("ugt", b.and_(value, b.like(0x7FFF, value)), b.like(EXPONENTS[half], value))
        keys.append(b.select(is_nan, place, _ordered(b, value)))
    best = b.intrinsic(f"llvm.s{family}", "i16", *keys)
    result = _ordered(b, best)
    if last:
        return result
    return b.select(b.icmp("eq", best, place), b.like(NAN, result), result)


def _ordered(b: Builder, x: Value) -> Value:
    """Sign and magnitude to two's complement order, and back."""
    return b.xor(x, b.lshr(b.ashr(x, b.like(15, x)), b.like(1, x)))


def _testp(b: Builder, x: Value, *, test: str) -> Value:
    """Zeros count as normal."""
    have = pattern(b, x)
    infinity = b.like(EXPONENT_MASKS[bits(x.type)], have)
    magnitude = b.and_(have, b.like(_sign(x) - 1, have))
    if test in ("number", "notanumber"):
        return b.fcmp("ord" if test == "number" else "uno", x, x)
    if test in ("finite", "infinite"):
        return b.icmp("ult" if test == "finite" else "eq", magnitude, infinity)
    least = EXPONENT_MASKS[bits(x.type)] & -EXPONENT_MASKS[bits(x.type)]  # the smallest normal number
    subnormal = b.icmp("ult", b.sub(magnitude, b.like(1, magnitude)), b.like(least - 1, magnitude))
    if test == "subnormal":
        return subnormal
    return b.and_(b.icmp("ult", magnitude, infinity), b.invert(subnormal))


def operations() -> Iterator[Operation]:
    for family, kind, ftz in product(("abs", "neg"), (*_SINGLES, *_HALVES), _FLAGS):
        if not ftz or kind in _FTZ:
            emit = partial(_change_sign, family=family, kind=kind, ftz=ftz)
            mnemonic = join(family, "ftz" if ftz else "", kind)
            yield Operation(mnemonic, (kind,), (kind,), emit, canonical=kind not in _SINGLES)
    for family, kind, ftz, nan, xorsign in product(("min", "max"), ("f32", *_HALVES), _FLAGS, _FLAGS, _FLAGS):
        if not ftz or kind in _FTZ:
            yield _extreme_operation(family, kind, ftz, nan, xorsign)
    for family in ("min", "max"):
        yield _extreme_operation(family, "f64", False, False, False)
    for kind in _SINGLES:
        yield Operation(f"copysign.{kind}", (kind, kind), (kind,), _copysign, canonical=False)
    for test, kind in product(("finite", "infinite", "number", "notanumber", "normal", "subnormal"), _SINGLES):
        yield Operation(f"testp.{test}.{kind}", (kind,), ("pred",), partial(_testp, test=test))


def _extreme_operation(family: str, kind: str, ftz: bool, nan: bool, xorsign: bool) -> Operation:
    parts = (family, "ftz" if ftz else "", "NaN" if nan else "", "xorsign.abs" if xorsign else "", kind)
    emit = partial(_extreme, family=family, kind=kind, ftz=ftz, nan=nan, xorsign=xorsign)
    return Operation(join(*parts), (kind, kind), (kind,), emit, canonical=kind not in _SINGLES)
