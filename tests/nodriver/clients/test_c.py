"""A program in C, linked with ``-lcuda``, with device code in every form in which nvcc writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.compilers import require_nvcc
from tests.nodriver.clients import place
from tools import driver, native

SOURCES = Path(__file__).resolve().parent / "c"
SECONDS = 120.0
IMAGES = {
    "PTX": ["-ptx", "-arch=compute_80"],
    "fatbin": ["-fatbin", "-gencode=arch=compute_80,code=[compute_80,sm_80]"],
    "fatbin for two": ["-fatbin", *(f"-gencode=arch=compute_{number},code=compute_{number}" for number in (75, 90))],
    "fatbin as it is": ["-fatbin", "-gencode=arch=compute_80,code=compute_80", "--compress-mode=none"],
}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "image"
    command = [native.compiler(), *native.FLAGS, f"-I{driver.headers(Path(sys.executable))}", str(SOURCES / "image.c"),
               "-o", str(path), f"-L{driver.LIBRARY.parent}", "-lcuda"]
    subprocess.run(command, check=True, timeout=SECONDS)
    return path


@pytest.mark.parametrize("image", IMAGES)
def test_program(image: str, program: Path, tmp_path: Path) -> None:
    made = tmp_path / "image"
    subprocess.run([require_nvcc(), *IMAGES[image], "-o", made, SOURCES / "kernels.cu"], check=True, timeout=SECONDS)
    done = subprocess.run([program, made], env=place.environment(), capture_output=True, text=True, timeout=SECONDS,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
