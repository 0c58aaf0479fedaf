"""mov and the moves of parameters: registers, constants, addresses, and packing and unpacking of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxparse.model import TYPE_BYTES, Operand, Register, Vector
from softgpu.engine.emit.modifiers import Modifiers
from softgpu.engine.ir import Value, bits
from softgpu.engine.ops.operation import TYPES

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

_TYPES = ("pred", "b16", "b32", "b64", "b128", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")


def mov(lower: Lower) -> None:
    m = Modifiers(lower)
    kind = m.need(*_TYPES)
    m.done(2)
    target, source = lower.instruction.operands
    if isinstance(target, Vector):
        _unpack(lower, kind, target.items)
    elif isinstance(source, Vector):
        _pack(lower, kind, source.items)
    else:
        copy(lower, target, source, kind)


def copy(lower: Lower, target: Operand, source: Operand, kind: str, wide: bool = False) -> None:
    """A register to register move; a NaN that waits to be made canonical may go on waiting in the target."""
    web = lower.webs.defined[lower.index].get(target.name) if isinstance(target, Register) else None
    scalar = web is not None and lower.scalar_web(web) and lower.is_scalar(source, kind)
    lazy = web is not None and web.number in lower.lazy
    value = lower.read(source, kind, vector=not scalar, wide=wide, observe=not lazy)
    lower.write(target, kind, value, wide)


def move(lower: Lower) -> None:
    """``$move.T``: what a store and a load of type T through memory would do."""
    kind = lower.instruction.modifiers[-1]
    target, source = lower.instruction.operands
    copy(lower, target, source, kind, wide=True)


def _element(lower: Lower, kind: str, count: int) -> int:
    """Bits of an element of a packed value."""
    size = TYPE_BYTES[kind] // count
    if size * count != TYPE_BYTES[kind] or size not in (1, 2, 4, 8):
        lower.fail(f"{count} elements in .{kind}")
    return 8 * size


def _pack(lower: Lower, kind: str, items: tuple[Operand, ...]) -> None:
    """The first element becomes the least significant part."""
    b = lower.builder
    width = _element(lower, kind, len(items))
    scalar = all(lower.operand_shape(item, f"b{width}").uniform for item in items)
    whole = f"i{8 * TYPE_BYTES[kind]}"
    result: Value | None = None
    for number, item in enumerate(items):
        part = b.zext(lower.read(item, f"b{width}", vector=not scalar), whole)
        if number:
            part = b.shl(part, b.like(number * width, part))
        result = part if result is None else b.or_(result, part)
    assert result is not None
    lower.write(lower.instruction.operands[0], kind, b.bitcast(result, TYPES[kind]))


def _unpack(lower: Lower, kind: str, items: tuple[Operand, ...]) -> None:
    b = lower.builder
    width = _element(lower, kind, len(items))
    source = lower.instruction.operands[1]
    scalar = lower.operand_shape(source, kind).uniform
    value = b.bitcast(lower.read(source, kind, vector=not scalar), f"i{8 * TYPE_BYTES[kind]}")
    parts = []
    for number in range(len(items)):
        part = b.lshr(value, b.like(number * width, value)) if number else value
        parts.append(b.trunc(part, f"i{width}") if bits(part.type) != width else part)
    for item, part in zip(items, parts, strict=True):
        if item != Register("_"):
            lower.write(item, f"b{width}", part)
