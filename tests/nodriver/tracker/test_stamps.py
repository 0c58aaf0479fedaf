"""Records to stamps: which records queue, wait and let go."""

from __future__ import annotations

from orchestrator.session.order import Ordering, ordered
from orchestrator.session.stamps import Stamps
from shim.layout import lib
from shim.wire import Kind, records
from tests.program_records import CONTEXT, LEGACY, Program

ONE, TWO, EVENT = 0x51, 0x52, 0xE1


class Streams(Program):
    """Two streams that no default stream waits for, an event, and orders between pieces of work by their records."""

    def __init__(self) -> None:
        super().__init__()
        self.begin()
        for handle in (ONE, TWO):
            self.stream(handle, 1)
        self.record(Kind.EVENT, handle=EVENT, context=CONTEXT)

    def stream(self, handle: int, flags: int) -> None:
        self.record(Kind.STREAM, handle=handle, context=CONTEXT, flags=flags)

    def work(self, stream: int, **more: int) -> int:
        return self.record(Kind.LAUNCH, place=(stream, CONTEXT), **more)

    def event(self, kind: Kind, stream: int, marks: int = 0) -> None:
        self.record(kind, place=(stream, CONTEXT), event=EVENT, marks=marks)

    def order(self, first: int, second: int) -> Ordering:
        stamps = Stamps()
        found = {record.sequence: stamps.take(record) for record in records(b"".join(self.data))}
        one, other = found[first], found[second]
        assert one is not None and other is not None
        return ordered(one, other)


def test_streams_and_events() -> None:
    program = Streams()
    first = program.work(ONE)
    apart = program.work(TWO)
    program.event(Kind.EVENT_RECORD, ONE)
    program.event(Kind.EVENT_WAIT, TWO)
    behind = program.work(TWO)
    assert program.order(first, apart) is Ordering.NOTHING
    assert program.order(apart, behind) is Ordering.STREAM
    assert program.order(first, behind) is Ordering.EVENT


def test_a_capture_orders_nothing() -> None:
    program = Streams()
    program.event(Kind.EVENT_RECORD, ONE)
    first = program.work(ONE)
    program.event(Kind.EVENT_RECORD, ONE, marks=lib.WIRE_CAPTURED)
    program.event(Kind.EVENT_WAIT, TWO)
    program.event(Kind.EVENT_WAIT, TWO, marks=lib.WIRE_CAPTURED)
    assert program.order(first, program.work(TWO)) is Ordering.NOTHING


def test_a_wait_is_over_when_its_outcome_says_so() -> None:
    program = Streams()
    first = program.work(ONE)
    wait = program.record(Kind.SYNCHRONIZE, place=(ONE, CONTEXT), what=lib.WIRE_WAITED_STREAM)
    during = program.record(Kind.LAUNCH, place=(TWO, CONTEXT))
    program.outcome(wait)
    after = program.work(TWO)
    assert program.order(first, during) is Ordering.NOTHING
    assert program.order(first, after) is Ordering.HOST
    assert program.order(during, program.work(ONE)) is Ordering.NOTHING


def test_a_failed_wait_orders_nothing_and_a_question_answered_yes_does() -> None:
    program = Streams()
    first = program.work(ONE)
    program.outcome(program.record(Kind.SYNCHRONIZE, what=lib.WIRE_WAITED_CONTEXT), result=700)
    assert program.order(first, program.work(TWO)) is Ordering.NOTHING
    program.event(Kind.EVENT_RECORD, ONE)
    program.record(Kind.SYNCHRONIZE, what=lib.WIRE_WAITED_EVENT, event=EVENT, query=1)
    assert program.order(first, program.work(TWO)) is Ordering.HOST


def test_a_copy_that_returns_when_it_has_arrived_is_waited_for() -> None:
    program = Streams()
    program.stream(0x53, 0)
    first = program.work(0x53)
    program.to_host(0x1000, b"answer")  # in the legacy stream, which waits for that one
    assert program.order(first, program.work(ONE)) is Ordering.HOST


def test_memory_that_a_thread_frees_comes_after_what_it_waited_for_alone() -> None:
    program = Streams()
    first = program.work(ONE)
    assert program.order(first, program.free(0x1000)) is Ordering.NOTHING
    program.synchronize()
    freed = program.free(0x1000)
    assert program.order(first, freed) is Ordering.HOST
    assert program.order(freed, program.work(ONE)) is Ordering.HOST


def test_memory_that_is_freed_in_a_stream_is_that_streams() -> None:
    program = Streams()
    first = program.work(ONE)
    legacy = program.work(LEGACY)
    in_one = program.ended(Kind.MEMORY, 0x1000, stream=ONE)
    in_legacy = program.ended(Kind.MEMORY, 0x2000, stream=LEGACY)
    assert program.order(first, in_one) is Ordering.STREAM
    assert program.order(legacy, in_legacy) is Ordering.STREAM
    assert program.order(legacy, in_one) is Ordering.NOTHING


def test_a_handle_that_is_used_again_is_another_stream() -> None:
    program = Streams()
    first = program.work(ONE)
    program.ended(Kind.STREAM, ONE)
    program.stream(ONE, 1)
    assert program.order(first, program.work(ONE)) is Ordering.NOTHING


def test_nothing_is_known_after_a_gap() -> None:
    program = Streams()
    first = program.work(ONE)
    program.event(Kind.EVENT_RECORD, ONE)
    program.record(Kind.EPOCH, epoch=1, lost=3)
    program.event(Kind.EVENT_WAIT, TWO)
    assert program.order(first, program.work(ONE)) is Ordering.NOTHING
    assert program.order(first, program.work(TWO)) is Ordering.NOTHING
