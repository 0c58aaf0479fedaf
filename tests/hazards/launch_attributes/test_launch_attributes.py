"""P11: an extended launch is forwarded as a plain one: its attributes are gone, and success is returned.

The driver gets every attribute as it was given, also unknown ones, and so does the record."""

from __future__ import annotations

import struct
from pathlib import Path

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind

DRIVER = Path(__file__).with_name("driver.c")


def test_attributes_reach_the_driver_and_the_record(build: Build) -> None:
    program, library = build("program.c"), null_driver.build([DRIVER])
    bare = run([program], library=library, preload=())
    done = run([program], library=library)
    assert (done.status, done.output) == (0, bare.output) and done.output.startswith("4 4 77 4:")
    (record,) = done.clients[0].kinds(Kind.LAUNCH)
    wanted = [(4, struct.pack("<3I", 2, 1, 1)), (8, struct.pack("<i", -5)), (6, struct.pack("<i", 1)),
              (999, b"\x5a" * 60)]
    for (identity, value), begin in zip(wanted, range(-4 * 72, 0, 72), strict=True):
        attribute = record.tail[begin : begin + 72 or None]
        assert int.from_bytes(attribute[:4], "little") == identity and attribute[8:].tobytes().startswith(value)
