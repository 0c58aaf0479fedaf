"""Kin of P34: a thread ends in the middle of a call, as it was cancelled, and holds a lock of the interposer.

In the library no thread can be cancelled: not when it greets, waits for a lock, or waits for room in the ring."""

from __future__ import annotations

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Answer


@pytest.mark.parametrize(("answer", "launches"), [(Answer.LATE, 4_000), (Answer.NOT_READ, 20_000)])
def test_threads_end_after_their_calls(build: Build, answer: Answer, launches: int) -> None:
    done = run([build("program.c", "-pthread"), str(launches)], answer=answer, seconds=30)
    assert (done.status, done.output, done.errors) == (0, "done\n", "")
    (client,) = done.clients
    assert done.launches() + client.lost == 2 * launches + 1
