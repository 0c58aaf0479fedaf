"""Traces of unmodified programs, kept in ``tests/fixtures/traces``: read without any driver, and done again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.traces.reader import Trace
from softgpu import environment
from tests.material import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "traces"
MOST_BYTES = 200 * 1024
SECONDS = 120

COUNTS = {
    "tinygrad_steps": {"kernels": 5, "launches": 5, "graphs": 1, "graph_launches": 5, "copies": 14, "steps": 6},
    "numba_streams": {"kernels": 1, "launches": 6, "graphs": 0, "events": 1, "event_uses": 6, "copies": 2, "steps": 3},
    "two_devices": {"devices": 2, "contexts": 2, "kernels": 2, "launches": 4, "memsets": 5, "copies": 8, "steps": 4},
}
"""What the programs do, by views of the trace; it can be read off their sources."""


def kept(stem: str) -> Path:
    return FOLDER / f"{stem}.trace"


def test_all_are_here_and_small() -> None:
    assert {path.stem for path in FOLDER.glob("*.trace")} == set(COUNTS)
    assert {path.stem for path in (FOLDER / "programs").glob("*.py")} == set(COUNTS)
    assert all(kept(stem).stat().st_size <= MOST_BYTES for stem in COUNTS)


@pytest.mark.parametrize("stem", COUNTS)
def test_what_is_in_it(stem: str) -> None:
    with Trace(kept(stem)) as trace:
        assert trace.complete
        counts = {view: trace.query(f"SELECT count(*) FROM {view}").rows[0][0] for view in COUNTS[stem]}
        assert counts == COUNTS[stem]
        assert trace.query("SELECT count(*) FROM launches WHERE kernel IS NULL OR parameters IS NULL").rows == [(0,)]
        contents = trace.query("SELECT content FROM modules").rows
        assert contents and all(trace.has_content(bytes.fromhex(content)) for (content,) in contents)


def test_steps_are_found() -> None:
    with Trace(kept("tinygrad_steps")) as trace:
        assert trace.query("SELECT times, launches FROM step_classes ORDER BY times").rows == [(1, 5), (5, 1)]
    with Trace(kept("numba_streams")) as trace:
        assert trace.query("SELECT times, launches FROM step_classes").rows == [(3, 2)]


@pytest.mark.parametrize("device", [[], ["--device", "0"]], ids=["as recorded", "on one GPU"])
@pytest.mark.parametrize("stem", COUNTS)
def test_it_is_done_again(stem: str, device: list[str]) -> None:
    """On other cards than those that it was recorded on."""
    done = replayed("H100-SXM,L4", *device, str(kept(stem)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differ, 0 differ and cannot be expected to agree" in done.stdout


def test_code_that_is_for_other_gpus_is_no_success() -> None:
    """The program's PTX is for capability 8.0."""
    done = replayed("H100-SXM,T4", str(kept("two_devices")))
    assert done.returncode == 1
    assert "NO_BINARY_FOR_GPU" in done.stdout


def replayed(devices: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tessera", "replay", "--verify", *words]
    return subprocess.run(command, env=environment(devices), capture_output=True, text=True, timeout=SECONDS,
                          check=False)
