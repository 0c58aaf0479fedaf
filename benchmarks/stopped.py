"""tinygrad's LLM decodes under ``tessera record``; in the middle relay and recorder are stopped for two seconds.
Whether launches go on, by the times in the trace, and whether the words are those of an undisturbed run."""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from _common import Row, report

from orchestrator.traces.reader import Trace
from tests.nodriver.clients import llm, place
from tools import driver

TURNS, TOKENS, BEFORE = 5, 60, 25
"""Runs, tokens of each, and how many have been decoded when everything is stopped."""
STOPPED_SECONDS = 2.0
LIMIT_MS = 10.0
TESSERA = str(Path(sys.executable).with_name("tessera"))
LAUNCHES = """SELECT at_ns FROM operations WHERE kind IN ('launch', 'graph_launch') ORDER BY sequence"""


def command(under: list[str]) -> list[str]:
    return [*under, sys.executable, "-m", "tinygrad.llm", "-m", str(place.model()), "--benchmark", str(TOKENS)]


def words(line: str) -> str:
    """What the model has said so far, without times."""
    return line.partition("--")[2]


def decoded(under: list[str], stop: bool) -> tuple[list[str], tuple[int, int]]:
    """The lines of a run, and when the others were stopped and went on, in nanoseconds of CLOCK_REALTIME."""
    lines, window = [], (0, 0)
    variables = place.environment(**llm.environment("CUDA:PTX"), PYTHONUNBUFFERED="1")
    with subprocess.Popen(command(under), env=variables, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
        assert process.stdout
        for line in process.stdout:
            if "tok/s" not in line:
                continue
            lines.append(words(line))
            if stop and len(lines) == BEFORE:
                window = stopped(process.pid)
    assert process.returncode == 0 and len(lines) == TOKENS, f"{len(lines)} tokens, status {process.returncode}"
    return lines, window


def stopped(recorder: int) -> tuple[int, int]:
    """Stop the recorder and its relays, but not the program, for two seconds."""
    relays = [child for child in children(recorder) if b"shim.relay" in Path(f"/proc/{child}/cmdline").read_bytes()]
    assert relays, "no relay"
    for process in (recorder, *relays):
        os.kill(process, signal.SIGSTOP)
    begin = time.time_ns()
    time.sleep(STOPPED_SECONDS)
    end = time.time_ns()
    for process in (*relays, recorder):
        os.kill(process, signal.SIGCONT)
    return begin, end


def children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        if re.search(rf"^PPid:\t{parent}$", text, re.MULTILINE):
            found.append(int(status.parent.name))
    return found


def gaps(trace: Path, window: tuple[int, int]) -> tuple[list[float], list[float], int]:
    """Milliseconds from launch to launch: meanwhile; and in as long a time right before; and records that were lost."""
    with Trace(trace) as opened:
        moments = [at for (at,) in opened.query(LAUNCHES).rows]
        (lost,) = opened.query("SELECT total(lost) FROM clients").rows[0]
    length = window[1] - window[0]
    parts = []
    for begin, end in (window, (window[0] - length, window[0])):
        inside = [at for at in moments if begin <= at < end]
        parts.append([(b - a) / 1e6 for a, b in pairwise(inside)])
    return parts[0], parts[1], int(lost)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    expected, _ = decoded([TESSERA, "run", "--driver", str(driver.LIBRARY), "--"], False)
    later, most, counts = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.turns):
            trace = Path(folder, f"{turn}.trace")
            found, window = decoded([TESSERA, "record", "--driver", str(driver.LIBRARY), "-o", str(trace), "--"], True)
            assert found == expected, "other words"
            meanwhile, before, lost = gaps(trace, window)
            assert not lost, f"{lost} records lost"
            counts.append(len(meanwhile) / max(1, len(before)))
            most.append(max(meanwhile))
            later.append(max(meanwhile) - max(before))
            trace.unlink()
    rows = [
        Row("launches while readers stand still, of those in as long a time before", statistics.median(counts), "×"),
        Row("longest time from launch to launch meanwhile", statistics.median(most), "ms"),
        Row("the same, less that of the time before", statistics.median(later), "ms", LIMIT_MS),
    ]
    return report("stopped", rows, options.json, f"Medians of {options.turns} runs; the words were the same in all.")


if __name__ == "__main__":
    sys.exit(main())
