"""tinygrad's LLM server with SmolLM2-135M answers a question: alone, under ``tessera run`` and ``tessera record``, in
turn; then the trace is replayed. How much longer it takes, how large the trace is, whether the replay agrees."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import Row, report

from tests.nodriver.clients import llm, place
from tools import driver

DEVICE = "CUDA:PTX"
TESSERA = str(Path(sys.executable).with_name("tessera"))
ALONE, RUN, RECORD = "alone", "under tessera run", "under tessera record"
TURNS = 5


def turn(under: list[str]) -> tuple[float, float, dict[str, Any]]:
    """Seconds from the start to the first answer, seconds of the second one, and that answer."""
    started = time.monotonic()
    with llm.serving(DEVICE, under) as (server, port):
        llm.asked(server, port, started + llm.SECONDS)
        first = time.monotonic()
        reply = llm.asked(server, port, first + llm.SECONDS)
        return first - started, time.monotonic() - first, reply


def replayed(trace: Path) -> tuple[float, dict[str, Any]]:
    """Seconds of ``tessera replay --verify``, and what it says."""
    command = [TESSERA, "replay", "--verify", "--json", str(trace)]
    started = time.monotonic()
    done = subprocess.run(command, env=place.environment(), capture_output=True, text=True, timeout=llm.SECONDS,
                          check=False)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return time.monotonic() - started, found


def measure(turns: int, folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """The rows, and the last replay's report."""
    trace = folder / "server.trace"
    options = ["--driver", str(driver.LIBRARY)]
    ways = {ALONE: [], RUN: [TESSERA, "run", *options, "--"],
            RECORD: [TESSERA, "record", *options, "-o", str(trace), "--"]}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    replays: list[float] = []
    report: dict[str, Any] = {}
    turn([])  # everything is compiled once
    for number in range(turns):
        for name, under in ways.items():
            trace.unlink(missing_ok=True)
            start, answer, reply = turn(under)
            assert reply["choices"][0]["message"]["content"], "no answer"
            found[name].append((start, answer))
            print(f"{number + 1}/{turns} {name}: {start:.2f} s, {answer:.2f} s", file=sys.stderr)
        seconds, report = replayed(trace)
        replays.append(seconds)
    rows = []
    for column, what in enumerate(("from the start to the first answer", "the second answer")):
        alone = [pair[column] for pair in found[ALONE]]
        rows.append(Row(f"{what}, {ALONE}", statistics.median(alone), "s"))
        for name in (RUN, RECORD):
            ratios = [pair[column] / base for pair, base in zip(found[name], alone, strict=True)]
            rows.append(Row(f"{what}, {name}, times that", statistics.median(ratios), "×"))
    rows.append(Row("the trace", trace.stat().st_size / 1e6, "MB"))
    rows.append(Row("its replay with --verify", statistics.median(replays), "s"))
    return rows, report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, said = measure(options.turns, Path(folder))
    counts = {name: value for name, value in said.items() if isinstance(value, int)}
    return report("record", rows, options.json, f"Medians of {options.turns} turns. The last replay: {counts}")


if __name__ == "__main__":
    sys.exit(main())
