"""The records of one client become rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from orchestrator.session.steps import LaunchKey, Steps, ends_step, graph_text, launch_text
from orchestrator.traces import payloads
from orchestrator.traces.bodies import Bodies
from orchestrator.traces.objects import Objects
from orchestrator.traces.rows import Rows, signed, text
from shim import tails
from shim.layout import lib
from shim.wire import Kind, NodeKind, Record

ENDS = {
    Kind.CONTEXT: "context", Kind.MODULE: "module", Kind.FUNCTION: "kernel", Kind.STREAM: "stream",
    Kind.EVENT: "event", Kind.MEMORY: "memory", Kind.RESERVATION: "reservation", Kind.PHYSICAL: "physical",
    Kind.ARRAY: "array", Kind.GRAPH_EXEC: "graph", Kind.LINK_INPUT: "link", Kind.LINK_OUTPUT: "link",
}  # fmt: skip
"""The tables of what ends, by what WIRE_END says it is."""


class Recorder:
    """Takes the records of a client in their order."""

    def __init__(self, client: int, rows: Rows) -> None:
        self._client, self._rows = client, rows
        self._objects = Objects(client, rows)
        self._bodies = Bodies(self._objects, rows)
        self._steps = Steps()
        self._step_number = 0
        self._expected: int | None = None
        self._links: dict[int, int] = {}
        self._graphs: dict[int, dict[int, int]] = {}
        self._launches: dict[int, bytes] = {}
        self._takers: dict[Kind, Callable[[Record], None]] = {
            Kind.DRIVER: self._driver, Kind.EPOCH: self._epoch, Kind.DATA: self._data, Kind.OUTCOME: self._outcome,
            Kind.CALL: self._work, Kind.DOOR: self._door, Kind.DEVICE: self._device,
            Kind.CONTEXT: self._context, Kind.MODULE: self._module,
            Kind.FUNCTION: self._function, Kind.STREAM: self._stream, Kind.EVENT: self._event,
            Kind.MEMORY: self._memory, Kind.RESERVATION: self._reservation, Kind.PHYSICAL: self._physical,
            Kind.ARRAY: self._array, Kind.GRAPH_EXEC: self._graph, Kind.GRAPH_NODE: self._graph_node,
            Kind.LINK_INPUT: self._link_input, Kind.LINK_OUTPUT: self._link_output, Kind.ACCESS: self._access,
            Kind.EXPORT: self._export, Kind.END: self._end,
        }  # fmt: skip

    def take(self, record: Record) -> None:
        """One record."""
        objects = self._objects
        objects.sequence, objects.ticks, objects.thread = record.sequence, record.ticks, record.thread
        if objects.doubtful and not record.flags & lib.WIRE_RESTATED and record.kind not in (Kind.DATA, Kind.OUTCOME):
            objects.settle()
        if self._expected is not None and record.sequence > self._expected and record.kind is not Kind.EPOCH:
            self._gap(record.sequence, None, record.sequence - self._expected)
        self._expected = record.sequence + 1
        self._takers.get(record.kind, self._work)(record)

    def over(self) -> None:
        """No more records come."""
        self._step_over()

    def _gap(self, sequence: int, epoch: int | None, lost: int) -> None:
        self._rows.add("gap", self._client, sequence, epoch, lost)

    # of the session

    def _driver(self, record: Record) -> None:
        self._rows.change("UPDATE client SET driver = ?, driver_version = ? WHERE id = ?",
                          text(tails.name(record)), record.body.version, self._client)

    def _epoch(self, record: Record) -> None:
        self._gap(record.sequence, record.body.epoch, record.body.lost)
        self._objects.doubt()

    def _data(self, record: Record) -> None:
        body = record.body
        self._rows.add("payload", *payloads.row(body.content, body.offset, body.total, bytes(tails.data(record))))

    def _door(self, record: Record) -> None:
        self._rows.add("door", self._client, record.sequence, record.function, record.body.how,
                       text(tails.name(record)))

    def _outcome(self, record: Record) -> None:
        body = record.body
        has = bool(body.has_content)
        self._rows.add("outcome", self._client, record.sequence, record.ticks, body.of, body.result,
                       body.bytes if has else None, body.content if has else None)
        if body.result:
            self._objects.revive(body.of)

    # things

    def _announce(self, table: str, handle: int, *values: Any, **more: Any) -> tuple[int, bool]:
        return self._objects.announce(table, handle, signed(handle), *values, **more)

    def _restated(self, record: Record) -> bool:
        return bool(record.flags & lib.WIRE_RESTATED)

    def _device(self, record: Record) -> None:
        body = record.body
        if not self._restated(record):
            self._rows.add("device", self._rows.number(), self._client, record.sequence, body.ordinal,
                           text(tails.name(record)), body.uuid.hex(), body.capability, body.memory, body.processors)

    def _context(self, record: Record) -> None:
        self._announce("context", record.body.handle, record.body.device, record.body.primary, again=True)

    def _module(self, record: Record) -> None:
        body = record.body
        context = self._objects.named("context", body.context)
        library = self._objects.named("module", body.of)
        self._announce("module", body.handle, context, body.library, body.image, body.bytes,
                       body.content if any(body.content) else None, text(tails.name(record)), library,
                       parents=(context, library), again=self._restated(record))

    def _function(self, record: Record) -> None:
        body = record.body
        module = self._objects.named("module", body.module)
        parameters = json.dumps([[p.offset, p.bytes] for p in tails.function_parameters(record)])
        self._announce("kernel", body.handle, module, body.kernel, text(tails.name(record)), body.known,
                       body.parameter_bytes, parameters, parents=(module,), again=True)

    def _stream(self, record: Record) -> None:
        body = record.body
        context = self._objects.named("context", body.context)
        self._announce("stream", body.handle, context, body.flags, body.priority, None, parents=(context,),
                       again=self._restated(record))

    def _event(self, record: Record) -> None:
        body = record.body
        context = self._objects.named("context", body.context)
        self._announce("event", body.handle, context, body.flags, body.imported, parents=(context,),
                       again=self._restated(record))

    def _memory(self, record: Record) -> None:
        body, objects = record.body, self._objects
        context = objects.named("context", body.context)
        stream = objects.stream(body.stream, context) if body.kind == lib.WIRE_POOLED else None
        owner = body.owner
        if body.kind == lib.WIRE_VARIABLE:
            owner = objects.named("module", owner)
        elif body.kind == lib.WIRE_MAPPED:
            owner = objects.named("physical", owner)
        else:
            owner = signed(owner)
        ranges: tuple[tuple[int, int], ...] = ((body.address, body.bytes),)
        if body.device_address and body.device_address != body.address:
            ranges += ((body.device_address, body.bytes),)
        outlives = body.kind in (lib.WIRE_POOLED, lib.WIRE_MAPPED)
        parent = owner if body.kind == lib.WIRE_VARIABLE else None if outlives else context
        self._announce("memory", body.address, body.bytes, context, stream, owner, body.offset,
                       signed(body.device_address), body.kind, body.flags, body.pitch, body.width, body.height,
                       body.device, text(tails.name(record)), ranges=ranges, parents=(parent,),
                       again=self._restated(record) or body.kind == lib.WIRE_VARIABLE)

    def _reservation(self, record: Record) -> None:
        self._announce("reservation", record.body.address, record.body.bytes, again=self._restated(record))

    def _physical(self, record: Record) -> None:
        body = record.body
        self._announce("physical", body.handle, body.bytes, body.type, body.location_type, body.location,
                       body.shareable, body.imported, again=self._restated(record))

    def _array(self, record: Record) -> None:
        body = record.body
        context = self._objects.named("context", body.context)
        mipmap = self._objects.named("array", body.of)
        self._announce("array", body.handle, context, body.width, body.height, body.depth, body.format, body.channels,
                       body.flags, body.element_bytes, mipmap, body.levels, body.level, parents=(context, mipmap),
                       again=self._restated(record))

    def _link_input(self, record: Record) -> None:
        body = record.body
        link, new = self._announce("link", body.state, None, None, again=True)
        position = 0 if new else self._links[link]
        self._links[link] = position + 1
        self._rows.add("link_input", link, position, record.sequence, body.type, text(tails.name(record)), body.bytes,
                       body.content)

    def _link_output(self, record: Record) -> None:
        link = self._objects.named("link", record.body.state)
        self._rows.change("UPDATE link SET bytes = ?, content = ? WHERE id = ?", record.body.bytes,
                          record.body.content, link)

    def _graph(self, record: Record) -> None:
        body = record.body
        context = self._objects.named("context", body.context)
        graph, new = self._announce("graph", body.exec, signed(body.graph), context, body.whole, body.flags,
                                    parents=(context,), again=self._restated(record))
        if not new and not self._restated(record):
            return
        numbers: dict[int, int] = {}
        launches = []
        for position, node in enumerate(tails.nodes(record)):
            numbers[node.node] = self._node(record, graph, position, node)
            if node.kind is NodeKind.LAUNCH:
                launches.append(self._launch_text(node))
        self._graphs[graph] = {handle: position for position, handle in enumerate(numbers)}
        self._launches[graph] = graph_text(launches)
        if new:
            for edge in tails.edges(record):
                self._rows.add("edge", graph, numbers.get(edge.from_, 0), numbers.get(edge.to, 0))

    def _graph_node(self, record: Record) -> None:
        graph = self._objects.named("graph", record.body.exec)
        if graph is None:
            return
        positions = self._graphs.setdefault(graph, {})
        for node in tails.nodes(record):
            self._node(record, graph, positions.setdefault(node.node, len(positions)), node)

    def _node(self, record: Record, graph: int, position: int, node: tails.Node) -> int:
        number = self._rows.number()
        self._rows.add("node", number, self._client, record.sequence, graph, position, signed(node.node),
                       signed(node.parent), int(node.kind), node.enabled, self._objects.named("context", node.context))
        self._bodies.write(number, node)
        return number

    def _access(self, record: Record) -> None:
        body = record.body
        self._rows.add("access", self._client, record.sequence, signed(body.address), body.bytes, body.location_type,
                       body.location, body.flags)

    def _export(self, record: Record) -> None:
        table = "event" if record.body.kind == Kind.EVENT else "memory"
        thing = self._objects.named("event", record.body.address) if table == "event" else None
        thing = thing or self._objects.holding(record.body.address)
        self._rows.add("export", self._client, record.sequence, record.body.kind, thing, signed(record.body.address))

    def _end(self, record: Record) -> None:
        body, objects = record.body, self._objects
        if record.flags & lib.WIRE_CAPTURED:
            return  # a node of a graph
        table = ENDS.get(body.kind)
        stream = objects.stream(body.stream, None) if body.stream else None
        if table == "memory" and body.bytes:
            thing = objects.end_range(body.handle, body.bytes)
        else:
            thing = objects.end(table, body.handle) if table else None
        self._rows.add("ending", self._client, record.sequence, body.kind, thing, signed(body.handle), stream,
                       body.bytes)

    # what is done

    def _work(self, record: Record) -> None:
        objects = self._objects
        context = stream = None
        if record.place is not None:
            context = objects.named("context", record.place.context)
            stream = objects.stream(record.place.stream, context) if record.place.stream else None
        number = self._rows.number()
        captured = record.flags & lib.WIRE_CAPTURED
        step = None if captured else self._step(record)
        self._rows.add("operation", number, self._client, record.sequence, record.ticks, record.thread,
                       record.function, int(record.kind), stream, context, captured, step)
        body = record.body
        if record.kind is Kind.GRAPH_LAUNCH:
            self._rows.add("graph_launch", number, objects.named("graph", body.exec) or 0)
        elif record.kind is Kind.SYNCHRONIZE:
            self._rows.add("synchronization", number, body.what, objects.named("event", body.event), body.query)
        elif record.kind in (Kind.CAPTURE_BEGIN, Kind.CAPTURE_END):
            self._rows.add("capture", number, signed(body.graph), body.mode)
        else:
            self._bodies.write(number, record)

    def _step(self, record: Record) -> int | None:
        """The step that a launch is in."""
        if record.kind is Kind.LAUNCH:
            what = self._launch_text(record)
        elif record.kind is Kind.GRAPH_LAUNCH:
            graph = self._objects.named("graph", record.body.exec) or 0
            what = self._launches.get(graph) or graph_text(())
        else:
            if ends_step(record):
                self._step_over()
            return None
        if self._steps.launched(record.sequence, what):
            self._step_number = self._rows.number()
        return self._step_number

    def _step_over(self) -> None:
        step = self._steps.over()
        if step is not None:
            self._rows.add("step", self._step_number, self._client, step.first, step.last, step.launches,
                           step.signature)

    def _launch_text(self, work: Record | tails.Node) -> bytes:
        body = work.body
        return launch_text(LaunchKey(self._objects.said("kernel", body.function, 3) or "", body.grid, body.block))
