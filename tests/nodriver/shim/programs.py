"""C programs of this tier: parts of the preload library with the compiler's sanitizers, programs that run under it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.material import ROOT
from tools import driver, native, shim
from tools.venv import PYTHON

PRELOAD = ROOT / "shim" / "preload"
FOLDER = Path(__file__).resolve().parent / "c"


def sanitized(name: str, parts: Sequence[str], folder: Path) -> Path:
    """The program of a file of ``c/`` with files of the shim, which finds wrong addresses and undefined behaviour."""
    program = folder / name
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(native.SANITIZERS[0]), f"-I{PRELOAD}",
               f"{FOLDER / name}.c", *(str(PRELOAD / part) for part in parts), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


def linked(name: str, folder: Path, kind: str = "", *flags: str, source: Path | None = None, against: bool = True
           ) -> Path:
    """The program of a file of ``c/``, or of another ``source``, linked with the software driver as any program is with
    a driver, or not; ``kind``: of sanitizers."""
    program = folder / name
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(kind), f"-I{driver.headers(PYTHON)}", *flags,
               source or FOLDER / f"{name}.c", "-o", program, *([driver.LIBRARY] if against else [])]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[:2000]
    return program


def watched(kind: str) -> str:
    """What LD_PRELOAD has to say for the library with sanitizers: these come before all other libraries."""
    name = {"address,undefined": "libasan.so", "thread": "libtsan.so"}[kind]
    asked = [native.compiler(), f"-print-file-name={name}"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return f"{Path(found).resolve()} {shim.preload(PYTHON, kind)}"
