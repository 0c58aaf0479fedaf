"""P14: libraries ask for private tables by their identity, and look up names that are in no header; a missing one makes
them fail or hang.

Tables come from the driver untouched, and so do functions that the list has not."""

from __future__ import annotations

from pathlib import Path

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run

DRIVER = Path(__file__).with_name("driver.c")


def test_tables_and_unlisted_functions(build: Build) -> None:
    program, library = build("program.c"), null_driver.build([DRIVER])
    bare = run([program], library=library, preload=())
    done = run([program], library=library)
    assert bare.output.split("\n")[:3] == ["what stands in it", "500 1", "12321"]
    assert (done.status, done.output, done.errors) == (0, bare.output, "")
