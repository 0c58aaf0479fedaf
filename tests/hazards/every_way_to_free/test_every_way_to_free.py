"""P37, P38: memory of pools is unknown to the interposer, which answers its free with an error of its own; or the other
free of two is forgotten, and the account never comes back to zero.

Every free is answered by the driver, and what is recorded as made is recorded as gone, once."""

from __future__ import annotations

from shim.layout import lib
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver

KINDS = {lib.WIRE_ALLOCATED, lib.WIRE_PITCHED, lib.WIRE_MANAGED, lib.WIRE_POOLED, lib.WIRE_HOST, lib.WIRE_REGISTERED}


def test_the_account_comes_back_to_zero(build: Build) -> None:
    program = build("program.c")
    bare = run([program], library=driver.LIBRARY, preload=())
    done = run([program], library=driver.LIBRARY)
    assert (done.status, done.errors, done.output) == (0, bare.errors, bare.output) and bare.output
    failed = {record.body.of for record in done.clients[0].kinds(Kind.OUTCOME) if record.body.result}
    living: dict[int, int] = {}
    seen = set()
    for record in done.clients[0].kinds(Kind.MEMORY, Kind.END):
        if record.kind is Kind.MEMORY:
            assert record.body.address not in living
            living[record.body.address] = record.body.kind
            seen.add(record.body.kind)
        elif record.body.kind == Kind.MEMORY and record.sequence not in failed:
            del living[record.body.handle]
        elif record.body.kind == Kind.MEMORY:
            living.pop(record.body.handle, None)  # said again behind the call that failed, if it was there
    assert (living, seen) == ({}, KINDS)
