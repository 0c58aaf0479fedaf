"""Logic and bits: and, or, xor, not, cnot, popc, clz, brev, bfind, fns, and the families of neighbouring files.

Source: PTX manual, "Logic and Shift Instructions" and "Integer Arithmetic Instructions".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from softgpu.engine.ir import Builder, Value, bits, element
from softgpu.engine.ops import dot, fields, lop3, permute, shifts
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.shifts import shift_logical

_BITS = ("b16", "b32", "b64")


def _gate(operation: str, builder: Builder, a: Value, b: Value) -> Value:
    return builder.binary(operation, a, b)


def _not(builder: Builder, a: Value) -> Value:
    return builder.invert(a)


def _cnot(builder: Builder, a: Value) -> Value:
    return builder.zext(builder.icmp("eq", a, builder.zero(a.type)), element(a.type))


def _popc(builder: Builder, a: Value) -> Value:
    return builder.resize(builder.intrinsic("llvm.ctpop", element(a.type), a), "i32")


def leading_zeros(builder: Builder, a: Value) -> Value:
    """Zero bits above the highest one bit, the width for 0; as i32."""
    count = builder.intrinsic("llvm.ctlz", element(a.type), a, extra=(builder.constant(0, "i1"),))
    return builder.resize(count, "i32")


def _brev(builder: Builder, a: Value) -> Value:
    return builder.intrinsic("llvm.bitreverse", element(a.type), a)


def _bfind(signed: bool, amount: bool, builder: Builder, a: Value) -> Value:
    """Position of the highest one bit, or how far to shift it to the top; -1 for none. In signed values the highest
    bit that differs from the sign."""
    last = bits(a.type) - 1
    if signed:
        a = builder.xor(a, builder.ashr(a, builder.like(last, a)))
    zeros = leading_zeros(builder, a)
    if not amount:
        return builder.sub(builder.like(last, zeros), zeros)
    return builder.select(builder.icmp("eq", a, builder.zero(a.type)), builder.like(-1, zeros), zeros)


def _fns(builder: Builder, mask: Value, base: Value, offset: Value) -> Value:
    """The |offset|-th one bit of ``mask`` from bit ``base`` on, upward or (negative offsets) downward; for offset 0
    the bit ``base`` itself. All ones if there is none, and for a base above 31, which the manual leaves undefined.

    Downward is upward in the reversed mask. The bit is found by halves: if the lower half of what is left has too few
    ones, it is skipped.
    """

    def constant(number: int) -> Value:
        return builder.like(number, mask)

    zero = constant(0)
    down, none = builder.icmp("slt", offset, zero), builder.icmp("eq", offset, zero)
    left = builder.select(down, _brev(builder, mask), mask)
    start = builder.select(down, builder.sub(constant(31), base), base)
    left = builder.and_(left, shift_logical(builder, "shl", constant(-1), start))
    single = builder.and_(mask, shift_logical(builder, "shl", constant(1), base))
    left = builder.select(none, single, left)
    distance = builder.intrinsic("llvm.abs", "i32", offset, extra=(builder.constant(0, "i1"),))
    wanted = builder.select(none, constant(1), distance)
    position = zero
    for width in (16, 8, 4, 2, 1):
        ones = _popc(builder, builder.and_(left, constant((1 << width) - 1)))
        skip = builder.icmp("ugt", wanted, ones)
        wanted = builder.select(skip, builder.sub(wanted, ones), wanted)
        left = builder.select(skip, builder.lshr(left, constant(width)), left)
        position = builder.select(skip, builder.add(position, constant(width)), position)
    last = builder.icmp("ne", builder.and_(left, constant(1)), zero)
    inside = builder.icmp("ult", base, constant(32))
    found = builder.and_(inside, builder.and_(last, builder.icmp("eq", wanted, constant(1))))
    result = builder.select(down, builder.sub(constant(31), position), position)
    return builder.select(found, result, constant(-1))


def _own() -> Iterator[Operation]:
    for kind in ("pred", *_BITS):
        for operation in ("and", "or", "xor"):
            yield Operation(f"{operation}.{kind}", (kind, kind), (kind,), partial(_gate, operation))
        yield Operation(f"not.{kind}", (kind,), (kind,), _not)
    for kind in _BITS:
        yield Operation(f"cnot.{kind}", (kind,), (kind,), _cnot)
    for kind in ("b32", "b64"):
        yield Operation(f"popc.{kind}", (kind,), ("u32",), _popc)
        yield Operation(f"clz.{kind}", (kind,), ("u32",), leading_zeros)
        yield Operation(f"brev.{kind}", (kind,), (kind,), _brev)
    for kind in ("u32", "u64", "s32", "s64"):
        yield Operation(f"bfind.{kind}", (kind,), ("u32",), partial(_bfind, kind[0] == "s", False))
        yield Operation(f"bfind.shiftamt.{kind}", (kind,), ("u32",), partial(_bfind, kind[0] == "s", True))
    yield Operation("fns.b32", ("b32", "b32", "s32"), ("b32",), _fns)


def operations() -> Iterator[Operation]:
    """All of them."""
    yield from _own()
    for family in (shifts, fields, lop3, permute, dot):
        yield from family.operations()
