"""CUDA compilers at test time: nvcc on PATH, or nvcc and NVRTC from their wheels in this environment.

A test that needs one calls :func:`require_nvcc` or :func:`require_nvrtc`, which skip with the package to install.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

NVCC_PACKAGES = "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-cccl nvidia-cuda-runtime nvidia-nvvm"
NVRTC_PACKAGE = "nvidia-cuda-nvrtc"


def wheel_folder() -> Path | None:
    """Where the CUDA 13 wheels put their toolkit in this environment, or None."""
    folder = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13"
    extra = [Path(p) / "nvidia" / "cu13" for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return next((f for f in (folder, *extra) if f.is_dir()), None)


@cache
def nvcc() -> Path | None:
    """nvcc from the wheels, else from PATH, else None."""
    folder = wheel_folder()
    if folder is not None and (folder / "bin" / "nvcc").exists() and (folder / "nvvm" / "bin" / "cicc").exists():
        return folder / "bin" / "nvcc"
    found = shutil.which("nvcc")
    return Path(found) if found else None


def require_nvcc() -> Path:
    """nvcc; skips the test where there is none."""
    found = nvcc()
    if found is None:
        pytest.skip(f"nvcc not found: pip install {NVCC_PACKAGES}, or install the CUDA toolkit")
    return found


def compile_cuda(source: str, arch: str = "80", options: Sequence[str] = ("-O3",)) -> str:
    """PTX text of CUDA C++ source for ``compute_<arch>``. Raises CalledProcessError with the compiler's messages."""
    compiler = require_nvcc()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "source.cu").write_text(source)
        # cwd and a relative name keep the folder out of the text (assert names its file).
        subprocess.run([compiler, "-ptx", f"-arch=compute_{arch}", *options, "source.cu", "-o", "out.ptx"],
                       cwd=folder, check=True, capture_output=True, text=True)
        return (Path(folder) / "out.ptx").read_text()


@cache
def nvrtc() -> ctypes.CDLL | None:
    """The NVRTC library from its wheel or the system's library path, or None."""
    folder = wheel_folder()
    names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    if folder is not None:
        for builtins in sorted((folder / "lib").glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
        names = [str(path) for path in sorted((folder / "lib").glob("libnvrtc.so.*"))] + names
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def require_nvrtc() -> ctypes.CDLL:
    """NVRTC; skips the test where there is none."""
    found = nvrtc()
    if found is None:
        pytest.skip(f"NVRTC not found: pip install {NVRTC_PACKAGE}")
    return found


def compile_nvrtc(source: str, arch: str = "80", options: Sequence[str] = ()) -> str:
    """PTX text of CUDA C++ source by NVRTC (no headers) for ``compute_<arch>``. Raises ValueError with its log."""
    library = require_nvrtc()
    program = ctypes.c_void_p()
    arguments = [f"--gpu-architecture=compute_{arch}".encode(), *(option.encode() for option in options)]
    array = (ctypes.c_char_p * len(arguments))(*arguments)
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"source.cu", 0, None, None)
    status = library.nvrtcCompileProgram(program, len(arguments), array)
    what = "PTX" if status == 0 else "ProgramLog"
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if status:
        raise ValueError(f"NVRTC refuses the source: {text.value.decode()}")
    return text.value.decode()
