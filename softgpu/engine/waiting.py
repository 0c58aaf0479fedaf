"""Where threads wait for one another: block boundaries at barriers and exchanges, and ``$yield`` in waiting loops.

A loop may wait when leaving it depends on what another thread writes: on the result of an atomic or of a volatile,
relaxed or acquire load inside it. Such a loop gives its turn away now and then, so that the other thread gets one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxparse.flow import Flow
from ptxparse.model import Address, Instruction, Negated, Operand, Pair, Register, Vector
from softgpu.engine.flatten import Flat, mnemonic

BARRIERS = ("bar", "barrier")
MEETINGS = ("shfl", "vote", "match", "redux", "elect", "ldmatrix", "stmatrix", "movmatrix", "mma", "wmma")
_SHARED_LOADS = frozenset({"volatile", "relaxed", "acquire", "mmio"})


def is_barrier(instruction: Instruction) -> bool:
    """A block barrier that waits (``arrive`` does not)."""
    return (instruction.opcode in BARRIERS and "warp" not in instruction.modifiers
            and "arrive" not in instruction.modifiers)


def is_meeting(instruction: Instruction) -> bool:
    """An instruction at which the lanes of its member mask come together."""
    if instruction.opcode == "bar" and "warp" in instruction.modifiers:
        return True
    return instruction.opcode in MEETINGS


def prepare(flat: Flat) -> None:
    """Insert yields, and labels so that wait points stand at block boundaries: a barrier or yield ends its block, a
    meeting begins one."""
    heads = _waiting_heads(flat)
    out: list[Instruction] = []
    moved: dict[int, int] = {}
    extra: dict[str, int] = {}
    for index, instruction in enumerate(flat.instructions):
        moved[index] = len(out)
        if index in heads:
            out.append(Instruction(mnemonic("$yield"), (), instruction.line))
            extra[f"$turn{len(out)}"] = len(out)
        if is_meeting(instruction):
            extra[f"$meet{len(out)}"] = len(out)
        out.append(instruction)
        if is_barrier(instruction):
            extra[f"$after{len(out)}"] = len(out)
    moved[len(flat.instructions)] = len(out)
    flat.instructions = out
    flat.labels = {**{label: moved[index] for label, index in flat.labels.items()}, **extra}


def _waiting_heads(flat: Flat) -> set[int]:
    """Instruction indices of the heads of loops that may wait."""
    flow = Flow(flat.instructions, flat.labels, flat.targets)
    heads: set[int] = set()
    for loop in flow.loops:
        if _waits(flow, loop.blocks):
            heads.add(flow.blocks[loop.header].start)
    if flow.irreducible and _waits(flow, flow.tangled):
        heads.update(flow.blocks[b].start for b in flow.irreducible)
    return heads


def _waits(flow: Flow, blocks: set[int]) -> bool:
    tainted: set[str] = set()
    inside = [i for b in sorted(blocks) for i in flow.instructions[flow.blocks[b].start:flow.blocks[b].end]]
    sources = [i for i in inside if i.opcode == "atom" or (i.opcode == "ld" and _SHARED_LOADS & set(i.modifiers))]
    if not sources:
        return False
    for instruction in sources:
        tainted.update(written(instruction))
    changed = True
    while changed:
        changed = False
        for instruction in inside:
            if tainted.isdisjoint(read(instruction)):
                continue
            for name in written(instruction):
                if name not in tainted:
                    tainted.add(name)
                    changed = True
    return any(i.opcode in ("bra", "brx", "exit") and not tainted.isdisjoint(read(i)) for i in inside)


_NO_RESULT = frozenset({
    "st", "red", "bra", "brx", "exit", "ret", "trap", "brkpt", "membar", "fence", "cp", "nanosleep", "prefetch",
    "prefetchu", "stmatrix", "applypriority", "discard", "griddepcontrol", "pmevent", "setmaxnreg", "$yield",
    "$bad_call",
})


def destinations(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that an instruction writes."""
    opcode = instruction.opcode
    if opcode in _NO_RESULT or (opcode == "wmma" and "store" in instruction.modifiers):
        return ()
    if opcode in BARRIERS:
        return instruction.operands[:1] if "red" in instruction.modifiers else ()
    return instruction.operands[:1]


def sources(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that an instruction reads."""
    return instruction.operands[len(destinations(instruction)):]


def registers(operands: Iterable[Operand]) -> Iterator[str]:
    """Names of all registers in some operands."""
    for operand in operands:
        if isinstance(operand, Register):
            yield operand.name
        elif isinstance(operand, Vector):
            yield from registers(operand.items)
        elif isinstance(operand, Pair):
            yield from registers((operand.first, operand.second))
        elif isinstance(operand, Negated):
            yield from registers((operand.operand,))
        elif isinstance(operand, Address):
            yield from registers((operand.base, *operand.extra))


CARRY = "%cc"
"""The carry flag as a register of its own."""
_READ_CARRY = ("addc", "subc", "madc")


def written(instruction: Instruction) -> list[str]:
    """Registers that an instruction writes, the carry flag included."""
    found = [name for name in registers(destinations(instruction)) if name != "_"]
    if "cc" in instruction.modifiers:
        found.append(CARRY)
    return found


def read(instruction: Instruction) -> list[str]:
    """Registers that an instruction reads: operands, its guard, the carry flag."""
    found = [name for name in registers(sources(instruction)) if name != "_"]
    if instruction.predicate is not None:
        found.append(instruction.predicate.name)
    if instruction.opcode in _READ_CARRY:
        found.append(CARRY)
    return found
