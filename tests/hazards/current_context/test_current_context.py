"""P54: an interposer takes the current context for the one that things belong to, or leaves another one current than it
found.

After every call the current context is what it would be, and the answers are; streams and modules are recorded with the
context that is theirs."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_contexts_stay_as_they_are(build: Build) -> None:
    program = build("program.c", "-pthread")
    bare = run([program], library=driver.LIBRARY, preload=())
    done = run([program], library=driver.LIBRARY)
    assert (done.status, done.errors, done.output) == (0, bare.errors, bare.output)
    (client,) = done.clients
    devices = {record.body.handle: record.body.device for record in client.kinds(Kind.CONTEXT)}
    streams = client.kinds(Kind.STREAM)
    assert [devices[record.body.context] for record in streams] == [1, 1, 0, 0, 0, 0]
    assert [devices[r.body.context] for r in client.kinds(Kind.MODULE) if not r.body.library] == [1, 0, 0]
    owners = {record.body.handle: record.body.context for record in streams}
    assert all(record.place.context == owners[record.place.stream] for record in client.kinds(Kind.LAUNCH))
