"""Records of a program to stamps of its work: what :mod:`orchestrator.session.order` makes of streams and events."""

from __future__ import annotations

from orchestrator.session.operations import StreamKey
from orchestrator.session.order import Clock, Order, Stamp
from orchestrator.session.steps import ends_step
from orchestrator.session.streams import LEGACY, PER_THREAD, Streams
from shim.layout import lib
from shim.wire import Kind, Record

WORK = frozenset({
    Kind.LAUNCH, Kind.COPY, Kind.SET, Kind.GRAPH_LAUNCH, Kind.HOST_FUNCTION, Kind.MEMORY_OPERATIONS, Kind.OTHER_WORK,
})  # fmt: skip


class Stamps:
    """Of one program. Records are taken in their order."""

    def __init__(self) -> None:
        self._order = Order()
        self._begin()

    def _begin(self) -> None:
        self._order.forget()
        self._streams = Streams()
        self._contexts: dict[int, int] = {}
        self._waiting: dict[int, tuple[int, Clock]] = {}

    def take(self, record: Record) -> Stamp | None:
        """The stamp of a record of work, or of the end of memory; None for others."""
        kind, order = record.kind, self._order
        if kind is Kind.EPOCH:
            self._begin()
        elif kind is Kind.OUTCOME:
            self._outcome(record)
        elif record.flags & lib.WIRE_CAPTURED:
            if kind is Kind.EVENT_RECORD:
                order.event_ended(record.body.event)  # who waits for it joins the capture
        elif kind is Kind.STREAM:
            self._end_stream(record.body.handle)
            order.stream_made(self._streams.announce(record), record.body.flags)
        elif kind is Kind.EVENT:
            order.event_ended(record.body.handle)
        elif kind is Kind.END:
            return self._end(record)
        elif record.place is not None:
            self._contexts[record.thread] = record.place.context
            return self._placed(record)
        return None

    def _placed(self, record: Record) -> Stamp | None:
        kind, order, place, thread = record.kind, self._order, record.place, record.thread
        if kind is Kind.SYNCHRONIZE:
            self._synchronize(record)
        elif kind is Kind.EVENT_RECORD and place.stream:
            order.event_recorded(record.body.event, self._streams.key(record), thread)
        elif kind is Kind.EVENT_RECORD:
            order.event_recorded_by_context(record.body.event, place.context)
        elif kind is Kind.EVENT_WAIT and place.stream:
            order.event_waited(self._streams.key(record), record.body.event, thread)
        elif kind is Kind.EVENT_WAIT:
            order.event_waited_by_context(place.context, record.body.event)
        elif kind in WORK:
            stream = self._streams.key(record)
            stamp = order.queued(stream, thread)
            if ends_step(record):  # a copy that was there when its function returned
                order.host_waited(thread, order.of_stream(stream))
            return stamp
        return None

    def _synchronize(self, record: Record) -> None:
        """A thread begins to wait; :meth:`_outcome` is when it has."""
        body, order = record.body, self._order
        if body.what == lib.WIRE_WAITED_EVENT:
            clock = order.of_event(body.event)
        elif body.what == lib.WIRE_WAITED_STREAM and record.place.stream:
            clock = order.of_stream(self._streams.key(record))
        else:
            clock = order.of_context(record.place.context)
        if body.query:
            order.host_waited(record.thread, clock)
        else:
            self._waiting[record.thread] = (record.sequence, clock)

    def _outcome(self, record: Record) -> None:
        sequence, clock = self._waiting.get(record.thread, (-1, None))
        if clock is not None and sequence == record.body.of:
            del self._waiting[record.thread]
            if not record.body.result:
                self._order.host_waited(record.thread, clock)

    def _end(self, record: Record) -> Stamp | None:
        body, order = record.body, self._order
        if body.kind == Kind.STREAM:
            self._end_stream(body.handle)
        elif body.kind == Kind.EVENT:
            order.event_ended(body.handle)
        elif body.kind == Kind.CONTEXT:
            order.context_ended(body.handle)
            self._streams.end_context(body.handle)
        elif body.kind == Kind.MEMORY and body.stream:
            return order.queued(self._stream(body.stream, record.thread), record.thread)
        elif body.kind in (Kind.MEMORY, Kind.RESERVATION):
            return order.done_by_host(record.thread)
        return None

    def _end_stream(self, handle: int) -> None:
        ended = self._streams.end(handle)
        if ended is not None:
            self._order.stream_ended(ended)

    def _stream(self, handle: int, thread: int) -> StreamKey:
        """A stream by its handle alone; a default stream is that of the context in which the thread worked last."""
        made = self._streams.announced(handle) if handle not in (LEGACY, PER_THREAD) else None
        return made or StreamKey(self._contexts.get(thread, 0), handle, thread if handle == PER_THREAD else 0)
