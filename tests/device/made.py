"""What programs of others are run with: made here, unless a kit has brought it along in ``made/``.

``python -m tests.device.made FOLDER`` makes all of it for a kit, as far as there is what it is made with.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compilers import require_nvcc, wheel_folder
from tests.device.machine import ROOT, SECONDS

FOLDER = ROOT / "made"
MODEL, CUDART, LAUNCHES = "tiny.gguf", "cudart", "launches"
SOURCE = Path(__file__).with_name("cudart.cu")
FLAGS = ("-O2", "-arch=sm_75", "-std=c++17")
"""One SASS image, and PTX for all GPUs after that."""
LAUNCHES_SOURCE = ROOT / "benchmarks" / "shim" / "launches.c"


def model(folder: Path) -> Path:
    """A random llama model as a GGUF file; skips the test where the package to write it is missing."""
    if (FOLDER / MODEL).exists():
        return FOLDER / MODEL
    pytest.importorskip("gguf", reason="gguf not found: pip install gguf")
    subprocess.run([sys.executable, "-m", "tests.device.model", folder / MODEL], check=True, cwd=ROOT, timeout=SECONDS)
    return folder / MODEL


def cudart_program(folder: Path) -> Path:
    """A program of nvcc with the run-time library inside; skips the test where there is no nvcc."""
    if (FOLDER / CUDART).exists():
        return FOLDER / CUDART
    nvcc = require_nvcc()
    libraries = f"-L{nvcc.parent.parent / 'lib'}"  # where the wheels have them, of which nvcc knows nothing
    subprocess.run([nvcc, *FLAGS, libraries, SOURCE, "-o", folder / CUDART], check=True, timeout=SECONDS)
    return folder / CUDART


def launches_program(folder: Path) -> Path:
    """A program in C that says what its launches take; skips the test where there is no compiler or no header."""
    if (FOLDER / LAUNCHES).exists():
        return FOLDER / LAUNCHES
    compiler, wheels = shutil.which("cc"), wheel_folder()
    if compiler is None or wheels is None or not LAUNCHES_SOURCE.exists():
        pytest.skip("no C compiler, or no headers of CUDA: pip install nvidia-cuda-runtime")
    command = [compiler, "-std=gnu11", "-O2", f"-I{wheels / 'include'}", LAUNCHES_SOURCE, "-o", folder / LAUNCHES]
    subprocess.run([*command, "-ldl"], check=True, timeout=SECONDS)
    return folder / LAUNCHES


def main() -> None:
    for make in (model, cudart_program, launches_program):
        try:
            print(make(Path(sys.argv[1])))
        except pytest.skip.Exception as reason:
            print(reason)


if __name__ == "__main__":
    main()
