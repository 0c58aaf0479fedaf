"""Copies and fills: each call is recorded once, as the software driver's log says it was done, with what was copied."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shim.tails import data, inline_content
from shim.wire import Kind, Record, lib
from softgpu.instrument import Fail, Instrument
from tessera.content import content
from tessera.driver_api import functions
from tessera.environment import INSTRUMENT
from tests.nodriver.shim import programs
from tests.nodriver.shim.observed import observe, symbol

ROOM = 1 << 20
PARTS = ("linear", "arrays", "batches", "fills", "refusals")
PATTERN = bytes((n * 2654435761 & 0xFFFFFFFF) >> 21 & 255 for n in range(ROOM))
INVALID_VALUE, INVALID_CONTEXT, NOT_SUPPORTED = 1, 201, 801
PAYLOADS = int(lib.WIRE_PAYLOADS)
KINDS = {lib.WIRE_SIDE_HOST: "host", lib.WIRE_SIDE_DEVICE: "device", lib.WIRE_SIDE_ARRAY: "array",
         lib.WIRE_SIDE_MANAGED: "managed"}
ARRAYS = {"array": (128, 16), "solid": (64, 16)}
"""Bytes of a row and rows of a slice."""


class Ran(NamedTuple):
    records: list[Record]
    work: list[dict[str, Any]]
    places: dict[str, int]

    def of(self, *kinds: Kind) -> list[Record]:
        return [record for record in self.records if record.kind in kinds]

    def outcomes(self) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = defaultdict(list)
        for record in self.of(Kind.OUTCOME):
            found[record.body.of].append(record.body)
        return found

    def sent(self) -> dict[bytes, bytes]:
        """All contents whose bytes were sent."""
        found: dict[bytes, bytearray] = defaultdict(bytearray)
        for record in self.of(Kind.DATA):
            assert record.body.offset == len(found[record.body.content])
            found[record.body.content] += data(record)
        return {digest: bytes(whole) for digest, whole in found.items()}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.linked("copies", tmp_path_factory.mktemp("copies"), "", "-Wno-override-init")


@pytest.fixture(params=[0, PAYLOADS], ids=["plain", "payloads"])
def options(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@cache
def under(program: Path, part: str, options: int) -> Ran:
    seen = observe([program, part], options=options)
    assert seen.status == 0, seen.errors
    work = [line for line in seen.work() if line["work"] in ("copy", "memset")]
    return Ran(seen.records, work, json.loads(seen.output))


def done(ran: Ran) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Each record of a copy or fill that did something, with the line of the log for it."""
    outcomes, lines = ran.outcomes(), iter(ran.work)
    for record in ran.of(Kind.COPY, Kind.SET):
        failed = any(outcome.result for outcome in outcomes[record.sequence])
        nothing = not record.body.width * record.body.height * getattr(record.body, "depth", 1)
        if not failed and not nothing:
            yield record, next(lines)
    assert not list(lines)


def shape(record: Record, side: Any) -> tuple[int, int, int]:
    """The first byte's address, and how far it is to the next row and slice."""
    slice_ = side.pitch * side.height
    return side.address + side.z * slice_ + side.y * side.pitch + side.x, side.pitch, slice_


def moved(record: Record, places: dict[str, int]) -> bytes:
    """The bytes that were copied, out of the pattern that stands in each source."""
    side, body = record.body.from_, record.body
    if side.kind == lib.WIRE_SIDE_ARRAY:
        name = next(name for name in ARRAYS if places[name] == side.address)
        pitch, height = ARRAYS[name]
        slice_, start = pitch * height, (side.z * height + side.y) * pitch + side.x
    else:
        base = max(places[name] for name in ("pageable", "pinned", "device", "other") if places[name] <= side.address)
        first, pitch, slice_ = shape(record, side)
        start = first - base
    rows = [start + z * slice_ + y * pitch for z in range(body.depth) for y in range(body.height)]
    return b"".join([PATTERN[row:row + body.width] for row in rows])


@pytest.mark.parametrize("part", PARTS)
def test_each_is_recorded_once_as_it_was_done(program: Path, part: str, options: int) -> None:
    ran = under(program, part, options)
    for record, line in done(ran):
        body = record.body
        assert f"{record.place.stream:#x}" == line["stream"], symbol(record)
        if line["work"] == "memset":
            assert (body.address, body.width, body.height, body.element_bytes, body.value) == (
                int(line["address"], 16), line["width"], line["rows"], line["element"], line["value"])
            assert body.height == 1 or body.pitch == line["pitch"]
            continue
        assert (body.width, body.height, body.depth) == (line["row"], line["rows"], line["slices"]), symbol(record)
        for side, told in ((body.from_, line["source"]), (body.to, line["destination"])):
            assert KINDS[side.kind] == told["memory"], symbol(record)
            if side.kind == lib.WIRE_SIDE_ARRAY:
                assert (side.address, [side.x, side.y, side.z]) == (int(told["array"], 16), told["at"])
                continue
            first, pitch, slice_ = shape(record, side)
            assert first == int(told["address"], 16), symbol(record)
            assert body.height == 1 or pitch == told["pitch"]
            assert body.depth == 1 or slice_ == told["slice"]


