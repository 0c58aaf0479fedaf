"""vabsdiff2 and vabsdiff4: absolute differences of the parts of two registers (PTX ISA, "SIMD Video Instructions")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops.operation import Operation

_KINDS = ("u32", "s32")


def _part(b: Builder, x: Value, kind: str, number: int, width: int) -> Value:
    """One part of a register, extended to 32 bits by its kind."""
    left = b.shl(x, b.like(32 - width * (number + 1), x))
    return b.binary("ashr" if kind == "s32" else "lshr", left, b.like(32 - width, x))


def _emit(b: Builder, x: Value, y: Value, z: Value, *, parts: int, kinds: tuple[str, str], adds: bool) -> Value:
    width = 32 // parts
    result = z if adds else b.zero(x.type)
    for number in range(parts):
        difference = b.sub(_part(b, x, kinds[0], number, width), _part(b, y, kinds[1], number, width))
        apart = b.intrinsic("llvm.abs", "i32", difference, extra=(Value("false", "i1"),))
        if adds:
            result = b.add(result, apart)
        else:
            kept = b.and_(apart, b.like((1 << width) - 1, apart))
            result = b.or_(result, b.shl(kept, b.like(width * number, kept)))
    return result


def operations() -> Iterator[Operation]:
    """``.add`` sums the differences of all parts onto the third operand, which is not used otherwise."""
    for parts, a, c, adds in product((2, 4), _KINDS, _KINDS, (False, True)):
        mnemonic = f"vabsdiff{parts}.u32.{a}.{c}{'.add' if adds else ''}"
        emit = partial(_emit, parts=parts, kinds=(a, c), adds=adds)
        yield Operation(mnemonic, (a, c, "u32"), ("u32",), emit)
