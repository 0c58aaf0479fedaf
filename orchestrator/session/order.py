"""What streams, events and waiting threads put in order, whatever bytes are touched: vector clocks.

Every stream is a *lane* that counts what is queued in it in *ticks*. A clock says for some lanes up to which tick
their work is done before something begins; it is never changed in place, so that stamps share it. Threads that speak
to each other by other means than the driver are not seen, nor are memory operations by which streams wait for a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from orchestrator.session.operations import StreamKey
from orchestrator.session.streams import LEGACY, PER_THREAD

NON_BLOCKING = 1
"""``CU_STREAM_NON_BLOCKING``: the stream and the legacy default stream do not wait for each other."""
MOST_LANES = 1024
"""A clock that grows beyond this forgets streams that were destroyed."""
MOST_THREADS = 4096

Ticks: TypeAlias = Mapping[int, int]


class Clock(NamedTuple):
    """``device``: what streams wait for; ``known``: that, and what threads of the host had waited for."""

    device: Ticks = {}  # noqa: RUF012 (nobody changes it)
    known: Ticks = {}  # noqa: RUF012


NOTHING_DONE = Clock()


class Stamp(NamedTuple):
    """A piece of work: the ``tick`` of its ``lane``, and what is done before it."""

    lane: int
    tick: int
    clock: Clock


class Ordering(StrEnum):
    """By what the first of two pieces of work is done before the second."""

    GRAPH = "graph"
    """Edges of the graph that both are nodes of."""
    STREAM = "stream"
    """They are in one stream."""
    EVENT = "event"
    """The stream of the second waited: for an event, or by the rules of default streams."""
    HOST = "host"
    """The thread that queued the second had waited for the first, on its way."""
    NOTHING = "nothing"
    """A race of the program, unless they touch less than their ranges say, or threads have agreed about it."""


def ordered(first: Stamp, second: Stamp) -> Ordering:
    """What puts two pieces of work in this order; ``first`` was queued before ``second``."""
    if first.lane == second.lane:
        return Ordering.STREAM if first.tick < second.tick else Ordering.NOTHING
    if second.clock.device.get(first.lane, 0) >= first.tick:
        return Ordering.EVENT
    return Ordering.HOST if second.clock.known.get(first.lane, 0) >= first.tick else Ordering.NOTHING


@dataclass(eq=False)
class _Lane:
    number: int
    blocking: bool
    tick: int = 0
    clock: Clock = NOTHING_DONE


@dataclass(eq=False)
class _Context:
    """``left``: what is done when the destroyed streams are; ``waited``: what all its streams wait for."""

    lanes: dict[StreamKey, _Lane] = field(default_factory=dict)
    left: Clock = NOTHING_DONE
    left_blocking: Clock = NOTHING_DONE
    waited: Clock = NOTHING_DONE


class Order:
    """Of one program. Events and contexts are named by their handles, threads by their numbers."""

    def __init__(self) -> None:
        self._lanes = 0
        self.forget()

    def forget(self) -> None:
        """Records were lost: nothing is known, and what was queued before is in no order with what comes."""
        self._contexts: dict[int, _Context] = {}
        self._events: dict[int, Clock] = {}
        self._threads: dict[int, Ticks] = {}
        self._blocking: dict[StreamKey, bool] = {}
        self._living: set[int] = set()

    # things

    def stream_made(self, stream: StreamKey, flags: int) -> None:
        """One that nobody has made waits for no default stream, so that no order is claimed that may not be."""
        self._blocking[stream] = not flags & NON_BLOCKING

    def stream_ended(self, stream: StreamKey) -> None:
        """What is queued in it goes on."""
        context, blocking = self._context(stream.context), self._blocking.pop(stream, False)
        lane = context.lanes.pop(stream, None)
        if lane is not None:
            context.left = self._join(context.left, _end(lane))
            if blocking:
                context.left_blocking = self._join(context.left_blocking, _end(lane))
            self._living.discard(lane.number)

    def context_ended(self, context: int) -> None:
        """With all its streams."""
        gone = self._contexts.pop(context, _Context())
        self._living.difference_update(lane.number for lane in gone.lanes.values())
        for stream in [stream for stream in self._blocking if stream.context == context]:
            del self._blocking[stream]

    def event_ended(self, event: int) -> None:
        """It has not been recorded, or is another one now: who waits for it does not wait."""
        self._events.pop(event, None)

    # what is queued

    def queued(self, stream: StreamKey, thread: int) -> Stamp:
        """Work, queued by a thread."""
        lane = self._queue(stream, thread)
        return Stamp(lane.number, lane.tick, lane.clock)

    def event_recorded(self, event: int, stream: StreamKey, thread: int) -> None:
        self._events[event] = _end(self._queue(stream, thread))

    def event_recorded_by_context(self, event: int, context: int) -> None:
        """For what is queued in any stream of a context."""
        self._events[event] = self._whole(context)

    def event_waited(self, stream: StreamKey, event: int, thread: int) -> None:
        """A stream waits for what an event was recorded behind last."""
        lane = self._queue(stream, thread)
        lane.clock = self._join(lane.clock, self._events.get(event, NOTHING_DONE))

    def event_waited_by_context(self, context: int, event: int) -> None:
        """All its streams wait."""
        found, clock = self._context(context), self._events.get(event, NOTHING_DONE)
        found.waited = self._join(found.waited, clock)
        for lane in found.lanes.values():
            lane.clock = self._join(lane.clock, clock)

    # what threads know

    def of_stream(self, stream: StreamKey) -> Clock:
        """What is done when a stream is."""
        lane = self._context(stream.context).lanes.get(stream)
        return NOTHING_DONE if lane is None else _end(lane)

    def of_context(self, context: int) -> Clock:
        return self._whole(context)

    def of_event(self, event: int) -> Clock:
        return self._events.get(event, NOTHING_DONE)

    def host_waited(self, thread: int, clock: Clock) -> None:
        """A thread has waited for what one of the three above gave when it began to."""
        if len(self._threads) > MOST_THREADS:
            self._threads.clear()
        self._threads[thread] = self._join_ticks(self._threads.get(thread, {}), clock.known)

    def done_by_host(self, thread: int) -> Stamp:
        """Something that a thread does itself, in no stream, and has done before it goes on."""
        lane = self._queue(StreamKey(0, 0, thread), thread)
        self.host_waited(thread, _end(lane))
        return Stamp(lane.number, lane.tick, lane.clock)

    # clocks

    def _context(self, context: int) -> _Context:
        return self._contexts.setdefault(context, _Context())

    def _queue(self, stream: StreamKey, thread: int) -> _Lane:
        context = self._context(stream.context)
        lane = context.lanes.get(stream)
        if lane is None:
            self._lanes += 1
            blocking = stream.stream == PER_THREAD or self._blocking.get(stream, False)
            lane = context.lanes[stream] = _Lane(self._lanes, blocking, clock=context.waited)
            self._living.add(lane.number)
        if stream.stream == LEGACY:
            others = [_end(other) for other in context.lanes.values() if other.blocking]
            for clock in (context.left_blocking, *others):
                lane.clock = self._join(lane.clock, clock)
        elif lane.blocking:
            legacy = context.lanes.get(StreamKey(stream.context, LEGACY))
            if legacy is not None and lane.clock.device.get(legacy.number, 0) < legacy.tick:
                lane.clock = self._join(lane.clock, _end(legacy))
        known = self._join_ticks(lane.clock.known, self._threads.get(thread, {}))
        if known is not lane.clock.known:
            lane.clock = Clock(lane.clock.device, known)
        lane.tick += 1
        return lane

    def _whole(self, context: int) -> Clock:
        found = self._context(context)
        clock = found.left
        for lane in found.lanes.values():
            clock = self._join(clock, _end(lane))
        return clock

    def _join(self, one: Clock, other: Clock) -> Clock:
        device, known = self._join_ticks(one.device, other.device), self._join_ticks(one.known, other.known)
        return one if device is one.device and known is one.known else Clock(device, known)

    def _join_ticks(self, one: Ticks, other: Ticks) -> Ticks:
        """The later of both for every lane; ``one`` itself if it has nothing to learn."""
        if one is other:
            return one
        more = {lane: tick for lane, tick in other.items() if tick > one.get(lane, 0)}
        if not more:
            return one
        joined = {**one, **more}
        if len(joined) > MOST_LANES:
            return {lane: tick for lane, tick in joined.items() if lane in self._living}
        return joined


def _end(lane: _Lane) -> Clock:
    """What is done when all that is queued in a lane is."""
    now = {lane.number: lane.tick}
    return Clock({**lane.clock.device, **now}, {**lane.clock.known, **now})

