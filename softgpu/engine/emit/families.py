"""One check for several accesses: those of a block through one register, at constant distances from it.

Unrolled loops read ``[%rd1]``, ``[%rd1+4]``, ... The first such access checks the span of all that follow in its block.
Where that holds, all of them are inside. Where it does not (at the end of a buffer), each takes the slow path, which
looks at it alone, so that nothing that is inside is a fault and a fault is that of the right access.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxparse.model import TYPE_BYTES, Address, Instruction, Register
from softgpu.engine.ir import Value

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower
    from softgpu.engine.webs import Web

MOST_ACCESSES = 64
LONGEST = 2048
"""Bytes between the first and the last distance: the longer the span, the more warps near the end go slowly."""

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


@dataclass
class Family:
    """Distances [low, high) from the register, checked together up to instruction ``last``; ``align`` in bytes, of the
    lowest. ``passes`` is the i1 of the check."""

    low: int
    high: int
    align: int
    last: int
    members: set[int]
    passes: Value | None = None


def family_of(lower: Lower, web: Web, space: str) -> Family | None:
    """The family of the present access, made when it is the first of it; None when it has no other members."""
    index = lower.index
    known = lower.families.get((web.number, space))
    if known is not None and index in known.members:
        return known
    found = _ahead(lower, web, space, index)
    if found is None:
        return None
    lower.families[web.number, space] = found
    return found


def _ahead(lower: Lower, web: Web, space: str, start: int) -> Family | None:
    block = lower.flow.blocks[lower.analysis.block_of[start]]
    places: dict[int, tuple[int, int]] = {}
    for index in range(start, block.end):
        instruction = lower.flow.instructions[index]
        place = _place(instruction, web, space, lower.webs.used[index])
        if place is not None:
            places[index] = place
        if any(defined is web for defined in lower.webs.defined[index].values()) or len(places) == MOST_ACCESSES:
            break
    if start not in places:
        return None
    low, high = places[start][0], sum(places[start])
    align = places[start][1]
    members = {start}
    for index, (distance, width) in places.items():
        first, last = min(low, distance), max(high, distance + width)
        if last - first > LONGEST:
            continue
        low, high, align = first, last, max(align, width)
        members.add(index)
    members = {i for i in members if (places[i][0] - low) % places[i][1] == 0}
    if len(members) < 2 or start not in members:
        return None
    return Family(low, high, align, max(members), members)


def _place(instruction: Instruction, web: Web, space: str, used: dict[str, Web]) -> tuple[int, int] | None:
    """(distance, bytes) of an unguarded load or store through the register in that space."""
    if instruction.opcode not in ("ld", "st") or instruction.predicate is not None:
        return None
    address = instruction.operands[1 if instruction.opcode == "ld" else 0]
    if not isinstance(address, Address) or not isinstance(address.base, Register) or (
            used.get(address.base.name) is not web):
        return None
    modifiers = instruction.modifiers
    named = next((m.partition("::")[0] for m in modifiers
                  if m.partition("::")[0] in ("global", "shared", "const", "local", "param")), "")
    kind = next((m for m in reversed(modifiers) if m in TYPE_BYTES), "")
    if named != space or not kind:
        return None
    width = TYPE_BYTES[kind] * next((_VECTORS[m] for m in modifiers if m in _VECTORS), 1)
    return address.offset, width
