"""An empty launch from C and from Python, and loads of compiled kernels from the cache in C."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

from _common import ROOT, Row
from _engine_kernels import FOLDER, Kernels, text
from _engine_timing import Times, interleaved, microseconds, milliseconds

from softgpu.engine.cache import ObjectCache, object_key
from softgpu.engine.compiler import compile_ptx
from softgpu.engine.linker import shared_object
from softgpu.engine.options import Options
from softgpu.engine.version import write_info
from tessera.environment import CACHE
from tools import native

RUNTIME = ROOT / "softgpu" / "engine" / "runtime"
BATCH = 200
SMALL, LARGE = ("elementwise", "nothing"), ("matmul_mma", "matmul_tf32")


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = _program(folder)
        (small_load, launch), (large_load,) = (_times(program, folder, *kernel) for kernel in (SMALL, LARGE))
    kernels = Kernels(SMALL[0])

    def batch() -> None:
        for _ in range(BATCH):
            kernels.launch(SMALL[1], 1, 32, [])

    python = interleaved({"": batch})[""]
    python = Times(python.median / BATCH, python.best / BATCH)
    return [
        microseconds("empty launch, C", launch, 5),
        microseconds("empty launch, Python", python),
        milliseconds("load from the cache, C, small kernel", small_load, 2),
        milliseconds("load from the cache, C, large kernel", large_load, 2),
    ]


def _program(folder: Path) -> Path:
    """The program, with the client compiled in and the file that it looks for beside it."""
    path, library = folder / "launches", native.build()
    sources = [FOLDER / "launches.c", *sorted(RUNTIME.glob("client*.c")), RUNTIME / "sha256.c"]
    command: list[str | Path] = [native.compiler(), *native.FLAGS, f"-I{RUNTIME}", "-o", path, *sources, library,
               f"-Wl,-rpath,{library.parent}", "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    write_info(folder)
    return path


def _times(program: Path, folder: Path, stem: str, kernel: str) -> list[Times]:
    """Times of the program's lines, with a cache of its own that has the kernel already."""
    cache = folder / "cache"
    options = Options((32, 1, 1))
    ptx = text(stem).encode()
    made = shared_object(compile_ptx(ptx, kernel, options))
    ObjectCache(cache).put(object_key(hashlib.sha256(ptx).digest(), kernel, options), made)
    begin = time.monotonic()
    output = subprocess.run([program, FOLDER / f"{stem}.ptx", kernel], check=True, capture_output=True, text=True,
                            timeout=60, env={**os.environ, CACHE.name: str(cache)}).stdout
    assert time.monotonic() - begin < 30, "a kernel was not in the cache"
    return [Times(float(median) / 1e6, float(best) / 1e6) for median, best in map(str.split, output.splitlines())]
