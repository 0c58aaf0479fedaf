"""P1: a run-time library asks ``cuGetProcAddress_v2`` where the interposer only has the first form, and nothing is
seen.

Both forms, called before ``cuInit``, give functions whose calls are recorded."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind


def test_both_forms_give_what_is_recorded(build: Build) -> None:
    done = run([build("program.c")])
    assert (done.status, done.output, done.errors) == (0, "1 1\n", "")
    (client,) = done.clients
    assert client.counts(Kind.LAUNCH) == {"cuLaunchKernel": 2}
