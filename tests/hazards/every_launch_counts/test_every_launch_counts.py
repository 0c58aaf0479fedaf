"""P8, P10: since 12.4 launches go to per-thread twins, and those of libraries to ``cuLaunchKernelEx``: they are
missing in what is recorded.

Each launch is recorded once, by whichever function and however it was found."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind

COUNT = 10


def test_each_launch_is_recorded_once(build: Build) -> None:
    done = run([build("program.c")])
    assert (done.status, done.errors) == (0, "")
    (client,) = done.clients
    assert client.counts(Kind.LAUNCH) == {
        "cuLaunchKernel": 2 * COUNT, "cuLaunchKernel_ptsz": 2 * COUNT, "cuLaunchCooperativeKernel": COUNT,
        "cuLaunchCooperativeKernel_ptsz": COUNT, "cuLaunchKernelEx": 2 * COUNT, "cuLaunchKernelEx_ptsz": 2 * COUNT,
    }
    assert client.gaps == 0
