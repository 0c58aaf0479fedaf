"""The run-time from C: each program of ``c/`` that uses ``check.h``, alone and with the compiler's sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import native

FOLDER = Path(__file__).resolve().parent / "c"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.c") if '#include "check.h"' in path.read_text(encoding="utf-8"))
KINDS = ["", *native.SANITIZERS]
SECONDS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def compiled(name: str, kind: str, folder: Path) -> Path:
    """The program, linked with the library that has the same sanitizers."""
    library = native.sanitized(kind) if kind else native.build()
    program = folder / f"{name}-{kind}"
    if not program.exists():
        command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(kind), "-O0", f"-I{native.SOURCES}",
                   f"{FOLDER / name}.c", "-o", str(program), str(library), f"-Wl,-rpath,{library.parent}"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
    return program


def check(program: Path) -> None:
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind or "plain")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, kind: str, folder: Path) -> None:
    check(compiled(name, kind, folder))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind or "plain")
@pytest.mark.parametrize("name", ["sharing", "yields", "named_barriers", "logs"])
def test_program_again_and_again(name: str, kind: str, folder: Path) -> None:
    """Threads meet in another order each time."""
    program = compiled(name, kind, folder)
    for _ in range(10):
        check(program)
