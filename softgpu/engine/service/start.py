"""Starts the compile service from Python; ``runtime/client_start.c`` does the same from C."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from softgpu.engine.errors import ServiceError
from softgpu.engine.version import ROOT
from tessera.environment import PYTHON

START_SECONDS = 20.0
_LEFT_OUT = ("LD_PRELOAD", "LD_AUDIT")  # and Python's own: they are meant for the program that asks
_LOG_SHOWN = 400  # characters


def command(engine: str, ready: int, extra: Sequence[str] = ()) -> list[str]:
    """The command line of the service."""
    python = os.environ.get(PYTHON.name) or sys.executable
    return [python, "-P", "-m", "softgpu.engine.service", "--engine", engine, "--ready", str(ready), *extra]


def environment() -> dict[str, str]:
    """The service's environment: ours without what would change the interpreter, with the way to this package, and no
    threads in numpy, because the service forks."""
    kept = {name: text for name, text in os.environ.items() if name not in _LEFT_OUT and not name.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def connected(path: Path) -> socket.socket | None:
    """A connection to the service at that socket; None if there is none."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def start(path: Path, engine: str, deadline: float, extra: Sequence[str] = ()) -> socket.socket:
    """A connection to the service at that socket, which is started if there is none; one of several processes that
    want this does it. Raises :class:`ServiceError` past the deadline (of ``time.monotonic``), or if it fails."""
    with open(path.with_suffix(".starting"), "w") as turn:
        while True:
            if connection := connected(path):
                return connection
            with suppress(OSError):
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise ServiceError("another process did not get the compile service started in time")
            time.sleep(0.01)
        if not (connection := connected(path)):
            _run(path, engine, deadline, extra)
            connection = connected(path)
        fcntl.flock(turn, fcntl.LOCK_UN)
    if connection is None:
        raise ServiceError("the compile service ended at once; its log: " + _log(path))
    return connection


def _log(path: Path) -> str:
    with suppress(OSError):
        return path.with_suffix(".log").read_text(errors="replace").strip()[-_LOG_SHOWN:]
    return "(none)"


def _run(path: Path, engine: str, deadline: float, extra: Sequence[str]) -> None:
    """Start the service, detached, and wait until it answers."""
    hear, ready = os.pipe()
    try:
        with open(path.with_suffix(".log"), "wb") as log, open(os.devnull, "r+b") as null:
            # The shell ends at once, so that the service is nobody's child who would have to wait for it.
            shell = ["/bin/sh", "-c", '"$@" &', "sh", *command(engine, ready, extra)]
            subprocess.run(shell, stdin=null, stdout=null, stderr=log, cwd="/", env=environment(), check=False,
                           pass_fds=[ready], start_new_session=True)
        os.close(ready)
        ready = -1
        if not select.select([hear], [], [], max(deadline - time.monotonic(), 0))[0]:
            raise ServiceError("the compile service did not start in time; its log: " + _log(path))
        if os.read(hear, 1) != b"1":
            raise ServiceError("the compile service did not start; its log: " + _log(path))
    except OSError as error:
        raise ServiceError(f"the compile service cannot be started: {error}") from None
    finally:
        os.close(hear)
        if ready >= 0:
            os.close(ready)
