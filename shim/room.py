"""A folder for the sockets of one run, which nobody else can enter, and which is gone after it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shim.errors import ShimTrouble
from tessera.private import runtime_folder

LONGEST = 107
"""Bytes of a Unix socket's path."""
PREFIX = "run-"
LOCK_SECONDS = 2.0


@contextmanager
def room() -> Iterator[Path]:
    """A new folder beside those of other runs; folders that runs have left behind which were killed are removed. Raises
    ShimTrouble if there can be none."""
    try:
        parent = runtime_folder()
        with _locked(parent):
            _sweep(parent)
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            holding = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(holding, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ShimTrouble(f"there can be no folder for sockets: {error}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(holding)


def socket_in(folder: Path, name: str) -> Path:
    """A path for a socket. Raises ShimTrouble if it is too long for one."""
    path = folder / name
    if len(os.fsencode(path)) > LONGEST:
        raise ShimTrouble(f"the path of a socket has at most {LONGEST} bytes: {path}")
    return path


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; without it where somebody else holds it too long, which leaves only more to be removed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + LOCK_SECONDS
        while not _take(descriptor) and time.monotonic() < end:
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if _take(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
