"""A compile service of a test's own: own folders, a fake compiler, and its end with the test."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from softgpu.engine.service.paths import socket_path
from softgpu.engine.version import engine_version
from tessera.environment import CACHE, PYTHON
from tests.material import ROOT

BACKEND = "tests.nodriver.engine.fake_backend"


class Home:
    """The folders of one user of the service, who has set the environment accordingly."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.runtime = Path(tempfile.mkdtemp(prefix="softgpu-"))  # short: the path of a socket has 107 bytes at most
        self.python = folder / "python"
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(self.runtime))
        monkeypatch.setenv(CACHE.name, str(self.cache))
        monkeypatch.setenv(PYTHON.name, str(self.python))
        self.serve_with()

    def serve_with(self, *arguments: str) -> None:
        """Have services that start from now on run with these arguments, and the fake compiler."""
        extra = " ".join(["--backend", BACKEND, *arguments])
        self.interpreter(f'PYTHONPATH={ROOT} exec {sys.executable} "$@" {extra}')

    def interpreter(self, script: str) -> None:
        """What stands for the interpreter: a line of shell."""
        self.python.write_text(f"#!/bin/sh\n{script}\n")
        self.python.chmod(0o755)

    @property
    def socket(self) -> Path:
        return socket_path(engine_version())

    @property
    def process(self) -> int:
        """Process id of the service that runs; 0 if none does."""
        with suppress(FileNotFoundError), self.socket.with_suffix(".lock").open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read())
        return 0

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the service and wait until it is gone."""
        if process := self.process:
            os.kill(process, number)
        self.await_end()

    def await_end(self, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while self.process:
            assert time.monotonic() < end, "the service did not end"
            time.sleep(0.01)


def home_of_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Body of a fixture: a home whose service ends with the test."""
    home = Home(tmp_path, monkeypatch)
    yield home
    home.kill(signal.SIGTERM)
    shutil.rmtree(home.runtime)


def children_of(process: int) -> list[int]:
    """The workers of a service, by what the system says."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def open_files(process: int) -> dict[int, str]:
    """What the descriptors of a process are, without sockets."""
    links = {}
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed just now
            links[int(link.name)] = os.readlink(link)
    return {number: text for number, text in links.items() if not text.startswith("socket:")}


def await_file(path: Path, lines: int = 1, seconds: float = 10) -> list[str]:
    """The lines of a file, once it has that many."""
    end = time.monotonic() + seconds
    while True:
        found = path.read_text().splitlines() if path.exists() else []
        if len(found) >= lines:
            return found
        assert time.monotonic() < end, f"{path} did not get {lines} lines"
        time.sleep(0.01)
