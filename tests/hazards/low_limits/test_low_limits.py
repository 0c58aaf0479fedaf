"""Kin of P25: a limit of the system that is enough for the program is not enough for the interposer.

It does without, and says so; only where not even the driver can be opened is there none, as without the library. Past
the limit on files' sizes the system would end the program."""

from __future__ import annotations

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run


@pytest.mark.parametrize(("limit", "value", "recorded"), [
    ("files", 3, False), ("files", 4, False), ("files", 5, True), ("size", 0, False), ("size", 4096, False),
    ("size", 1 << 30, True), ("memory", 32 << 20, False), ("memory", 100 << 20, False), ("memory", 1 << 30, True),
    ("locked", 0, True),
])
def test_programs_run_within_their_limits(build: Build, limit: str, value: int, recorded: bool) -> None:
    done = run([build("program.c"), limit, str(value)])
    opened = (limit, value) != ("files", 3)  # no file can be opened any more
    assert (done.status, done.errors) == ((0, "") if opened else (1, done.errors))
    assert done.launches() == recorded
    assert recorded or "nobody takes records" in done.log or not opened or value == 0
