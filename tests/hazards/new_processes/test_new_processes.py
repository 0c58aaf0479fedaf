"""Kin of P28, P31: a program that has used the driver becomes another one, or goes to the background.

What comes is a client of its own, if the library is there, and what has ended is read to its end."""

from __future__ import annotations

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind


@pytest.mark.parametrize(("how", "clients"), [("exec", 2), ("without", 1), ("daemon", 2)])
def test_each_that_launches_is_recorded(build: Build, how: str, clients: int) -> None:
    done = run([build("program.c"), how])
    assert (done.status, done.errors) == (0, "")
    assert [client.counts(Kind.LAUNCH) for client in done.clients] == clients * [{"cuLaunchKernel": 1}]
