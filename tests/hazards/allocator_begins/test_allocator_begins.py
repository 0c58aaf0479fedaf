"""P21: an allocator looks functions up while it begins; an interposer of ``dlsym`` that allocates comes back to it,
and it waits for itself.

The library asks the program's allocator for nothing, neither then nor in later calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import LIBRARY, run

JEMALLOC = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")


def test_nothing_is_allocated(build: Build) -> None:
    program = build("allocator.c")
    bare, done = run([program], preload=()), run([program])
    assert (done.status, done.errors, done.output) == (0, "", bare.output)
    assert bare.output.startswith("hello") and bare.output.endswith(" 0\n")
    assert done.launches() == 1001


@pytest.mark.skipif(not JEMALLOC.exists(), reason="jemalloc is not installed")
@pytest.mark.parametrize("preload", [(LIBRARY, JEMALLOC), (JEMALLOC, LIBRARY)])
def test_jemalloc_begins(build: Build, preload: tuple[Path, Path]) -> None:
    done = run([build("program.c")], preload=preload)
    assert (done.status, done.output, done.errors) == (0, "hello\n", "")
