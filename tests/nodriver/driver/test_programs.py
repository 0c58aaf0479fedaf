"""The driver from C: each program of ``c/``, linked with ``-lcuda``, alone and with the compiler's sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodriver.driver.programs import FOLDER, build_program, run_program
from tools import native

PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.c"))
KINDS = ["", *native.SANITIZERS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind or "plain")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, kind: str, tmp_path: Path) -> None:
    done = run_program(build_program(name, kind, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
