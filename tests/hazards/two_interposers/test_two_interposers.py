"""P58: two interposers in one process call each other for ever, or one of them sees nothing.

In either order both see every launch, and each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import LIBRARY, run


@pytest.mark.parametrize("first", ["ours", "other"])
@pytest.mark.parametrize("off", ["", "1"])
def test_both_see_every_launch(build: Build, first: str, off: str) -> None:
    dummy = build("dummy.c", "-DOPENED", as_="libdummy.so")
    preload: tuple[Path, ...] = (LIBRARY, dummy) if first == "ours" else (dummy, LIBRARY)
    done = run([build("program.c", str(dummy))], preload=preload, given={"TESSERA_DISABLE": off}, seconds=5)
    assert (done.status, done.output, done.errors) == (0, "1 10\n", "")
    assert done.launches() == (0 if off else 10)


def test_our_own_twice(build: Build, tmp_path: Path) -> None:
    """A second copy, by another path, in the environment and where the driver is looked for."""
    copy = tmp_path / "copy" / LIBRARY.name
    copy.parent.mkdir()
    copy.write_bytes(LIBRARY.read_bytes())
    copy.chmod(0o755)
    dummy = build("dummy.c", "-DOPENED", as_="libdummy.so")
    program = build("program.c", str(dummy))
    both = run([program], preload=(LIBRARY, copy), seconds=5)
    assert (both.status, both.launches(), len(both.clients)) == (0, 10, 1)
    named = run([program], preload=(LIBRARY, dummy), given={"TESSERA_DRIVER": str(copy)}, seconds=5)
    assert named.status == 1 and "error 100" in named.errors and "is this library" in named.log
