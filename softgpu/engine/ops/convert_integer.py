"""cvt between integers, and cvt.pack: upper bits go, or are filled by the sign of the source; .sat clamps to the
destination.

Source: PTX ISA, "cvt" and "cvt.pack". ``.sat`` is taken only where the destination does not hold all of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, bits, element
from softgpu.engine.ops.operation import TYPES, Operation
from softgpu.engine.ops.rounding import join

INTEGERS = tuple(f"{sign}{width}" for sign in "us" for width in (8, 16, 32, 64))


def limits(kind: str) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    width = int(kind[1:])
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def clamped(b: Builder, x: Value, source: str, to: str) -> Value:
    """An integer of type ``source`` moved into the range of ``to``; it keeps its width."""
    sign = source[0]
    (low, high), (least, greatest) = limits(to), limits(source)
    if least < low:
        x = b.intrinsic(f"llvm.{sign}max", element(x.type), x, b.like(low, x))
    if greatest > high:
        x = b.intrinsic(f"llvm.{sign}min", element(x.type), x, b.like(high, x))
    return x


def _emit(b: Builder, x: Value, *, source: str, to: str, sat: bool) -> Value:
    if sat:
        x = clamped(b, x, source, to)
    return b.resize(x, TYPES[to], source[0] == "s") if bits(x.type) != bits(TYPES[to]) else x


def _pack(b: Builder, x: Value, y: Value, *more: Value, to: str) -> Value:
    """cvt.pack: ``y`` in the lowest bits, ``x`` above it, then the lowest bits of the third operand."""
    width = int(to[1:])
    mask = b.like((1 << width) - 1, x)
    upper, result = (b.and_(clamped(b, v, "s32", to), mask) for v in (x, y))
    result = b.or_(result, b.shl(upper, b.like(width, x)))
    for rest in more:
        result = b.or_(result, b.shl(rest, b.like(2 * width, rest)))
    return result


def _packs() -> Iterator[Operation]:
    for sign, width in product("us", (2, 4, 8, 16)):
        to = f"{sign}{width}"
        rest = ("b32",) if width < 16 else ()
        mnemonic = join("cvt.pack.sat", to, "s32", *rest)
        yield Operation(mnemonic, ("s32", "s32", *rest), ("b32",), partial(_pack, to=to))


def operations() -> Iterator[Operation]:
    for to, source in product(INTEGERS, repeat=2):
        (low, high), (least, greatest) = limits(to), limits(source)
        for sat in (False, True) if least < low or greatest > high else (False,):
            mnemonic = join("cvt", "sat" if sat else "", to, source)
            yield Operation(mnemonic, (source,), (to,), partial(_emit, source=source, to=to, sat=sat))
    yield from _packs()
