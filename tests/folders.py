"""Folders of a tier's own for what the software driver keeps, and a compile service that ends with its tests."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from softgpu.engine.service.paths import socket_path
from softgpu.engine.version import engine_version
from tessera.environment import CACHE


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    runtime = Path(tempfile.mkdtemp(prefix="softgpu-"))  # short: the path of a socket has 107 bytes at most
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        patch.setenv(CACHE.name, str(tmp_path_factory.mktemp("cache")))
        yield
        with suppress(OSError, ValueError):  # it ends when nothing was asked for a while
            os.kill(int(socket_path(engine_version()).with_suffix(".lock").read_text()), signal.SIGTERM)
    shutil.rmtree(runtime, ignore_errors=True)
