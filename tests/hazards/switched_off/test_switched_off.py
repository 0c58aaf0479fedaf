"""P58: the switch that turns an interposer off is looked at too late, or leaves half of it on.

With ``TESSERA_DISABLE`` programs get the driver's own functions and nobody is told of them; what it says at the first
call holds for the process."""

from __future__ import annotations

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run


@pytest.mark.parametrize(("value", "off"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_what_is_left_when_it_is_off(build: Build, value: str, off: bool) -> None:
    given = {"TESSERA_DISABLE": value, "DRIVER": str(null_driver.build())}
    done = run([build("program.c")], given=given)
    assert (done.status, done.errors, done.log) == (0, "", "")
    assert done.output == ("driver driver 0\n" if off else "library library 0\n")
    assert len(done.clients) == (0 if off else 1)
