"""P33: a program crashes at its end, where run-time libraries call the driver after the interposer has gone.

The library is there to the very end, and answers are the driver's."""

from __future__ import annotations

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tools import driver


@pytest.mark.parametrize("name", ["null", "soft"])
def test_calls_at_the_very_end(build: Build, name: str) -> None:
    program, library = build("program.cc"), driver.LIBRARY if name == "soft" else null_driver.build()
    bare = run([program], library=library, preload=())
    done = run([program], library=library)
    assert bare.status == 0 and len(bare.output.splitlines()) == 4
    assert (done.status, done.output, done.errors) == (0, bare.output, bare.errors)
    assert len(done.clients) == 1
