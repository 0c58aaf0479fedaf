"""Pointers that are more than address bases: stored, compared, converted, passed on."""

from __future__ import annotations

from typing import Any

from ptxparse.loops import Loops
from ptxparse.model import Address
from ptxparse.opcodes import Effect
from ptxparse.usage import registers_in
from ptxparse.values import Graph, Sum
from ptxparse.walk import Walk, tests_for_null

_KEEPS = (Effect.STORE, Effect.ATOMIC, Effect.WARP)
_ON_DEVICE = ("global", "const", "")


def _addends(graph: Graph, value: Sum) -> set[int]:
    """Atoms that a value holds undisguised: its addends, and those of what it is chosen from. What an operation made of
    a pointer was noted where the operation took it."""
    found: set[int] = set()
    work = [value]
    seen: set[Sum] = set()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        for product, _ in value:
            for atom in product:
                node: tuple[Any, ...] = graph.nodes[atom]
                if node[0] == "alternatives":
                    work += [option for option, _ in node[1]]
                elif node[0] == "provided":
                    work.append(node[1])
                else:
                    found.add(atom)
    return found


class Escapes:
    """``words`` maps parameter words of 8 bytes to the line where one escapes first. ``symbols`` are lines where the
    address of a module variable or function does: it differs from device to device. ``offsets`` says that the address
    of a shared or local variable is kept as a value."""

    def __init__(self, walk: Walk, loops: Loops) -> None:
        self.words: dict[int, int] = {}
        self.symbols: list[int] = []
        self.offsets = False
        graph = walk.graph
        made_of_offsets: set[str] = set()
        for index, block, value in walk.pointer_uses:
            row = walk.usage.rows[index]
            line = walk.flow.instructions[index].line
            null_test = tests_for_null(walk.flow.instructions[index])
            resolved = loops.resolve(value, block)
            null_test = null_test and graph.single(resolved) is not None
            for atom in sorted(_addends(graph, resolved)):
                node: tuple[Any, ...] = graph.nodes[atom]
                if null_test and node[0] == "param":
                    continue
                if node[0] == "param" and node[2] == 8:
                    self.words.setdefault(node[1], line)
                elif node[0] == "symbol":
                    variable = walk.body.variables.get(node[1])
                    space = "" if variable is None else variable.space
                    if space in _ON_DEVICE:
                        self.symbols.append(line)
                    elif row is None or row.effect is not Effect.PURE:
                        self.offsets = True
                    else:
                        made_of_offsets.update(walk.usage.writes[index])
        self.offsets = self.offsets or self._kept(walk, made_of_offsets)
        self._read_in_part(walk)

    def _kept(self, walk: Walk, names: set[str]) -> bool:
        """Whether something computed from the address of a shared or local variable leaves the registers, by name."""
        usage = walk.usage
        users: dict[str, list[int]] = {}
        for index, read in enumerate(usage.reads):
            for name in read:
                users.setdefault(name, []).append(index)
        work = list(names)
        while work:
            for index in users.get(work.pop(), ()):
                row = usage.rows[index]
                if row is None or row.effect in _KEEPS:
                    instruction = walk.flow.instructions[index]
                    values = [o for o in instruction.operands if not isinstance(o, Address)]
                    if any(name in names for value in values for name in registers_in(value)):
                        return True
                elif row.effect is Effect.PURE:
                    fresh = [name for name in usage.writes[index] if name not in names]
                    names.update(fresh)
                    work += fresh
        return False

    def _read_in_part(self, walk: Walk) -> None:
        """Words of which some read takes a part, or which are read as floating-point numbers: what becomes of those,
        nobody follows."""
        nodes: list[tuple[Any, ...]] = walk.graph.nodes
        words = {node[1] for node in nodes if node[0] == "param" and node[2] == 8}
        for offset, size, line in walk.partial_reads:
            for word in words:
                if word < offset + size and offset < word + 8:
                    self.words.setdefault(word, line)
