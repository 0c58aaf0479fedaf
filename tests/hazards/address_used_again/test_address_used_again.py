"""P47, P49: memory is freed on one stream while another still uses it, and its address comes back; and variables of
modules are inputs that no argument names.

Records stand in the order in which things happened: made, used, freed in its stream, made again. A variable that a
program asks for is memory of its module, and ends with it."""

from __future__ import annotations

from shim.layout import lib
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_order_tells_one_from_the_other(build: Build) -> None:
    program = build("program.c")
    done = run([program], library=driver.LIBRARY)
    assert (done.status, done.errors) == (0, "")
    value, same, address, counter, bytes_ = done.output.split()
    assert (value, same, bytes_) == ("42", "1", "4")
    (client,) = done.clients
    place = int(address, 16)
    story = []
    for record in client.records:
        if record.kind is Kind.MEMORY and record.body.address == place:
            story.append(("made", record.body.stream))
        elif record.kind is Kind.END and (record.body.kind, record.body.handle) == (Kind.MEMORY, place):
            story.append(("freed", record.body.stream))
        elif record.kind is Kind.LAUNCH:
            story.append(("used", record.place.stream))
    first, second = [record.body.handle for record in client.kinds(Kind.STREAM)][:2]
    assert story == [("made", second), ("used", first), ("freed", second), ("made", second)]
    (variable,) = [r.body for r in client.kinds(Kind.MEMORY) if r.body.kind == lib.WIRE_VARIABLE]
    (module,) = client.kinds(Kind.MODULE)
    assert (variable.address, variable.bytes, variable.owner) == (int(counter, 16), 4, module.body.handle)
    assert [r.body.handle for r in client.kinds(Kind.END) if r.body.kind == Kind.MODULE] == [module.body.handle]
