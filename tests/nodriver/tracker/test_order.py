"""What streams, events and threads put in order is what a graph of all that was queued says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.session.operations import StreamKey
from orchestrator.session.order import MOST_LANES, Order, Ordering, Stamp, ordered
from orchestrator.session.streams import LEGACY, PER_THREAD

THREADS, EVENTS, HANDLES = (7, 8), (1, 2), (10, 11)
CONTEXT = 1
steps = st.lists(st.one_of(
    st.tuples(st.just("work"), st.sampled_from((LEGACY, PER_THREAD, *HANDLES)), st.sampled_from(THREADS)),
    st.tuples(st.just("record"), st.sampled_from((LEGACY, PER_THREAD, *HANDLES)), st.sampled_from(THREADS),
              st.sampled_from(EVENTS)),
    st.tuples(st.just("wait"), st.sampled_from((LEGACY, PER_THREAD, *HANDLES)), st.sampled_from(THREADS),
              st.sampled_from(EVENTS)),
    st.tuples(st.just("record all"), st.sampled_from(EVENTS)),
    st.tuples(st.just("wait all"), st.sampled_from(EVENTS)),
    st.tuples(st.just("host waits for stream"), st.sampled_from((LEGACY, *HANDLES)), st.sampled_from(THREADS)),
    st.tuples(st.just("host waits for event"), st.sampled_from(EVENTS), st.sampled_from(THREADS)),
    st.tuples(st.just("host waits"), st.sampled_from(THREADS)),
    st.tuples(st.just("host works"), st.sampled_from(THREADS)),
    st.tuples(st.just("made again"), st.sampled_from(HANDLES), st.sampled_from((0, 1))),
), min_size=15, max_size=30)  # fmt: skip


class Model:
    """Everything queued is a number with the sets of numbers before it: on the devices, and known to threads, too."""

    def __init__(self) -> None:
        self.device: list[set[int]] = []
        self.known: list[set[int]] = []
        self.last: dict[StreamKey, int] = {}
        self.blocking: set[StreamKey] = set()
        self.events: dict[int, list[int]] = {}
        self.threads: dict[int, set[int]] = {}
        self.everybody: list[int] = []

    def queue(self, stream: StreamKey, thread: int, also: list[int]) -> int:
        first = stream not in self.last
        before = [*also, *([] if first else [self.last[stream]]), *(self.everybody if stream.context else [])]
        if stream.stream == LEGACY:
            before += [number for other, number in self.last.items()
                       if other in self.blocking or other.stream == PER_THREAD]
        elif (stream in self.blocking or stream.stream == PER_THREAD) and StreamKey(CONTEXT, LEGACY) in self.last:
            before.append(self.last[StreamKey(CONTEXT, LEGACY)])
        number = len(self.device)
        self.device.append({b for n in before for b in (n, *self.device[n])})
        self.known.append({b for n in before for b in (n, *self.known[n])} | self.threads.get(thread, set()))
        self.last[stream] = number
        return number

    def learn(self, thread: int, numbers: list[int]) -> None:
        self.threads.setdefault(thread, set()).update(b for n in numbers for b in (n, *self.known[n]))

    def all(self) -> list[int]:
        return [number for stream, number in self.last.items() if stream.context]


def play(steps: list[tuple[Any, ...]]) -> tuple[Model, list[tuple[int, Stamp]]]:
    """The steps, done by both: the model, and of each piece of work its number there and its stamp."""
    model, order, done, births = Model(), Order(), list[tuple[int, Stamp]](), dict[int, int]()

    def stream_of(handle: int, thread: int) -> StreamKey:
        return StreamKey(CONTEXT, handle, thread if handle == PER_THREAD else 0, births.get(handle, 0))

    for moment, (what, *rest) in enumerate(steps, 1):
        match what, *rest:
            case "work", handle, thread:
                stamp = order.queued(stream_of(handle, thread), thread)
                done.append((model.queue(stream_of(handle, thread), thread, []), stamp))
            case "record", handle, thread, event:
                order.event_recorded(event, stream_of(handle, thread), thread)
                model.events[event] = [model.queue(stream_of(handle, thread), thread, [])]
            case "wait", handle, thread, event:
                order.event_waited(stream_of(handle, thread), event, thread)
                model.queue(stream_of(handle, thread), thread, model.events.get(event, []))
            case "record all", event:
                order.event_recorded_by_context(event, CONTEXT)
                model.events[event] = model.all()
            case "wait all", event:
                order.event_waited_by_context(CONTEXT, event)
                model.everybody += model.events.get(event, [])
            case "host waits for stream", handle, thread:
                order.host_waited(thread, order.of_stream(stream_of(handle, thread)))
                model.learn(thread, [model.last[s] for s in [stream_of(handle, thread)] if s in model.last])
            case "host waits for event", event, thread:
                order.host_waited(thread, order.of_event(event))
                model.learn(thread, model.events.get(event, []))
            case "host waits", thread:
                order.host_waited(thread, order.of_context(CONTEXT))
                model.learn(thread, model.all())
            case "host works", thread:
                done.append((model.queue(StreamKey(0, 0, thread), thread, []), order.done_by_host(thread)))
                model.learn(thread, [done[-1][0]])
            case "made again", handle, flags:
                order.stream_ended(stream_of(handle, 0))
                births[handle] = moment
                order.stream_made(stream_of(handle, 0), flags)
                if not flags:
                    model.blocking.add(stream_of(handle, 0))
    return model, done


@given(steps)
def test_order_is_that_of_the_graph(steps: list[tuple[Any, ...]]) -> None:
    model, done = play(steps)
    for place, (second, stamp) in enumerate(done):
        for first, earlier in done[:place]:
            found = ordered(earlier, stamp)
            if first in model.device[second]:
                assert found in (Ordering.STREAM, Ordering.EVENT)
            else:
                assert found is (Ordering.HOST if first in model.known[second] else Ordering.NOTHING)


def test_the_model_meets_every_ordering() -> None:
    """The test above is about something."""
    seen = set()

    @given(steps)
    def look(steps: list[tuple[Any, ...]]) -> None:
        _, done = play(steps)
        seen.update(ordered(a[1], b[1]) for place, b in enumerate(done) for a in done[:place])

    look()
    assert seen == {Ordering.STREAM, Ordering.EVENT, Ordering.HOST, Ordering.NOTHING}


A, B, DEFAULT = StreamKey(1, 10, 0, 1), StreamKey(1, 11, 0, 2), StreamKey(1, LEGACY)


@pytest.mark.parametrize(("flags", "wanted"), [(0, Ordering.EVENT), (1, Ordering.NOTHING)])
def test_the_legacy_stream_waits_for_blocking_streams_and_they_for_it(flags: int, wanted: Ordering) -> None:
    order = Order()
    order.stream_made(A, flags)
    first, middle, last = (order.queued(stream, 7) for stream in (A, DEFAULT, A))
    assert ordered(first, middle) is wanted
    assert ordered(middle, last) is wanted
    assert ordered(first, last) is Ordering.STREAM


def test_the_legacy_stream_of_another_context_is_another() -> None:
    order = Order()
    order.stream_made(A, 0)
    assert ordered(order.queued(A, 7), order.queued(StreamKey(2, LEGACY), 7)) is Ordering.NOTHING


def test_an_event_stands_for_its_last_record() -> None:
    order = Order()
    before = order.queued(A, 7)
    order.event_recorded(5, A, 7)
    after = order.queued(A, 7)
    order.event_waited(B, 5, 7)
    work = order.queued(B, 7)
    assert ordered(before, work) is Ordering.EVENT
    assert ordered(after, work) is Ordering.NOTHING
    order.event_ended(5)
    order.event_waited(B, 5, 7)
    assert ordered(after, order.queued(B, 7)) is Ordering.NOTHING


def test_a_stream_that_is_made_again_is_another() -> None:
    order = Order()
    order.stream_made(A, 1)
    first = order.queued(A, 7)
    order.stream_ended(A)
    again = A._replace(born=9)
    order.stream_made(again, 1)
    assert ordered(first, order.queued(again, 7)) is Ordering.NOTHING
    order.host_waited(7, order.of_context(1))
    assert ordered(first, order.queued(again, 7)) is Ordering.HOST


def test_what_one_thread_knows_another_does_not() -> None:
    order = Order()
    first = order.queued(A, 7)
    order.host_waited(8, order.of_stream(A))
    assert ordered(first, order.queued(B, 7)) is Ordering.NOTHING
    assert ordered(first, order.queued(B, 8)) is Ordering.HOST


def test_clocks_stay_small_however_many_streams_there_were() -> None:
    order = Order()
    for born in range(3 * MOST_LANES):
        stream = StreamKey(1, 10, 0, born)
        order.stream_made(stream, 0)
        order.queued(stream, 7)
        stamp = order.queued(DEFAULT, 7)
        assert len(stamp.clock.known) <= MOST_LANES
        order.stream_ended(stream)


def test_a_stream_made_later_waits_as_its_context_does() -> None:
    order = Order()
    first = order.queued(StreamKey(2, 20), 7)
    order.event_recorded_by_context(5, 2)
    order.event_waited_by_context(1, 5)
    assert ordered(first, order.queued(A, 7)) is Ordering.EVENT


@pytest.mark.parametrize(("flags", "wanted"), [(0, Ordering.EVENT), (1, Ordering.NOTHING)])
def test_the_legacy_stream_waits_for_blocking_streams_that_were_destroyed(flags: int, wanted: Ordering) -> None:
    order = Order()
    order.stream_made(A, flags)
    first = order.queued(A, 7)
    order.stream_ended(A)
    assert ordered(first, order.queued(DEFAULT, 7)) is wanted
