"""Programs that know nothing of this project, as they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.device import made
from tests.device.machine import Machine, outputs

WORDS = 3
REFUSAL = "cudaErrorSymbolNotFound"
"""What the run-time library says of a driver that is not NVIDIA's: it makes sure of that by private tables."""


def test_tinygrad_generates_words(machine: Machine, tmp_path: Path) -> None:
    pytest.importorskip("tinygrad", reason="tinygrad not found: pip install tinygrad")
    command = [sys.executable, "-m", "tinygrad.llm", "-m", made.model(tmp_path), "--benchmark", str(WORDS)]
    (text,) = outputs(machine.command(command, DEV="CUDA:PTX", XDG_CACHE_HOME=str(tmp_path)))
    print(text)
    assert 'using model "tiny"' in text
    assert len(re.findall(r"tok/s", text)) == WORDS


def test_a_program_with_the_run_time_library(machine: Machine, tmp_path: Path) -> None:
    program = machine.command([made.cudart_program(tmp_path)])
    text, errors = program.end()
    print(text)
    if machine.real:
        assert (text, program.process.returncode) == ("right\n", 0), errors
    else:
        assert (text, program.process.returncode) == (f"{REFUSAL}\n", 1), errors
