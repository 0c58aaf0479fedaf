"""What an operation or a node of a graph does, as rows: the same tables for both."""

from __future__ import annotations

from typing import Any

from orchestrator.traces import payloads
from orchestrator.traces.objects import Objects
from orchestrator.traces.rows import Rows, signed
from shim import tails
from shim.layout import layout, lib
from shim.wire import Kind, NodeKind, Record

_attribute = layout("wire_attribute")


class Bodies:
    """Writes the bodies of one client's operations and nodes."""

    def __init__(self, objects: Objects, rows: Rows) -> None:
        self._objects, self._rows = objects, rows
        self._writers = {
            Kind.LAUNCH: self._launch, Kind.COPY: self._copy, Kind.SET: self._set, Kind.EVENT_RECORD: self._event,
            Kind.EVENT_WAIT: self._event, Kind.HOST_FUNCTION: self._host_function,
            Kind.MEMORY_OPERATIONS: self._memory_operations, NodeKind.LAUNCH: self._launch, NodeKind.COPY: self._copy,
            NodeKind.SET: self._set, NodeKind.EVENT_RECORD: self._event, NodeKind.EVENT_WAIT: self._event,
            NodeKind.HOST_FUNCTION: self._host_function, NodeKind.MEMORY_OPERATIONS: self._memory_operations,
            NodeKind.ALLOCATE: self._memory, NodeKind.FREE: self._memory,
        }  # fmt: skip
        self._of_records = {kind: w for kind, w in self._writers.items() if isinstance(kind, Kind)}
        self._of_nodes = {kind: w for kind, w in self._writers.items() if isinstance(kind, NodeKind)}

    def write(self, number: int, work: Record | tails.Node) -> None:
        """The row or rows with this ``id``; none for work of which nothing is recorded."""
        if isinstance(work, Record):
            writer = self._of_records.get(work.kind)
        else:
            writer = self._of_nodes.get(work.kind)
        if writer:
            writer(number, work)

    def _launch(self, number: int, work: Record | tails.Node) -> None:
        body = work.body
        kernel = self._objects.named("kernel", body.function) or 0
        attributes = b"".join([_attribute.pack(attribute) for attribute in tails.launch_attributes(work)])
        self._rows.add("launch", number, kernel, *body.grid, *body.block, body.shared, body.flags,
                       bytes(tails.launch_parameters(work)), attributes)

    def _copy(self, number: int, work: Record | tails.Node) -> None:
        body, data = work.body, tails.inline_content(work)
        known = body.content_kind in (lib.WIRE_INLINE_CONTENT, lib.WIRE_HASHED_CONTENT)
        if body.content_kind == lib.WIRE_INLINE_CONTENT:
            self._rows.add("payload", *payloads.row(body.content, 0, len(data), bytes(data)))
        sides = [value for side in (body.to, body.from_) for value in self._side(side)]
        self._rows.add("copy", number, body.width, body.height, body.depth, *sides, body.flags, body.content_kind,
                       body.content if known else None)

    def _side(self, side: Any) -> tuple[int | None, ...]:
        if side.kind == lib.WIRE_SIDE_ARRAY:
            thing = self._objects.named("array", side.address)
        else:
            thing = self._objects.holding(side.address)
        return (side.kind, signed(side.address), thing, self._objects.named("context", side.context), side.x, side.y,
                side.z, side.pitch, side.height, side.level)

    def _set(self, number: int, work: Record | tails.Node) -> None:
        body = work.body
        self._rows.add("memset", number, signed(body.address), self._objects.holding(body.address),
                       self._objects.named("context", body.context), body.width, body.height, body.pitch,
                       body.element_bytes, body.value)

    def _event(self, number: int, work: Record | tails.Node) -> None:
        self._rows.add("event_use", number, self._objects.named("event", work.body.event) or 0, work.body.flags)

    def _host_function(self, number: int, work: Record | tails.Node) -> None:
        body = work.body
        self._rows.add("host_function", number, signed(body.function), signed(body.data), body.callback)

    def _memory_operations(self, number: int, work: Record | tails.Node) -> None:
        for position, one in enumerate(tails.memory_operations(work)):
            self._rows.add("memory_operation", number, position, one.type, one.flags, signed(one.address),
                           signed(one.value))

    def _memory(self, number: int, work: Record | tails.Node) -> None:
        body = work.body
        self._rows.add("node_memory", number, signed(body.address), body.bytes, body.device)
