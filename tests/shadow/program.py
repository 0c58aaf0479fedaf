"""What records say that a program does, done at home: things come and go, work is queued, the host waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shim import tails
from shim.wire import Kind, NodeKind, Record, lib
from tests.shadow.allocations import Allocations
from tests.shadow.decisions import Name, Wanted
from tests.shadow.errors import Fault
from tests.shadow.graphs import IDLE, Exec, Graphs
from tests.shadow.modules import Copy, Modules
from tests.shadow.outcome import Logged, Outcome
from tests.shadow.queues import Entry, Schedule
from tests.shadow.script import Script
from tests.shadow.space import Grid, Space
from tests.shadow.streams import Stream, Streams
from tests.shadow.work import Doing, Piece, Work

WORK = {
    Kind.COPY: NodeKind.COPY, Kind.SET: NodeKind.SET,
    Kind.EVENT_RECORD: NodeKind.EVENT_RECORD, Kind.EVENT_WAIT: NodeKind.EVENT_WAIT,
    Kind.HOST_FUNCTION: NodeKind.HOST_FUNCTION, Kind.OTHER_WORK: NodeKind.OTHER,
    Kind.MEMORY_OPERATIONS: NodeKind.MEMORY_OPERATIONS,
}  # fmt: skip
QUIET = {Kind.DATA, Kind.OUTCOME, Kind.DOOR, Kind.DRIVER, Kind.DEVICE, Kind.CONTEXT, Kind.FUNCTION, Kind.MODULE,
         Kind.STREAM, Kind.EVENT}
"""Records that close no segment."""
NO_RUN = -1


class Program:
    """``number(ordinal)``: the GPU that stands for the program's device."""

    def __init__(self, script: Script, space: Space, schedule: Schedule, streams: Streams, outcome: Outcome,
                 number: Callable[[int], int], log: bool) -> None:
        self._script, self._schedule, self._streams, self._outcome = script, schedule, streams, outcome
        self._number, self._log = number, log
        self._modules, self._allocations = Modules(space, script), Allocations(space)
        self._graphs, self._work = Graphs(), Work(space, self._allocations, script, outcome)
        self._contexts: dict[int, int] = {}
        self._waits: dict[int, list[Entry | None]] = {}
        self._run, self._last = 0, (-1, -1, -1)
        self._kinds: dict[Kind, Callable[[Record], None]] = {
            Kind.CONTEXT: self._context, Kind.MODULE: self._modules.announce, Kind.FUNCTION: self._modules.announce,
            Kind.STREAM: streams.announce, Kind.MEMORY: self._memory, Kind.PHYSICAL: self._allocations.create,
            Kind.ARRAY: self._allocations.make_array, Kind.GRAPH_EXEC: self._graphs.announce,
            Kind.GRAPH_NODE: self._graphs.change, Kind.END: self._end, Kind.SYNCHRONIZE: self._synchronize,
            Kind.OUTCOME: self._outcome_of, **dict.fromkeys(WORK, self._queue_record),
        }  # fmt: skip

    def do(self, record: Record) -> None:
        """All that a record says, but launches of kernels and graphs, which are wanted."""
        if record.sequence in self._script.failed:
            return
        if record.flags & lib.WIRE_CAPTURED:
            if record.kind is Kind.EVENT_RECORD:
                self._streams.captured(record.body.event)
            return
        act = self._kinds.get(record.kind)
        if act is not None:
            act(record)

    def note(self, record: Record) -> None:
        """Tell which launches may be in one segment."""
        place = (*record.place, record.thread) if record.kind is Kind.LAUNCH else self._last
        quiet = record.kind in QUIET or record.flags & lib.WIRE_CAPTURED
        if not quiet and (record.kind is not Kind.LAUNCH or place != self._last):
            self._run += 1
            self._last = place if record.kind is Kind.LAUNCH else (-1, -1, -1)

    def wanted(self, record: Record) -> tuple[dict[Name, Wanted], list[Name]]:
        """What a record of LAUNCH or GRAPH_LAUNCH wants, by name, and the names in an order in which all may be done.
        Of calls that failed nothing happens at home."""
        if record.flags & lib.WIRE_CAPTURED:
            return {}, []
        stream = self._stream(record)
        if record.kind is Kind.LAUNCH:
            name = record.sequence, -1
            piece = Piece(*name, NodeKind.LAUNCH, record.place.context, record)
            return {name: self._want(piece, stream)}, [name]
        graph = self._graphs.launched(record.body.exec)
        found = {(record.sequence, position): self._want(self._piece(record, graph, position), stream)
                 for position in range(len(graph.nodes))}
        order = [(record.sequence, position) for position in graph.order(self._schedule.choose)]
        return found, order

    def end(self) -> None:
        """Note what there is when all is done."""
        self._outcome.memory = self._allocations.contents()
        self._outcome.variables = self._modules.variables()
        self._outcome.places = tuple(sorted(self._modules.places))

    def _piece(self, record: Record, graph: Exec, position: int) -> Piece:
        node = graph.nodes[position]
        kind = node.kind if graph.runs(position) else NodeKind.EMPTY
        return Piece(record.sequence, position, kind, graph.context_of(node), node)

    def _want(self, piece: Piece, stream: Stream) -> Wanted:
        home = self._home(piece.context)
        if piece.sequence in self._script.failed:
            copy = self._modules.find(piece.of.body.function, piece.context)[0] if self._launches(piece) else None
            return Wanted(stream, home, lambda: None, lambda: None, copy)
        queue = partial(self._queue, piece, stream)
        if not self._launches(piece):
            return Wanted(stream, home, queue, idle=piece.kind in IDLE)
        copy, name = self._modules.find(piece.of.body.function, piece.context)
        self._modules.home(copy)
        run = partial(self._launch, piece, copy, name, self._run)
        label = _label(piece)
        return Wanted(stream, home, lambda: (self._streams.put(stream, label, run), None)[1], run, copy)

    def _launches(self, piece: Piece) -> bool:
        return piece.kind is NodeKind.LAUNCH

    def _home(self, context: int) -> int:
        return self._number(self._contexts.get(context, 0))

    def _stream(self, record: Record) -> Stream:
        return self._streams.at(record.place.stream, record.place.context, record.thread)

    def _queue_record(self, record: Record) -> None:
        if not record.place.stream:
            return  # nobody knows where
        stream = self._stream(record)
        piece = Piece(record.sequence, -1, WORK[record.kind], record.place.context, record)
        self._queue(piece, stream)
        if record.kind is Kind.COPY and record.body.flags & lib.WIRE_SYNCHRONOUS:
            self._schedule.drain([stream.queue.last])

    def _queue(self, piece: Piece, stream: Stream) -> None:
        label = _label(piece)
        if piece.kind is NodeKind.EVENT_RECORD:
            self._streams.mark(piece.of.body.event, stream, label)
        elif piece.kind is NodeKind.EVENT_WAIT:
            self._streams.wait(piece.of.body.event, stream, label)
        for doing in self._work.of(piece):
            self._streams.put(stream, label, partial(self._act, piece, doing), ready=doing.ready)

    def _act(self, piece: Piece, doing: Doing) -> None:
        written = doing.act()
        if self._log and written:
            home = self._home(piece.context)
            self._outcome.log.append(Logged(piece.sequence, piece.node, home, NO_RUN, "", (), tuple(written)))

    def _launch(self, piece: Piece, copy: Copy, name: str, run: int) -> None:
        body, home = piece.of.body, self._home(piece.context)
        grid = Grid(body.grid, body.block, body.shared, bytes(tails.launch_parameters(piece.of)),
                    bool(body.flags & lib.WIRE_COOPERATIVE))
        try:
            touched = self._modules.home(copy).run(name, grid, self._log)
        except Fault as fault:
            raise Fault(f"{_label(piece)}, kernel {name}: {fault}") from fault
        self._outcome.launches[home] += 1
        if touched is not None:
            self._outcome.log.append(Logged(piece.sequence, piece.node, home, run, name, *touched))

    def _context(self, record: Record) -> None:
        self._contexts[record.body.handle] = record.body.device

    def _memory(self, record: Record) -> None:
        body = record.body
        if body.kind == lib.WIRE_VARIABLE:
            self._modules.variable(record)
        elif body.kind == lib.WIRE_POOLED and body.stream and not record.flags & lib.WIRE_RESTATED:
            context = body.context or next(iter(self._contexts), 0)
            stream = self._streams.at(body.stream, context, record.thread)
            self._streams.put(stream, f"record {record.sequence}", lambda: self._allocations.announce(record))
        else:
            self._allocations.announce(record)

    def _end(self, record: Record) -> None:
        body = record.body
        match body.kind:
            case Kind.MEMORY:
                self._end_memory(record)
            case Kind.MODULE:
                self._schedule.drain(e for context in self._contexts for e in self._streams.of_context(context))
                self._modules.end(body.handle)
            case Kind.CONTEXT:
                self._schedule.drain(self._streams.of_context(body.handle))
                self._modules.end_context(body.handle)
                self._allocations.end_context(body.handle)
                self._streams.end_context(body.handle)
            case Kind.STREAM:
                self._streams.end(body.handle)
            case Kind.PHYSICAL:
                self._allocations.release(body.handle)
            case Kind.ARRAY:
                self._allocations.end_array(body.handle)
            case Kind.GRAPH_EXEC:
                self._graphs.end(body.handle)

    def _end_memory(self, record: Record) -> None:
        body = record.body
        live = self._allocations.live.get(body.handle)
        piece = Piece(record.sequence, -1, NodeKind.FREE, live.context if live else 0, record)
        doing = Doing(lambda: self._work.free(body.handle))
        if body.stream:
            context = piece.context or next(iter(self._contexts), 0)
            stream = self._streams.at(body.stream, context, record.thread)
            self._streams.put(stream, _label(piece), partial(self._act, piece, doing))
        elif body.bytes:
            self._allocations.unmap(body.handle, body.bytes)
        elif live is not None:  # it waits until all is done, as the function does
            self._schedule.drain(e for context in self._contexts for e in self._streams.of_context(context))
            self._act(piece, doing)

    def _synchronize(self, record: Record) -> None:
        body = record.body
        if body.what == lib.WIRE_WAITED_CONTEXT:
            waits = self._streams.of_context(record.place.context)
        elif body.what == lib.WIRE_WAITED_STREAM:
            waits = [self._stream(record).queue.last]
        else:
            waits = [self._streams.event(body.event)]
        if record.sequence in self._script.waited:
            self._waits[record.sequence] = waits
        else:
            self._schedule.drain(waits)

    def _outcome_of(self, record: Record) -> None:
        self._schedule.drain(self._waits.pop(record.body.of, ()))


def _label(piece: Piece) -> str:
    return f"record {piece.sequence}" + (f", node {piece.node}" if piece.node >= 0 else "")
