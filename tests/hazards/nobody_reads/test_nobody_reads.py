"""P36: the one who reads dies, and programs block in their next launch.

When the ring is full a program goes on after a few milliseconds without being recorded; what is missing is counted."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Answer

LAUNCHES = 30_000


def test_a_full_ring_stops_no_program(build: Build) -> None:
    done = run([build("program.c"), str(LAUNCHES)], answer=Answer.NOT_READ, seconds=10)
    assert (done.status, done.output, done.errors) == (0, "done\n", "")
    (client,) = done.clients
    recorded = done.launches()
    assert client.lost > 0 and recorded + client.lost == LAUNCHES
    assert client.gaps == 0
