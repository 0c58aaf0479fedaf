"""P6, P25: with the library preloaded programs crash that want nothing from it, where there is no driver, or an old
one, or nobody who listens.

They do what they do without it; a program that asks for GPUs hears that there are none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run

PROGRAMS: list[list[str]] = [["/bin/true"], ["bash", "-c", "echo $((1 + 1)); ls / | head -1"], ["gcc", "--version"],
                             [sys.executable, "-c", "import ssl, ctypes, threading; print('done')"]]
NO_DRIVER = {"TESSERA_DRIVER": "/nonexistent/libcuda.so.1"}


@pytest.mark.parametrize("now", ["", "1"])
@pytest.mark.parametrize("command", PROGRAMS, ids=lambda command: Path(command[0]).name)
def test_programs_that_use_no_gpu(command: list[str], now: str) -> None:
    bare = run(command, preload=())
    for given in ({}, NO_DRIVER):
        for library in (null_driver.build(), null_driver.build(version=11080)):
            done = run(command, library=library, given={**given, "LD_BIND_NOW": now})
            assert (done.status, done.output, done.errors) == (0, bare.output, bare.errors)
            assert (done.clients, done.log) == ([], "")


@pytest.mark.parametrize("driver", ["/nonexistent/libcuda.so.1", "libcuda.so.1", "/bin/true", "/", "/dev/null"])
def test_a_program_that_asks_for_gpus(build: Build, driver: str) -> None:
    done = run([build("smi.c", "-DOPENED")], given={"TESSERA_DRIVER": driver})
    assert (done.status, done.output, done.errors) == (0, "100 CUDA_ERROR_NO_DEVICE\n", "")
    assert done.clients == [] and driver in done.log


def test_without_a_word_the_driver_is_looked_for(build: Build, tmp_path: Path) -> None:
    """In the folders that the loader would take it from; the library itself, found there first, is none."""
    program = build("smi.c", "-DOPENED")
    missing = run([program], given={"TESSERA_DRIVER": None, "LD_LIBRARY_PATH": str(tmp_path)})
    assert missing.output == "100 CUDA_ERROR_NO_DEVICE\n"
    found = run([program], given={"TESSERA_DRIVER": None})
    assert (found.output, len(found.clients)) == ("0 CUDA_SUCCESS\n", 1)
