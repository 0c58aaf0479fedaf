"""Files that are no traces, of other versions, cut short or damaged anywhere, or whose recorder was killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.traces.payloads import ContentError
from orchestrator.traces.reader import Trace
from orchestrator.traces.schema import TABLES
from orchestrator.traces.summary import summary_of
from orchestrator.traces.views import VIEWS
from orchestrator.traces.writer import Writer
from shim.wire import lib
from tessera.errors import TesseraError
from tests.material import ROOT
from tests.program_records import SAXPY_PARAMETERS, Program, saxpy_parameters, write

Y = 0x7E81_2300_0000
PAGE = 4096
LAUNCHES = 60
IMAGE = random.Random(2).randbytes(9000)


def program() -> Program:
    made = Program()
    made.begin()
    made.module(IMAGE)
    made.function("saxpy", SAXPY_PARAMETERS)
    made.memory(Y, 4096)
    for number in range(LAUNCHES):
        made.to_device(Y, number.to_bytes(8, "little") * 16)
        made.launch(saxpy_parameters(Y, Y, 1.0, number))
    made.to_host(Y, bytes(8))
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("whole") / "a.trace", program()).read_bytes()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "b.trace"


def read_all(trace: Trace) -> int:
    """Ask for everything that anybody may ask for; the number of rows."""
    summary_of(trace)
    count = 0
    for view in VIEWS:
        count += len(trace.view(view).rows)
    for table in TABLES:
        count += len(list(trace.rows(f'SELECT * FROM "{table}"')))
    for row in trace.rows("SELECT DISTINCT content FROM payload"):
        try:
            trace.content(row["content"])
        except ContentError:
            count -= 1
    return count


def attempt(file: Path, partial: bool) -> int | None:
    """How many rows can be read; None if an error of ours says why none can."""
    try:
        with Trace(file, partial) as trace:
            return read_all(trace)
    except TesseraError as error:
        assert str(file) in str(error) or "contents" in str(error)
        return None


def test_what_is_written_can_be_read(whole: bytes, file: Path) -> None:
    file.write_bytes(whole)
    with Trace(file) as trace:
        assert trace.complete and read_all(trace) > 5 * LAUNCHES
        assert not trace.path.with_name("b.trace-wal").exists()


@pytest.mark.parametrize("how", ["cut", "zeros", "noise", "bits"])
def test_damage_at_every_page(whole: bytes, file: Path, how: str, long_run: bool) -> None:
    """An error that names the file, or rows; with --partial what can be read, and what is missing is said."""
    assert len(whole) % PAGE == 0
    chance = random.Random(how)
    partly = refused = 0
    for start in range(0, len(whole), PAGE if long_run or how == "cut" else 5 * PAGE):
        bad = {
            "cut": whole[:start],
            "zeros": whole[:start] + bytes(PAGE) + whole[start + PAGE:],
            "noise": whole[:start] + chance.randbytes(PAGE) + whole[start + PAGE:],
            "bits": whole[:start] + bytes([b ^ (chance.random() < 0.01) for b in whole[start:start + PAGE]])
            + whole[start + PAGE:],
        }[how]
        file.write_bytes(bad)
        refused += attempt(file, partial=False) is None
        found = attempt(file, partial=True)
        if found is not None:
            partly += 1
            with Trace(file, partial=True) as trace:
                assert trace.missing or how != "cut"
    assert partly > 0
    assert refused > 0 or how == "bits"
    if how == "cut":
        assert refused == len(whole) // PAGE


def test_bytes_of_contents_that_changed_are_found(whole: bytes, file: Path) -> None:
    place = whole.index(IMAGE[500:600])
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
    with Trace(file) as trace, pytest.raises(ContentError, match="other bytes"):
        for row in trace.rows("SELECT DISTINCT content FROM payload"):
            trace.content(row["content"])


def test_half_a_trace_is_read_with_what_is_missing(whole: bytes, file: Path) -> None:
    file.write_bytes(whole[:len(whole) // PAGE // 2 * PAGE])
    with Trace(file, partial=True) as trace:
        found = summary_of(trace)
        assert not found.complete and any("cut short" in line for line in found.missing)
        assert any(line.startswith("table ") for line in found.missing)


@pytest.mark.parametrize(("bytes_", "message"), [
    (b"", "no SQLite file"), (b"no trace", "no SQLite file"), (b"SQLite format 3\0", "cut short"),
])
def test_other_files(file: Path, bytes_: bytes, message: str) -> None:
    file.write_bytes(bytes_)
    for partial in (False, True):
        with pytest.raises(TesseraError, match=message):
            Trace(file, partial)


def test_what_is_not_there_or_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(TesseraError, match=str(path)):
            Trace(path)


@pytest.mark.parametrize(("statement", "message"), [
    ("PRAGMA user_version = 2", "version 2; this Tessera reads 1"), ("PRAGMA application_id = 7", "no trace"),
    ("PRAGMA user_version = 0", "version 0"),
])
def test_other_versions_and_other_databases(whole: bytes, file: Path, statement: str, message: str) -> None:
    file.write_bytes(whole)
    with sqlite3.connect(file) as database:
        database.execute(statement)
    for partial in (False, True):
        with pytest.raises(TesseraError, match=message):
            Trace(file, partial)


def test_a_file_that_is_there_is_not_written_over(whole: bytes, file: Path) -> None:
    file.write_bytes(whole)
    with pytest.raises(TesseraError, match="exists already"):
        Writer(file)
    assert file.read_bytes() == whole
    with pytest.raises(TesseraError, match="Not a directory"):
        Writer(file / "x")


def test_a_trace_that_nobody_closed_can_be_read_while_and_after(tmp_path: Path) -> None:
    path = write(tmp_path / "open.trace", program(), batches=7, close=False)
    with Trace(path) as trace:
        assert not trace.complete
        assert trace.row("SELECT count(*) AS n FROM launches")["n"] == LAUNCHES  # type: ignore[index]
        assert any("not closed" in reason for reason in summary_of(trace).reasons)


RECORDER = """
import os, signal, sys
from pathlib import Path
from orchestrator.traces.writer import Writer
from shim.layout import layout
from tests.nodriver.shim.test_trace_files import program
made, writer = program(), Writer(Path(sys.argv[1]), 1)
writer.begin(made.client)
head = layout("wire_batch").zero()
for number, record in enumerate(made.data):
    writer.batch(made.client, head._replace(ticks=number), record)
    if number % 20 == 0:
        writer.flush()
    if number == 110:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_recorder_that_is_killed_leaves_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "killed.trace"
    done = subprocess.run([sys.executable, "-c", RECORDER, path], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    with Trace(path) as trace:
        last = trace.row("SELECT max(sequence) AS n FROM operations")
        assert last is not None and 95 <= last["n"] <= 100
        assert not trace.complete and trace.about["state"] == "recording"
        assert len(list(trace.rows("PRAGMA integrity_check"))) == 1
    wal = Path(f"{path}-wal")
    sizes = []
    log = wal.read_bytes()
    for end in range(32, len(log) + 1, PAGE + 24):  # the log, cut short anywhere: what is before that stays
        wal.write_bytes(log[:end])
        Path(f"{path}-shm").unlink(missing_ok=True)
        sizes.append(attempt(path, partial=False) or 0)
    assert sizes == sorted(sizes) and sizes[-1] > 300 > sizes[len(sizes) // 2]


def test_a_folder_that_cannot_be_written(whole: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "a.trace").write_bytes(whole)
    folder.chmod(0o500)
    try:
        assert attempt(folder / "a.trace", partial=False)
        if os.geteuid():
            with pytest.raises(TesseraError, match="denied"):
                Writer(folder / "b.trace")
    finally:
        folder.chmod(0o700)


def test_contents_that_are_large_come_in_pieces(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(3 * lib.WIRE_PIECE_BYTES + 5)
    made = Program()
    name = made.payload(data)
    again = made.payload(bytes(lib.WIRE_PIECE_BYTES * 2))
    with Trace(write(tmp_path / "a.trace", made)) as trace:
        assert trace.content(name) == data
        assert trace.content(again) == bytes(lib.WIRE_PIECE_BYTES * 2)
        stored = dict(trace.query("SELECT content, stored_bytes FROM payloads").rows)
        assert stored[name.hex()] == len(data) and stored[again.hex()] < 4096


@pytest.mark.parametrize(("damage", "message"), [
    ("DELETE FROM payload WHERE start = 0", "are missing"), ("DELETE FROM payload WHERE start > 0", "of 300000 bytes"),
    ("DELETE FROM payload", "not in the trace"), ("UPDATE payload SET coding = 9", "coding 9"),
    ("UPDATE payload SET coding = 1", "contents"), ("UPDATE payload SET data = zeroblob(length(data))", "other bytes"),
    ("UPDATE payload SET start = start + 1", "are missing"),
])
def test_contents_that_are_not_whole(tmp_path: Path, damage: str, message: str) -> None:
    data = random.Random(1).randbytes(300_000)
    made = Program()
    name = made.payload(data)
    path = write(tmp_path / "a.trace", made)
    with sqlite3.connect(path) as database:
        database.execute(damage)
    with Trace(path) as trace, pytest.raises(ContentError, match=message):
        trace.content(name)
