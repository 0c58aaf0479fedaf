"""P52: a call that the interposer makes on its own while a stream is captured spoils the capture.

In every mode every call answers what it answers without the library, and the graph has the same nodes, also with
kernels and streams that are met for the first time."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_captures_stay_good(build: Build) -> None:
    program = build("program.c")
    bare = run([program], library=driver.LIBRARY, preload=())
    done = run([program], library=driver.LIBRARY)
    assert (done.status, done.errors, done.output) == (0, bare.errors, bare.output)
    assert bare.output.count("cuStreamEndCapture(stream, &graph) 0\n") == 3
    (client,) = done.clients
    assert len(client.kinds(Kind.CAPTURE_BEGIN)) == len(client.kinds(Kind.CAPTURE_END)) == 3
    assert len(client.kinds(Kind.LAUNCH)) == 6
