"""A folder of this tier's own for sockets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_folder() -> Iterator[None]:
    runtime = tempfile.mkdtemp(prefix="shim-")  # short: the path of a socket has 107 bytes at most
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        yield
    shutil.rmtree(runtime, ignore_errors=True)
