"""Who writes a program: it gives streams work, and orders it first where it would race.

Two operations that conflict are ordered by streams, events, the rules of default streams or waits of the host, and by
nothing else; a conflict is one of bytes really touched. The order is that of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from shim.wire import Kind, lib
from tests.generated.clocks import Clocks, Event, Stream, Touched, touched
from tests.generated.kernels import KERNELS, Addresses, Touch
from tests.generated.memory import Mapping, Part, Physical, Space, Unmapped
from tests.generated.operations import Copy, Launch, Operation, Table
from tests.generated.records import CONTEXT, Program

EVENT_SYNCHRONIZED, STREAM_SYNCHRONIZED = lib.WIRE_WAITED_EVENT, lib.WIRE_WAITED_STREAM


class Author:
    """``features`` are those of :mod:`tests.generated.random_program`."""

    def __init__(self, rng: Random, features: frozenset[str]) -> None:
        self.rng, self.features = rng, features
        self.program = Program()
        self.space = Space()
        self.clocks = Clocks("unordered" in features)
        self.events: list[Event] = []
        self.tables: list[Table] = []
        self.captured: list[Stream] = []
        self.salt = 0
        self._handles = 0x10000
        self._old_handles: list[int] = []
        self.legacy = self.clocks.stream(1)
        self.threads = [self.clocks.stream(2, thread) for thread in ((7, 8) if "threads" in features else ())]

    # Names.

    def number(self) -> int:
        """The next running number."""
        self.salt += 1
        return self.salt

    def handle(self) -> int:
        """A new one, or one of something that is no longer there."""
        if self._old_handles and self.rng.random() < 0.7:
            return self._old_handles.pop()
        self._handles += 16
        return self._handles

    def give_back(self, handle: int) -> None:
        if "handles" in self.features:
            self._old_handles.append(handle)

    @property
    def streams(self) -> list[Stream]:
        """Those that may be given work now."""
        alive = [s for s in self.clocks.streams if s.alive and s not in self.captured]
        return [s for s in alive if not (self.captured and s.legacy)]

    # Order.

    def possible(self, operation: Operation) -> Touched | None:
        """What it touches now; None if something of it is no longer there, or if its own threads would race."""
        if not operation.possible or not all(table.valid for table in operation.tables):
            return None
        try:
            what = touched(self.space, operation.touch())
        except Unmapped:
            return None
        sequential = isinstance(operation, Launch) and KERNELS[operation.kernel].one
        return what if sequential or not self._races_within(operation.touch()) else None

    def _races_within(self, touch: Touch) -> bool:
        resolve = self.space.resolve
        changed = [resolve(touch.writes), resolve(touch.own), unique(resolve(touch.adds))]
        every = keys([part for parts in changed for part in parts])
        return len(np.unique(every)) < len(every) or bool(np.isin(keys(resolve(touch.reads)), every).any())

    def submit(self, operation: Operation, stream: Stream | None = None) -> bool:
        """Gives an operation to a stream, a random one if it does not matter, behind all that it conflicts with.
        False: it was not possible."""
        what = self.possible(operation)
        if what is None:
            return False
        stream = stream or self.rng.choice(self.streams)
        self.order(stream, what)
        self.write(operation, stream)
        self.queued(operation, stream, what)
        return True

    def queued(self, operation: Operation, stream: Stream, what: Touched) -> None:
        """Done as far as order and tables are concerned. Nobody relies on graphs that do nothing where default streams
        wait for each other."""
        self.clocks.queue(stream, what, work=any(what) or operation.kind is not Kind.GRAPH_LAUNCH)
        written = [*what.writes, *what.adds]
        for table in self.tables:
            if table.valid and self.overlap(table, written):
                table.valid = False
        if isinstance(operation, Copy) and operation.flags & lib.WIRE_SYNCHRONOUS and not operation.to.known:
            self.clocks.waited(stream.worked)

    def overlap(self, table: Table, written: list[Part]) -> bool:
        try:
            mine = self.space.resolve(np.arange(table.address, table.address + table.size))
        except Unmapped:
            return True
        return any(a.physical is b.physical and np.isin(a.offsets, b.offsets).any() for a in mine for b in written)

    def write(self, operation: Operation, stream: Stream, marks: int = 0) -> int:
        """The record."""
        program = self.program
        program.thread = stream.thread
        fields = operation.fields()
        if isinstance(operation, Copy) and operation.data is not None and not operation.tail():
            program.payload(operation.data)
        number = program.record(operation.kind, marks=marks, place=(stream.handle, CONTEXT), tail=operation.tail(),
                                **fields)
        if isinstance(operation, Copy) and operation.flags & lib.WIRE_SYNCHRONOUS:
            program.outcome(number)
        return number

    def order(self, stream: Stream, what: Touched, work: bool = True) -> None:
        """Makes what a stream is given next come behind all that it conflicts with."""
        while missing := self.clocks.missing(self.clocks.start(stream, work), what):
            number, count = self.rng.choice(sorted(missing.items()))
            other = self.clocks.streams[number]
            if "events" not in self.features or self.rng.random() < 0.25 or stream in self.captured:
                self.wait_for(other, count)
            else:
                self.wait(stream, self.event_behind(other, count))

    def order_host(self, what: Touched) -> None:
        """Makes the host know that all is done that conflicts."""
        while missing := self.clocks.missing(self.clocks.host, what):
            number, count = self.rng.choice(sorted(missing.items()))
            self.wait_for(self.clocks.streams[number], count)

    def event_behind(self, other: Stream, count: int) -> Event:
        """One that is recorded behind that operation of a stream."""
        fitting = [e for e in self.events if e.clock is not None and e.clock[other.number] >= count]
        if fitting and (self.rng.random() < 0.4 or other not in self.streams):
            return self.rng.choice(fitting)
        if other not in self.streams:  # destroyed, or captured: some other stream knows, or the host has to
            self.synchronize_context()
            return self.record_event(self.rng.choice(self.streams))
        return self.record_event(other)

    def record_event(self, stream: Stream, event: Event | None = None) -> Event:
        event = event or self.some_event()
        self.program.thread = stream.thread
        self.program.record(Kind.EVENT_RECORD, place=(stream.handle, CONTEXT), event=event.handle)
        self.clocks.record(stream, event)
        return event

    def some_event(self) -> Event:
        """A new one, or one that is recorded again."""
        if len(self.events) > 5 or (self.events and self.rng.random() < 0.6):
            return self.rng.choice(self.events)
        event = Event(self.handle())
        self.events.append(event)
        self.program.announce((Kind.EVENT, event.handle), Kind.EVENT, handle=event.handle, context=CONTEXT, flags=2)
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        self.program.thread = stream.thread
        self.program.record(Kind.EVENT_WAIT, place=(stream.handle, CONTEXT), event=event.handle)
        self.clocks.wait(stream, event)

    # Waits of the host.

    def wait_for(self, other: Stream, count: int) -> None:
        """The host waits for that operation of a stream, in one way or another."""
        if other not in self.streams or (not self.captured and self.rng.random() < 0.2):
            self.synchronize_context()
        elif "events" in self.features and self.rng.random() < 0.4:
            self.synchronize_event(self.event_behind(other, count))
        else:
            self.synchronize(other)

    def synchronize(self, stream: Stream) -> None:
        self.program.thread = stream.thread
        self._waited((stream.handle, CONTEXT), STREAM_SYNCHRONIZED, 0)
        self.clocks.waited(stream.clock)

    def synchronize_event(self, event: Event) -> None:
        self._waited((0, 0), EVENT_SYNCHRONIZED, event.handle)
        if event.clock is not None:
            self.clocks.waited(event.clock)

    def synchronize_context(self) -> None:
        """Must not be while something is captured."""
        assert not self.captured
        self._waited((0, CONTEXT), lib.WIRE_WAITED_CONTEXT, 0)
        for stream in self.clocks.streams:
            self.clocks.waited(stream.clock)

    def _waited(self, place: tuple[int, int], what: int, event: int) -> None:
        query = what != lib.WIRE_WAITED_CONTEXT and self.rng.random() < 0.3
        number = self.program.record(Kind.SYNCHRONIZE, place=place, what=what, event=event, query=int(query))
        if not query:
            self.program.outcome(number)

    # Memory as such.

    def map(self, address: int, size: int, physical: Physical | None = None, offset: int = 0) -> Physical:
        physical = physical or Physical(size)
        self.space.add(Mapping(address, size, physical, offset))
        return physical

    def everything(self, address: int, size: int) -> Touched:
        """A write to all bytes of a range, as which a free counts."""
        return touched(self.space, Touch(writes=np.arange(address, address + size)))

    def everything_of(self, physical: Physical) -> Touched:
        """The same of memory that is not mapped."""
        return Touched((), [Part(physical, np.arange(physical.size))], ())

    def failed(self, operation: Operation, stream: Stream) -> None:
        """A call that is refused."""
        with self.program.together():
            self.program.outcome(self.write(_unwaited(operation), stream), result=1)


def _unwaited(operation: Operation) -> Operation:
    if isinstance(operation, Copy):
        return Copy(operation.to, operation.source, operation.width, operation.height, operation.data,
                    operation.flags & ~lib.WIRE_SYNCHRONOUS)
    return operation


def keys(parts: Sequence[Part]) -> Addresses:
    """Numbers that tell all bytes apart."""
    numbers = [part.offsets + (part.physical.serial << 32) for part in parts]
    return np.concatenate(numbers) if numbers else np.zeros(0, np.int64)


def unique(parts: Sequence[Part]) -> list[Part]:
    return [Part(part.physical, np.unique(part.offsets)) for part in parts]
