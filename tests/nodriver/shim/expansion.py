"""Records expanded into the pieces of work that they announce, graphs node by node; the same of the driver's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from typing import Any, TypeAlias

from shim import tails
from shim.layout import lib
from shim.wire import Kind, NodeKind, Record

Work: TypeAlias = "tuple[Any, ...]"

_NODE_KINDS = {NodeKind.LAUNCH: Kind.LAUNCH, NodeKind.COPY: Kind.COPY, NodeKind.SET: Kind.SET,
               NodeKind.HOST_FUNCTION: Kind.HOST_FUNCTION, NodeKind.MEMORY_OPERATIONS: Kind.MEMORY_OPERATIONS}
_OPERATIONS = {1: ("wait", 32), 4: ("wait", 64), 2: ("write", 32), 5: ("write", 64), 3: ("flush", 0), 6: ("barrier", 0)}
"""enum CUstreamBatchMemOpType."""


class Graph:
    """An executable graph as it was recorded."""

    def __init__(self, record: Record) -> None:
        self.nodes = {node.node: node for node in tails.nodes(record)}
        self.before: dict[int, set[int]] = {node: set() for node in self.nodes}
        for edge in tails.edges(record):
            self.before[edge.to].add(edge.from_)

    def in_order(self, parent: int = 0) -> Iterator[tails.Node]:
        """All nodes, each behind those that it comes after, those of a child graph in its place."""
        members = {name: set(self.before[name]) for name, node in self.nodes.items() if node.parent == parent}
        for name in TopologicalSorter(members).static_order():
            yield self.nodes[name]
            if self.nodes[name].kind is NodeKind.CHILD:
                yield from self.in_order(name)


def announced(found: Iterable[Record]) -> list[Work]:
    """Each piece of work in the order of the records. AssertionError: a graph is launched that is not whole."""
    found = list(found)
    failed = {record.body.of for record in found if record.kind is Kind.OUTCOME and record.body.result}
    names: dict[int, str] = {}
    graphs: dict[int, Graph | None] = {}
    work: list[Work] = []
    for record in found:
        body = record.body
        if record.kind is Kind.FUNCTION:
            names[body.handle] = tails.name(record)
        elif record.kind is Kind.GRAPH_EXEC:
            graphs[body.exec] = Graph(record) if body.whole else None
        elif record.kind is Kind.GRAPH_NODE:
            (node,) = tails.nodes(record)
            graph = graphs[body.exec]
            assert graph is not None and node.node in graph.nodes and node.parent == graph.nodes[node.node].parent
            graph.nodes[node.node] = node
        elif record.kind is Kind.END and body.kind == Kind.GRAPH_EXEC:
            graphs.pop(body.handle, None)
        elif record.flags & lib.WIRE_CAPTURED or record.sequence in failed:
            continue
        elif record.kind is Kind.GRAPH_LAUNCH:
            graph = graphs[body.exec]
            assert graph is not None, "a graph of which nobody knows what it does"
            for node in graph.in_order():
                if node.enabled and node.kind in _NODE_KINDS:
                    work += _pieces(_NODE_KINDS[node.kind], node, names)
        elif record.kind in _NODE_KINDS.values():
            work += _pieces(record.kind, record, names)
    return work


def _pieces(kind: Kind, what: Record | tails.Node, names: dict[int, str]) -> Iterator[Work]:
    body = what.body
    if kind is Kind.LAUNCH:
        cooperative = bool(body.flags & lib.WIRE_COOPERATIVE)
        yield ("kernel", names[body.function], *body.grid, *body.block, body.shared, cooperative,
               bytes(tails.launch_parameters(what)).hex())
    elif kind is Kind.COPY:
        yield "copy", body.width, body.height, body.depth, _start(body.from_), _start(body.to)
    elif kind is Kind.SET:
        value = body.value & (1 << 8 * body.element_bytes) - 1
        yield "memset", body.address, body.element_bytes, value, body.width, body.height
    elif kind is Kind.HOST_FUNCTION:
        yield "host function", body.function, body.data
    else:
        for operation in tails.memory_operations(what):
            verb, bits = _OPERATIONS[operation.type]
            yield "memory operation", verb, *((bits, operation.address, operation.value) if bits else ())


def _start(side: Any) -> int:
    start: int = side.address + side.x + side.y * side.pitch + side.z * side.pitch * side.height
    return start


def done(log: Iterable[dict[str, Any]]) -> list[Work]:
    """The same of the lines of work in the driver's log."""
    return [_line(line) for line in log if "work" in line]


def _line(line: dict[str, Any]) -> Work:
    kind = line["work"]
    if kind == "kernel":
        return (kind, line["kernel"], *line["grid"], *line["block"], line["shared"], line["cooperative"],
                line["parameters"])
    if kind == "copy":
        ends = [int(line[side]["address"], 16) for side in ("source", "destination")]
        return (kind, line["row"], line["rows"], line["slices"], *ends)
    if kind == "memset":
        return (kind, int(line["address"], 16), line["element"], line["value"], line["width"], line["rows"])
    if kind == "host function":
        return (kind, int(line["function"], 16), int(line["data"], 16))
    more = (line["bits"], int(line["address"], 16), line["value"]) if "bits" in line else ()
    return (kind, line["operation"], *more)
