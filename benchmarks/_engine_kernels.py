"""The kernels of the engine's benchmark: CUDA in ``engine_kernels``, and the PTX that nvcc made of it beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu import engine

FOLDER = Path(__file__).resolve().parent / "engine_kernels"

Floats = npt.NDArray[np.float32]


def text(stem: str) -> str:
    """The PTX text of a file."""
    return (FOLDER / f"{stem}.ptx").read_text()


class Kernels:
    """The kernels of one file, loaded."""

    def __init__(self, stem: str) -> None:
        self.module = engine.LoadedModule(text(stem), engine.Memory())

    def launch(self, kernel: str, grid: int | Sequence[int], block: int | Sequence[int], arguments: Sequence[Any],
               pool: engine.Pool | None = None) -> None:
        """Run a kernel on numpy arrays, in place; on all cores unless a pool is given."""
        engine.launch(self.module, kernel, grid, block, arguments, pool=pool)


def floats(*shape: int, seed: int = 1) -> Floats:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def check(what: str, found: npt.NDArray[Any], expected: npt.NDArray[Any], relative: float, absolute: float) -> None:
    """Raise AssertionError when a result is not what it should be, or was not computed at all."""
    np.testing.assert_allclose(found, expected, rtol=relative, atol=absolute, err_msg=what)
