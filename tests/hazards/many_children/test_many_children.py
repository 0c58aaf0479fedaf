"""P31: the library is in every child; each opens a connection, and the second one hangs.

Who calls no driver function opens none, whichever way it was started."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.hazards.kit import run


def test_children_that_use_no_gpu_are_not_seen() -> None:
    done = run([sys.executable, Path(__file__).with_name("program.py"), "200"])
    assert (done.status, done.errors, done.log, done.clients) == (0, "", "", [])
