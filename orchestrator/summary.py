"""What programs did, in numbers: launches by kernel, copies by direction."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from shim import tails
from shim.listen import Client
from shim.wire import Kind, NodeKind, Record, lib, records

UNKNOWN = "?"
"""The name of a kernel that was never announced."""
_SIDES = {lib.WIRE_SIDE_HOST: "host", lib.WIRE_SIDE_DEVICE: "device", lib.WIRE_SIDE_ARRAY: "array",
          lib.WIRE_SIDE_MANAGED: "managed"}


@dataclass
class _Program:
    """What is known of one program: names of its kernels by handle; by executable graph and node, kernels."""

    names: dict[int, str] = field(default_factory=dict)
    graphs: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))


class Summary:
    """Adds up the records of all programs, those of captures only when their graph is launched.

    ``launches`` by kernel; ``copies`` and their bytes by (from, to), and fills: tuples of count and bytes; ``failed``
    calls, which are among the others.
    """

    def __init__(self) -> None:
        self.launches: Counter[str] = Counter()
        self.copies: dict[tuple[str, str], tuple[int, int]] = {}
        self.fills = (0, 0)
        self.graph_launches = 0
        self.failed = 0
        self._programs: dict[Client, _Program] = {}

    def begin(self, client: Client) -> None:
        self._programs[client] = _Program()

    def end(self, client: Client, trouble: str | None) -> None:
        del self._programs[client]

    def batch(self, client: Client, batch: Any, data: memoryview) -> None:
        program = self._programs[client]
        for record in records(data):
            if not record.flags & lib.WIRE_CAPTURED:
                self._add(program, record)

    def _add(self, program: _Program, record: Record) -> None:
        kind, body = record.kind, record.body
        if kind is Kind.LAUNCH:
            self.launches[program.names.get(body.function, UNKNOWN)] += 1
        elif kind is Kind.COPY:
            way = _SIDES.get(body.from_.kind, UNKNOWN), _SIDES.get(body.to.kind, UNKNOWN)
            count, size = self.copies.get(way, (0, 0))
            self.copies[way] = count + 1, size + body.width * body.height * body.depth
        elif kind is Kind.SET:
            self.fills = self.fills[0] + 1, self.fills[1] + body.width * body.height * body.element_bytes
        elif kind is Kind.OUTCOME:
            self.failed += body.result != 0
        elif kind is Kind.FUNCTION:
            program.names[body.handle] = tails.name(record)
        elif kind is Kind.GRAPH_LAUNCH:
            self.graph_launches += 1
            for function in program.graphs.get(body.exec, {}).values():
                self.launches[program.names.get(function, UNKNOWN)] += 1
        elif kind in (Kind.GRAPH_EXEC, Kind.GRAPH_NODE):
            self._graph(program, record)
        elif kind is Kind.END and body.kind == Kind.GRAPH_EXEC:
            program.graphs.pop(body.handle, None)

    def _graph(self, program: _Program, record: Record) -> None:
        if record.kind is Kind.GRAPH_EXEC:
            program.graphs.pop(record.body.exec, None)
        graph = program.graphs[record.body.exec]
        for node in tails.nodes(record):
            graph.pop(node.node, None)
            if node.kind is NodeKind.LAUNCH and node.enabled:
                graph[node.node] = node.body.function
