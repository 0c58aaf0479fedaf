"""Records expanded into the pieces of work that they announce, graphs node by node; the same of the driver's log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from shim import tails
from shim.layout import lib
from shim.wire import Kind, NodeKind, Record

_NODE_KINDS = {NodeKind.LAUNCH: Kind.LAUNCH, NodeKind.COPY: Kind.COPY, NodeKind.SET: Kind.SET,
               NodeKind.HOST_FUNCTION: Kind.HOST_FUNCTION, NodeKind.MEMORY_OPERATIONS: Kind.MEMORY_OPERATIONS}
_OPERATIONS = {1: ("wait", 32), 4: ("wait", 64), 2: ("write", 32), 5: ("write", 64), 3: ("flush", 0), 6: ("barrier", 0)}
"""enum CUstreamBatchMemOpType."""
_SIDES = {lib.WIRE_SIDE_HOST: "host", lib.WIRE_SIDE_DEVICE: "device", lib.WIRE_SIDE_ARRAY: "array",
          lib.WIRE_SIDE_MANAGED: "managed"}


class Work(NamedTuple):
    """A piece of work; ``graph``: a node of one that was launched. ``what``: all that records and log both say of it,
    addresses as the program has them."""

    kind: str
    graph: bool
    stream: int
    what: tuple[Any, ...]


class Function(NamedTuple):
    """``bytes``: of its parameters; None: not known. ``context``: its module's, 0 for a library's, which has none."""

    name: str
    bytes: int | None
    context: int


class Graph:
    """An executable graph as it was recorded."""

    def __init__(self, record: Record) -> None:
        self.context, self.whole = record.body.context, bool(record.body.whole)
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


class _Announced:
    """What records have announced so far, and the work that the last one stands for."""

    def __init__(self) -> None:
        self.work: list[Work] = []
        self._functions: dict[int, Function] = {}
        self._modules: dict[int, int] = {}
        self._devices: dict[int, int] = {}
        self._graphs: dict[int, Graph] = {}

    def take(self, record: Record) -> None:
        body = record.body
        if record.kind is Kind.FUNCTION:
            count = body.parameter_bytes if body.known else None
            self._functions[body.handle] = Function(tails.name(record), count, self._modules.get(body.module, 0))
        elif record.kind is Kind.MODULE:
            self._modules[body.handle] = body.context
        elif record.kind is Kind.CONTEXT:
            self._devices[body.handle] = body.device
        elif record.kind is Kind.GRAPH_EXEC:
            self._graphs[body.exec] = Graph(record)
        elif record.kind is Kind.GRAPH_NODE:
            (node,) = tails.nodes(record)
            nodes = self._graphs[body.exec].nodes
            assert node.node in nodes and node.parent == nodes[node.node].parent
            nodes[node.node] = node
        elif record.kind is Kind.END and body.kind == Kind.GRAPH_EXEC:
            self._graphs.pop(body.handle, None)

    def do(self, record: Record) -> None:
        if record.kind is Kind.GRAPH_LAUNCH:
            graph = self._graphs[record.body.exec]
            assert graph.whole, "a graph is launched of which nobody knows what it does"
            for node in graph.in_order():
                if node.enabled and node.kind in _NODE_KINDS:
                    self._pieces(_NODE_KINDS[node.kind], node, record.place.stream, node.context, graph=graph)
        elif record.kind in _NODE_KINDS.values():
            stream, context = record.place
            self._pieces(record.kind, record, stream, context, graph=None)

    def _pieces(self, kind: Kind, of: Record | tails.Node, stream: int, context: int, graph: Graph | None) -> None:
        body = of.body

        def add(kind: str, *what: Any) -> None:
            self.work.append(Work(kind, graph is not None, stream, what))

        if kind is Kind.LAUNCH:
            function = self._functions[body.function]
            data = bytes(tails.launch_parameters(of)[:function.bytes])  # a program may give more than the kernel has
            known = not body.flags & lib.WIRE_PARAMETERS_UNKNOWN
            context = context or function.context or (graph.context if graph else 0)
            add("kernel", function.name, self._devices[context], *body.grid, *body.block, body.shared,
                bool(body.flags & lib.WIRE_COOPERATIVE), _parameters(data, known))
        elif kind is Kind.COPY:
            count = body.width * body.height * body.depth
            sides = (_side(body, body.from_), _side(body, body.to)) if count else ()
            if count or graph:  # a call for nothing puts nothing into the stream
                add("copy", body.width, body.height, body.depth, *sides)
        elif kind is Kind.SET:
            value = body.value & (1 << 8 * body.element_bytes) - 1
            pitch = body.pitch if body.height > 1 else 0
            if body.width * body.height or graph:
                add("memset", body.address, body.element_bytes, value, body.width, body.height, pitch)
        elif kind is Kind.HOST_FUNCTION:
            add("host function", body.function, body.data)
        else:
            for operation in tails.memory_operations(of):
                verb, bits = _OPERATIONS[operation.type]
                add("memory operation", verb, *((bits, operation.address, operation.value) if bits else ()))


def announced(found: Iterable[Record]) -> list[Work]:
    """Each piece of work in the order of the records. AssertionError: a graph is launched that is not whole."""
    return [piece for _, piece in by_record(found)]


def by_record(found: Iterable[Record]) -> Iterator[tuple[Record, Work]]:
    """The same with the record that says so, which may be that of a graph's launch."""
    found = list(found)
    failed = {record.body.of for record in found if record.kind is Kind.OUTCOME and record.body.result}
    state = _Announced()
    for record in found:
        state.take(record)
        if not record.flags & lib.WIRE_CAPTURED and record.sequence not in failed:
            state.do(record)
            yield from ((record, piece) for piece in state.work)
            state.work.clear()


