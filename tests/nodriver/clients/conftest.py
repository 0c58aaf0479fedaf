"""What clients in C are made of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.nodriver.clients import place
from tools import driver, native


@pytest.fixture(scope="session")
def image_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is given a file with device code, linked with ``-lcuda``."""
    path = tmp_path_factory.mktemp("program") / "image"
    command = [native.compiler(), *native.FLAGS, f"-I{driver.headers(Path(sys.executable))}", place.SOURCES / "image.c",
               "-o", path, f"-L{driver.LIBRARY.parent}", "-lcuda"]
    subprocess.run(command, check=True, timeout=place.SECONDS)
    return path
