"""Traces as the records that they were made of: recorded once more, they are the same traces."""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.traces.errors import TraceError
from orchestrator.traces.reader import Trace
from orchestrator.traces.records import records
from orchestrator.traces.schema import TABLES
from orchestrator.traces.writer import Writer
from shim import tails
from shim.layout import layout
from shim.listen import Client
from shim.wire import Kind, NodeKind, Record, lib
from shim.wire import records as read
from tests.material import ROOT
from tests.nodriver.shim.test_trace_write import everything
from tests.nodriver.tracker.lives import Lives
from tests.patterns import share
from tests.program_records import CONTEXT, MODULE, SAXPY, SAXPY_PARAMETERS, Program, saxpy_parameters, side, write

KEPT = sorted((ROOT / "tests" / "fixtures" / "traces").glob("*.trace"))
Y, X = 0x7E81_2300_0000, 0x7E81_2300_0200
OF_MESSAGES = {"batches", "lost", "ended", "trouble", "first_ticks", "first_ns", "last_ticks", "last_ns"}
"""Columns of clients that no record says."""


def again(trace: Trace, path: Path) -> Path:
    """A trace of the records of a trace."""
    with Writer(path, lib.WIRE_PAYLOADS) as writer:
        for row in list(trace.rows("SELECT * FROM client ORDER BY id")):
            client = Client(row["id"], row["process"], row["program"])
            writer.begin(client)
            for data in records(trace, client.number):
                writer.batch(client, layout("wire_batch").zero(), data)
            writer.end(client, None)
    return path


def contents(trace: Trace) -> dict[str, list[str]]:
    """All rows of the tables, without those of the file itself."""
    found = {}
    for table in TABLES:
        if table == "meta":
            continue
        rows = [dict(row) for row in trace.rows(f'SELECT * FROM "{table}"')]
        if table == "client":
            rows = [{name: value for name, value in row.items() if name not in OF_MESSAGES} for row in rows]
        found[table] = sorted([repr(row) for row in rows])
    return found


def check(path: Path) -> list[Record]:
    """A trace is the same when its records are recorded; those of its first client."""
    second = path.with_name("again.trace")
    with Trace(path) as trace, Trace(again(trace, second)) as other:
        expected, found = contents(trace), contents(other)
        for table in TABLES:
            assert found.get(table) == expected.get(table), table
        made = [record for data in records(trace, 1) for record in read(data)]
        check_numbers(trace, made)
    second.unlink()
    return made


def check_numbers(trace: Trace, made: list[Record]) -> None:
    """No number is missing where nothing was lost, and no contents that a record names come behind it."""
    gaps = {row["sequence"] for row in trace.rows("SELECT sequence FROM gap WHERE client = 1")}
    have: set[bytes] = set()
    for before, record in pairwise(made):
        step = record.sequence - before.sequence
        assert step in (0, 1) or record.sequence in gaps, record
    for record in made:
        if record.kind is Kind.DATA:
            have.add(record.body.content)
        elif record.kind in (Kind.MODULE, Kind.LINK_INPUT) or (
                record.kind is Kind.COPY and record.body.content_kind == lib.WIRE_HASHED_CONTENT):
            name = record.body.content
            assert name in have or not trace.has_content(name)


