"""tinygrad by its own renderer and by NVRTC: the programs of ``tinygrad_programs``, compiled in their own process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.producers import Missing
from tests import compilers
from tests.launches.case import Argument, LaunchCase, Shape, buffer, i32
from tests.launches.registry import Cases, KernelLaunches, Registry

SCRIPT = Path(__file__).with_name("tinygrad_programs.py")


def _compile(renderer: str) -> list[dict[str, Any]]:
    """What the script finds: kernel, text, grid, block, buffer sizes in bytes, scalar values."""
    if importlib.util.find_spec("tinygrad") is None:
        raise Missing("tinygrad not found: pip install tinygrad==0.13.0")
    environment = dict(os.environ)
    folder = compilers.wheel_folder()
    if folder is not None:
        environment["LD_LIBRARY_PATH"] = f"{folder / 'lib'}:{environment.get('LD_LIBRARY_PATH', '')}"
    command = [sys.executable, "-P", SCRIPT, renderer]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"tinygrad cannot compile by {renderer}: {done.stderr.strip().splitlines()[-1]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _cases(entry: dict[str, Any]) -> Cases:
    block: Shape = tuple(entry["block"])

    def cases(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
        full = entry["grid"]
        while True:
            arguments: dict[str, Argument] = {
                f"data{i}": buffer(rng.standard_normal(size // 4 + 1).astype(np.float32).view(np.uint8)[:size])
                for i, size in enumerate(entry["buffers"])}
            arguments.update({f"value{i}": i32(value) for i, value in enumerate(entry["values"])})
            yield LaunchCase((full[0], full[1], full[2]), block, arguments)
            full = [int(rng.integers(1, extent, endpoint=True)) for extent in entry["grid"]]

    return cases


def _kernels(producer: str, renderer: str) -> list[KernelLaunches]:
    register = Registry("compiled", producer)
    for entry in _compile(renderer):
        register.add(f"{producer}_programs_{entry['kernel']}.ptx", entry["kernel"], _cases(entry), text=entry["text"])
    return register.entries


def renderer_kernels() -> list[KernelLaunches]:
    """tinygrad's own PTX."""
    return _kernels("tinygrad", "PTX")


def nvrtc_kernels() -> list[KernelLaunches]:
    """tinygrad's CUDA text through NVRTC."""
    if compilers.nvrtc() is None:
        raise Missing(f"NVRTC not found: pip install {compilers.NVRTC_PACKAGE}")
    return _kernels("nvrtc", "CUDA")
