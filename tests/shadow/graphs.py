"""Executable graphs: which nodes there are, and in which orders they may be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shim import tails
from shim.wire import NodeKind, Record, lib
from tests.shadow.errors import ShadowError

IDLE = (NodeKind.EMPTY, NodeKind.CHILD, NodeKind.HOST_FUNCTION)
"""Nodes that do nothing here."""


@dataclass
class Exec:
    """An executable graph. ``before``: for each position those that must be done first."""

    nodes: list[tails.Node]
    before: list[set[int]]
    context: int

    def context_of(self, node: tails.Node) -> int:
        return node.context or self.context

    def runs(self, position: int) -> bool:
        """Whether a node is switched on, with all child graphs that it is in."""
        node, place = self.nodes[position], {one.node: one for one in self.nodes}
        while node.enabled and node.parent:
            node = place[node.parent]
        return bool(node.enabled)

    def order(self, choose: Callable[[int], int]) -> list[int]:
        """Positions in an order that the edges allow; ``choose(n)`` gives a number below n."""
        left = [set(before) for before in self.before]
        free = [position for position, before in enumerate(left) if not before]
        found: list[int] = []
        while free:
            now = free.pop(choose(len(free)))
            found.append(now)
            for position, before in enumerate(left):
                if now in before:
                    before.discard(now)
                    if not before:
                        free.append(position)
            free.sort()
        if len(found) != len(self.nodes):
            raise ShadowError("the edges of a graph are a circle")
        return found


class Graphs:
    """Of one program."""

    def __init__(self) -> None:
        self._execs: dict[int, Exec] = {}

    def announce(self, record: Record) -> None:
        """A record of GRAPH_EXEC. One that is known already is replaced, unless it is only said again."""
        body = record.body
        if record.flags & lib.WIRE_RESTATED and body.exec in self._execs:
            return
        self._execs.pop(body.exec, None)
        if body.whole:
            nodes = list(tails.nodes(record))
            self._execs[body.exec] = Exec(nodes, _before(nodes, tails.edges(record)), body.context)

    def change(self, record: Record) -> None:
        """A record of GRAPH_NODE."""
        found = self._execs.get(record.body.exec)
        new = next(tails.nodes(record))
        for position, node in enumerate(found.nodes if found else ()):
            if node.node == new.node and found is not None:
                found.nodes[position] = new._replace(parent=node.parent)

    def end(self, handle: int) -> None:
        self._execs.pop(handle, None)

    def launched(self, handle: int) -> Exec:
        """As it is now. Raises ShadowError for one whose nodes are not known."""
        found = self._execs.get(handle)
        if found is None:
            raise ShadowError(f"the nodes of graph {handle:#x} are not known")
        return Exec(list(found.nodes), found.before, found.context)


def _before(nodes: list[tails.Node], edges: list[tuple[int, int]]) -> list[set[int]]:
    """A child stands before all its nodes, and what comes after it comes after all of them."""
    position = {node.node: k for k, node in enumerate(nodes)}
    inside: dict[int, set[int]] = {k: {k} for k in range(len(nodes))}
    before: list[set[int]] = [set() for _ in nodes]
    for k, node in enumerate(nodes):
        above = position.get(node.parent) if node.parent else None
        if above is not None:
            before[k].add(above)
        while above is not None:
            inside[above].add(k)
            parent = nodes[above].parent
            above = position.get(parent) if parent else None
    for origin, target in edges:
        before[position[target]] |= inside[position[origin]]
    return before
