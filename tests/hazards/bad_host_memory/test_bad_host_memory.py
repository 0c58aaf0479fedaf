"""Kin of P13: an interposer reads a program's memory that the driver would have refused to read, or not come to.

What is wrong is answered as without the library, or ends the program in the same way."""

from __future__ import annotations

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tools import driver

FORBIDDEN_BEHIND, NO_DESTINATION, NO_SOURCE, NO_IMAGE, NOTHING_AT_ALL, REGISTERED = 0, 3, 5, 7, 8, 9


@pytest.mark.parametrize("case", [FORBIDDEN_BEHIND, NO_DESTINATION, NO_SOURCE, NO_IMAGE, NOTHING_AT_ALL, REGISTERED])
def test_the_answer_is_the_drivers(build: Build, case: int) -> None:
    command = [build("program.c"), str(case)]
    bare = run(command, library=driver.LIBRARY, preload=())
    done = run(command, library=driver.LIBRARY)
    assert (done.status, done.output, done.errors) == (bare.status, bare.output, bare.errors)
