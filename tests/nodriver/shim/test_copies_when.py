"""When copies are done and looked at: in streams that stand still, in captures, from several threads."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from shim.tails import inline_content
from shim.wire import Kind, Record, lib
from softgpu.instrument import Fail, Instrument
from tessera.content import content
from tessera.environment import INSTRUMENT
from tests.nodriver.shim import programs
from tests.nodriver.shim.observed import observe, symbol
from tools import native

PATTERN = bytes((n * 2654435761 & 0xFFFFFFFF) >> 21 & 255 for n in range(1 << 20))
SMALL, LARGE = 1000, 100000
SECONDS = 60.0
PAYLOADS = int(lib.WIRE_PAYLOADS)
NONE, INLINE, HASHED, LATER = (int(kind) for kind in (
    lib.WIRE_NO_CONTENT, lib.WIRE_INLINE_CONTENT, lib.WIRE_HASHED_CONTENT, lib.WIRE_LATER_CONTENT))
PINNED, SYNCHRONOUS, CAPTURED = int(lib.WIRE_PINNED), int(lib.WIRE_SYNCHRONOUS), int(lib.WIRE_CAPTURED)
HASHES = {size: content(PATTERN[:size]) for size in (SMALL, LARGE)}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.linked("copies_when", tmp_path_factory.mktemp("copies"))


def under(program: Path, part: str, options: int, **variables: str) -> list[Record]:
    """The records behind those of the copy with which each part begins."""
    seen = observe([program, part], options=options, seconds=SECONDS, **variables)
    assert seen.status == 0, seen.errors
    first = next(record.sequence for record in seen.records if record.kind is Kind.COPY)
    return [record for record in seen.records
            if record.sequence > first and (record.kind is not Kind.OUTCOME or record.body.of != first)]


def copies(records: list[Record]) -> list[Record]:
    return [record for record in records if record.kind is Kind.COPY]


def told(records: list[Record]) -> dict[int, list[Any]]:
    """Outcomes with contents, by what they are of."""
    found: dict[int, list[Any]] = defaultdict(list)
    for record in records:
        if record.kind is Kind.OUTCOME and record.body.has_content:
            found[record.body.of].append(record.body.content)
    return found


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_calls_return_though_their_stream_stands_still(program: Path, options: int) -> None:
    records = under(program, "asynchronous", options)
    found, contents = copies(records), told(records)
    kinds = [record.body.content_kind for record in found]
    assert [record.body.flags for record in found] == [PINNED, PINNED, 0, PINNED, 0, PINNED, PINNED]
    assert kinds == ([LATER, LATER, HASHED, NONE, NONE, LATER, NONE] if options else
                     [NONE, NONE, HASHED, NONE, NONE, NONE, NONE])
    sizes = [SMALL, LARGE, None, LARGE, None, LARGE, LARGE] if options else []
    expected = {record.sequence: [HASHES[size]] for record, size in zip(found, sizes, strict=False) if size}
    assert contents == expected


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_others_get_on_in_a_stream_for_which_a_call_waits(program: Path, options: int) -> None:
    records = under(program, "waiting", options)
    first, second = copies(records)
    assert told(records) == ({first.sequence: [HASHES[LARGE]]} if options else {})
    assert second.body.content_kind == NONE


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_what_earlier_work_writes_is_what_was_copied(program: Path, options: int) -> None:
    """Also where other bytes were there when the copy was called."""
    records = under(program, "written_late", options)
    contents = told(records)
    for record, (size, synchronous) in zip(
        copies(records), [(SMALL, True), (SMALL, False), (LARGE, True), (LARGE, False)], strict=True
    ):
        assert contents[record.sequence] == ([HASHES[size]] if synchronous or options else [])
        assert bool(record.body.flags & SYNCHRONOUS) == synchronous
        if record.body.content_kind == INLINE:
            assert bytes(inline_content(record)) in (bytes(size), PATTERN[:size])


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_memory_that_is_gone_when_the_call_has_returned(program: Path, options: int) -> None:
    records = under(program, "freed", options)
    contents = told(records)
    for n, record in enumerate(copies(records)):
        if n % 2:
            assert (record.body.content_kind, record.body.content) == (HASHED, HASHES[LARGE])
        else:
            assert contents[record.sequence] == ([HASHES[LARGE]] if options else [])


def test_a_driver_that_takes_no_host_functions(program: Path, tmp_path: Path) -> None:
    """The bytes are then told as they are at the call; the copy is as ever."""
    with Instrument(rules=[Fail("cuLaunchHostFunc", onwards=True)]).variables() as variables:
        records = under(program, "refused", PAYLOADS, **{INSTRUMENT.name: variables[INSTRUMENT.name]})
    contents = told(records)
    assert [contents[record.sequence] for record in copies(records)] == [[HASHES[SMALL]], [HASHES[LARGE]], []]


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_managed_memory_is_the_devices(program: Path, options: int) -> None:
    records = under(program, "managed", options)
    outcomes = {record.body.of for record in records if record.kind is Kind.OUTCOME}
    to, from_, back, between = copies(records)
    assert [r.body.to.kind for r in (to, between)] == 2 * [lib.WIRE_SIDE_MANAGED]
    assert [r.body.from_.kind for r in (from_, back)] == 2 * [lib.WIRE_SIDE_MANAGED]
    assert to.body.content == HASHES[SMALL]
    assert [r.body.content_kind for r in (from_, back, between)] == 3 * [NONE]
    fills = [record.sequence in outcomes for record in records if record.kind is Kind.SET]
    assert fills == [True, True, False], "only those of the host's memory have been waited for"


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_captures_stay_as_they_are(program: Path, options: int) -> None:
    records = under(program, "captured", options)
    work = [record for record in records if record.kind in (Kind.COPY, Kind.SET)]
    assert [bool(record.flags & CAPTURED) for record in work] == 3 * [*5 * [True], *3 * [False]]
    contents = told(records)
    for n, record in enumerate(work):
        if record.kind is Kind.SET:
            continue
        number = n % 8
        if number < 5:
            from_host = number < 2
            assert not contents[record.sequence]
            assert record.body.flags == (PINNED if number < 3 else 0)
            size = LARGE if number else SMALL
            assert record.body.content_kind == (NONE if not (options and from_host) else HASHED if number else INLINE)
            assert record.body.content == (HASHES[size] if options and from_host else bytes(32))
        elif number == 7:  # in the legacy stream, which is not asked for more while there are captures
            assert record.body.flags == PINNED and not contents[record.sequence]
            assert record.body.content_kind == (HASHED if options else NONE)
        elif options:
            assert contents[record.sequence] == [HASHES[LARGE]], symbol(record)


def check_threads(records: list[Record], options: int) -> None:
    contents = told(records)
    found = Counter((symbol(record), bool(record.body.flags & PINNED)) for record in copies(records))
    calls = 4 * 60
    assert found == {("cuMemcpyHtoDAsync_v2", True): calls, ("cuMemcpyDtoHAsync_v2", True): calls,
                     ("cuMemcpyHtoD_v2", False): calls, ("cuMemcpyDtoH_v2", False): calls}
    assert sum(record.kind is Kind.SET for record in records) == calls
    for record in copies(records):
        size = record.body.width
        if options or (symbol(record) == "cuMemcpyHtoD_v2" and size == LARGE):
            known = [record.body.content] if record.body.content_kind in (INLINE, HASHED) else contents[record.sequence]
            assert known == [HASHES[size]], symbol(record)


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_threads(program: Path, options: int) -> None:
    check_threads(under(program, "threads", options), options)


@pytest.mark.parametrize("kind", native.SANITIZERS)
def test_threads_and_memory_under_sanitizers(kind: str, tmp_path: Path) -> None:
    program = programs.linked("copies_when", tmp_path, kind)
    for part in ("threads", "freed", "captured"):
        records = under(program, part, PAYLOADS, **programs.watched(kind))
        if part == "threads":
            check_threads(records, PAYLOADS)
