"""Parameters of inlined calls as registers.

A ``.param`` variable that is only read and written at constant offsets, in cells that do not overlap, needs no memory:
each cell becomes a register, and its loads and stores become ``$move``, a move that truncates or extends like they do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ptxparse.model import TYPE_BYTES, Address, Instruction, Operand, Pair, Register, Symbol, Vector
from softgpu.engine.flatten import Flat, mnemonic

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def promote(flat: Flat) -> None:
    """Rewrite ``flat`` in place."""
    candidates = {name for name, variable in flat.locals.items() if variable.space == "param"}
    if not candidates:
        return
    cells: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for instruction in flat.instructions:
        access = _access(instruction)
        if access is not None:
            name, offset, width, count = access
            cells[name].update((offset + i * width, width) for i in range(count))
            value = instruction.operands[1 if instruction.opcode == "st" else 0]
            candidates.difference_update(_symbols(value))
            continue
        if instruction.opcode == "$builtin":  # its parameters are whole variables
            for name in _all_symbols(instruction.operands):
                if name in flat.locals:
                    cells[name].add((0, flat.locals[name].size))
            continue
        for operand in instruction.operands:
            candidates.difference_update(_symbols(operand))
    chosen = {name for name in candidates if _apart(cells[name])}
    out: list[Instruction] = []
    moved: dict[int, int] = {}
    for index, instruction in enumerate(flat.instructions):
        moved[index] = len(out)
        access = _access(instruction)
        if instruction.opcode == "$builtin":
            instruction.operands = tuple([_as_registers(flat, o, chosen) for o in instruction.operands])
        if access is None or access[0] not in chosen:
            out.append(instruction)
            continue
        out += _moves(flat, instruction, access)
    moved[len(flat.instructions)] = len(out)
    flat.instructions = out
    flat.labels = {label: moved[index] for label, index in flat.labels.items()}
    for name in chosen:
        del flat.locals[name]


def _access(instruction: Instruction) -> tuple[str, int, int, int] | None:
    """(variable, offset, bytes of an element, elements) of a ``ld.param`` or ``st.param`` at a constant offset."""
    if instruction.opcode not in ("ld", "st") or not instruction.modifiers[0].startswith("param"):
        return None
    address = instruction.operands[0 if instruction.opcode == "st" else 1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol) or address.extra:
        return None
    kind = instruction.modifiers[-1]
    count = next((_VECTORS[m] for m in instruction.modifiers if m in _VECTORS), 1)
    return address.base.name, address.base.offset + address.offset, TYPE_BYTES[kind], count


def _symbols(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Symbol):
        yield operand.name
    elif isinstance(operand, Address):
        yield from _symbols(operand.base)
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _symbols(item)
    elif isinstance(operand, Pair):
        yield from _symbols(operand.first)
        yield from _symbols(operand.second)


def _all_symbols(operands: tuple[Operand, ...]) -> Iterator[str]:
    for operand in operands:
        yield from _symbols(operand)


def _as_registers(flat: Flat, operand: Operand, chosen: set[str]) -> Operand:
    """Parameters of a built-in function by the registers of their cells."""
    if isinstance(operand, Vector):
        return Vector(tuple([_as_registers(flat, item, chosen) for item in operand.items]))
    if isinstance(operand, Symbol) and operand.name in chosen:
        register = Register(f"{operand.name}+0")
        flat.types.setdefault(register.name, f"b{8 * max(flat.locals[operand.name].size, 2)}")
        return register
    return operand


def _apart(cells: set[tuple[int, int]]) -> bool:
    end = 0
    for offset, width in sorted(cells):
        if offset < end:
            return False
        end = offset + width
    return True


def _moves(flat: Flat, instruction: Instruction, access: tuple[str, int, int, int]) -> Iterator[Instruction]:
    name, offset, width, count = access
    kind = instruction.modifiers[-1]
    value = instruction.operands[1 if instruction.opcode == "st" else 0]
    items = value.items if isinstance(value, Vector) else (value,)
    for number, item in enumerate(items[:count]):
        register = Register(f"{name}+{offset + number * width}")
        flat.types.setdefault(register.name, f"b{8 * max(width, 2)}")
        operands = (register, item) if instruction.opcode == "st" else (item, register)
        if operands[0] == Register("_"):
            continue
        yield Instruction(mnemonic(f"$move.{kind}"), operands, instruction.line, instruction.predicate,
                          instruction.negated)
