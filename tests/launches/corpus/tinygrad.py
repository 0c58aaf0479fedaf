"""Launches of the corpus kernels made by tinygrad, through NVRTC and through its own renderer.

Grid, block and buffer sizes are those of ``launches.json``. What stays valid when varied: fewer blocks (each block is
independent), the position scalar within the cache, the contents of the token table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.launches.case import LaunchCase, Shape, buffer, i32
from tests.launches.registry import Registry
from tests.launches.values import ints

CONTEXT = 128
"""Positions in the key-value cache of the small Llama that these kernels come from."""

BY_POSITION = "28start_pos2B129"
"""``(start_pos+1)`` in a kernel's name: that extent of the grid or of a loop is the position plus one."""

THREADS = 700


@cache
def recorded(material: Path) -> dict[str, dict[str, Any]]:
    """``launches.json`` by file name."""
    found: dict[str, dict[str, Any]] = json.loads((material / "corpus" / "launches.json").read_text())
    return found


def grids(rng: np.random.Generator, full: Shape, block: int, large: bool) -> Iterator[Shape]:
    """Parts of the recorded grid: one block, then random parts (the whole where it is small, or for large runs)."""
    whole = full[0] * full[1] * full[2]
    if large or whole * block <= THREADS:
        yield full
    yield (1, 1, 1)
    while True:
        part = [int(rng.integers(1, extent, endpoint=True)) for extent in full]
        while part[0] * part[1] * part[2] * block > (8 * THREADS if large else THREADS) and max(part) > 1:
            widest = int(np.argmax(part))
            part[widest] = max(1, part[widest] // 2)
        yield (part[0], part[1], part[2])


def cases_of(entry: dict[str, Any]) -> Any:
    """The generator for one recorded launch."""
    kernel: str = entry["kernel"]
    block: Shape = tuple(entry["block"])

    def cases(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
        recorded_grid: Shape = tuple(entry["grid"])
        positions = [8, 0, CONTEXT - 1]
        for number, grid in enumerate(grids(rng, recorded_grid, block[0] * block[1] * block[2], large)):
            position = positions[number] if number < 3 else int(rng.integers(0, CONTEXT))
            arguments: dict[str, Any] = {}
            for index, parameter in enumerate(entry["params"]):
                if "i32" in parameter:
                    arguments[f"data{index}"] = i32(position)
                else:
                    arguments[f"data{index}"] = buffer(contents(rng, kernel, index, parameter["ptr_bytes"]))
            if kernel.startswith(("E_" + BY_POSITION, "r_8_" + BY_POSITION)):
                grid = (min(grid[0], position + 1), grid[1], grid[2])
            yield LaunchCase(grid, block, arguments, shared=entry["shared"])

    return cases


def contents(rng: np.random.Generator, kernel: str, index: int, size: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Bytes for one buffer: token ids (some outside the table, which the kernel guards), else small floats."""
    if kernel == "E_4_8_16_4" and index == 1:
        return ints(rng, size // 4, low=-3, high=1004)
    if size % 4:
        return ints(rng, size, np.uint8)
    return rng.standard_normal(size // 4).astype(np.float32)


def registries(material: Path) -> list[Registry]:
    """One registry for each of the two ways from tinygrad to PTX."""
    found = []
    for producer, prefix in (("nvrtc", "tinygrad_cuda_"), ("tinygrad", "tinygrad_ptx_")):
        register = Registry("corpus", producer)
        for file, entry in sorted(recorded(material).items()):
            if file.startswith(prefix):
                reason = "rows by token id" if entry["kernel"] == "E_4_8_16_4" else ""
                register.add(f"corpus/ptx/{file}", entry["kernel"], cases_of(entry), data_dependent=reason)
        found.append(register)
    return found
