"""What each instruction of a kernel reads and writes, looked up once."""

from __future__ import annotations

from ptxparse.model import Address, Instruction, Negated, Operand, Pair, Register, Vector
from ptxparse.opcodes import Opcode, lookup


def registers_in(operand: Operand) -> tuple[str, ...]:
    """Names of the registers an operand holds."""
    kind = type(operand)
    if kind is Register:
        return (operand.name,)  # type: ignore[union-attr]
    if isinstance(operand, Address):
        found = registers_in(operand.base)
        for extra in operand.extra:
            found += registers_in(extra)
        return found
    if isinstance(operand, Vector):
        return tuple([name for item in operand.items for name in registers_in(item)])
    if isinstance(operand, Pair):
        return registers_in(operand.first) + registers_in(operand.second)
    if isinstance(operand, Negated):
        return registers_in(operand.operand)
    return ()


class Usage:
    """By index into the instructions: ``rows`` of the opcode table, registers in ``writes`` and ``reads`` (the guard
    is read too). An unknown opcode may write any register it names; it makes the kernel opaque anyway."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.rows: list[Opcode | None] = []
        self.writes: list[tuple[str, ...]] = []
        self.reads: list[tuple[str, ...]] = []
        for instruction in instructions:
            row = lookup(instruction.op)
            operands = instruction.operands
            if instruction.op.opcode == "call" and len(operands) == 4:
                writes = registers_in(operands[0])
                reads = registers_in(operands[1]) + registers_in(operands[2])
            else:
                count = len(operands) if row is None else row.destinations
                writes = reads = ()
                for position, operand in enumerate(operands):
                    names = registers_in(operand)
                    if names:
                        if position >= count or isinstance(operand, Address):
                            reads += names
                        else:
                            writes += names
                if "_" in writes:
                    writes = tuple([name for name in writes if name != "_"])
            if instruction.predicate is not None:
                reads += (instruction.predicate.name,)
            self.rows.append(row)
            self.writes.append(writes)
            self.reads.append(reads)
