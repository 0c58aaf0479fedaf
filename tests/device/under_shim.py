"""Programs that know nothing of this project, with the preload library under them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.traces.reader import Trace
from tests.device import made
from tests.device.machine import Machine, Program, outputs, python, say
from tests.device.programs_of_others import REFUSAL
from tests.device.recorded import check_complete, recorded, replayed

WORDS = 4


def ended(program: Program) -> tuple[str, int]:
    """Its output, and its exit status."""
    text, errors = program.end()
    print(errors, file=sys.stderr)
    return text, program.process.returncode


def test_a_program_with_the_run_time_library_goes_on_as_before(machine: Machine, tmp_path: Path) -> None:
    """The library in it makes sure by private tables that the driver is NVIDIA's: what they say is not touched."""
    cudart, report = made.cudart_program(tmp_path), tmp_path / "report.json"
    alone = ended(machine.command([cudart]))
    under = ended(machine.command(python("witness", machine.driver, report, cudart)))
    seen: dict[str, Any] = json.loads(report.read_text())
    say("doors of a program of nvcc", seen.pop("doors"))
    say("a program of nvcc under the preload library", seen)
    assert under == alone == (("right\n", 0) if machine.real else (f"{REFUSAL}\n", 1))
    assert seen["clients"] == 1 and not seen["troubles"]
    if machine.real:
        assert sum(seen["records_by_function"]["launch"].values()) == 1, "the launch was not seen"


def test_tinygrad_is_recorded_and_replayed(machine: Machine, tmp_path: Path) -> None:
    pytest.importorskip("tinygrad", reason="tinygrad not found: pip install tinygrad")
    command = [sys.executable, "-m", "tinygrad.llm", "-m", str(made.model(tmp_path)), "--benchmark", str(WORDS)]
    variables = {"DEV": "CUDA:PTX", "XDG_CACHE_HOME": str(tmp_path)}
    (alone,) = outputs(machine.command(command, **variables))
    file = tmp_path / "tinygrad.trace"
    under = recorded(machine, file, command, **variables)
    assert len(words(alone)) == WORDS and words(under) == words(alone)
    with Trace(file) as trace:
        counts = check_complete(trace)
    say("tinygrad, recorded and replayed", {"recorded": counts, "replay": replayed(machine, file)})


def words(text: str) -> list[str]:
    """What the benchmark has generated, after each of its steps."""
    return re.findall(r"tok/s.* --  (.*)", text)
