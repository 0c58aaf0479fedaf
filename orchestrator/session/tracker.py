"""One program's records, one after the other, become decisions.

Records say what there is (``memory``, ``modules``, ``streams``, ``graphs``). Work among them becomes operations with
the bytes that they touch (``launches``, ``touched``), which take their places (``placing``): at home, where they make
bytes stale elsewhere (``directory``) and known tables unknown (``contents``), or in segments that are sent away
(``segments``).
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.session.code import Code
from orchestrator.session.contents import Contents
from orchestrator.session.directory import Directory
from orchestrator.session.errors import RecordError
from orchestrator.session.events import Changed, Sent, Session, Uploaded
from orchestrator.session.graphs import Executable, Graphs
from orchestrator.session.jobs import Decision, Placed
from orchestrator.session.journal import Journal
from orchestrator.session.launches import Launches
from orchestrator.session.memory import Allocation, Memory
from orchestrator.session.modules import Modules
from orchestrator.session.operations import Effect, Operation, StreamKey, What
from orchestrator.session.payloads import Payloads
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Placing, Settings
from orchestrator.session.recognition import Recognition
from orchestrator.session.step_classes import StepClasses
from orchestrator.session.steps import LaunchKey, ends_step, graph_text, launch_text
from orchestrator.session.tally import Tally
from orchestrator.session.touched import ANYTHING, copied, destination, filled, operated
from shim import tails
from shim.layout import lib
from shim.tails import Node
from shim.wire import Buffer, Kind, NodeKind, Record, records
from tessera.reasons import Reason

_PASSING = frozenset({
    Kind.LAUNCH, Kind.DRIVER, Kind.DATA, Kind.OUTCOME, Kind.DOOR, Kind.DEVICE, Kind.CONTEXT, Kind.MODULE,
    Kind.FUNCTION, Kind.STREAM, Kind.EVENT,
})  # fmt: skip
"""Records behind which a segment goes on: they say what there is, or what came of something."""
_REPEATED = frozenset({
    Kind.DATA, Kind.OUTCOME, Kind.GRAPH_NODE, Kind.LAUNCH, Kind.COPY, Kind.SET, Kind.GRAPH_LAUNCH, Kind.HOST_FUNCTION,
    Kind.MEMORY_OPERATIONS, Kind.OTHER_WORK, Kind.SYNCHRONIZE,
})  # fmt: skip
"""Records of which a step may be made that is known; the others with something to be done change what there is."""
_NO_CALL = frozenset({Kind.DATA, Kind.OUTCOME})


class Tracker:
    """``operations`` is called with every operation, in the order of the records. Without it steps that are known are
    taken as a whole (:mod:`orchestrator.session.recognition`), unless ``recognise`` says no; what is said of the
    directory and the tally holds at the ends of steps then."""

    def __init__(self, settings: Settings, placement: Placement, code: Code,
                 operations: Callable[[Operation], None] | None = None, *, recognise: bool = True) -> None:
        self.directory = Directory(gpu.memory for gpu in settings.gpus)
        self.memory = Memory(self._ended)
        self._journal = Journal()
        self._contents = Contents(self._journal)
        self._payloads = Payloads()
        self.modules = Modules(code, self._payloads)
        self._graphs = Graphs()
        self._launches = Launches(self.memory, self._contents, self.modules, settings.promised, self._pristine,
                                  self._journal)
        self._placing = Placing(settings, placement, self.memory, self._contents, self.directory,
                                self.modules.runs_on, operations, self._journal)
        self._streams = self._placing.streams
        self.expected: int | None = None
        """The number of the next record."""
        self._opaque_at: dict[int, int] = {}
        self._takers = self._table()
        self._steps = None if operations is not None or not recognise else Recognition(
            self, Session(self._contents, self.memory, self._graphs, self._launches.tables, self._uploaded, self._told,
                          self._module_record), self._placing, placement, self.directory, self._journal)

    def _table(self) -> dict[Kind, Callable[[Record], object]]:
        modules = self._module_record
        return {
            Kind.EPOCH: self._epoch, Kind.DATA: self._data, Kind.OUTCOME: self._outcome, Kind.DEVICE: modules,
            Kind.CONTEXT: self._context, Kind.MODULE: self._module, Kind.FUNCTION: modules,
            Kind.STREAM: self._streams.announce, Kind.MEMORY: self._memory, Kind.RESERVATION: self.memory.reserve,
            Kind.ARRAY: self._array, Kind.GRAPH_EXEC: self._graph, Kind.GRAPH_NODE: self._graph_node,
            Kind.LINK_INPUT: modules, Kind.LINK_OUTPUT: modules, Kind.EXPORT: self._export, Kind.END: self._end,
            Kind.LAUNCH: self._launch, Kind.COPY: self._work, Kind.SET: self._work,
            Kind.GRAPH_LAUNCH: self._graph_launch, Kind.HOST_FUNCTION: self._work, Kind.MEMORY_OPERATIONS: self._work,
            Kind.OTHER_WORK: self._work, Kind.SYNCHRONIZE: self._synchronize,
        }  # fmt: skip

    @property
    def open(self) -> tuple[Placed, ...]:
        """The launches of the segment that is not closed yet."""
        return self._placing.open if self._steps is None else self._steps.open

    @property
    def tally(self) -> Tally:
        """What was done so far."""
        return self._placing.tally

    @property
    def classes(self) -> StepClasses:
        """The step classes of the program, and what they read."""
        return self._placing.classes

    def take(self, data: Buffer) -> list[Decision]:
        """Whole records; what was decided, in order. Raises RecordError for records that cannot be, and WireError for
        what is no record; nothing can be asked of the tracker after that."""
        if self._steps is not None:
            self._steps.take(data)
        else:
            for record in records(data):
                self.taken(record)
        return self._placing.given()

    def finish(self) -> list[Decision]:
        """No more records come."""
        if self._steps is not None:
            self._steps.leave()
        self._placing.step_over()
        return self._placing.given()

    def withdraw(self, device: int) -> None:
        """What was sent to a GPU has not arrived, or is gone: nothing is valid there."""
        if self._steps is not None:
            self._steps.leave()
            self._steps.disturb()
        self.directory.withdraw(device)

    def taken(self, record: Record) -> None:
        """One record, whatever is known of steps."""
        kind = record.kind
        self.tally.records += 1
        if record.sequence != self.expected and self.expected is not None:
            if record.sequence < self.expected - 1:  # in a trace some records share a number
                raise RecordError(record.sequence, kind.name, f"comes behind record {self.expected - 1}")
            if kind is not Kind.EPOCH and record.sequence > self.expected:
                self._placing.lost()
        self.expected = record.sequence + 1
        if record.flags & lib.WIRE_CAPTURED:
            return
        if kind not in _PASSING:
            self._placing.close()
        if self.memory.doubtful and kind not in _NO_CALL and not record.flags & lib.WIRE_RESTATED:
            self.memory.settle()
        taker = self._takers.get(kind)
        if taker is not None:
            if kind not in _REPEATED and self._steps is not None:
                self._steps.changed()
            taker(record)

    # of the session

    def _epoch(self, record: Record) -> None:
        self._placing.lost()
        self.memory.doubt()
        self._unloaded(self.modules.take(record))

    def _outcome(self, record: Record) -> None:
        body = record.body
        if body.result:
            self._placing.failed(body.of)
        elif not body.has_content:
            return
        lo, hi = self._contents.range_of(body.of)
        gathered = lo < hi and self.directory.holds(lo, hi)
        if self._journal.on:
            self._journal.told(record.sequence - body.of <= self._journal.place, lo < hi, gathered)
        self._told(record, gathered)

    def _told(self, record: Record, gathered: bool) -> None:
        """Contents of a record, or that it failed; ``gathered``: before anybody could compare."""
        body = record.body
        lo, hi = self._contents.range_of(body.of)
        if lo < hi:
            data = self._payloads.get(body.content) if body.has_content and not body.result else None
            self._contents.told(body.of, None if gathered else data)

    def _data(self, record: Record) -> None:
        if self._journal.on:
            self._journal.note(Sent(self._journal.place))
        self._module_record(record)

    # what there is

    def _module_record(self, record: Record) -> None:
        self._unloaded(self.modules.take(record))

    def _module(self, record: Record) -> None:
        self._unloaded(self.modules.take(record))
        number = self.modules.module(record.body.handle, record.body.context)
        if number is not None:
            self._opaque_at.setdefault(number, self.tally.unknown_work)

    def _unloaded(self, gone: tuple[int, ...]) -> None:
        if gone:
            self._launches.unloaded(set(gone))
            self.memory.end_variables(set(gone))
            for number in gone:
                self._opaque_at.pop(number, None)

    def _context(self, record: Record) -> None:
        self.memory.context(record.body.handle, record.body.device)
        self.modules.take(record)

    def _memory(self, record: Record) -> None:
        body = record.body
        if body.kind != lib.WIRE_VARIABLE:
            self.memory.announce(record, -1, "")
            return
        module = self.modules.module(body.owner, body.context)
        name = tails.name(record)
        known = self._launches.known(-1 if module is None else module, name)
        made = self.memory.announce(record, -1 if module is None else module, name)
        if module is not None and made is not known:
            self._launches.variable(module, name, made)
            if known is None:
                self._pristine(made)

    def _pristine(self, variable: Allocation) -> None:
        """A variable is met for the first time. It holds what its module says, on all GPUs, unless something unknown
        may have written it since the module was loaded."""
        if self._opaque_at.get(variable.module) == self.tally.unknown_work:
            self.directory.everywhere(variable.address, variable.end)

    def _ended(self, lo: int, hi: int, allocation: Allocation) -> None:
        self.directory.ended(lo, hi, allocation)
        self._contents.forget(lo, hi)

    def _array(self, record: Record) -> None:
        if not record.flags & lib.WIRE_RESTATED:
            self.memory.array(record.body.handle, fresh=True)

    def _export(self, record: Record) -> None:
        if record.body.kind == Kind.EVENT:
            return
        for held in self.memory.share(record.body.address):
            self.directory.stale(held.address, held.end)
            self._contents.forget(held.address, held.end)

    def _end(self, record: Record) -> None:
        body, kind = record.body, record.body.kind
        if kind in (Kind.MEMORY, Kind.RESERVATION):
            self._free(record)
            return
        if kind == Kind.CONTEXT:
            for held in self.memory.of_context(body.handle):
                self._operate(record, What.FREE, (Effect("MUSTW", held.address, held.end),))
            self.memory.end_context(body.handle)
            self._streams.end_context(body.handle)
        elif kind == Kind.STREAM:
            self._streams.end(body.handle)
        elif kind == Kind.ARRAY:
            self.memory.end_array(body.handle)
        elif kind == Kind.GRAPH_EXEC:
            self._graphs.end(body.handle)
        self._unloaded(self.modules.take(record))

    def _free(self, record: Record) -> None:
        body = record.body
        held = self.memory.find(body.handle)
        if held is None:
            return
        lo, hi = body.handle, min(body.handle + body.bytes, held.end) if body.bytes else held.end
        freed = [Effect("MUSTW", a, b) for a, b in self.memory.everywhere(lo, hi)]
        if body.kind == Kind.MEMORY:
            self._operate(record, What.FREE, tuple(freed))
        self.memory.end(body.handle, body.bytes, whole=body.kind == Kind.RESERVATION)

    # what is done

    def _operate(self, record: Record, what: What, effects: tuple[Effect, ...], opaque: Reason | None = None) -> None:
        """Work of a record that launches no kernel."""
        if record.place is not None:
            key = self._streams.key(record)
            self._streams.queued(key, record.sequence)
        else:
            key = self._streams.named(getattr(record.body, "stream", 0))
        self._placing.work(Operation(record.sequence, -1, what, key, self._placing.home(key.context), effects, opaque))

    def _work(self, record: Record) -> None:
        self._operate(record, *self._does(record.kind, record))
        if record.kind is Kind.COPY:
            self._uploaded(record)
            if ends_step(record):
                self._placing.step_over()

    def _does(self, kind: Kind | NodeKind, work: Record | Node) -> tuple[What, tuple[Effect, ...], Reason | None]:
        """What some work is, which bytes it touches, and why that is not known."""
        match kind.name:
            case "COPY":
                return What.COPY, copied(work, self.memory), None
            case "SET":
                return What.SET, self.memory.spread(filled(work.body)), None
            case "HOST_FUNCTION":
                return What.HOST_FUNCTION, (), None
            case "MEMORY_OPERATIONS":
                effects = operated(work)
                if effects is not None:
                    return What.MEMORY_OPERATION, self.memory.spread(effects), None
        return What.OTHER, ANYTHING, Reason.UNKNOWN_WORK

    def _uploaded(self, record: Record) -> None:
        """Remember what a copy has put into device memory, if it is known."""
        body = record.body
        kind, at, width = body.content_kind, destination(body), body.width
        if self._journal.on and kind != lib.WIRE_NO_CONTENT and body.from_.kind == lib.WIRE_SIDE_HOST:
            self._journal.note(Uploaded(self._journal.place))
        if kind == lib.WIRE_NO_CONTENT or at is None or body.from_.kind != lib.WIRE_SIDE_HOST:
            return
        held, region = self.memory.find(at), self.memory.regions.find(at)
        if held is None or held.pin is not None or region is None or at + width > region.address + region.size:
            return
        if self.memory.is_aliased(at, at + width):
            return
        if kind == lib.WIRE_LATER_CONTENT:
            self._contents.put(at, width, None, record.sequence)
        elif not body.flags & lib.WIRE_PINNED or body.flags & lib.WIRE_SYNCHRONOUS:
            data = bytes(tails.inline_content(record)) or self._payloads.get(body.content)
            if data is not None and len(data) == width:
                if self._journal.on and kind == lib.WIRE_INLINE_CONTENT:
                    self._journal.replaced(at, at + width)
                self._contents.put(at, width, data, record.sequence)

    def _synchronize(self, record: Record) -> None:
        self._placing.step_over()
        if record.body.what != lib.WIRE_WAITED_EVENT:
            self._streams.waited(self._streams.key(record), record.body.what == lib.WIRE_WAITED_CONTEXT)

    def _launch(self, record: Record) -> None:
        key = self._streams.key(record)
        self._launched(record, record.sequence, -1, key, key.context, ())

    def _launched(self, work: Record | Node, sequence: int, node: int, key: StreamKey, context: int,
                  after: tuple[int, ...]) -> None:
        where = self._placing.where(self._key(work), key, context)
        prepared = self._launches.prepare(work, context, lambda coarse: self._placing.matters(where, coarse))
        self._placing.launch(sequence, node, key, context, prepared, where, after)

    # graphs

    def _graph(self, record: Record) -> None:
        graph = self._graphs.announce(record)
        keys = [self._key(node) for node in graph.nodes if node.kind is NodeKind.LAUNCH]
        graph.text = graph_text([launch_text(key) for key in keys])

    def _key(self, work: Record | Node) -> LaunchKey:
        return LaunchKey(self.modules.name(work.body.function), work.body.grid, work.body.block, isinstance(work, Node))

    def _graph_node(self, record: Record) -> None:
        if self._journal.on:
            self._journal.note(Changed(self._journal.place))
        self._graphs.change(record)

    def _graph_launch(self, record: Record) -> None:
        key = self._streams.key(record)
        graph = self._graphs.find(record.body.exec)
        if self._journal.on:
            self._journal.graph(record.body.exec, graph)
        self._streams.queued(key, record.sequence)
        if graph is None or not graph.whole:
            self._operate(record, What.OTHER, ANYTHING, Reason.UNKNOWN_GRAPH)
            return
        enabled = set(graph.enabled())
        nodes = [graph.nodes[position] for position in graph.order if position in enabled]
        self._placing.graph(record.sequence, graph.text, [self._key(n) for n in nodes if n.kind is NodeKind.LAUNCH])
        for position in graph.order:
            if position in enabled:
                self._node(record, key, graph, position)
            else:
                self._placing.skip(Operation(record.sequence, position, What.NOTHING, key,
                                             self._placing.home(key.context), (), after=graph.before[position]))
        self._placing.graph_over()

    def _node(self, record: Record, key: StreamKey, graph: Executable, position: int) -> None:
        node, after = graph.nodes[position], graph.before[position]
        context = node.context or graph.context or key.context
        if node.kind is NodeKind.LAUNCH:
            self._launched(node, record.sequence, position, key, context, after)
            return
        what: What = What.NOTHING
        effects: tuple[Effect, ...] = ()
        opaque: Reason | None = None
        if node.kind is NodeKind.ALLOCATE:
            self.memory.allocate(record.sequence, node.body, context)
        elif node.kind is NodeKind.FREE:
            held = self.memory.find(node.body.address)
            if held is not None:
                what, effects = What.FREE, (Effect("MUSTW", held.address, held.end),)
        elif node.kind not in (NodeKind.EMPTY, NodeKind.CHILD, NodeKind.EVENT_RECORD, NodeKind.EVENT_WAIT):
            what, effects, opaque = self._does(node.kind, node)
        operation = Operation(record.sequence, position, what, key, self._placing.home(context), effects, opaque,
                              None, after)
        self._placing.work(operation)
        if what is What.FREE:
            self.memory.end(node.body.address, 0, whole=False)

