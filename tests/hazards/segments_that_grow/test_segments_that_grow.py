"""P44: memory that is mapped piece by piece goes past the functions that an interposer watches.

Each piece is recorded with its address, physical memory and access, and its end."""

from __future__ import annotations

from shim.layout import lib
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_each_piece_is_recorded(build: Build) -> None:
    done = run([build("program.c")], library=driver.LIBRARY)
    assert (done.status, done.errors) == (0, "")
    value, step, base = done.output.split()
    size, begin = int(step), int(base, 16)
    assert value == "42"
    (client,) = done.clients
    places = [begin + i * size for i in range(4)]
    mapped = [r.body for r in client.kinds(Kind.MEMORY) if r.body.kind == lib.WIRE_MAPPED]
    assert [(m.address, m.bytes) for m in mapped] == [(place, size) for place in places]
    assert [m.owner for m in mapped] == [r.body.handle for r in client.kinds(Kind.PHYSICAL)]
    assert [(r.body.address, r.body.bytes) for r in client.kinds(Kind.ACCESS)] == [(place, size) for place in places]
    assert [(r.body.address, r.body.bytes) for r in client.kinds(Kind.RESERVATION)] == [(begin, 16 * size)]
    ends = [(Kind(r.body.kind), r.body.handle) for r in client.kinds(Kind.END)]
    assert {handle for kind, handle in ends if kind is Kind.RESERVATION} == {begin}
    assert sum(kind is Kind.PHYSICAL for kind, _ in ends) == 4
    unmapped = [(r.body.handle, r.body.bytes) for r in client.kinds(Kind.END) if r.body.kind == Kind.MEMORY]
    assert unmapped == [(begin + size, 2 * size), (begin, size), (begin + 3 * size, size)]
