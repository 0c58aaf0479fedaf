"""From traces to the graph of a step: which step, what belongs to it, what it needs from before."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.session.graph import Input
from orchestrator.traces.errors import TraceError
from orchestrator.traces.reader import Trace
from orchestrator.traces.step_graph import ChosenStep, choose_step, graph_of
from shim.layout import lib
from shim.wire import Kind, records
from tests.material import ROOT
from tests.program_records import Program, write

X, Y, Z, BYTES = 0x10000, 0x20000, 0x30000, 64 * 4  # addresses apart, so that each is an allocation


class Saxpy(Program):
    """y = a x + y on 64 floats, however often."""

    def __init__(self, number: int = 1) -> None:
        super().__init__(number, 4242 + number)
        self.begin()
        self.module((ROOT / "examples" / "kernels.ptx").read_bytes() + b"\0")
        self.function("saxpy", [(0, 8), (8, 8), (16, 4), (20, 4)])
        for address in (X, Y, Z):
            self.memory(address, 1024)

    def saxpy(self, y: int, x: int, **more: int) -> int:
        return self.launch(struct.pack("<QQfi", y, x, 2.0, 64), **more)

    def step(self, y: int = Y, **more: int) -> tuple[int, int, int]:
        """An upload of x, a launch, and the result: their records."""
        return self.to_device(X, bytes(BYTES)), self.saxpy(y, X, **more), self.to_host(y, bytes(BYTES))


def chosen(path: Path, client: int | None = None, signature: str = "") -> ChosenStep:
    with Trace(path) as trace:
        return choose_step(trace, client, signature)


def test_the_third_step_of_the_most_frequent_class(tmp_path: Path) -> None:
    program = Saxpy()
    for _ in range(2):
        program.step(grid=2)
    steps = [program.step() for _ in range(5)]
    path = write(tmp_path / "t.trace", program)
    found = chosen(path)
    assert (found.client, found.times, found.repeat, found.first, found.last) == (1, 5, 3, steps[2][1], steps[2][1])
    with Trace(path) as trace:
        rare = next(row["signature"] for row in trace.rows("SELECT signature, times FROM step_classes WHERE times = 2"))
    assert chosen(path, signature=rare[:6]).repeat == 2
    assert chosen(path, client=1, signature=rare).times == 2


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    program = Saxpy()
    program.step()
    program.step(grid=2)
    idle = Program(2)
    idle.begin()
    path = write(tmp_path / "t.trace", program, idle)
    with pytest.raises(TraceError, match=r"t\.trace: no step whose signature begins with 'xyz'; tessera trace info"):
        chosen(path, signature="xyz")
    with pytest.raises(TraceError, match=r"t\.trace, client 2: no steps"):
        chosen(path, client=2)


def test_signatures_that_begin_alike_are_listed(tmp_path: Path) -> None:
    program = Saxpy()
    for grid in range(1, 30):  # of so many some begin with the same letter
        program.step(grid=grid)
    path = write(tmp_path / "t.trace", program)
    with Trace(path) as trace:
        letters = Counter(row["signature"][0] for row in trace.rows("SELECT signature FROM step_classes"))
    letter, count = letters.most_common(1)[0]
    with pytest.raises(TraceError, match=f"{count} signatures begin with '{letter}': {letter}"):
        chosen(path, signature=letter)


def test_a_step_has_its_upload_and_its_result(tmp_path: Path) -> None:
    program = Saxpy()
    for _ in range(2):
        program.step()
    program.synchronize()
    upload, launch, result = program.step()
    path = write(tmp_path / "t.trace", program)
    with Trace(path) as trace:
        graph = graph_of(trace, choose_step(trace))
    names = [name for name, data in graph.nodes(data=True) if "work" in data]
    assert names == [str(upload), str(launch), str(result)]
    needed = [data["input"] for _, data in graph.nodes(data=True) if "input" in data]
    assert [(found.area.address, found.weights, found.bytes) for found in needed] == [(Y, False, BYTES)]
    lines = [why.target_lines for why in graph.edges[str(upload), str(launch)]["between"].why]
    assert len(lines) == 1 and lines[0]


def needs(program: Program, path: Path, signature: str = "") -> dict[int, bool]:
    """What the chosen step needs from before: addresses, and whether they are weights."""
    with Trace(write(path, program)) as trace:
        graph = graph_of(trace, choose_step(trace, None, signature))
    found: list[Input] = [data["input"] for _, data in graph.nodes(data=True) if "input" in data]
    return {one.area.address: one.weights for one in found if one.area is not None}


def test_weights_were_not_written_since_the_first_step(tmp_path: Path) -> None:
    program = Saxpy()
    program.to_device(X, bytes(BYTES))
    for _ in range(3):
        program.saxpy(Y, X)
        program.synchronize()
    assert needs(program, tmp_path / "read.trace") == {X: True, Y: False}
    written = Saxpy()
    for turn in range(3):
        written.saxpy(Y, X)
        written.synchronize()
        if turn == 0:
            written.to_device(X, bytes(BYTES))
            written.synchronize()
    assert needs(written, tmp_path / "written.trace") == {X: False, Y: False}


def test_a_first_step_has_no_weights(tmp_path: Path) -> None:
    program = Saxpy()
    program.saxpy(Y, X)
    program.synchronize()
    assert needs(program, tmp_path / "t.trace") == {X: False, Y: False}


def test_memory_that_the_host_can_write_is_never_weights(tmp_path: Path) -> None:
    program = Saxpy()
    program.memory(0x50000, 1024, lib.WIRE_MANAGED)
    for _ in range(3):
        program.saxpy(Y, 0x50000)
        program.synchronize()
    assert needs(program, tmp_path / "t.trace") == {0x50000: False, Y: False}


def test_unknown_work_leaves_no_weights(tmp_path: Path) -> None:
    program = Saxpy()
    for turn in range(3):
        program.saxpy(Y, X)
        program.synchronize()
        if turn == 0:
            program.record(Kind.OTHER_WORK)
    assert needs(program, tmp_path / "t.trace") == {X: False, Y: False}


def test_a_step_that_the_end_of_the_program_ends(tmp_path: Path) -> None:
    program = Saxpy()
    program.saxpy(Y, X)
    program.saxpy(Z, Y)
    with Trace(write(tmp_path / "t.trace", program)) as trace:
        graph = graph_of(trace, choose_step(trace))
    assert [why.kind for _, _, data in graph.edges(data=True) if data["between"].ordered
            for why in data["between"].why] == ["RAW"]


class Gapped(Saxpy):
    def gap(self) -> None:
        """Records are lost, and what there is is said again."""
        self.sequence += 5
        self.record(Kind.EPOCH, epoch=1, lost=5)
        said = self.data[: self.data.index(self.data[-1])]
        for record in records(b"".join(said)):
            if record.kind in (Kind.DEVICE, Kind.CONTEXT, Kind.MODULE, Kind.FUNCTION, Kind.MEMORY):
                self.record(record.kind, marks=lib.WIRE_RESTATED, tail=bytes(record.tail), **record.body._asdict())


def test_steps_in_which_records_are_missing_do_not_count(tmp_path: Path) -> None:
    program = Gapped()
    for turn in range(4):
        first = program.saxpy(Y, X)
        if turn == 2:
            program.gap()
        program.saxpy(Z, Y)
        program.synchronize()
    path = write(tmp_path / "t.trace", program)
    assert (chosen(path).first, chosen(path).repeat, chosen(path).times) == (first, 3, 4)
    broken = Gapped()
    broken.saxpy(Y, X)
    broken.gap()
    broken.saxpy(Y, X)
    with pytest.raises(TraceError, match="records are missing in every step of signature"):
        chosen(write(tmp_path / "broken.trace", broken))


def test_what_was_lost_may_have_written_weights(tmp_path: Path) -> None:
    program = Gapped()
    for turn in range(3):
        program.saxpy(Y, X)
        program.synchronize()
        if turn == 1:
            program.gap()
    assert needs(program, tmp_path / "t.trace") == {X: False, Y: False}
