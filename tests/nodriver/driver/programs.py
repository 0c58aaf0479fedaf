"""C programs, linked with the software driver as any program is with a driver, also with the compiler's sanitizers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tessera.environment import DEVICES
from tools import driver, native
from tools.venv import PYTHON

FOLDER = Path(__file__).resolve().parent / "c"
FLEET = "A100-80G,L40S;from=A100-80G:to=L40S:bandwidth_gb_s=23:peer=true"
SECONDS = 120


def build_program(name: str, kind: str, folder: Path) -> Path:
    """The program of a file of ``c/``, made in a folder; ``kind``: of sanitizers, or empty."""
    return compile_program(folder / name, [FOLDER / f"{name}.c"], kind, "-O0")


def compile_program(program: Path, sources: Sequence[Path], kind: str, *flags: str) -> Path:
    """A program of several files."""
    library = driver.build(PYTHON, kind)
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(kind), f"-I{driver.headers(PYTHON)}", *flags,
               *sources, "-o", program, library, f"-Wl,-rpath,{library.parent}"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


def run_program(program: Path, variables: Mapping[str, str] | None = None, arguments: Sequence[str] = (),
                seconds: float = SECONDS, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run it on two devices that may access each other's memory."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=seconds,
                          cwd=folder, env={**os.environ, DEVICES.name: FLEET, **(variables or {})})
