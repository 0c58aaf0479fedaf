"""Waits, events, host functions and memory operations under the preload library, in the order of the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shim import tails
from shim.layout import lib
from shim.wire import Kind, Record
from tests.nodriver.driver.programs import compile_program
from tests.nodriver.shim.expansion import announced, done
from tests.nodriver.shim.observed import Observed, observe, symbol

PROGRAM = Path(__file__).resolve().parent / "c" / "stream_work.c"
LEGACY, PER_THREAD = 1, 2
WAIT_32, WRITE_32, WAIT_64, WRITE_64, BARRIER = 1, 2, 4, 5, 6
"""enum CUstreamBatchMemOpType."""
GEQ, EQ = 0, 1
"""enum CUstreamWaitValue_flags."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    found = observe([compile_program(tmp_path_factory.mktemp("program") / "stream_work", [PROGRAM], "")])
    assert found.status == 0, found.errors
    return found


@pytest.fixture(scope="module")
def names(seen: Observed) -> list[int]:
    """Streams a and b, event, context, host function, callback, memory."""
    found: list[int] = json.loads(seen.output)
    return found


def test_what_streams_are_given_is_what_they_do(seen: Observed) -> None:
    assert sorted(announced(seen.records)) == sorted(done(seen.log))


def described(record: Record) -> tuple[Any, ...]:
    body = record.body
    if record.kind is Kind.MEMORY_OPERATIONS:
        return record.kind, record.place.stream, [tuple(one) for one in tails.memory_operations(record)]
    if record.kind is Kind.SYNCHRONIZE:
        return record.kind, record.place.stream, body.what, body.event, body.query
    if record.kind is Kind.HOST_FUNCTION:
        return record.kind, record.place.stream, body.function, body.callback
    if record.kind is Kind.OTHER_WORK:
        return record.kind, record.place.stream, symbol(record)
    return record.kind, record.place.stream, body.event, body.flags


def test_records_stand_in_the_order_of_the_program(seen: Observed, names: list[int]) -> None:
    a, b, event, context, function, callback, memory = names
    kinds = (Kind.MEMORY_OPERATIONS, Kind.SYNCHRONIZE, Kind.HOST_FUNCTION, Kind.OTHER_WORK, Kind.EVENT_RECORD,
             Kind.EVENT_WAIT)
    found = [record for record in seen.records if record.kind in kinds]
    for_stream, for_event, for_all = lib.WIRE_WAITED_STREAM, lib.WIRE_WAITED_EVENT, lib.WIRE_WAITED_CONTEXT
    last = found[-1]
    never = found[13].body.event
    assert [described(record) for record in found] == [
        (Kind.MEMORY_OPERATIONS, b, [(WAIT_32, GEQ, memory, 5)]),
        (Kind.HOST_FUNCTION, a, function, 0),
        (Kind.HOST_FUNCTION, a, callback, 1),
        (Kind.EVENT_RECORD, a, event, 0),
        (Kind.EVENT_WAIT, b, event, 0),
        (Kind.EVENT_RECORD, b, event, 0),
        (Kind.MEMORY_OPERATIONS, a, [(WRITE_64, 0, memory + 8, 1 << 33), (WAIT_64, EQ, memory + 8, 1 << 33),
                                     (BARRIER, 1, 0, 0)]),
        (Kind.MEMORY_OPERATIONS, a, [(WRITE_32, 0, memory, 6)]),
        (Kind.SYNCHRONIZE, a, for_stream, 0, 0),
        (Kind.SYNCHRONIZE, 0, for_event, event, 0),
        (Kind.SYNCHRONIZE, 0, for_event, event, 1),
        (Kind.SYNCHRONIZE, b, for_stream, 0, 1),
        (Kind.SYNCHRONIZE, LEGACY, for_stream, 0, 1),
        (Kind.SYNCHRONIZE, 0, for_event, never, 1),
        (Kind.SYNCHRONIZE, PER_THREAD, for_stream, 0, 0),
        (Kind.EVENT_RECORD, a, 0, 0),
        (Kind.OTHER_WORK, a, "cuStreamBatchMemOp_v2"),
        (Kind.EVENT_RECORD, 0, event, 0),
        (Kind.SYNCHRONIZE, 0, for_all, 0, 0),
    ]
    assert never not in (0, event)
    assert (last.place.context, found[-2].place.context) == (context, context)  # of all of it
    assert not [record for record in found if record.flags]


def test_outcomes_say_when_waits_are_over_and_what_failed(seen: Observed) -> None:
    outcomes = {record.body.of: record for record in seen.records if record.kind is Kind.OUTCOME}
    waits = [record for record in seen.records if record.kind is Kind.SYNCHRONIZE and not record.body.query]
    assert [outcomes.pop(record.sequence).body.result for record in waits] == [0] * 4
    by_sequence = {record.sequence: symbol(record) for record in seen.records}
    assert {by_sequence[of] for of in outcomes} == {"cuEventRecord", "cuStreamBatchMemOp_v2", "cuCtxRecordEvent"}
    assert all(record.body.result for record in outcomes.values())
