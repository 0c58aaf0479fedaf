"""Shapes of what each instruction computes, from the shapes of its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxparse.model import Address, Immediate, Instruction, Operand, Register, Symbol
from softgpu.engine import shapes
from softgpu.engine.ops.operation import TYPES
from softgpu.engine.shapes import DIVERGENT, UNIFORM, WARP, Shape

if TYPE_CHECKING:
    from softgpu.engine.analysis import Analysis

Result = Shape | dict[str, Shape] | None

_WIDTH = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


def _width(instruction: Instruction) -> int:
    return _WIDTH.get(TYPES.get(instruction.modifiers[-1], ""), 0) if instruction.modifiers else 0


def result_shape(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    """Shape of every result, or of each by register; None while an operand's is unknown."""
    handler = _HANDLERS.get(instruction.opcode)
    if handler is not None:
        return handler(analysis, index, instruction)
    return general(analysis, index, instruction)


def general(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    """Any pure function of the operands."""
    found = _operands(analysis, index, instruction.operands[1:])
    if found is None:
        return None
    carry = analysis.webs.used[index].get("%cc")
    if carry is not None:
        shape = analysis._optimistic[carry.number]
        if shape is None:
            return None
        found.append(shape)
    return shapes.elementwise(*found)


def _operands(analysis: Analysis, index: int, operands: tuple[Operand, ...], type_: str = "b32") -> list[Shape] | None:
    found = []
    for operand in operands:
        shape = analysis.of(index, operand, type_)
        if shape is None:
            return None
        found.append(shape)
    return found


Rule = Callable[[list[Shape], int, Instruction], Shape | None]


def _integer(rule: Rule) -> Callable[[Analysis, int, Instruction], Result]:
    """A rule for integers of one width; what it does not know is elementwise."""

    def handler(analysis: Analysis, index: int, instruction: Instruction) -> Result:
        width = _width(instruction)
        kind = instruction.modifiers[-1] if instruction.modifiers else ""
        if not width or kind in ("f16", "bf16", "f16x2", "bf16x2", "u16x2", "s16x2", "f32x2"):
            return general(analysis, index, instruction)
        found = _operands(analysis, index, instruction.operands[1:], kind)
        if found is None:
            return None
        shape = rule(found, width, instruction)
        return general(analysis, index, instruction) if shape is None else shape

    return handler


def _only(instruction: Instruction, *allowed: str) -> bool:
    """Whether an instruction has no modifiers but these and its type."""
    return all(m in allowed for m in instruction.modifiers[:-1])


def _add(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    return shapes.add(a[0], a[1], width) if _only(i) else None


def _sub(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    return shapes.sub(a[0], a[1], width) if _only(i) else None


def _mul(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    if "wide" in i.modifiers:
        signed = i.modifiers[-1][0] == "s"
        first, second = (shapes.extend(x, width, 2 * width, signed) for x in a[:2])
        return shapes.multiply(first, second, 2 * width)
    return shapes.multiply(a[0], a[1], width) if _only(i, "lo") and "lo" in i.modifiers else None


def _mad(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    product = _mul(a, width, i)
    if product is None:
        return None
    return shapes.add(product, a[2], 2 * width if "wide" in i.modifiers else width)


def _mad_types(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    """The addend of ``mad.wide`` is as wide as the result."""
    kind = instruction.modifiers[-1]
    if "wide" not in instruction.modifiers:
        return _integer(_mad)(analysis, index, instruction)
    factors = _operands(analysis, index, instruction.operands[1:3], kind)
    addend = analysis.of(index, instruction.operands[3], f"{kind[0]}{2 * _width(instruction)}")
    if factors is None or addend is None:
        return None
    return _mad([*factors, addend], _width(instruction), instruction)


def _shl(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    amount = a[1].constant
    if amount is None:
        return None
    return shapes.scale(a[0], 1 << amount, width) if amount < width else shapes.constant(0, width)


def _shr(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    amount = a[1].constant
    if amount is None:
        return None
    signed = i.modifiers[-1][0] == "s"
    if amount >= width:
        if not signed:
            return shapes.constant(0, width)
        amount = width - 1
    return shapes.shift_right(a[0], amount, width, signed)


def _and(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    for x, operand in ((a[0], i.operands[2]), (a[1], i.operands[1])):
        if not isinstance(operand, Immediate):
            continue
        value = operand.value & ((1 << width) - 1)
        if x.high is not None:  # what the value cannot have anyway need not be cleared
            possible = (1 << x.high.bit_length()) - 1
            if (value & possible) | (value & -value) - 1 == possible and value & possible:
                return shapes.clear(x, (value & -value).bit_length() - 1, width)
        if value & (value + 1) == 0:
            return shapes.mask(x, value.bit_length(), width)
        inverse = value ^ ((1 << width) - 1)
        if inverse & (inverse + 1) == 0:
            return shapes.clear(x, inverse.bit_length(), width)
        if value < 1 << (width - 1):
            shape = shapes.elementwise(x)
            return replace(shape, low=0, high=value)
    return None


def _or(a: list[Shape], width: int, i: Instruction) -> Shape | None:
    return shapes.either(a[0], a[1], width)


def _mov(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    destination, source = instruction.operands[0], instruction.operands[1]
    if isinstance(destination, Register) and isinstance(source, Register | Immediate | Symbol):
        return analysis.of(index, source, instruction.modifiers[-1])
    return general(analysis, index, instruction)


def _move(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    """``$move.T``: truncated to T and extended again where the registers are wider."""
    destination, source = instruction.operands
    kind = instruction.modifiers[-1]
    shape = analysis.of(index, source, kind)
    if shape is None:
        return None
    widths = {analysis_width(analysis, o, kind) for o in (destination, source)} | {_WIDTH.get(TYPES[kind], 32)}
    return shape if len(widths) == 1 else shapes.elementwise(shape)


def analysis_width(analysis: Analysis, operand: Operand, kind: str) -> int:
    """Bits of a register, or of a type for another operand."""
    declared = analysis.flat.types.get(operand.name, kind) if isinstance(operand, Register) else kind
    return _WIDTH.get(TYPES.get(declared, ""), 32)


def _cvt(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    """Between integers, without saturation; others may have several sources."""
    if len(instruction.operands) > 2:
        return general(analysis, index, instruction)
    shape = analysis.of(index, instruction.operands[1], instruction.modifiers[-1])
    if shape is None:
        return None
    kinds = instruction.modifiers[-2:]
    if len(instruction.modifiers) == 2 and all(k[0] in "us" and k[1:].isdigit() for k in kinds):
        to, source = kinds
        to_width, from_width = int(to[1:]), int(source[1:])
        registers = [analysis_width(analysis, o, k) for o, k in zip(instruction.operands, kinds, strict=True)]
        if registers[1] > from_width:
            shape = shapes.truncate(shape, from_width) if shape.low is None or (
                shape.high is not None and shape.high >= 1 << (from_width - 1)) else shape
            if not shape.stays and shape.group > 1:
                return shapes.elementwise(shape)
        if to_width > from_width:
            shape = shapes.extend(shape, from_width, to_width, source[0] == "s")
        elif to_width < from_width:
            shape = shapes.truncate(shape, to_width)
        if registers[0] > to_width:
            shape = shapes.extend(shape, to_width, registers[0], to[0] == "s")
        return shape
    return shapes.elementwise(shape)


def _cvta(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    shape = analysis.of(index, instruction.operands[1], "u64")
    if shape is None:
        return None
    if any(m in ("global", "const") for m in instruction.modifiers):
        return shape
    return replace(shape, low=None, high=None, origin=None)


def _setp(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    kind = instruction.modifiers[-1]
    found = _operands(analysis, index, instruction.operands[1:], kind)
    if found is None:
        return None
    integers = kind[1:].isdigit() and kind[0] in "usb"
    if len(found) == 2 and integers:
        return shapes.compare(instruction.modifiers[0], found[0], found[1])
    if len(found) == 3 and integers:
        return shapes.elementwise(shapes.compare(instruction.modifiers[0], found[0], found[1]), found[2])
    return shapes.elementwise(*found)


def _bounded(limit: int) -> Callable[[Analysis, int, Instruction], Result]:
    def handler(analysis: Analysis, index: int, instruction: Instruction) -> Result:
        shape = general(analysis, index, instruction)
        return replace(shape, low=0, high=limit) if isinstance(shape, Shape) else shape

    return handler


def _ld(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    address = instruction.operands[1]
    assert isinstance(address, Address)
    shape = analysis.of(index, address)
    if shape is None:
        return None
    if not shape.uniform:
        return DIVERGENT
    base = address.base
    space = analysis.layout.space_of(base.name) if isinstance(base, Symbol) else None
    if space == "local" or any(m.startswith("local") for m in instruction.modifiers):
        return DIVERGENT
    if space is None and not any(m.partition("::")[0] in ("global", "shared", "const", "param")
                                 for m in instruction.modifiers):
        return DIVERGENT  # a generic address may be one of local memory
    if space == "param" and isinstance(base, Symbol):
        return Shape(WARP, root=analysis.layout.offset_of(base.name) + base.offset + address.offset)
    kind = instruction.modifiers[-1]
    narrow = {"u8": 255, "u16": 65535}.get(kind)
    zeros_above = narrow is not None and _registers_wider(analysis, instruction, kind)
    return Shape(WARP, low=0, high=narrow) if zeros_above else UNIFORM


def _registers_wider(analysis: Analysis, instruction: Instruction, kind: str) -> bool:
    return analysis_width(analysis, instruction.operands[0], kind) > 8 * {"u8": 1, "u16": 2}[kind]


def _fixed(shape: Shape) -> Callable[[Analysis, int, Instruction], Result]:
    return lambda analysis, index, instruction: shape


def _by_mask(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    """The same for all lanes that come together when they name the same members."""
    shape = analysis.of(index, instruction.operands[-1], "b32")
    if shape is None:
        return None
    return UNIFORM if shape.uniform else DIVERGENT


def _match(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    return _by_mask(analysis, index, instruction) if "all" in instruction.modifiers else DIVERGENT


def _selp(analysis: Analysis, index: int, instruction: Instruction) -> Result:
    found = _operands(analysis, index, instruction.operands[1:], instruction.modifiers[-1])
    if found is None:
        return None
    if found[2].uniform and instruction.modifiers[-1][0] in "usb":
        return replace(shapes.join(found[0], found[1]), root=found[0].root or found[1].root)
    return shapes.elementwise(*found)


_HANDLERS: dict[str, Callable[[Analysis, int, Instruction], Result]] = {
    "add": _integer(_add), "sub": _integer(_sub), "mul": _integer(_mul), "mad": _mad_types, "shl": _integer(_shl),
    "shr": _integer(_shr), "and": _integer(_and), "or": _integer(_or), "mov": _mov, "$move": _move, "cvt": _cvt,
    "cvta": _cvta, "setp": _setp, "selp": _selp, "ld": _ld, "ldu": _ld, "clz": _bounded(64), "popc": _bounded(64),
    "atom": _fixed(DIVERGENT), "shfl": _fixed(DIVERGENT), "vote": _by_mask, "match": _match, "redux": _by_mask,
    "activemask": _fixed(UNIFORM), "elect": _fixed(DIVERGENT), "mma": _fixed(DIVERGENT), "wmma": _fixed(DIVERGENT),
    "ldmatrix": _fixed(DIVERGENT), "movmatrix": _fixed(DIVERGENT), "bar": _fixed(UNIFORM), "barrier": _fixed(UNIFORM),
    "$builtin": _fixed(DIVERGENT), "createpolicy": _fixed(UNIFORM),
}
