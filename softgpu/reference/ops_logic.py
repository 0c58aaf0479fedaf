"""Logic, shifts and bit fields (PTX manual, sections 9.7.1 and 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.integers import (
    find_leading,
    leading_zeros,
    mask_below,
    population,
    reverse_bits,
    shift_left,
    shift_right,
)
from softgpu.reference.ptx_types import BITS, dtype_of, is_signed, size_of

Ints = npt.NDArray[Any]
ALL_ONES = np.uint32(0xFFFFFFFF)


def _logic(function: Callable[[Ints, Ints], Ints]) -> Decode:
    def decode(d: Decoder) -> None:
        kind = d.need("pred", *BITS)
        d.done(3)
        write = d.destination(0, kind)
        if kind == "pred":
            a, b = d.predicate(d.operands[1]), d.predicate(d.operands[2])
        else:
            a, b = d.source(1, kind), d.source(2, kind)
        d.plain(lambda x: write(x, function(a(x), b(x))))

    return decode


def _not(d: Decoder) -> None:
    kind = d.need("pred", *BITS)
    d.done(2)
    write = d.destination(0, kind)
    a = d.predicate(d.operands[1]) if kind == "pred" else d.source(1, kind)
    d.plain(lambda x: write(x, ~a(x)))


def _cnot(d: Decoder) -> None:
    kind = d.need(*BITS)
    d.done(2)
    write = d.destination(0, kind)
    a = d.source(1, kind)
    dtype = dtype_of(kind)
    d.plain(lambda x: write(x, (a(x) == 0).astype(dtype)))


def _shl(d: Decoder) -> None:
    _shift(d, d.need(*BITS), shift_left)


def _shr(d: Decoder) -> None:
    _shift(d, d.need(*BITS, "u16", "u32", "u64", "s16", "s32", "s64"), shift_right)


def _shift(d: Decoder, kind: str, function: Callable[[Ints, Ints], Ints]) -> None:
    """The amount is always an unsigned 32-bit value; beyond the width it acts as the width."""
    d.done(3)
    write = d.destination(0, kind)
    a, amount = d.signed(1, kind), d.source(2, "u32")
    dtype = dtype_of(kind)
    d.plain(lambda x: write(x, function(a(x), amount(x)).view(dtype)))


def _shf(d: Decoder) -> None:
    left = d.need("l", "r") == "l"
    wraps = d.need("clamp", "wrap") == "wrap"
    d.need("b32")
    d.done(4)
    write = d.destination(0, "b32")
    a, b, amount = (d.source(i, "b32") for i in (1, 2, 3))

    def function(low: Ints, high: Ints, n: Ints) -> Ints:
        both = high.astype(np.uint64) << np.uint64(32) | low
        shift = (n & np.uint32(31) if wraps else np.minimum(n, np.uint32(32))).astype(np.uint64)
        if left:
            return (both << shift >> np.uint64(32)).astype(np.uint32)
        return (both >> shift).astype(np.uint32)

    d.plain(lambda x: write(x, function(a(x), b(x), amount(x))))


def _lop3(d: Decoder) -> None:
    combine = d.take("or", "and")
    d.need("b32")
    d.done(6 if combine else 5)
    table = d.immediate(4)
    if not 0 <= table <= 255:
        d.fail(f"look-up table {table}")
    first, second = d.pair(0)
    if (second is not None) != bool(combine):
        d.fail("a predicate result goes with .and or .or")
    write = d.write(first, "b32")
    a, b, c = (d.source(i, "b32") for i in (1, 2, 3))

    def function(a: Ints, b: Ints, c: Ints) -> Ints:
        result = np.zeros(max(len(a), len(b), len(c)), np.uint32)
        for index in range(8):
            if table >> index & 1:
                result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        return result

    if second is None:
        d.plain(lambda x: write(x, function(a(x), b(x), c(x))))
        return
    write_predicate, other = d.write(second, "pred"), d.predicate(d.operands[5])
    boolean = np.logical_or if combine == "or" else np.logical_and

    def run(x: Any) -> None:
        result = function(a(x), b(x), c(x))
        predicate = boolean(result != 0, other(x))
        write(x, result)
        write_predicate(x, predicate)

    d.plain(run)


def _count(function: Callable[[Ints], Ints]) -> Decode:
    """popc, clz: u32 results of 32- or 64-bit sources."""

    def decode(d: Decoder) -> None:
        kind = d.need("b32", "b64")
        d.done(2)
        write, a = d.destination(0, "u32"), d.source(1, kind)
        d.plain(lambda x: write(x, function(a(x))))

    return decode


def _brev(d: Decoder) -> None:
    kind = d.need("b32", "b64")
    d.done(2)
    write, a = d.destination(0, kind), d.source(1, kind)
    d.plain(lambda x: write(x, reverse_bits(a(x))))


def _bfind(d: Decoder) -> None:
    amount = d.flag("shiftamt")
    kind = d.need("u32", "u64", "s32", "s64")
    d.done(2)
    write, a = d.destination(0, "u32"), d.source(1, kind)
    top = np.uint32(8 * size_of(kind) - 1)

    def function(value: Ints) -> Ints:
        found = find_leading(value, is_signed(kind))
        return np.where(found == ALL_ONES, found, top - found) if amount else found

    d.plain(lambda x: write(x, function(a(x))))


def _bfe(d: Decoder) -> None:
    kind = d.need("u32", "u64", "s32", "s64")
    d.done(4)
    write = d.destination(0, kind)
    a, position, length = d.source(1, kind), d.source(2, "u32"), d.source(3, "u32")
    dtype, width, signed = dtype_of(kind), 8 * size_of(kind), is_signed(kind)

    def function(value: Ints, start: Ints, count: Ints) -> Ints:
        start, count = start & np.uint32(0xFF), count & np.uint32(0xFF)
        field = shift_right(value, start) & mask_below(count, dtype)
        if not signed:
            return field
        top = np.minimum(start + count - np.where(count == 0, 0, 1).astype(np.uint32), width - 1).astype(dtype)
        sign = (value >> top & np.ones(1, dtype)).astype(np.bool_) & (count != 0)
        present = mask_below(np.minimum(count, width - np.minimum(start, width)), dtype)
        return np.where(sign, field | ~present, field).astype(dtype)

    d.plain(lambda x: write(x, function(a(x), position(x), length(x))))


def _bfi(d: Decoder) -> None:
    kind = d.need("b32", "b64")
    d.done(5)
    write = d.destination(0, kind)
    a, b, position, length = d.source(1, kind), d.source(2, kind), d.source(3, "u32"), d.source(4, "u32")
    dtype = dtype_of(kind)

    def function(inserted: Ints, value: Ints, start: Ints, count: Ints) -> Ints:
        start, count = start & np.uint32(0xFF), count & np.uint32(0xFF)
        mask = shift_left(mask_below(count, dtype), start)
        return (value & ~mask) | (shift_left(inserted, start) & mask)

    d.plain(lambda x: write(x, function(a(x), b(x), position(x), length(x))))


def _bmsk(d: Decoder) -> None:
    clamps = d.need("clamp", "wrap") == "clamp"
    d.need("b32")
    d.done(3)
    write, a, b = d.destination(0, "b32"), d.source(1, "b32"), d.source(2, "b32")
    dtype = np.dtype(np.uint32)

    def function(start: Ints, count: Ints) -> Ints:
        if not clamps:
            start, count = start & np.uint32(31), count & np.uint32(31)
        start, count = np.minimum(start, np.uint32(32)), np.minimum(count, np.uint32(32))
        return shift_left(mask_below(count, dtype), start)

    d.plain(lambda x: write(x, function(a(x), b(x))))


def _szext(d: Decoder) -> None:
    clamps = d.need("clamp", "wrap") == "clamp"
    kind = d.need("u32", "s32")
    d.done(3)
    write, a, b = d.destination(0, kind), d.source(1, kind), d.source(2, "u32")
    dtype = np.dtype(np.uint32)

    def function(value: Ints, count: Ints) -> Ints:
        count = np.minimum(count, np.uint32(32)) if clamps else count & np.uint32(31)
        mask = mask_below(count, dtype)
        kept = value & mask
        if kind == "u32":
            return kept
        sign = (shift_right(kept, count - np.uint32(1)) & np.uint32(1)) != 0
        return np.where(sign & (count != 0), kept | ~mask, kept)

    d.plain(lambda x: write(x, function(a(x), b(x))))


def _fns(d: Decoder) -> None:
    d.need("b32")
    d.done(4)
    write = d.destination(0, "b32")
    mask, base, offset = d.source(1, "b32"), d.source(2, "b32"), d.signed(3, "s32")

    def function(bits: Ints, start: Ints, nth: Ints) -> Ints:
        size = max(len(bits), len(start), len(nth))
        bits, start, nth = (np.broadcast_to(v, size) for v in (bits, start, nth))
        position = start.astype(np.int64)
        left = np.maximum(np.abs(nth.astype(np.int64)), 1)
        step = np.where(nth >= 0, 1, -1)
        result = np.full(size, ALL_ONES, np.uint32)
        for turn in range(32):
            inside = (position >= 0) & (position < 32) & (left > 0) & ((nth != 0) | (turn == 0))
            here = inside & ((bits >> (position & 31).astype(np.uint32) & np.uint32(1)) != 0)
            left = left - here
            result = np.where(here & (left == 0), position.astype(np.uint32), result)
            position = position + step
        return result

    d.plain(lambda x: write(x, function(mask(x), base(x), offset(x))))


_MODES: dict[str, Callable[[Ints, int], Ints]] = {
    "f4e": lambda select, k: select + k,
    "b4e": lambda select, k: (select - k) & 7,
    "rc8": lambda select, k: select,
    "ecl": np.maximum,
    "ecr": np.minimum,
    "rc16": lambda select, k: 2 * (select & 1) + (k & 1),
}
"""Which of the eight source bytes result byte k is, by the two low bits of the selector."""


def _prmt(d: Decoder) -> None:
    d.need("b32")
    mode = d.take(*_MODES)
    d.done(4)
    write = d.destination(0, "b32")
    a, b, c = (d.source(i, "b32") for i in (1, 2, 3))

    def function(low: Ints, high: Ints, select: Ints) -> Ints:
        both = high.astype(np.uint64) << np.uint64(32) | low
        result = np.zeros(max(len(both), len(select)), np.uint32)
        for k in range(4):
            if mode:
                chosen = _MODES[mode]((select & np.uint32(3)).astype(np.int64), k).astype(np.uint64)
            else:
                chosen = (select >> np.uint32(4 * k) & np.uint32(7)).astype(np.uint64)
            octet = (both >> (chosen * np.uint64(8)) & np.uint64(0xFF)).astype(np.uint32)
            if not mode:
                replicate = (select >> np.uint32(4 * k + 3) & np.uint32(1)) != 0
                octet = np.where(replicate, np.where(octet >= 0x80, np.uint32(0xFF), np.uint32(0)), octet)
            result |= octet << np.uint32(8 * k)
        return result

    d.plain(lambda x: write(x, function(a(x), b(x), c(x))))


TABLE: dict[str, Decode] = {
    "and": _logic(np.bitwise_and), "or": _logic(np.bitwise_or), "xor": _logic(np.bitwise_xor), "not": _not,
    "cnot": _cnot, "shl": _shl, "shr": _shr, "shf": _shf, "lop3": _lop3, "popc": _count(population),
    "clz": _count(leading_zeros), "brev": _brev, "bfind": _bfind, "bfe": _bfe, "bfi": _bfi, "bmsk": _bmsk,
    "szext": _szext, "fns": _fns, "prmt": _prmt,
}
