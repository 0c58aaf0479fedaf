"""The library as it is now, folders of this tier's own for compiled kernels, and the programs of a test's folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.hazards.kit import compiled
from tests.nodriver.driver import conftest as driver_folders
from tools import shim
from tools.venv import PYTHON

own_folders = driver_folders.own_folders
Build: TypeAlias = Callable[..., Path]


@pytest.fixture(scope="session", autouse=True)
def library() -> Path:
    """As it is now; several test processes find what the one that started them has built."""
    return shim.PRELOAD if "PYTEST_XDIST_WORKER" in os.environ else shim.preload(PYTHON)


@pytest.fixture
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    """Compiles a file beside the test: ``build("program.c", *flags)``; a library ends with ``.so``: ``as_="x.so"``."""

    def make(source: str, *flags: str, as_: str = "") -> Path:
        shared = ("-shared",) if as_.endswith(".so") else ()
        return compiled(Path(request.path).parent / source, tmp_path / (as_ or Path(source).stem), *shared, *flags)

    return make
