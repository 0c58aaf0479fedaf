"""What every instruction must look like before anything is said about it: a known mnemonic, enough operands.

The passes behind this one take operands by their position. What a known number of operands means is left to the
emitters; they refuse what they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxparse.model import TYPE_BYTES, Address, FloatImmediate, Instruction, Operand, Symbol, Vector
from softgpu.engine.emit.dispatch import OPCODES, three_inputs
from softgpu.engine.errors import UnsupportedKernel
from softgpu.engine.flatten import Flat
from softgpu.engine.ops.operation import Operation

_COUNTS = {
    "ld": (2, 3), "ldu": (2, 2), "st": (2, 3), "atom": (3, 5), "red": (2, 3), "cvta": (2, 2), "isspacep": (2, 2),
    "prefetch": (1, 1), "prefetchu": (1, 1), "applypriority": (2, 2), "discard": (2, 2), "createpolicy": (1, 4),
    "cp": (0, 5), "shfl": (5, 5), "vote": (3, 3), "match": (3, 3), "redux": (3, 3), "activemask": (1, 1),
    "elect": (2, 2), "mov": (2, 2), "ldmatrix": (2, 2), "stmatrix": (2, 2), "movmatrix": (2, 2), "wmma": (2, 5),
    "bar": (1, 4), "barrier": (1, 4), "bra": (1, 1), "brx": (2, 2), "nanosleep": (1, 1), "setmaxnreg": (1, 1),
    "pmevent": (1, 1), "trap": (0, 0), "brkpt": (0, 0), "membar": (0, 0),
    "fence": (0, 0), "griddepcontrol": (0, 0),
}
"""Fewest and most operands of the opcodes that are not in the tables of operations."""
_TYPED = ("ld", "ldu", "st", "mov")
_ELSEWHERE = ("bra", "brx", "exit", "ret", "call")


def check_forms(flat: Flat, operations: Mapping[str, Operation]) -> None:
    """Raises UnsupportedKernel for the first instruction that is not of a form that the engine knows."""
    for instruction in flat.instructions:
        reason = _wrong(instruction, operations) or _wrong_target(instruction, flat)
        if reason:
            raise UnsupportedKernel(instruction.mnemonic, instruction.line, reason)


def _wrong(instruction: Instruction, operations: Mapping[str, Operation]) -> str:
    opcode, count = instruction.opcode, len(instruction.operands)
    if opcode.startswith("$"):
        return ""
    operation = operations.get(instruction.mnemonic)
    if opcode in ("min", "max") and count == 4:
        operation = three_inputs().get(instruction.mnemonic)
    if operation is not None:
        needed = 1 + sum(source != "cc" for source in operation.sources)
        if not operation.warp and count != needed:
            return f"{count} operands"
        kinds = [source for source in operation.sources if source != "cc"]
        return "" if operation.warp else _wrong_constants(instruction.operands[1:], kinds)
    if opcode not in OPCODES and opcode not in _ELSEWHERE:
        known = any(name.partition(".")[0] == opcode for name in operations)
        return "not in the table of supported mnemonics" if known else "unknown opcode"
    fewest, most = _COUNTS.get(opcode, (0, count))
    if not fewest <= count <= most:
        return f"{count} operands"
    if opcode in _TYPED and (not instruction.modifiers or (instruction.modifiers[-1] not in TYPE_BYTES
                                                           and instruction.modifiers[-1] not in ("pred", "unified"))):
        return "no type"
    if opcode in ("st", "mov") and not isinstance(instruction.operands[1], Vector):
        return _wrong_constants(instruction.operands[1:2], instruction.modifiers[-1:])
    if opcode in ("bar", "barrier") and not {"sync", "red", "arrive"} & set(instruction.modifiers):
        return "neither .sync nor .red nor .arrive"
    if opcode in ("ld", "ldu") and not isinstance(instruction.operands[1], Address):
        return f"operand {instruction.operands[1]!r} is not an address"
    return ""


def _wrong_target(instruction: Instruction, flat: Flat) -> str:
    """What is wrong with the place that a branch goes to."""
    if instruction.opcode not in ("bra", "brx"):
        return ""
    place = instruction.operands[-1]
    known = flat.labels if instruction.opcode == "bra" else flat.targets
    if not isinstance(place, Symbol) or place.name not in known:
        return f"operand {place!r} is not a {'label' if known is flat.labels else 'list of labels'}"
    missing = [name for name in flat.targets.get(place.name, ()) if name not in flat.labels]
    return f"{missing[0]} is not a label" if missing else ""


def _wrong_constants(operands: Sequence[Operand], kinds: Sequence[str]) -> str:
    """What is wrong with floating-point constants where integers or bits go: their width."""
    for operand, kind in zip(operands, kinds, strict=True):
        if isinstance(operand, FloatImmediate) and kind[0] in "sub" and kind[1:].isdigit() and (
                int(kind[1:]) != operand.width):
            return f"a floating-point constant where .{kind} goes"
    return ""