def _parameters(data: bytes, known: bool = True) -> str:
    """As the log has them: long ones by their digest."""
    if not known:
        return "unknown"
    return data.hex() if len(data) <= 4096 else hashlib.sha256(data).hexdigest()


def _side(body: Any, side: Any) -> tuple[Any, ...]:
    if side.kind == lib.WIRE_SIDE_ARRAY:
        return "array", side.address, side.x, side.y, side.z
    slice_ = side.pitch * side.height
    start = side.address + side.x + side.y * side.pitch + side.z * slice_
    return _SIDES[side.kind], start, side.pitch if body.height > 1 else 0, slice_ if body.depth > 1 else 0


def done(log: Iterable[dict[str, Any]]) -> list[Work]:
    """The same of the lines of work in the driver's log."""
    return [Work(line["work"], line["graph"], int(line["stream"], 16), _line(line)) for line in log if "work" in line]


def _line(line: dict[str, Any]) -> tuple[Any, ...]:
    kind = line["work"]
    if kind == "kernel":
        return (line["kernel"], line["device"], *line["grid"], *line["block"], line["shared"], line["cooperative"],
                line["parameters"] if "parameters" in line else line["parameters_sha256"])
    if kind == "copy":
        sides = [_place(line, line[side]) for side in ("source", "destination") if side in line]
        return line["row"], line["rows"], line["slices"], *sides
    if kind == "memset":
        return (int(line["address"], 16), line["element"], line["value"], line["width"], line["rows"],
                line["pitch"] if line["rows"] > 1 else 0)
    if kind == "host function":
        return int(line["function"], 16), int(line["data"], 16)
    more = (line["bits"], int(line["address"], 16), line["value"]) if "bits" in line else ()
    return line["operation"], *more


def _place(line: dict[str, Any], side: dict[str, Any]) -> tuple[Any, ...]:
    if "array" in side:
        return "array", int(side["array"], 16), *side["at"]
    pitch, slice_ = (side["pitch"] if line["rows"] > 1 else 0), (side["slice"] if line["slices"] > 1 else 0)
    return side["memory"], int(side["address"], 16), pitch, slice_
