"""P41, P42: an interposer reads the number of a device where there is none, as the memory is the host's; and a second
process sees all memory as free.

Every place is the driver's to answer, and is recorded as it was given; what is free moves by what was allocated, in
each process."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_places_are_as_given(build: Build) -> None:
    program = build("program.c")
    bare = run([program], library=driver.LIBRARY, preload=())
    done = [run([program], library=driver.LIBRARY) for _ in range(2)]
    assert bare.status == 0 and bare.output.splitlines()[-1].startswith(f"{64 << 20} of ")
    for one in done:
        assert (one.status, one.errors, one.output) == (0, bare.errors, bare.output)
    made = [line for line in bare.output.splitlines()[:-1] if line.endswith(": 0 0")]
    records = done[0].clients[0].kinds(Kind.PHYSICAL)
    types = (1, 2, 3, 4, 0)
    assert [f"{types.index(r.body.location_type)} {r.body.location}: 0 0" for r in records] == made
    assert sum(r.body.kind == Kind.PHYSICAL for r in done[0].clients[0].kinds(Kind.END)) == len(made)
