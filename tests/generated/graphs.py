"""Executable graphs: made, launched, changed, and captured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from shim import tails
from shim.wire import Kind, NodeKind, lib
from tests.generated.author import Author, keys, unique
from tests.generated.chooser import Chooser
from tests.generated.clocks import Event, Stream, Touched, touched
from tests.generated.kernels import Touch
from tests.generated.operations import Operation, Table
from tests.generated.records import CONTEXT

Edge = tuple[int, int]


@dataclass(eq=False)
class Node:
    """``operation`` None: it is empty, or a child graph with ``inner`` nodes and ``edges`` between them."""

    handle: int
    operation: Operation | None = None
    enabled: bool = True
    inner: list[Node] = field(default_factory=list)
    edges: set[Edge] = field(default_factory=set)

    def operations(self) -> Iterator[Operation]:
        """That are carried out."""
        if self.operation is not None and self.enabled:
            yield self.operation
        for node in self.inner:
            yield from node.operations()

    def encoded(self, parent: int = 0) -> list[bytes]:
        """As in a record, inner nodes behind it."""
        if self.operation is None:
            kind, fields, tail = NodeKind.CHILD if self.inner else NodeKind.EMPTY, dict[str, Any](), b""
        else:
            kind, fields, tail = self.operation.node, self.operation.fields(), self.operation.tail()
        first = tails.encode_node(kind, enabled=int(self.enabled), node=self.handle, parent=parent, tail=tail, **fields)
        return [first, *(data for node in self.inner for data in node.encoded(self.handle))]

    def every_edge(self) -> list[Edge]:
        return sorted(self.edges) + [edge for node in self.inner for edge in node.every_edge()]


@dataclass(frozen=True, eq=False)
class GraphLaunch:
    """All that ``root`` holds."""

    exec: int
    root: Node
    kind = Kind.GRAPH_LAUNCH
    node = NodeKind.OTHER
    possible = True

    @property
    def tables(self) -> tuple[Table, ...]:
        return ()

    def touch(self) -> Touch:
        return together(operation.touch() for operation in self.root.operations())

    def fields(self) -> dict[str, Any]:
        return {"exec": self.exec}

    def tail(self) -> bytes:
        return b""

    def salted(self, salt: int) -> GraphLaunch:
        return self


def together(touches: Iterator[Touch]) -> Touch:
    """What several touch."""
    many = list(touches)
    return Touch(*(np.concatenate(each) for each in zip(*many, strict=True))) if many else Touch()


def conflict(a: Touched, b: Touched, unordered: bool) -> bool:
    """Whether the order of two shows."""
    for one, other in ((a, b), (b, a)):
        changed = keys([*one.writes, *one.adds])
        if np.isin(changed, keys([*other.reads, *other.writes])).any():
            return True
    return not unordered and bool(np.isin(keys(unique(a.adds)), keys(unique(b.adds))).any())


def reaches(edges: set[Edge], start: int, end: int) -> bool:
    """Whether a path leads from one node to another one."""
    return start == end or any(reaches(edges, after, end) for before, after in edges if before == start)


class Graphs:
    """Each method is one thing that a program does."""

    def __init__(self, author: Author, chooser: Chooser) -> None:
        self.author, self.chooser, self.rng = author, chooser, author.rng
        self.graphs: list[GraphLaunch] = []
        self._nodes = 0x900000

    def _handle(self) -> int:
        self._nodes += 16
        return self._nodes

    def make(self) -> None:
        """A new executable graph, or one that replaces another under its handle."""
        root = self._root(self.rng.choice([1, 2, 3, 4, 5, 6]))
        old = self.rng.choice(self.graphs) if self.graphs and self.rng.random() < 0.25 else None
        if old is not None:
            self.graphs.remove(old)
        self._announce(GraphLaunch(old.exec if old else self.author.handle(), root))

    def _announce(self, graph: GraphLaunch) -> None:
        nodes = [data for node in graph.root.inner for data in node.encoded()]
        edges = graph.root.every_edge()
        program = self.author.program
        program.forget(Kind.GRAPH_NODE, graph.exec)
        program.announce((Kind.GRAPH_EXEC, graph.exec), Kind.GRAPH_EXEC, exec=graph.exec, graph=0x800000,
                         context=CONTEXT, nodes=len(nodes), edges=len(edges), whole=1,
                         tail=b"".join(nodes) + tails.edges_tail(edges))
        self.graphs.append(graph)

    def _root(self, count: int, deep: int = 0) -> Node:
        nodes = []
        for _ in range(count):
            if deep < 2 and self.rng.random() < 0.12:
                child = self._root(self.rng.choice([1, 2, 3]), deep + 1)
                nodes.append(child)
            elif self.rng.random() < 0.1:
                nodes.append(Node(self._handle()))
            else:
                nodes.append(Node(self._handle(), self.chooser.in_graph()))
        root = Node(self._handle(), inner=nodes)
        for k, node in enumerate(nodes):
            for before in nodes[:k]:
                apart = not reaches(root.edges, before.handle, node.handle)
                if apart and (self._conflict(before, node) or self.rng.random() < 0.15):
                    root.edges.add((before.handle, node.handle))
        return root

    def _touched(self, node: Node) -> Touched:
        return touched(self.author.space, together(operation.touch() for operation in node.operations()))

    def _conflict(self, a: Node, b: Node) -> bool:
        return conflict(self._touched(a), self._touched(b), self.author.clocks.unordered)

    def sound(self, node: Node) -> bool:
        """Whether all that it does is possible now, and all that conflicts is ordered by edges; tables that it uses it
        leaves alone."""
        if any(self.author.possible(operation) is None for operation in node.operations()):
            return False
        what = self._touched(node)
        if any(self.author.overlap(table, [*what.writes, *what.adds])
               for operation in node.operations() for table in operation.tables):
            return False
        inner = node.inner
        pairs = [(a, b) for k, b in enumerate(inner) for a in inner[:k]]
        return all(self.sound(each) for each in inner) and all(
            reaches(node.edges, a.handle, b.handle) or not self._conflict(a, b) for a, b in pairs)

    def launch(self, graph: GraphLaunch | None = None, stream: Stream | None = None) -> bool:
        if graph is None:
            fitting = [g for g in self.graphs if self.sound(g.root)]
            if not fitting:
                return False
            graph = self.rng.choice(fitting)
        elif not self.sound(graph.root):
            return False
        author, what = self.author, touched(self.author.space, graph.touch())
        stream = stream or self.rng.choice(author.streams)
        author.order(stream, what)
        author.write(graph, stream)
        author.queued(graph, stream, what)
        return True

    def change(self) -> None:
        """New parameters of a node, or on and off."""
        if not self.graphs:
            return
        graph = self.rng.choice(self.graphs)
        nodes = [n for n in graph.root.inner if n.operation is not None and n.operation.kind is not Kind.HOST_FUNCTION]
        if not nodes:
            return
        node = self.rng.choice(nodes)
        if self.rng.random() < 0.4:
            node.enabled = not node.enabled
        else:
            self._change(graph, node)
        self.note(graph, node)

    def _change(self, graph: GraphLaunch, node: Node) -> None:
        assert node.operation
        before, made = node.operation, self.chooser.in_graph()
        node.operation = before.salted(self.author.number())
        if made is not None and made.kind is before.kind:
            node.operation = made
            if not self.sound(replace(graph.root)):
                node.operation = before.salted(self.author.number())

    def note(self, graph: GraphLaunch, node: Node) -> None:
        """The record of a change."""
        (data,) = node.encoded()
        program = self.author.program
        program.announce((Kind.GRAPH_NODE, graph.exec, node.handle), Kind.GRAPH_NODE, exec=graph.exec, tail=data)

    def destroy(self) -> None:
        if len(self.graphs) > 1:
            graph = self.rng.choice(self.graphs)
            self.graphs.remove(graph)
            program = self.author.program
            program.forget(Kind.GRAPH_EXEC, graph.exec)
            program.forget(Kind.GRAPH_NODE, graph.exec)
            program.record(Kind.END, handle=graph.exec, kind=int(Kind.GRAPH_EXEC))
            self.author.give_back(graph.exec)

    def chain(self, given: Sequence[Operation]) -> list[Node]:
        """An executable graph of operations one after the other."""
        nodes = [Node(self._handle(), operation) for operation in given]
        edges = set(pairwise(node.handle for node in nodes))
        self._announce(GraphLaunch(self.author.handle(), Node(self._handle(), inner=nodes, edges=edges)))
        return nodes

    # Captures.

    def capture(self) -> None:
        """A stream, or two, are given work that becomes a graph; others are given work meanwhile."""
        author, rng = self.author, self.rng
        named = [s for s in author.streams if not s.legacy]
        free = [s for s in named if s.handle > 2]
        if not named or author.captured:
            return
        author.synchronize_context()
        first = rng.choice(named)
        second = rng.choice([s for s in free if s is not first] or [first])
        author.captured = [first]
        author.program.thread = first.thread
        author.program.record(Kind.CAPTURE_BEGIN, place=(first.handle, CONTEXT), mode=1)
        if second is not first:
            self._fork(first, second)
            author.captured.append(second)
        given: list[Operation] = []
        for _ in range(rng.randrange(1, 5)):
            self._work_elsewhere()
            operation = self.chooser.in_graph()
            if operation is not None and author.possible(operation) is not None:
                author.write(operation, rng.choice(author.captured), lib.WIRE_CAPTURED)
                given.append(operation)
        if second is not first:
            self._fork(second, first)
        author.program.thread = first.thread
        author.program.record(Kind.CAPTURE_END, place=(first.handle, CONTEXT), graph=0x800000)
        author.captured = []
        if given:
            self.chain(given)

    def _work_elsewhere(self) -> None:
        author = self.author
        open_streams: Sequence[Stream] = author.streams
        operation = self.chooser.operation()
        if open_streams and operation is not None and self.rng.random() < 0.4:
            author.submit(operation, self.rng.choice(open_streams))

    def _fork(self, one: Stream, other: Stream) -> None:
        """The other stream goes on behind the first, by an event of which nobody hears again."""
        author, joins = self.author, other not in self.author.captured
        event = Event(author.handle())
        author.program.announce((Kind.EVENT, event.handle), Kind.EVENT, handle=event.handle, context=CONTEXT, flags=2)
        author.program.thread = one.thread
        place = (one.handle, CONTEXT)
        author.program.record(Kind.EVENT_RECORD, marks=lib.WIRE_CAPTURED, place=place, event=event.handle)
        author.program.thread = other.thread
        author.program.record(Kind.EVENT_WAIT, marks=0 if joins else lib.WIRE_CAPTURED, place=(other.handle, CONTEXT),
                              event=event.handle)
