"""``tessera record`` and ``tessera trace``: a program that runs is recorded, and done again on another GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import softgpu
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.parent import Request, replay
from orchestrator.traces.views import VIEWS
from tessera.cli import app
from tests.material import ROOT
from tests.nodriver.shim.test_trace_files import LAUNCHES, program
from tests.program_records import write

PROGRAM = [sys.executable, str(Path(__file__).with_name("recording_program.py"))]
SECONDS = 120.0


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = {**os.environ, "PYTHONPATH": str(ROOT)}
    return softgpu.environment("L4", cache=tmp_path_factory.mktemp("cache"), base=base)


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "tessera", *map(str, words)]


def recorder(path: Path, *words: str) -> list[str]:
    return command("record", "-o", path, "--fleet", "L4", "--", *PROGRAM, *words)


def ended(words: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def started(words: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """A recorder whose program has said that it goes on."""
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "went well\n"
    return process


def only_client(path: Path) -> dict[str, Any]:
    with Trace(path) as trace:
        (client,) = trace.rows("SELECT * FROM clients")
        return dict(client)


def written(path: Path) -> int:
    """The process of the program, as soon as what it did until it went on is in the file, while that is written."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with Trace(path) as trace:
            if trace.row("SELECT 1 FROM copies WHERE function LIKE 'cuMemcpyDtoH\\_v2' ESCAPE '\\'"):
                (client,) = trace.rows("SELECT process FROM clients")
                return int(client["process"])
        time.sleep(0.05)
    raise AssertionError("nothing is written")


def test_a_program_is_recorded_and_done_again(tmp_path: Path, environment: Mapping[str, str]) -> None:
    path = tmp_path / "run.trace"
    done = ended(recorder(path), environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "went well\n", "")
    with Trace(path) as trace:
        assert trace.complete
        counts = {name: trace.row(f"SELECT count(*) AS n FROM {name}") for name in ("launches", "graph_launches")}
        assert [row["n"] for row in counts.values() if row] == [6, 3]
        classes = trace.query("SELECT times, launches FROM step_classes").rows
        assert classes == [(4, 1), (1, 3)]
        times = [row["at_ns"] for row in trace.rows("SELECT at_ns FROM operations ORDER BY sequence")]
        assert times == sorted(times) and 0 < times[-1] - times[0] < SECONDS * 1e9
    other = softgpu.environment("L40S", base=environment)
    for fixed in (True, False):
        report = replay(Request(path, verify=True, fixed=fixed), other)
        assert (report.verified, report.mismatched, report.launches, report.graph_launches) == (5, 0, 10, 3)
        assert not report.skipped and not report.doubts
        assert report.rebased["guessed"] == 0


def test_a_program_that_is_killed_leaves_a_trace(tmp_path: Path, environment: Mapping[str, str]) -> None:
    path = tmp_path / "killed.trace"
    process = started(recorder(path, "endless"), environment)
    os.kill(written(path), signal.SIGKILL)
    assert process.wait(SECONDS) == 128 + signal.SIGKILL
    assert only_client(path)["trouble"] is None
    report = replay(Request(path, verify=True), environment)
    assert report.verified == 5 and report.mismatched == 0


def test_a_recorder_that_is_killed_leaves_a_trace(tmp_path: Path, environment: Mapping[str, str]) -> None:
    path = tmp_path / "killed.trace"
    process = started(recorder(path, "endless"), environment)
    number = written(path)
    process.kill()
    process.wait(SECONDS)
    os.kill(number, signal.SIGKILL)
    with Trace(path) as trace:
        assert not trace.complete
        assert trace.row("SELECT 1 FROM modules") is not None
    done = ended(command("trace", "info", path), environment)
    assert done.returncode == 0 and "not complete: it was not closed" in done.stdout
    assert replay(Request(path, verify=True), environment).mismatched == 0


def test_the_programs_own_exit_code_and_errors_before_it(tmp_path: Path, environment: Mapping[str, str]) -> None:
    path = tmp_path / "a.trace"
    words = command("record", "-o", path, "--fleet", "L4", "--", "sh", "-c", "exit 9")
    assert ended(words, environment).returncode == 9
    assert path.exists()
    there = ended(recorder(path), environment)
    assert there.returncode == 3 and "exists already" in there.stderr
    for wrong, code in ((("--fleet", "none", "--", "true"), 3), ((), 2)):
        other = tmp_path / "b.trace"
        assert ended(command("record", "-o", other, *wrong), environment).returncode == code
        assert not other.exists()


def tessera(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["tessera", "trace", *map(str, words)])
    with pytest.raises(SystemExit) as done:
        app.main()
    shown = capsys.readouterr()
    return int(done.value.code or 0), shown.out + shown.err


def valid(text: str, name: str) -> Any:
    found = json.loads(text)
    schema = json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(found)
    return found


def test_what_is_in_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                            capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.trace", program())

    def trace(*words: str | Path) -> tuple[int, str]:
        return tessera(monkeypatch, capsys, *words)

    code, text = trace("info", path)
    assert code == 0 and "complete" in text and f"{LAUNCHES} launches" in text
    found = valid(trace("info", path, "--json")[1], "trace-info")
    assert found["complete"] and found["counts"]["copies"] == LAUNCHES + 1
    for view in VIEWS:
        valid(trace("ls", path, view, "--json")[1], "trace-rows")
    code, text = trace("ls", path, "--where", "kernel=sax*", "--where", "sequence=10..14")
    assert code == 0 and text.count("saxpy") == 3
    found = valid(trace("ls", path, "launches", "--limit", "3", "--json")[1], "trace-rows")
    assert len(found["rows"]) == 3 and found["more"]
    assert "more rows than these 50" in trace("ls", path)[1]
    assert len(valid(trace("ls", path, "--limit", "0", "--json")[1], "trace-rows")["rows"]) == LAUNCHES
    query = "SELECT kernel, count(*) AS n FROM launches GROUP BY kernel"
    assert valid(trace("sql", path, query, "--json")[1], "trace-rows")["rows"] == [["saxpy", LAUNCHES]]
    assert trace("sql", path, query)[1].split() == ["kernel", "n", "saxpy", str(LAUNCHES)]
    for words, code, message in (
        (("ls", path, "nothing"), 2, "no view"), (("ls", path, "--where", "x=1"), 2, "COLUMN=VALUE"),
        (("sql", path, "DELETE FROM launch"), 3, "not authorized"), (("info", tmp_path / "none"), 3, "No such file"),
    ):
        found_code, text = trace(*words)
        assert found_code == code and message in text


def test_a_damaged_trace_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.trace", program())
    path.write_bytes(path.read_bytes()[:-8192])
    code, text = tessera(monkeypatch, capsys, "info", path)
    assert code == 3 and "cut short" in text and "--partial" in text
    code, text = tessera(monkeypatch, capsys, "info", path, "--partial", "--json")
    found = valid(text, "trace-info")
    assert code == 0 and not found["complete"] and found["missing"]
