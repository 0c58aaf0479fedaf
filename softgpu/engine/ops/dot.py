"""Dot products of bytes: dp4a, dp2a (PTX manual, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.operation import Operation


def _field(builder: Builder, a: Value, start: int, width: int, signed: bool) -> Value:
    """Bits [start, start + width) of 32-bit values, extended to 32 bits."""
    rest = 32 - start - width
    moved = builder.shl(a, builder.like(rest, a)) if rest else a
    return builder.binary("ashr" if signed else "lshr", moved, builder.like(32 - width, a))


def _octets(builder: Builder, a: Value, odd: bool, signed: bool) -> Value:
    """The even or odd bytes as 16-bit values, two for each lane."""
    halves = builder.reinterpret(a, f"<{2 * (lanes(a.type) or 1)} x i16>")
    eight = builder.like(8, halves)
    if not signed:
        return builder.lshr(halves, eight) if odd else builder.and_(halves, builder.like(0xFF, halves))
    return builder.ashr(halves if odd else builder.shl(halves, eight), eight)


def _pairs(builder: Builder, a: Value, b: Value) -> Value:
    """For each lane a_0 b_0 + a_1 b_1 of signed 16-bit values: the form that LLVM knows as ``vpmaddwd``."""
    products = builder.binary("mul nsw", builder.sext(a, "i32"), builder.sext(b, "i32"))
    count = lanes(products.type)
    even, odd = (builder.shuffle(products, None, range(start, count, 2)) for start in (0, 1))
    return builder.add(even, odd)


def _dp4a(a_signed: bool, b_signed: bool, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    even, odd = (_pairs(builder, _octets(builder, a, odd, a_signed), _octets(builder, b, odd, b_signed))
                 for odd in (False, True))
    return builder.add(builder.reinterpret(builder.add(even, odd), a.type), c)


def _dp4a_scalar(a_signed: bool, b_signed: bool, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    total = c
    for start in range(0, 32, 8):
        factors = (_field(builder, a, start, 8, a_signed), _field(builder, b, start, 8, b_signed))
        total = builder.add(total, builder.mul(*factors))
    return total


def _dp4a_any(a_signed: bool, b_signed: bool, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    emit = _dp4a if lanes(a.type) else _dp4a_scalar
    return emit(a_signed, b_signed, builder, a, b, c)


def _dp2a(first: int, a_signed: bool, b_signed: bool, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """Halves of ``a`` times the bytes of ``b`` from ``first`` on."""
    total = c
    for i in range(2):
        half = _field(builder, a, 16 * i, 16, a_signed)
        octet = _field(builder, b, 8 * (first + i), 8, b_signed)
        total = builder.add(total, builder.mul(half, octet))
    return total


def operations() -> Iterator[Operation]:
    """dp4a, dp2a: the third operand and the result are signed if one of the others is."""
    for a_kind, b_kind in product(("u32", "s32"), repeat=2):
        result = "s32" if "s32" in (a_kind, b_kind) else "u32"
        sources = (a_kind, b_kind, result)
        signs = (a_kind == "s32", b_kind == "s32")
        yield Operation(f"dp4a.{a_kind}.{b_kind}", sources, (result,), partial(_dp4a_any, *signs))
        for part, first in (("lo", 0), ("hi", 2)):
            yield Operation(f"dp2a.{part}.{a_kind}.{b_kind}", sources, (result,), partial(_dp2a, first, *signs))
