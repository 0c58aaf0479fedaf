"""Folders that nobody else can write to: what is loaded or trusted by its place lies in one. Mirrored by
``client_paths.c`` of the engine's run-time; ``docs/engine-cache.md`` has the rules."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from tessera.environment import CACHE
from tessera.errors import TesseraError


class UnsafeFolder(TesseraError):
    """A folder that somebody else could write to."""


def private_folder(path: Path) -> Path:
    """Make the folder (mode 0700, parents too) where it does not exist, and return its path.

    Raises :class:`UnsafeFolder` if it is no folder, belongs to somebody else, or others may write to it, and
    ``OSError`` if it cannot be made.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise UnsafeFolder(f"{path} must be a folder of this user that nobody else can write to")
    return path


def cache_folder() -> Path:
    """Where compiled kernels are kept; the folder may not exist yet."""
    named = os.environ.get(CACHE.name, "")
    if named.startswith("/"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "tessera" / "softgpu"


def runtime_folder() -> Path:
    """Where sockets and locks lie: made if it does not exist; errors as :func:`private_folder`."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base.startswith("/") and os.access(base, os.W_OK | os.X_OK):
        return private_folder(Path(base) / "tessera")
    return private_folder(Path(tempfile.gettempdir()) / f"tessera-{os.geteuid()}")
