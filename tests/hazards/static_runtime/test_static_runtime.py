"""P15: a program has its run-time library linked in, so that no symbol of that can be interposed.

It opens the driver by name and asks for the rest: all of its launches are recorded. The program is linked with no CUDA
library."""

from __future__ import annotations

import subprocess

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind


def test_launches_of_a_linked_runtime_are_recorded(build: Build) -> None:
    program = build("program.c", "-DOPENED", "-Wl,--as-needed")
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    assert "libcuda" not in needed
    done = run([program])
    assert (done.status, done.errors) == (0, "")
    (client,) = done.clients
    assert client.counts(Kind.LAUNCH) == {"cuLaunchKernel_ptsz": 1, "cuLaunchKernelEx_ptsz": 1}
