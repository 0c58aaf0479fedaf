"""C programs: parts of the preload library with the compiler's sanitizers, and what runs under the library."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tessera.environment import DRIVER
from tests.material import ROOT
from tools import driver, native, shim
from tools.venv import PYTHON

PRELOAD = ROOT / "shim" / "preload"
FOLDER = Path(__file__).resolve().parent / "c"


def sanitized(name: str, parts: Sequence[str], folder: Path) -> Path:
    """The program of a file of ``c/`` with files of the shim, which finds wrong addresses and undefined behaviour."""
    program = folder / name
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(native.SANITIZERS[0]), f"-I{PRELOAD}",
               f"-I{PRELOAD.parent}",
               f"{FOLDER / name}.c", *(str(PRELOAD / part) for part in parts), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


def linked(name: str, folder: Path, kind: str = "", *flags: str, source: Path | None = None, against: bool = True
           ) -> Path:
    """The program of a file of ``c/``, or of another ``source``, linked with the software driver as any program is with
    a driver, or not; ``kind``: of sanitizers for both."""
    program = folder / name
    library = [driver.build(PYTHON, kind)] if against else []
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(kind), f"-I{driver.headers(PYTHON)}", *flags,
               source or FOLDER / f"{name}.c", "-o", program, *library]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[:2000]
    return program


def watched(kind: str) -> dict[str, str]:
    """Variables for a program with sanitizers, whose own library comes before all others: that the preload library and
    the driver have them too."""
    name = {"address,undefined": "libasan.so", "thread": "libtsan.so"}[kind]
    asked = [native.compiler(), f"-print-file-name={name}"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return {"LD_PRELOAD": f"{Path(found).resolve()} {shim.preload(PYTHON, kind)}",
            DRIVER.name: str(driver.build(PYTHON, kind)), "ASAN_OPTIONS": "detect_leaks=0"}
