"""P13: one function that is missing, or a null pointer that the driver would have answered with an error, ends the
program.

Every function, called with zeros for all arguments, answers what the driver answers, on any driver."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tessera.driver_api import functions
from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tools import driver

PROGRAM = Path(__file__).with_name("program.py")
ENDS = {"cuDeviceGetName"}
"""Without an argument checked, some driver ends the program by itself."""


@pytest.mark.parametrize("version", [10000, 11000, 12000, 13000, None])
def test_answers_are_the_drivers(version: int | None) -> None:
    library = null_driver.build(version=version) if version else driver.LIBRARY
    command = [sys.executable, PROGRAM, json.dumps([f.symbol for f in functions() if f.symbol not in ENDS])]
    bare = run(command, library=library, preload=(), seconds=60)
    done = run(command, library=library, seconds=60)
    assert (bare.status, done.status) == (0, 0), (bare.errors, done.errors)
    assert json.loads(done.output) == json.loads(bare.output)


def test_functions_that_an_older_driver_lacks(build: Build) -> None:
    """Programs that are linked with them start, and are told; those that look for them find nothing."""
    done = run([build("newer.c")], library=null_driver.build(version=12000))
    assert (done.status, done.output) == (0, "801 801 0\n"), done.errors
    assert done.log.count("does not have") == 1
