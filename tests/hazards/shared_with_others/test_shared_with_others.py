"""P57: memory that another process has in use is taken for the program's alone.

What is given to others is recorded as such when it is, and what comes from others as imported; both processes see the
same bytes."""

from __future__ import annotations

from shim.layout import lib
from tessera.environment import MACHINE
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_what_is_shared_is_recorded_as_such(build: Build) -> None:
    program = build("program.c")
    given = {MACHINE.name: f"hazard-{program.parent.name}"}
    bare = run([program], library=driver.LIBRARY, preload=(), given=given)
    assert (bare.status, bare.output) == (0, "7 8\n"), bare.errors
    done = run([program], library=driver.LIBRARY, given=given)
    assert (done.status, done.output, done.errors) == (0, "7 8\n", bare.errors)
    giver, taker = done.clients
    exports = [Kind(record.body.kind) for record in giver.kinds(Kind.EXPORT)]
    assert exports == [Kind.MEMORY, Kind.EVENT, Kind.PHYSICAL]
    assert [record.body.imported for record in taker.kinds(Kind.EVENT)] == [1]
    assert [record.body.imported for record in taker.kinds(Kind.PHYSICAL)] == [1]
    kinds = [record.body.kind for record in taker.kinds(Kind.MEMORY)]
    assert kinds == [lib.WIRE_IMPORTED, lib.WIRE_MAPPED]
