"""P28, P29: a child that was forked off uses its parent's connection, and hangs; or it is told that it is initialised.

It gets the answers that the driver gives it, and is a client of its own."""

from __future__ import annotations

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
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


def test_records_name_the_childs_own_threads(build: Build) -> None:
    done = run([build("threads.c", "-pthread")])
    assert (done.status, done.errors) == (0, "")
    child = done.clients[1]
    assert [record.thread for record in child.kinds(Kind.LAUNCH)] == [int(line) for line in done.output.split()]
