"""Kin of P35: a signal ends a wait before its time, and the one who waits gives up, or takes half an answer.

Threads that begin under a shower of signals, with a listener that takes its time, are all recorded; handlers and
errno stay the program's."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Answer


def test_every_launch_is_recorded_all_the_same(build: Build) -> None:
    done = run([build("program.c", "-pthread")], answer=Answer.LATE)
    assert (done.status, done.output, done.errors) == (0, "1\n", "")
    assert done.launches() == 5 * 5000