@pytest.fixture
def same(tmp_path: Path) -> Callable[..., list[Record]]:
    return lambda *programs: check(write(tmp_path / "a.trace", *programs))


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_kept_traces(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(kept.read_bytes())
    check(path)


def test_a_record_of_every_kind(same: Callable[..., list[Record]]) -> None:
    assert {record.kind for record in same(everything())} == set(Kind)


def usual() -> Program:
    program = Program()
    program.begin()
    program.module(b".version 8.0\n")
    program.function("saxpy", SAXPY_PARAMETERS)
    program.memory(Y, 4096)
    program.memory(X, 4096)
    return program


def test_records_come_back_as_they_were(same: Callable[..., list[Record]]) -> None:
    """Number for number, with all that the trace keeps of them: contents, which have no rows, among them."""
    program = usual()
    program.record(Kind.STREAM, handle=0x51, context=CONTEXT, flags=1, priority=-1)
    program.to_device(Y, b"few")
    program.to_device(Y, random.Random(1).randbytes(lib.WIRE_PIECE_BYTES + 5), place=(0x51, CONTEXT))
    tail = tails.launch_tail(saxpy_parameters(Y, X, 2.0, 9), [(4, bytes(range(64)))])
    program.record(Kind.LAUNCH, place=(0x51, CONTEXT), function=SAXPY, grid=(3, 2, 1), block=(64, 1, 1), shared=16,
                   flags=lib.WIRE_PACKED, parameter_bytes=24, attributes=1, tail=tail)
    program.record(Kind.COPY, width=4, height=3, depth=2, to=side(0x6000, lib.WIRE_SIDE_HOST, pitch=8, height=5),
                   from_=side(Y, lib.WIRE_SIDE_DEVICE, context=CONTEXT, x=2, y=1, z=1, pitch=16, height=8),
                   flags=lib.WIRE_SYNCHRONOUS, content_kind=lib.WIRE_LATER_CONTENT)
    source = program.payload(b"ptx")
    program.record(Kind.LINK_INPUT, state=0x11, type=1, name_bytes=1, bytes=3, content=source, tail=b"a")
    program.record(Kind.LINK_OUTPUT, state=0x11, bytes=3, content=bytes(range(32)))
    program.synchronize()
    program.ended(Kind.MODULE, MODULE)
    program.to_device(X, random.Random(1).randbytes(lib.WIRE_PIECE_BYTES + 5)[:5000])
    made, expected = same(program), list(read(b"".join(program.data)))
    assert [(r.kind, r.flags, r.sequence, r.place, r.body, bytes(r.tail)) for r in made] == [
        (r.kind, r.flags, r.sequence, r.place, r.body, bytes(r.tail)) for r in expected]


def test_programs_in_one_trace_share_contents(same: Callable[..., list[Record]]) -> None:
    first, second = usual(), usual()
    second.client = Client(2, 4243, "/usr/bin/other")
    made = same(first, second)
    assert [record.kind for record in made].count(Kind.DATA) == 1


def test_what_lived_on_is_said_again_and_what_did_not_is_not(same: Callable[..., list[Record]]) -> None:
    program = usual()
    program.sequence += 9
    program.record(Kind.EPOCH, epoch=1, lost=9)
    marks = lib.WIRE_RESTATED
    program.record(Kind.CONTEXT, marks=marks, handle=CONTEXT, device=0, primary=1)
    program.record(Kind.MEMORY, marks=marks, address=X, bytes=4096, context=CONTEXT, kind=lib.WIRE_ALLOCATED)
    program.record(Kind.MEMORY, marks=marks, address=X + 8192, bytes=64, context=CONTEXT, kind=lib.WIRE_ALLOCATED)
    program.free(X)  # the first record that restates nothing
    program.synchronize()
    made = same(program)
    restated = [r.body.address for r in made if r.kind is Kind.MEMORY and r.flags & marks]
    assert restated == [X, X + 8192]
    (epoch,) = [r for r in made if r.kind is Kind.EPOCH]
    assert (epoch.body.epoch, epoch.body.lost) == (1, 9)


def node(handle: int, grid: int) -> bytes:
    return tails.encode_node(NodeKind.LAUNCH, node=handle, function=SAXPY, grid=(grid, 1, 1), block=(1, 1, 1))


def test_graphs_that_lived_on_have_their_nodes(same: Callable[..., list[Record]]) -> None:
    """Those that were restated: as they were, with their edges, and what was changed in them once more."""
    program = usual()
    nodes = [node(1, 1), node(2, 2)]
    change = node(2, 7)
    tail = b"".join(nodes) + tails.edges_tail([(1, 2)])
    whole: dict[str, Any] = {"context": CONTEXT, "whole": 1, "nodes": 2, "edges": 1, "tail": tail}
    one: dict[str, Any] = {"context": CONTEXT, "whole": 1, "nodes": 1, "tail": nodes[0]}
    program.record(Kind.GRAPH_EXEC, exec=0x61, **whole)
    program.record(Kind.GRAPH_EXEC, exec=0x62, **one)
    program.record(Kind.GRAPH_EXEC, exec=0x63, context=CONTEXT)
    program.record(Kind.GRAPH_NODE, exec=0x61, tail=change)
    program.sequence += 2
    program.record(Kind.EPOCH, epoch=1, lost=2)
    marks: dict[str, Any] = {"marks": lib.WIRE_RESTATED}
    program.record(Kind.CONTEXT, **marks, handle=CONTEXT, device=0, primary=1)
    program.function("saxpy", SAXPY_PARAMETERS)
    program.data[-1] = program.data[-1][:6] + b"\2\0" + program.data[-1][8:]
    program.record(Kind.GRAPH_EXEC, **marks, exec=0x61, **whole)
    program.record(Kind.GRAPH_NODE, **marks, exec=0x61, tail=change)
    program.record(Kind.GRAPH_EXEC, **marks, exec=0x62, **one)
    program.record(Kind.GRAPH_NODE, **marks, exec=0x62, tail=nodes[0])
    program.record(Kind.GRAPH_EXEC, **marks, exec=0x63, context=CONTEXT)
    program.record(Kind.GRAPH_LAUNCH, exec=0x61)
    made = same(program)
    behind = made[[r.kind for r in made].index(Kind.EPOCH):]
    graphs = [(r.kind, r.body.exec, bytes(r.tail)) for r in behind if r.kind in (Kind.GRAPH_EXEC, Kind.GRAPH_NODE)]
    assert sorted(graphs) == sorted([
        (Kind.GRAPH_EXEC, 0x61, whole["tail"]), (Kind.GRAPH_NODE, 0x61, change), (Kind.GRAPH_EXEC, 0x62, nodes[0]),
        (Kind.GRAPH_NODE, 0x62, nodes[0]), (Kind.GRAPH_EXEC, 0x63, b"")])
    assert all(r.flags & lib.WIRE_RESTATED for r in behind if r.kind in (Kind.GRAPH_EXEC, Kind.GRAPH_NODE))


def test_what_a_failed_call_did_not_end_is_announced_once_more(same: Callable[..., list[Record]]) -> None:
    program = usual()
    end = program.ended(Kind.CONTEXT, CONTEXT)
    program.outcome(end, result=1)
    program.outcome(end, result=1)
    program.synchronize()
    made = same(program)
    behind = [r.kind for r in made[[r.kind for r in made].index(Kind.OUTCOME):]]
    assert behind == [Kind.OUTCOME, Kind.CONTEXT, Kind.MODULE, Kind.FUNCTION, Kind.MEMORY, Kind.MEMORY, Kind.OUTCOME,
                      Kind.SYNCHRONIZE, Kind.OUTCOME]


@share(5)
@example(seed=464, steps=84, losing=0.3)
@example(seed=281, steps=101, losing=0.3)
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 80), losing=st.sampled_from([0.0, 0.1, 0.3]))
def test_programs_by_chance(tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int, losing: float) -> None:
    path = tmp_path_factory.mktemp("lives") / "a.trace"
    check(write(path, Lives(seed).run(steps, losing)))
    path.unlink()


