"""numba-cuda for compute capability 8.0, without a GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np

from benchmarks.producers import Missing
from tests import compilers
from tests.launches.case import LaunchCase, buffer, f32
from tests.launches.corpus.numba import array, matrix, vector
from tests.launches.registry import Cases, KernelLaunches, Registry
from tests.launches.values import blocks, cover, element_counts, floats, ints, sizes, x


def add_rows(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 8, 9, high=20), sizes(rng, 1, 16, 20, high=40), strict=False):
        yield LaunchCase((cover(rows, 8), cover(columns, 16), 1), (8, 16, 1), {
            **array("out", buffer(floats(rng, rows * columns)), (rows, columns), (4 * columns, 4)),
            **array("x", buffer(floats(rng, rows * columns)), (rows, columns), (4 * columns, 4)),
            **array("row", buffer(floats(rng, columns)), (columns,), (4,))})


def smooth(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 32, 200):
        yield LaunchCase(x(cover(n, 32)), x(32), {
            **array("out", buffer(floats(rng, n, np.float64)), (n,), (8,), 8),
            **array("x", buffer(floats(rng, n, np.float64)), (n,), (8,), 8)})


def scale_stride(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, grid in zip(element_counts(rng, 32, 300), blocks(1, 2, 3), strict=False):
        yield LaunchCase(x(grid), x(32), {**vector(rng, "x", n), "a": f32(1.5)})


def transpose_tile(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 8, 9, high=20), sizes(rng, 1, 8, 20, high=20), strict=False):
        yield LaunchCase((cover(columns, 8), cover(rows, 8), 1), (8, 8, 1), {
            **matrix(rng, "out", columns, rows), **matrix(rng, "x", rows, columns)})


def count_values(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, bins in zip(element_counts(rng, 32, 200), sizes(rng, 1, 16, high=30), strict=False):
        yield LaunchCase(x(cover(n, 32)), x(32), {
            **array("bins", buffer(ints(rng, bins)), (bins,), (4,)),
            **array("x", buffer(ints(rng, n, low=0, high=1000)), (n,), (4,))})


KERNELS: dict[Cases, str] = {
    add_rows: "", smooth: "", scale_stride: "", transpose_tile: "", count_values: "bins by value",
}


def kernels() -> list[KernelLaunches]:
    """All kernels of :mod:`numba_sources`."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise Missing("numba-cuda not found: pip install numba==0.68.1 numba-cuda==0.30.4")
    if compilers.nvrtc() is None:
        raise Missing(f"numba-cuda needs NVVM and NVRTC: pip install {compilers.NVRTC_PACKAGE} nvidia-nvvm")
    from numba import cuda  # type: ignore[import-not-found, unused-ignore]

    from benchmarks.producers import numba_sources

    register = Registry("compiled", "numba")
    for function, signature in numba_sources.SIGNATURES.items():
        text, _ = cuda.compile_ptx(function, signature, cc=(8, 0))
        cases = next(c for c in KERNELS if c.__name__ == function.__name__)
        register.add(f"numba_sources_{function.__name__}.ptx", function.__name__, cases,
            data_dependent=KERNELS[cases], text=text)
    return register.entries
