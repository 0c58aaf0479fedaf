"""Integer arithmetic (PTX manual, sections 9.7.1 and 9.7.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.integers import (
    divide,
    double,
    halves_of,
    magnitude,
    multiply_high,
    octets_of,
    remainder,
    saturate,
)
from softgpu.reference.ops_float import float_or, fresh
from softgpu.reference.ptx_types import INTEGERS, dtype_of, is_signed, size_of

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue

Ints = npt.NDArray[Any]
Binary = Callable[[Ints, Ints], Ints]
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_PACKED = ("u16x2", "s16x2")


def _binary(d: Decoder, kind: str, function: Binary, *, signed: bool) -> None:
    """``d, a, b`` of one type; ``signed``: the function sees signed arrays where the type is signed."""
    d.done(3)
    write = d.destination(0, kind)
    take = d.signed if signed else d.source
    a, b = take(1, kind), take(2, kind)
    dtype = dtype_of(kind)

    def run(x: Issue) -> None:
        write(x, function(a(x), b(x)).view(dtype))

    d.plain(run)


def packed(function: Binary, kind: str) -> Binary:
    """A function of 16-bit halves as one of packed 32-bit values."""
    half = np.dtype(np.int16 if kind == "s16x2" else np.uint16)

    def both(a: Ints, b: Ints) -> Ints:
        count = max(len(a), len(b))
        halves = [np.ascontiguousarray(np.broadcast_to(v, count)).view(half).reshape(-1, 2) for v in (a, b)]
        return np.ascontiguousarray(function(halves[0], halves[1]).astype(half)).view(np.uint32).reshape(-1)

    return both


def _add_sub(function: Binary, subtract: bool) -> Decode:
    def decode(d: Decoder) -> None:
        if d.flag("cc"):
            _with_carry(d, subtract, carry_in=False, carry_out=True)
            return
        if d.flag("sat"):
            kind = d.need("s32")
            _binary(d, kind, lambda a, b: saturate(function(double(a), double(b)), 32).astype(np.int32), signed=True)
            return
        kind = d.need(*INTEGERS, *(() if subtract else _PACKED))
        _binary(d, kind, packed(function, kind) if kind in _PACKED else function, signed=False)

    return decode


def _with_carry(d: Decoder, subtract: bool, carry_in: bool, carry_out: bool) -> None:
    """add.cc, addc, sub.cc, subc: the carry flag is the carry out of an addition, the borrow of a subtraction."""
    kind = d.need("u32", "s32", "u64", "s64")
    d.done(3)
    write = d.destination(0, kind)
    a, b = d.source(1, kind), d.source(2, kind)
    slot = d.carry()

    def run(x: Issue) -> None:
        left, right = a(x), b(x)
        carry = x.get(slot).astype(left.dtype) if carry_in else np.zeros(1, left.dtype)
        partial = np.subtract(left, right) if subtract else np.add(left, right)
        total = np.subtract(partial, carry) if subtract else np.add(partial, carry)
        if carry_out:
            out = (left < right) | (partial < carry) if subtract else (partial < left) | (total < partial)
            x.set(slot, out)
        write(x, total)

    d.plain(run)


def _carrying(subtract: bool) -> Decode:
    return lambda d: _with_carry(d, subtract, carry_in=True, carry_out=d.flag("cc"))


def _low(a: Ints, b: Ints) -> Ints:
    return a * b


def _mul(d: Decoder) -> None:
    part = d.need("lo", "hi", "wide")
    kind = d.need(*INTEGERS)
    if part == "lo":
        _binary(d, kind, _low, signed=False)
        return
    if part == "hi":
        _binary(d, kind, multiply_high, signed=True)
        return
    if kind not in _WIDER:
        d.fail(f".wide of .{kind}")
    d.done(3)
    write = d.destination(0, _WIDER[kind])
    a, b = d.signed(1, kind), d.signed(2, kind)
    dtype = dtype_of(_WIDER[kind])
    d.plain(lambda x: write(x, (double(a(x)) * double(b(x))).view(dtype)))


def _mad(d: Decoder) -> None:
    part = d.need("lo", "hi", "wide")
    if d.flag("cc"):
        _mad_carry(d, part, carry_in=False, carry_out=True)
        return
    clamp = part == "hi" and d.flag("sat")
    kind = d.need(*(("s32",) if clamp else INTEGERS))
    d.done(4)
    if part == "wide" and kind not in _WIDER:
        d.fail(f".wide of .{kind}")
    result = _WIDER[kind] if part == "wide" else kind
    write = d.destination(0, result)
    take = d.source if part == "lo" else d.signed
    a, b, c = take(1, kind), take(2, kind), d.source(3, result)
    dtype = dtype_of(result)

    def run(x: Issue) -> None:
        if part == "lo":
            write(x, a(x) * b(x) + c(x))
        elif part == "wide":
            write(x, (double(a(x)) * double(b(x))).view(dtype) + c(x))
        elif clamp:
            high = multiply_high(a(x), b(x)).astype(np.int64) + c(x).view(np.int32)
            write(x, saturate(high, 32).astype(np.int32).view(dtype))
        else:
            write(x, multiply_high(a(x), b(x)).view(dtype) + c(x))

    d.plain(run)


def _madc(d: Decoder) -> None:
    part = d.need("lo", "hi")
    _mad_carry(d, part, carry_in=True, carry_out=d.flag("cc"))


def _mad_carry(d: Decoder, part: str, carry_in: bool, carry_out: bool) -> None:
    if part == "wide":
        d.fail("a carry with .wide")
    kind = d.need("u32", "s32", "u64", "s64")
    d.done(4)
    write = d.destination(0, kind)
    take = d.source if part == "lo" else d.signed
    a, b, c = take(1, kind), take(2, kind), d.source(3, kind)
    slot = d.carry()
    dtype = dtype_of(kind)

    def run(x: Issue) -> None:
        product = a(x) * b(x) if part == "lo" else multiply_high(a(x), b(x)).view(dtype)
        added = c(x)
        carry = x.get(slot).astype(dtype) if carry_in else np.zeros(1, dtype)
        partial = np.add(product, added)
        total = np.add(partial, carry)
        if carry_out:
            x.set(slot, (partial < added) | (total < partial))
        write(x, total)

    d.plain(run)


def _product24(part: str, kind: str) -> Binary:
    """Bits 0..31 or 16..47 of the 48-bit product of the low 24 bits, sign-extended for s32."""
    wide = np.int64 if kind == "s32" else np.uint64

    def product(a: Ints, b: Ints) -> Ints:
        left, right = (v.astype(np.uint64) << np.uint64(40) for v in (a, b))
        full = (left.view(wide) >> wide(40)) * (right.view(wide) >> wide(40))
        return (full >> wide(16 if part == "hi" else 0)).astype(np.uint32)

    return product


def _mul24(d: Decoder) -> None:
    part = d.need("lo", "hi")
    kind = d.need("u32", "s32")
    _binary(d, kind, _product24(part, kind), signed=False)


def _mad24(d: Decoder) -> None:
    part = d.need("lo", "hi")
    clamp = part == "hi" and d.flag("sat")
    kind = d.need(*(("s32",) if clamp else ("u32", "s32")))
    product = _product24(part, kind)

    def total(a: Ints, b: Ints, c: Ints) -> Ints:
        if not clamp:
            return product(a, b) + c
        wide = product(a, b).view(np.int32).astype(np.int64) + c.view(np.int32)
        return saturate(wide, 32).astype(np.int32).view(np.uint32)

    _ternary(d, (kind, kind, kind, kind), total)


def _ternary(d: Decoder, kinds: tuple[str, str, str, str], function: Callable[[Ints, Ints, Ints], Ints]) -> None:
    """``d, a, b, c`` on unsigned arrays; ``kinds`` of d, a, b, c."""
    d.done(4)
    write = d.destination(0, kinds[0])
    a, b, c = d.source(1, kinds[1]), d.source(2, kinds[2]), d.source(3, kinds[3])
    d.plain(lambda x: write(x, function(a(x), b(x), c(x))))


def _sad(d: Decoder) -> None:
    kind = d.need(*INTEGERS)
    dtype = dtype_of(kind)
    view = np.dtype(f"i{size_of(kind)}") if is_signed(kind) else dtype

    def function(a: Ints, b: Ints, c: Ints) -> Ints:
        left, right = a.view(view), b.view(view)
        return c + np.where(left > right, a - b, b - a).astype(dtype)

    _ternary(d, (kind, kind, kind, kind), function)


def _div(d: Decoder) -> None:
    _binary(d, d.need(*INTEGERS), divide, signed=True)


def _rem(d: Decoder) -> None:
    _binary(d, d.need(*INTEGERS), remainder, signed=True)


def _extreme(function: Binary) -> Decode:
    def decode(d: Decoder) -> None:
        relu = d.flag("relu")
        kind = d.need(*(("s32", "s16x2") if relu else (*INTEGERS, *_PACKED)))

        def clamped(a: Ints, b: Ints) -> Ints:
            return np.maximum(function(a, b), np.zeros(1, a.dtype))

        chosen = clamped if relu else function
        if kind in _PACKED:
            _binary(d, kind, packed(chosen, kind), signed=False)
        else:
            _binary(d, kind, chosen, signed=True)

    return decode


def _unary(d: Decoder, kind: str, function: Callable[[Ints], Ints]) -> None:
    d.done(2)
    write = d.destination(0, kind)
    a = d.source(1, kind)

    def run(x: Issue) -> None:
        value = a(x)
        write(x, fresh(function(value), value))

    d.plain(run)


def _abs(d: Decoder) -> None:
    kind = d.need("s16", "s32", "s64")
    signed = np.dtype(f"i{size_of(kind)}")
    _unary(d, kind, lambda a: magnitude(a.view(signed)))


def _neg(d: Decoder) -> None:
    _unary(d, d.need("s16", "s32", "s64"), lambda a: 0 - a)


def _dp4a(d: Decoder) -> None:
    a_kind, b_kind = d.need("u32", "s32"), d.need("u32", "s32")

    def function(a: Ints, b: Ints, c: Ints) -> Ints:
        products = octets_of(a, is_signed(a_kind)) * octets_of(b, is_signed(b_kind))
        total: Ints = c + products.sum(axis=1).astype(np.uint32)
        return total

    _dot(d, a_kind, b_kind, function)


def _dp2a(d: Decoder) -> None:
    first = 0 if d.need("lo", "hi") == "lo" else 2
    a_kind, b_kind = d.need("u32", "s32"), d.need("u32", "s32")

    def function(a: Ints, b: Ints, c: Ints) -> Ints:
        products = halves_of(a, is_signed(a_kind)) * octets_of(b, is_signed(b_kind))[:, first:first + 2]
        total: Ints = c + products.sum(axis=1).astype(np.uint32)
        return total

    _dot(d, a_kind, b_kind, function)


def _dot(d: Decoder, a_kind: str, b_kind: str, function: Callable[[Ints, Ints, Ints], Ints]) -> None:
    result = "s32" if "s32" in (a_kind, b_kind) else "u32"
    _ternary(d, (result, a_kind, b_kind, result), function)




TABLE: dict[str, Decode] = {
    "add": float_or(_add_sub(np.add, subtract=False)), "sub": float_or(_add_sub(np.subtract, subtract=True)),
    "addc": _carrying(subtract=False), "subc": _carrying(subtract=True),
    "mul": float_or(_mul), "mad": float_or(_mad), "madc": _madc, "mul24": _mul24, "mad24": _mad24, "sad": _sad,
    "div": float_or(_div), "rem": _rem, "min": float_or(_extreme(np.minimum)), "max": float_or(_extreme(np.maximum)),
    "abs": float_or(_abs), "neg": float_or(_neg), "dp4a": _dp4a, "dp2a": _dp2a,
}
