"""Kin of P32: a program is started without ``LD_PRELOAD``, with the library's folder first on the path: it is opened
in the middle of the program, and closed again.

It works in the same way, and stays where it is."""

from __future__ import annotations

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import LIBRARY, run


@pytest.mark.parametrize("named", [True, False])
def test_it_takes_the_drivers_place(build: Build, named: bool) -> None:
    driver = null_driver.build()
    given = {"LD_LIBRARY_PATH": f"{LIBRARY.parent}:{driver.parent}", "TESSERA_DRIVER": str(driver) if named else None}
    done = run([build("program.c", "-DOPENED")], preload=(), given=given)
    assert (done.status, done.output, done.errors) == (0, "done\n", "")
    assert done.launches() == 2
