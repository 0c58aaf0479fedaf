"""Programs before they run: the files that a command begins with, and why one could have no library under it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tessera.cli.doctor import elf
from tessera.errors import TesseraError

LOADER = "ld-linux-x86-64.so.2"
_CAPABILITIES = "security.capability"
_MOST_INTERPRETERS = 4  # as the kernel follows them
_LONGEST_LINE = 256


def program_file(command: str) -> str | None:
    """The executable that runs for a command: of a script, its interpreter. None if there is none."""
    name: str | None = command
    for _ in range(_MOST_INTERPRETERS + 1):
        found = shutil.which(name) if name else None
        if found is None:
            return None
        name = _interpreter(Path(found))
        if name is None:
            return str(Path(found).resolve())
    return None


def _interpreter(path: Path) -> str | None:
    """What the first line of a script names."""
    try:
        with path.open("rb") as file:
            line = file.read(_LONGEST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    words = line[2:].split() if line.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else None


def obstacle(path: Path, user: int, group: int) -> str | None:
    """Why the loader puts nothing under the program of a file that a user starts; None if it does."""
    try:
        found, status = elf.read(path), path.stat()
        capable = user != 0 and _CAPABILITIES in os.listxattr(path)
    except (OSError, TesseraError):
        return None
    if found.machine != elf.X86_64:
        return "it is no program for x86-64"
    if found.interpreter is None:
        return "it is linked statically"
    if Path(found.interpreter).name != LOADER:
        return f"its loader is {found.interpreter}, not that of glibc"
    if (status.st_mode & 0o4000 and status.st_uid != user) or (status.st_mode & 0o2000 and status.st_gid != group):
        return "it runs with other rights than whoever starts it (setuid)"
    return "it has capabilities of its own" if capable else None


def imports(path: Path) -> frozenset[str]:
    """The dynamic symbols that a program itself is linked to; empty if its file cannot be read."""
    try:
        return elf.read(path).imports
    except (OSError, TesseraError):
        return frozenset()
