"""Streams of the program: what waits for what before it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.session.operations import StreamKey
from shim.wire import Record, lib
from tests.shadow.errors import Fault, ShadowError
from tests.shadow.queues import Act, Entry, Queue, Schedule

LEGACY, PER_THREAD = 1, 2
NON_BLOCKING = 1


@dataclass(eq=False)
class Stream:
    """``born``: the records that announced it. ``blocking``: it and the legacy stream wait for each other."""

    context: int
    handle: int
    thread: int
    blocking: bool
    queue: Queue
    born: set[int] = field(default_factory=set)


class Hold(NamedTuple):
    """Until ``entry`` is done, other streams than this one wait."""

    stream: Stream
    entry: Entry


class Streams:
    """Of one program."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._all: list[Stream] = []
        self._named: dict[int, Stream] = {}
        self._defaults: dict[tuple[int, int, int], Stream] = {}
        self._events: dict[int, Entry | None] = {}
        self.holds: list[Hold] = []

    def announce(self, record: Record) -> None:
        """A record of STREAM."""
        body = record.body
        known = self._named.get(body.handle)
        if known is None or not record.flags & lib.WIRE_RESTATED:
            blocking = not body.flags & NON_BLOCKING
            known = self._new(body.context, body.handle, 0, blocking)
            self._named[body.handle] = known
        known.born.add(record.sequence)

    def _new(self, context: int, handle: int, thread: int, blocking: bool) -> Stream:
        stream = Stream(context, handle, thread, blocking, Queue(f"stream {handle:#x}"))
        self._all.append(stream)
        return stream

    def end(self, handle: int) -> None:
        """The handle is nobody's any more; what is in the stream will be done."""
        self._named.pop(handle, None)

    def end_context(self, context: int) -> None:
        self._all = [stream for stream in self._all if stream.context != context]
        self._named = {handle: s for handle, s in self._named.items() if s.context != context}
        self._defaults = {key: stream for key, stream in self._defaults.items() if key[0] != context}

    def at(self, handle: int, context: int, thread: int) -> Stream:
        """The stream of a record's place."""
        if handle in (LEGACY, PER_THREAD):
            key = context, handle, thread if handle == PER_THREAD else 0
            if key not in self._defaults:
                self._defaults[key] = self._new(context, handle, key[2], handle == PER_THREAD)
            return self._defaults[key]
        if handle not in self._named:
            raise ShadowError(f"stream {handle:#x} is not there")
        return self._named[handle]

    def keyed(self, key: StreamKey) -> Stream:
        """The stream that a decision means. Raises Fault if there is none."""
        if key.stream in (LEGACY, PER_THREAD):
            return self.at(key.stream, key.context, key.thread)
        for stream in self._all:
            if (stream.context, stream.handle) == (key.context, key.stream) and key.born in stream.born:
                return stream
        raise Fault(f"no stream is {key}")

    def put(self, stream: Stream, label: str, act: Act | None, after: Iterable[Entry | None] = (),
            ready: Callable[[], bool] | None = None) -> Entry:
        """Queue work, which also waits for what the legacy stream's rule and held jobs say."""
        waits = list(after)
        if stream.handle == LEGACY:
            waits += [s.queue.last for s in self._all if s.blocking and s.context == stream.context]
        elif stream.blocking:
            legacy = self._defaults.get((stream.context, LEGACY, 0))
            waits += [legacy.queue.last] if legacy else []
        self.holds = [hold for hold in self.holds if not hold.entry.done]
        waits += [hold.entry for hold in self.holds if hold.stream is not stream]
        return self._schedule.put(stream.queue, label, act, waits, ready)

    def of_context(self, context: int) -> list[Entry | None]:
        """What was queued last in each of its streams."""
        return [stream.queue.last for stream in self._all if stream.context == context]

    def mark(self, event: int, stream: Stream, label: str) -> None:
        """An event is recorded in a stream."""
        self._events[event] = self.put(stream, label, None)

    def captured(self, event: int) -> None:
        """An event is recorded in a stream that is being captured: waiting for it does nothing but join."""
        self._events[event] = None

    def wait(self, event: int, stream: Stream, label: str) -> None:
        """A stream waits for an event."""
        entry = self._events.get(event)
        if entry is not None:
            self.put(stream, label, None, [entry])

    def event(self, event: int) -> Entry | None:
        """What has to be done before an event is over."""
        return self._events.get(event)
