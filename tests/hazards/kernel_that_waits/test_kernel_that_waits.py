"""P56: a kernel waits for a copy that comes later, and the interposer makes a call before that, or holds a lock, that
waits for the kernel.

Nothing that the library does waits for work: the copy gets there."""

from __future__ import annotations

from tessera.environment import STRICT
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_the_copy_gets_there(build: Build) -> None:
    program = build("program.c")
    given = {STRICT.name: "0"}  # else streams stand still until somebody waits for them
    assert run([program], library=driver.LIBRARY, preload=(), given=given).output == "600 done\n"
    done = run([program], library=driver.LIBRARY, given=given)
    assert (done.status, done.output, done.errors) == (0, "600 done\n", "")
    assert len(done.clients[0].kinds(Kind.LAUNCH)) == 2
