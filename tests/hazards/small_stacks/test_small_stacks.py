"""Kin of P25: a thread with a small stack crashes, as the interposer needs more of it than the driver does.

32 KiB are enough for the first call, which opens the driver and greets, for launches and for copies."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run


def test_a_small_stack_is_enough(build: Build) -> None:
    done = run([build("program.c", "-pthread")])
    assert (done.status, done.output, done.errors) == (0, "done\n", "")
    assert done.launches() == 1
