"""P26: one thread opens a library and waits for the driver, another is in the driver and waits for the loader.

After the first call the library asks the loader for nothing any more."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import LIBRARY, run


def test_the_loader_is_left_alone(build: Build) -> None:
    counter = build("counter.c", "-DOPENED", as_="libcounter.so")
    done = run([build("program.c", "-pthread", str(counter))], preload=(counter, LIBRARY))
    assert (done.status, done.output, done.errors) == (0, "0\n", "")
    assert done.launches() == 5000