def test_batches_are_of_whole_records_and_memory_is_flat(tmp_path: Path) -> None:
    program = usual()
    for number in range(16):
        program.to_device(Y, random.Random(number).randbytes(1 << 20))
    path = write(tmp_path / "a.trace", program)
    sizes = []
    with Trace(path) as trace:
        tracemalloc.start()
        for data in records(trace, 1):
            sizes.append(len(data))
            assert sum(1 for _ in read(data))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert sum(sizes) > 16 << 20 > 4 * peak
    assert max(sizes) < 3 * (1 << 18)


def test_a_client_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trace", usual())
    with Trace(path) as trace, pytest.raises(TraceError, match="no client 3; there are: 1"):
        next(records(trace, 3))


@pytest.mark.parametrize(("statement", "says"), [
    ("DELETE FROM launch", "lacks row"), ("DELETE FROM kernel", "lacks row"),
    ("UPDATE operation SET kind = 999", "999"),
    ("UPDATE memory SET address = 'x'", "client 1, record 6, in table memory"),
    ("UPDATE operation SET sequence = 1 << 60", "missing"),
    ("UPDATE operation SET sequence = 'x'", "client 1"), ("UPDATE memory SET born_ticks = 'x'", "client 1"),
    ("UPDATE kernel SET parameters = '[1'", "client 1, record 5, in table kernel"), ("DROP TABLE outcome", "damaged"),
])
def test_a_damaged_trace(tmp_path: Path, statement: str, says: str) -> None:
    program = usual()
    program.launch(saxpy_parameters(Y, X, 2.0, 9))
    path = write(tmp_path / "a.trace", program)
    database: Any = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()
    with Trace(path) as trace, pytest.raises(TraceError, match=says):
        list(records(trace, 1))