@pytest.mark.parametrize("part", PARTS)
def test_contents_are_what_was_copied(program: Path, part: str, options: int,
                                      record_property: pytest.RecordProperty) -> None:
    ran = under(program, part, options)
    outcomes, sent, checked = ran.outcomes(), ran.sent(), 0
    for record, line in done(ran):
        if line["work"] != "copy":
            continue
        body, expected = record.body, moved(record, ran.places)
        told = [o for o in outcomes[record.sequence] if o.has_content]
        from_host, to_host = (side.kind == lib.WIRE_SIDE_HOST for side in (body.from_, body.to))
        synchronous = from_host and to_host and "Batch" not in symbol(record)
        synchronous |= (from_host or to_host) and "Async" not in symbol(record)
        assert bool(body.flags & lib.WIRE_SYNCHRONOUS) == synchronous, symbol(record)
        assert len(told) == len({(o.content, o.bytes) for o in told}) <= 1 + (from_host and to_host), symbol(record)
        for outcome in told:
            assert (outcome.bytes, outcome.content) == (len(expected), content(expected)), symbol(record)
        if body.content_kind in (lib.WIRE_INLINE_CONTENT, lib.WIRE_HASHED_CONTENT):
            assert from_host and body.content == content(expected), symbol(record)
            assert bytes(inline_content(record)) in (b"", expected)
        known = bool(told) or body.content_kind in (lib.WIRE_INLINE_CONTENT, lib.WIRE_HASHED_CONTENT)
        later = from_host and not synchronous and bool(body.flags & lib.WIRE_PINNED)
        if options & PAYLOADS:
            assert known == (from_host or to_host), symbol(record)
            assert not from_host or body.inline_bytes or sent[content(expected)] == expected, symbol(record)
        else:
            assert known == (from_host and (synchronous or not later)), symbol(record)
        pageable = ran.places["pageable"] <= body.from_.address < ran.places["pageable"] + ROOM
        if from_host and not synchronous and not to_host and "Batch" not in symbol(record):
            assert later != pageable, symbol(record)
        checked += known
    record_property("contents", checked)
    assert checked


def test_all_functions(program: Path) -> None:
    """None of those that copy, fill or discard is missing among the parts."""
    met = {symbol(record) for part in PARTS for record in under(program, part, 0).records
           if record.kind in (Kind.COPY, Kind.SET, Kind.OTHER_WORK)}
    wanted = re.compile("cuMemcpy|cuMemset|cuMemDiscard|cuMemBatchDecompress")
    assert met == {f.symbol for f in functions() if wanted.match(f.symbol)}


def test_what_the_driver_refuses_comes_back(program: Path, options: int) -> None:
    ran = under(program, "refusals", options)
    results = [record.body.result for record in ran.of(Kind.OUTCOME) if record.body.result]
    assert set(results) == {INVALID_VALUE, INVALID_CONTEXT, NOT_SUPPORTED}
    outcomes = ran.outcomes()
    for record in ran.of(Kind.OTHER_WORK):
        if "Batch" not in symbol(record):
            assert symbol(record) == "cuMemcpy2D_v2" and outcomes[record.sequence][0].result == INVALID_VALUE


def test_between_contexts(program: Path) -> None:
    ran = under(program, "arrays", 0)
    found = [record for record in ran.of(Kind.COPY) if "Peer" in symbol(record)]
    assert len(found) == 16
    for record in found:
        assert record.body.to.context == ran.places["context"]
        assert record.body.from_.context == ran.places["other_context"]


@pytest.mark.parametrize("options", [0, PAYLOADS])
def test_a_copy_over_its_own_source(program: Path, options: int) -> None:
    """What the host has afterwards is told: it was what the source held before."""
    ran = under(program, "overlapping", options)
    small, large = ran.of(Kind.COPY)[-2:]
    outcomes = ran.outcomes()
    assert bytes(inline_content(small)) == PATTERN[:300]
    assert [o.content for o in outcomes[large.sequence] if o.has_content] == [content(PATTERN[:6000])]
    assert [o.content for o in outcomes[small.sequence] if o.has_content] == [content(PATTERN[:300])] * bool(options)


def test_a_driver_that_says_nothing_of_memory(program: Path, options: int) -> None:
    """Memory is then what the function calls it, and where that is nothing, what was done is not known."""
    with Instrument(rules=[Fail("cuPointerGetAttributes", onwards=True)]).variables() as variables:
        seen = observe([program, "linear"], options=options, **{INSTRUMENT.name: variables[INSTRUMENT.name]})
    assert seen.status == 0, seen.errors
    ran = Ran(seen.records, [], json.loads(seen.output))
    outcomes = ran.outcomes()
    assert {symbol(r).split("_")[0] for r in ran.of(Kind.OTHER_WORK)} == {"cuMemcpy", "cuMemcpyAsync"}
    for record in ran.of(Kind.COPY):
        name = re.sub("^cuMemcpy|(Async)?(_v2)?(_pt[ds][sz])?$", "", symbol(record))
        if name in ("HtoD", "DtoH", "DtoD"):
            kinds = {"H": lib.WIRE_SIDE_HOST, "D": lib.WIRE_SIDE_DEVICE}
            assert (record.body.from_.kind, record.body.to.kind) == (kinds[name[0]], kinds[name[-1]])
        if any(outcome.result for outcome in outcomes[record.sequence]):
            continue
        told = [o.content for o in outcomes[record.sequence] if o.has_content]
        told += [record.body.content] if any(record.body.content) else []
        assert set(told) <= {content(moved(record, ran.places))}
        if symbol(record) == "cuMemcpyHtoD_v2":
            assert told
