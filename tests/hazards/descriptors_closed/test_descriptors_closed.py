"""Kin of P28: a program closes all descriptors, as those do that go to the background, and with them the
interposer's; or what the interposer opens gets the number of a standard stream, and the program writes there.

Nothing of the library stays open after its first call, and what it opens for that moment is no standard stream."""

from __future__ import annotations

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Answer


@pytest.mark.parametrize("which", ["standard", "all"])
def test_launches_are_recorded_when_all_is_closed(build: Build, which: str) -> None:
    done = run([build("program.c"), which])
    assert (done.status, done.errors) == (0, "")
    assert done.launches() == 1000


def test_nothing_is_written_into_what_is_opened(build: Build) -> None:
    done = run([build("writer.c", "-pthread")], answer=Answer.LATE)
    assert (done.status, done.launches()) == (0, 1)
