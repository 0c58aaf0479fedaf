"""P19, P20: while the interposer begins, the driver calls functions that come back to it: a lock is taken twice, or
something that is done once is done inside itself.

A driver may call everything from its constructor, from a thread that its constructor waits for, and from ``cuInit``, in
fifty threads at once. What it calls itself is not the program's, and is not recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Answer, Kind

HERE = Path(__file__).resolve().parent
NOT_INITIALIZED = 3


def driver() -> Path:
    return null_driver.build([HERE / "driver.c", HERE.parent / "hazard.h"])


def test_calls_from_inside_the_driver(build: Build) -> None:
    done = run([build("program.c", "-pthread")], library=driver(), seconds=5)
    assert (done.status, done.output, done.errors) == (0, f"{NOT_INITIALIZED}\n", "")
    (client,) = done.clients
    assert client.counts(Kind.LAUNCH) == {"cuLaunchKernel": 50}
    assert not client.kinds(Kind.CALL, Kind.OTHER_WORK), "the driver's own"


def test_fifty_threads_of_an_ordinary_driver(build: Build) -> None:
    """Those that come while one of them opens the driver and greets wait for that."""
    done = run([build("program.c", "-pthread")], answer=Answer.LATE, seconds=5)
    assert (done.status, done.output, done.errors) == (0, "1\n", "")
    assert len(done.clients) == 1 and done.launches() == 50


@pytest.mark.long
def test_a_thread_that_the_constructor_waits_for(build: Build) -> None:
    """It is told after ten seconds that it is too early, and all goes on."""
    done = run([build("program.c", "-pthread"), "1"], library=driver(), given={"IN_A_THREAD": "1"}, seconds=15)
    assert (done.status, done.output, done.errors) == (0, f"{NOT_INITIALIZED}\n", "")
