"""P34: a program is killed while it holds something that others need, and all wait for ever.

Programs share nothing; of one that was killed there are whole records up to some moment, in order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind


@pytest.mark.parametrize("count", [8, pytest.param(500, marks=pytest.mark.long)])
def test_killed_programs_leave_whole_records(build: Build, count: int) -> None:
    words = [str(build("program.c", "-pthread")), str(build("steady.c")), str(count)]
    done = run([sys.executable, Path(__file__).with_name("program.py"), *words], seconds=120)
    assert (done.status, done.errors) == (0, "")
    assert len(done.clients) == count + 1, "the listener says so if what they wrote is no record"
    for client in done.clients:
        assert client.gaps == 0
    (steady,) = [client for client in done.clients if client.program.endswith("steady")]
    assert steady.counts(Kind.LAUNCH) == {"cuLaunchKernel": 500}
