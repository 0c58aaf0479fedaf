"""P28, P29: a child that was forked off uses its parent's connection, and hangs; or it is told that it is initialised.

It gets the answers that the driver gives it, and is a client of its own."""

from __future__ import annotations

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tools import driver


@pytest.mark.parametrize("name", ["null", "soft"])
def test_a_child_is_a_client_of_its_own(build: Build, name: str) -> None:
    program, library = build("program.c"), driver.LIBRARY if name == "soft" else null_driver.build()
    bare = run([program], library=library, preload=())
    done = run([program], library=library, seconds=5)
    assert (done.status, done.output, done.errors) == (0, bare.output, bare.errors)
    assert ("child 3 3 3 3" in done.output) is (name == "soft"), "CUDA_ERROR_NOT_INITIALIZED"
    first, second = done.clients
    assert first.process != second.process
    assert [client.records[0].sequence for client in done.clients] == [1, 1]
    assert all(record.thread == client.process for client in done.clients for record in client.records)
