"""Records become rows: handles become things, ticks become time, and what failed or was lost is told apart."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.traces.reader import Trace
from orchestrator.traces.schema import TABLES
from orchestrator.traces.views import VIEWS
from shim import tails
from shim.wire import Kind, NodeKind, lib
from tests.material import ROOT
from tests.program_records import (
    CONTEXT,
    LEGACY,
    MODULE,
    NS,
    SAXPY,
    SAXPY_PARAMETERS,
    START_NS,
    Program,
    saxpy_parameters,
    side,
    write,
)

Y, X = 0x7E81_2300_0000, 0x7E81_2300_0200
Write = Callable[..., Trace]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def trace(*programs: Program, **how: Any) -> Trace:
        return Trace(write(tmp_path / "a.trace", *programs, **how))

    return trace


def rows(trace: Trace, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in trace.rows(statement)]


def usual() -> Program:
    program = Program()
    program.begin()
    program.module(b".version 8.0\n")
    program.function("saxpy", SAXPY_PARAMETERS)
    return program


def test_every_table_has_rows_and_every_view_can_be_asked(written: Write) -> None:
    program = everything()
    with written(program) as trace:
        empty = [table for table in TABLES if trace.row(f'SELECT 1 FROM "{table}"') is None]
        assert empty == []
        for view in VIEWS:
            assert trace.view(view).rows, view
        assert not trace.complete  # as records are missing
        for table in TABLES:  # whatever refers to a thing refers to one that is there
            columns = {row["name"] for row in trace.rows(f'PRAGMA table_info("{table}")')}
            for column in columns & {"kernel", "graph", "stream", "context", "module", "event", "link"} - {table}:
                lost = f'SELECT 1 FROM "{table}" WHERE {column} NOT IN (SELECT id FROM "{column}")'
                assert trace.row(lost) is None, (table, column)


def everything() -> Program:
    """A record of every kind."""
    program = usual()
    program.memory(Y, 256)
    program.record(Kind.CALL)
    program.record(Kind.DOOR, how=1)
    program.record(Kind.STREAM, handle=0x51, context=CONTEXT, flags=1)
    program.record(Kind.EVENT, handle=0xE1, context=CONTEXT, flags=2)
    program.record(Kind.RESERVATION, address=1 << 40, bytes=1 << 21)
    program.record(Kind.PHYSICAL, handle=0x99, bytes=1 << 21, type=1, location_type=1)
    program.memory(1 << 40, 1 << 21, lib.WIRE_MAPPED, owner=0x99)
    program.record(Kind.ACCESS, address=1 << 40, bytes=1 << 21, location_type=1, flags=3)
    program.record(Kind.ARRAY, handle=0xAA, context=CONTEXT, width=8, format=32, channels=1, element_bytes=4)
    program.record(Kind.LINK_INPUT, state=0x11, type=1, name_bytes=1, bytes=3, content=bytes(32), tail=b"a")
    program.record(Kind.LINK_OUTPUT, state=0x11, bytes=3, content=bytes(32))
    nodes = [tails.encode_node(NodeKind.LAUNCH, node=1, function=SAXPY, grid=(1, 1, 1), block=(1, 1, 1)),
             tails.encode_node(NodeKind.ALLOCATE, node=2, address=1 << 41, bytes=64)]
    program.record(Kind.GRAPH_EXEC, exec=0x61, graph=0x60, context=CONTEXT, nodes=2, edges=1, whole=1,
                   tail=b"".join(nodes) + tails.edges_tail([(1, 2)]))
    program.record(Kind.GRAPH_NODE, exec=0x61, tail=nodes[0])
    program.record(Kind.EXPORT, address=Y, kind=int(Kind.MEMORY))
    program.launch(saxpy_parameters(Y, X, 1.0, 1))
    program.to_device(Y, b"12")
    program.record(Kind.SET, address=Y, width=2, height=1, element_bytes=1, value=7)
    program.record(Kind.GRAPH_LAUNCH, exec=0x61)
    program.record(Kind.EVENT_RECORD, event=0xE1)
    program.record(Kind.EVENT_WAIT, event=0xE1)
    program.record(Kind.HOST_FUNCTION, function=0x1234)
    program.record(Kind.MEMORY_OPERATIONS, count=1, tail=tails.memory_operations_tail([(2, 0, Y, 1)]))
    program.record(Kind.OTHER_WORK)
    program.record(Kind.CAPTURE_BEGIN, mode=1)
    program.record(Kind.CAPTURE_END, graph=0x60)
    program.synchronize()
    program.outcome(program.launch(b""), result=1)
    program.ended(Kind.EVENT, 0xE1)
    program.record(Kind.EPOCH, epoch=1, lost=3)
    return program


def test_a_handle_that_is_used_again_is_a_new_thing(written: Write) -> None:
    program = usual()
    for size in (256, 512):
        program.memory(Y, size)
        program.to_device(Y, b"1234")
        program.free(Y)
    with written(program) as trace:
        first, second = rows(trace, "SELECT id, bytes, born, died FROM memory ORDER BY id")
        assert (first[1], second[1]) == (256, 512)
        assert first[3] < second[2] < second[3]
        assert rows(trace, "SELECT to_thing FROM copy ORDER BY id") == [(first[0],), (second[0],)]


def test_with_a_module_its_kernels_end_and_with_a_context_everything(written: Write) -> None:
    program = usual()
    program.memory(Y, 256)
    first = program.ended(Kind.MODULE, MODULE)
    last = program.ended(Kind.CONTEXT, CONTEXT)
    with written(program) as trace:
        assert rows(trace, "SELECT died FROM kernel") == rows(trace, "SELECT died FROM module") == [(first,)]
        assert rows(trace, "SELECT died FROM memory") == rows(trace, "SELECT died FROM context") == [(last,)]


def test_what_a_failed_call_was_to_end_lives_on(written: Write) -> None:
    program = usual()
    program.memory(Y, 256)
    end = program.free(Y)
    program.outcome(end, result=1)
    program.to_device(Y, b"1234")
    with written(program) as trace:
        assert rows(trace, "SELECT died FROM memory") == [(None,)]
        assert rows(trace, "SELECT to_thing FROM copy") == rows(trace, "SELECT id FROM memory")
        assert rows(trace, "SELECT sequence, result FROM failures") == [(end, 1)]


def test_a_gap_ends_what_is_not_said_again(written: Write) -> None:
    program = usual()
    program.memory(Y, 256)
    program.memory(X, 256)
    program.sequence += 9
    program.record(Kind.EPOCH, epoch=1, lost=9)
    program.record(Kind.CONTEXT, marks=lib.WIRE_RESTATED, handle=CONTEXT, device=0, primary=1)
    program.record(Kind.MEMORY, marks=lib.WIRE_RESTATED, address=X, bytes=256, context=CONTEXT, kind=lib.WIRE_ALLOCATED)
    end = program.sequence
    program.synchronize()
    with written(program) as trace:
        assert rows(trace, "SELECT address, died FROM memory ORDER BY id") == [(Y, end), (X, None)]
        assert rows(trace, "SELECT epoch, lost FROM gaps") == [(1, 9)]
        assert rows(trace, "SELECT count(*) FROM context") == [(1,)]
        assert not trace.complete


def test_numbers_that_are_missing_are_a_gap_even_without_an_epoch(written: Write) -> None:
    program = usual()
    program.sequence += 2
    program.synchronize()
    with written(program) as trace:
        assert rows(trace, "SELECT epoch, lost FROM gaps") == [(None, 2)]


def test_what_nobody_announced_is_a_thing_of_which_nothing_is_known(written: Write) -> None:
    program = Program()
    program.launch(b"", function=0x77)
    with written(program) as trace:
        assert rows(trace, "SELECT kernel FROM launches") == [(None,)]
        assert rows(trace, "SELECT announced, handle FROM kernel") == [(0, 0x77)]
        assert rows(trace, "SELECT announced, handle FROM context") == [(0, CONTEXT)]


def test_times_are_by_the_clocks_of_batches(written: Write) -> None:
    program = usual()
    number = program.launch(b"")
    with written(program, batches=3) as trace:
        assert rows(trace, "SELECT at_ns FROM launches") == [(START_NS + NS * number,)]


def test_default_streams_belong_to_contexts_and_threads(written: Write) -> None:
    program = usual()
    for place in ((LEGACY, CONTEXT), (2, CONTEXT), (LEGACY, 0xC1), (LEGACY, CONTEXT)):
        program.launch(b"", place=place)
    with written(program) as trace:
        assert rows(trace, "SELECT handle, context, thread FROM stream ORDER BY id") == [
            (1, 2, None), (2, 2, 7), (1, rows(trace, "SELECT max(id) FROM context")[0][0], None)]
        streams = [row[0] for row in rows(trace, "SELECT stream FROM launches ORDER BY sequence")]
        assert len(set(streams)) == 3 and streams[0] == streams[3]


def test_steps_end_where_the_program_waits(written: Write) -> None:
    program = usual()
    for _ in range(3):
        program.launch(b"", grid=2)
        program.launch(b"", grid=3)
        program.to_host(Y, b"1234")
        program.synchronize()  # nothing was launched: no step
    program.launch(b"")
    with written(program) as trace:
        assert rows(trace, "SELECT times, launches FROM step_classes") == [(3, 2), (1, 1)]
        per_step = rows(trace, "SELECT count(*) FROM launches GROUP BY step ORDER BY min(sequence)")
        assert per_step == [(2,), (2,), (2,), (1,)]


def test_graphs_have_nodes_edges_and_changes(written: Write) -> None:
    program = usual()
    nodes = [tails.encode_node(NodeKind.LAUNCH, node=0x201, function=SAXPY, grid=(2, 1, 1), block=(32, 1, 1)),
             tails.encode_node(NodeKind.COPY, node=0x202, width=8, height=1, depth=1,
                               to=side(Y, lib.WIRE_SIDE_DEVICE), from_=side(X, lib.WIRE_SIDE_DEVICE))]
    program.record(Kind.GRAPH_EXEC, exec=0x61, context=CONTEXT, nodes=2, edges=1, whole=1,
                   tail=b"".join(nodes) + tails.edges_tail([(0x201, 0x202)]))
    program.record(Kind.GRAPH_NODE, exec=0x61, tail=tails.encode_node(
        NodeKind.LAUNCH, node=0x201, function=SAXPY, grid=(5, 1, 1), block=(32, 1, 1)))
    program.record(Kind.GRAPH_LAUNCH, exec=0x61)
    with written(program) as trace:
        found = rows(trace, "SELECT position, kind, kernel, grid_x, copied_bytes FROM nodes ORDER BY id")
        assert found == [(0, "launch", "saxpy", 2, None), (1, "copy", None, None, 8), (0, "launch", "saxpy", 5, None)]
        assert rows(trace, "SELECT nodes FROM graphs") == [(2,)]
        edges = rows(trace, "SELECT o.position, t.position FROM edge JOIN node o ON o.id = origin "
                            "JOIN node t ON t.id = target")
        assert edges == [(0, 1)]
        assert rows(trace, "SELECT graph FROM graph_launches") == rows(trace, "SELECT id FROM graph")


def test_sizes_that_no_program_has_do_no_harm(written: Write) -> None:
    program = usual()
    program.memory((1 << 64) - 4096, (1 << 64) - 1)
    program.to_device((1 << 64) - 8, b"1")
    with written(program) as trace:
        assert rows(trace, "SELECT bytes FROM memory") == [(-1,)]


def test_the_page_names_every_view() -> None:
    text = (ROOT / "docs" / "trace.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(VIEWS)


def test_a_user_can_only_read(written: Write) -> None:
    with written(usual()) as trace:
        assert trace.query("SELECT name FROM kernels").rows == [("saxpy",)]
        for statement in ("DELETE FROM kernel", "ATTACH '/tmp/x' AS y", "PRAGMA user_version = 2", "CREATE TABLE x (y)",
                          "SELECT load_extension('x')", "SELECT * FROM nothing", "SELECT 1; SELECT 2", "VACUUM"):
            with pytest.raises(Exception, match="a.trace"):
                trace.query(statement)
        database = sqlite3.connect(trace.path)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
