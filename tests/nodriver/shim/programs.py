"""Parts of the preload shim on their own: in a program with the compiler's sanitizers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.material import ROOT
from tools import native

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
