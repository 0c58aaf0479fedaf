"""P32: every child ends with status 127, as the library needs something that is only on the path of its parent.

Programs start with an empty environment too."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import LIBRARY, run


def test_programs_start_without_any_variable(build: Build) -> None:
    done = run([build("program.c"), "/bin/true", LIBRARY], given={"LD_BIND_NOW": "1"})
    assert (done.status, done.output, done.errors) == (0, "0 0 0\n", "")
    assert done.launches() == 1


def test_without_variables_of_ours_all_passes(build: Build) -> None:
    """To the driver that the loader would take."""
    given = dict.fromkeys(("TESSERA_DRIVER", "TESSERA_SOCKET", "TESSERA_LOG"))
    done = run([build("program.c"), "/bin/true", LIBRARY], given=given)
    assert (done.status, done.output, done.clients) == (0, "0 0 0\n", [])
