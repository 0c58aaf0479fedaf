"""Executable graphs: their nodes in an order in which they can run, and what changes them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from orchestrator.session.errors import RecordError
from shim import tails
from shim.tails import Node
from shim.wire import NodeKind, Record

MOST_EDGES = 1 << 20
MOST_NESTED = 64
MOST_GRAPHS = 1 << 16
MOST_NODES = 1 << 21
"""Of all graphs that a program has at a time."""


@dataclass(eq=False)
class Executable:
    """``nodes`` by their positions in the record that announced it, ``order``: positions, each behind all in
    ``before`` of it. ``whole``: all nodes are known, and what they do. ``text``: what a launch of it is in a step."""

    context: int
    whole: bool
    nodes: list[Node] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    before: list[tuple[int, ...]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    text: bytes = b""

    def enabled(self) -> Iterator[int]:
        """The positions of the nodes that run, in order. A child graph that is switched off has no node that does."""
        for position in self.order:
            node = self.nodes[position]
            while node.enabled and node.parent and node.parent in self.places:
                node = self.nodes[self.places[node.parent]]
            if node.enabled:
                yield position


class Graphs:
    """Of one program, by handle."""

    def __init__(self) -> None:
        self._known: dict[int, Executable] = {}
        self._nodes = 0

    def announce(self, record: Record) -> Executable:
        """A record of GRAPH_EXEC. Raises RecordError for a graph that no order fits."""
        body = record.body
        self._nodes += body.nodes - len(self._known[body.exec].nodes if body.exec in self._known else ())
        if len(self._known) >= MOST_GRAPHS or self._nodes > MOST_NODES:
            raise RecordError(record.sequence, "GRAPH_EXEC", f"more than {MOST_GRAPHS} graphs, or {MOST_NODES} nodes")
        made = self._known[body.exec] = Executable(body.context, bool(body.whole))
        made.nodes = [_kept(node) for node in tails.nodes(record)]
        made.places = {node.node: position for position, node in enumerate(made.nodes)}
        if any(node.kind is NodeKind.OTHER for node in made.nodes):
            made.whole = False
        pairs = [(made.places[edge.from_], made.places[edge.to]) for edge in tails.edges(record)
                 if edge.from_ in made.places and edge.to in made.places]
        made.before, made.order = _sorted(made, pairs, record.sequence)
        return made

    def change(self, record: Record) -> None:
        """A record of GRAPH_NODE: other parameters of a node. One that nobody has announced makes its
        graph unknown."""
        made = self._known.get(record.body.exec)
        if made is None:
            return
        for node in tails.nodes(record):
            position = made.places.get(node.node)
            if position is None or node.kind is NodeKind.OTHER:
                made.whole = False
            else:
                old = made.nodes[position]
                made.nodes[position] = _kept(node)._replace(parent=old.parent)

    def changed(self, record: Record) -> list[tuple[Executable, int, Node, bool]]:
        """What a record of GRAPH_NODE will change: graphs, positions of nodes, the nodes, whether the graph is whole;
        -1 for a node that nobody has announced. Nothing of a graph that nobody has."""
        made = self._known.get(record.body.exec)
        if made is None:
            return []
        found = []
        for node in tails.nodes(record):
            position = made.places.get(node.node, -1)
            found.append((made, position, made.nodes[position] if position >= 0 else node, made.whole))
        return found

    def end(self, handle: int) -> None:
        """The handle may be another graph's from now on."""
        gone = self._known.pop(handle, None)
        self._nodes -= len(gone.nodes) if gone else 0

    def find(self, handle: int) -> Executable | None:
        """What a launch of that handle runs."""
        return self._known.get(handle)


def _kept(node: Node) -> Node:
    """The node, apart from the record that it stands in."""
    return node._replace(tail=memoryview(bytes(node.tail)))


def _sorted(made: Executable, pairs: Iterable[tuple[int, int]], sequence: int
            ) -> tuple[list[tuple[int, ...]], list[int]]:
    """What comes right before each node, and an order: among nodes that are ready the first of the record. A child
    graph's nodes come behind what is before it, and it stands for its end: behind its nodes."""
    before: list[set[int]] = [set() for _ in made.nodes]
    for first, second in pairs:
        before[second].add(first)
    outer = [made.places.get(node.parent, -1) if node.parent else -1 for node in made.nodes]
    entering: dict[int, set[int]] = {}
    count = 0
    for position in sorted(range(len(outer)), key=lambda p: _depth(outer, p, sequence)):
        parent = outer[position]
        if parent < 0:
            continue
        if parent not in entering:
            entering[parent] = set(before[parent])
        before[position] |= entering[parent]
        count += len(entering[parent])
        if count > MOST_EDGES:
            raise RecordError(sequence, "GRAPH_EXEC", f"its child graphs have more than {MOST_EDGES} edges")
    for position, parent in enumerate(outer):
        if parent >= 0:
            before[parent].add(position)
    return [tuple(sorted(b)) for b in before], _topological(before, sequence)


def _depth(outer: list[int], position: int, sequence: int) -> int:
    """In how many child graphs a node is."""
    depth = 0
    while outer[position] >= 0:
        position = outer[position]
        depth += 1
        if depth > MOST_NESTED:
            raise RecordError(sequence, "GRAPH_EXEC", f"its child graphs are nested more than {MOST_NESTED} deep")
    return depth


def _topological(before: list[set[int]], sequence: int) -> list[int]:
    behind: list[list[int]] = [[] for _ in before]
    for position, earlier in enumerate(before):
        for one in earlier:
            behind[one].append(position)
    missing = [len(earlier) for earlier in before]
    ready = [position for position, count in enumerate(missing) if not count]
    order = []
    while ready:
        position = heapq.heappop(ready)
        order.append(position)
        for later in behind[position]:
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, later)
    if len(order) != len(before):
        raise RecordError(sequence, "GRAPH_EXEC", "its edges go round in a circle")
    return order
