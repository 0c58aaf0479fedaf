"""Matrix products as a share of OpenBLAS: on all cores by the wall clock, and on one core by processor time."""

from __future__ import annotations

import os
from dataclasses import dataclass

import _engine_blas
import numpy as np
from _common import Row
from _engine_kernels import Kernels, check, floats
from _engine_timing import Measured, Times, Work, interleaved, processor_seconds, share

from softgpu import engine

SIZES = (512, 1024)


@dataclass(frozen=True)
class Product:
    """A kernel: ``tile`` is the side of a block's tile, ``size_count`` how many sizes it takes, ``half`` whether its
    factors are half precision, ``share`` of OpenBLAS that it must reach, ``error`` in units of the sum's length."""

    what: str
    file: str
    kernel: str
    tile: int
    block: tuple[int, ...]
    size_count: int
    share: float | None
    half: bool = False
    error: float = 1e-5

    def work(self, kernels: Kernels, c: np.ndarray, a: np.ndarray, b: np.ndarray, pool: engine.Pool | None) -> Work:
        n = len(a)
        grid = (n // self.tile, n // self.tile)
        arguments = [c, a, b, *[n] * self.size_count]
        return lambda: kernels.launch(self.kernel, grid, self.block, arguments, pool)


PRODUCTS = (
    Product("tiled 16 x 16", "matmul", "matmul_tiled", 16, (16, 16), 3, 0.07),
    Product("tile 64 x 64, 4 x 4 a thread", "matmul", "matmul_blocked_64", 64, (256,), 2, 0.15),
    Product("tile 128 x 128, 8 x 8 a thread", "matmul", "matmul_blocked_128", 128, (256,), 2, None),
    Product("mma f16", "matmul_mma", "matmul_f16", 64, (128,), 2, 0.2, half=True),
    Product("mma tf32", "matmul_mma", "matmul_tf32", 64, (128,), 2, 0.2, error=1e-3),
)
YARDSTICK = "OpenBLAS"


def rows() -> list[Row]:
    cores = len(os.sched_getaffinity(0))
    files = {product.file: Kernels(product.file) for product in PRODUCTS}
    found = []
    one = engine.Pool(1)
    for size in SIZES:
        a, b = floats(size, size), floats(size, size, seed=2)
        c, yardstick = np.zeros_like(a), np.zeros_like(a)
        ours: dict[str, Work] = {}
        single: dict[str, Work] = {}
        for product in PRODUCTS:
            left, right = (a.astype(np.float16), b.astype(np.float16)) if product.half else (a, b)
            ours[product.what] = product.work(files[product.file], c, left, right, None)
            single[product.what] = product.work(files[product.file], c, left, right, one)
            c[:] = 0
            ours[product.what]()
            exact = left.astype(np.float64) @ right.astype(np.float64)
            check(f"{product.what}, {size}", c, exact, 0, product.error * size)
        product_of_numpy: Work = lambda: np.matmul(a, b, out=yardstick)  # noqa: E731, B023 - used in this round only
        _engine_blas.set_threads(cores)
        times = interleaved({YARDSTICK: product_of_numpy, **ours}, settling=(YARDSTICK,))
        found += _rows(f"product, {size}^3, {cores} cores", size, times)
        _engine_blas.set_threads(1)
        alone = processor_seconds({YARDSTICK: product_of_numpy, **single})
        found += _rows(f"product, {size}^3, one core", size, alone)
    return found


def _rows(what: str, size: int, times: dict[str, Times]) -> list[Row]:
    limits = {product.what: product.share for product in PRODUCTS}
    work = 2 * size**3 / 1e9
    found: list[Row] = []
    for name, taken in times.items():
        found.append(Measured(f"{what}: {name}", work / taken.median, "GFlop/s", best=work / taken.best))
        if name != YARDSTICK:
            found.append(share(f"{what}: {name}, share", taken, times[YARDSTICK], limits[name]))
    return found
