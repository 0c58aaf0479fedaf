"""A program in C, linked with ``-lcuda``, with device code in every form in which nvcc writes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.compilers import require_nvcc
from tests.nodriver.clients import place

SECONDS = 120.0
IMAGES = {
    "PTX": ["-ptx", "-arch=compute_80"],
    "fatbin": ["-fatbin", "-gencode=arch=compute_80,code=[compute_80,sm_80]"],
    "fatbin for two": ["-fatbin", *(f"-gencode=arch=compute_{number},code=compute_{number}" for number in (75, 90))],
    "fatbin as it is": ["-fatbin", "-gencode=arch=compute_80,code=compute_80", "--compress-mode=none"],
}


def made(image: str, path: Path) -> Path:
    """The device code in one of the forms."""
    command = [require_nvcc(), *IMAGES[image], "-o", path, place.SOURCES / "kernels.cu"]
    subprocess.run(command, check=True, timeout=SECONDS)
    return path


@pytest.mark.parametrize("image", IMAGES)
def test_program(image: str, image_program: Path, tmp_path: Path) -> None:
    done = place.done([image_program, made(image, tmp_path / "image")])
    assert (done.stdout, done.stderr) == ("done\n", "")
