"""Kin of P19: the interposer takes itself for the driver, and calls itself for ever.

It knows itself also where the path by which it was loaded leads nowhere any more."""

from __future__ import annotations

import os

from tests.hazards.conftest import Build
from tests.hazards.kit import LIBRARY, run


def test_it_is_not_its_own_driver(build: Build) -> None:
    program = build("program.c")
    given = {"TESSERA_DRIVER": None, "LD_LIBRARY_PATH": str(LIBRARY.parent)}
    done = run([program], preload=(os.path.relpath(LIBRARY),), given=given, seconds=5)
    assert done.status == 1 and "error 100" in done.errors
    found = run([program], preload=(os.path.relpath(LIBRARY),), seconds=5)
    assert (found.status, found.output, found.launches()) == (0, "0\n", 1)
