"""The engine's version: a digest of everything of ours that decides what a kernel is compiled to.

The C run-time looks kernels up without Python, so it reads the version from a file beside its library. The build writes
that file: ``python -m softgpu.engine.version softgpu/lib``.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (("softgpu/engine", "*.py"), ("softgpu/engine/runtime", "abi.h"), ("ptxparse", "*.py"))
NO_PART = "softgpu/engine/service/"
"""Files in this folder carry objects about and do not make them."""

FILE = "engine-info"
"""Name of the file beside the library. Two lines: ``engine`` and the version, ``python`` and the interpreter's path."""


@cache
def engine_version() -> str:
    """64 hexadecimal digits: SHA-256 of the names and contents of the engine's and the parser's sources."""
    files = {path for folder, pattern in SOURCES for path in (ROOT / folder).rglob(pattern)}
    named = sorted((path.relative_to(ROOT).as_posix(), path) for path in files)
    digest = hashlib.sha256()
    for name, path in named:
        if not name.startswith(NO_PART):
            content = path.read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def abi_version() -> int:
    """SG_ABI_VERSION of ``runtime/abi.h``."""
    found = re.search(r"#define SG_ABI_VERSION (\d+)", (ROOT / "softgpu/engine/runtime/abi.h").read_text())
    assert found
    return int(found[1])


def write_info(folder: Path, python: str = sys.executable) -> Path:
    """Write the file for the run-time in ``folder``, and return its path."""
    path = folder / FILE
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(f"engine {engine_version()}\npython {python}\n", encoding="utf-8")
    unfinished.replace(path)  # a program that starts now reads the old one or the new one
    return path


if __name__ == "__main__":
    write_info(Path(sys.argv[1]))
