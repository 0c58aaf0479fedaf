"""Kernels that are bound by memory or by elementary functions, beside numba and numpy."""

from __future__ import annotations

import os

import _engine_numba
import numpy as np
import numpy.typing as npt
from _common import Row
from _engine_kernels import Floats, Kernels, check, floats
from _engine_timing import Times, Work, interleaved, milliseconds, processor_seconds, share

from softgpu import engine

COUNT = 1 << 22
SIDE = 2048
ROWS, COLUMNS = (512, 2048), 1000
NUMBA_SHARE = 0.8
NUMPY_SHARE = 0.5
BY_BLOCK, BY_WARP = "a block for each row", "a warp for each row"


def rows() -> list[Row]:
    one = engine.Pool(1)
    found = _saxpy(one)
    for count in ROWS:
        found += _softmax(count, one)
    return [*found, *_sum(), *_transpose()]


def _saxpy(one: engine.Pool) -> list[Row]:
    kernels = Kernels("elementwise")
    x, start = floats(COUNT), floats(COUNT, seed=2)
    y, z, a = start.copy(), start.copy(), np.float32(0.5)
    functions = {name: _engine_numba.saxpy(fastmath) for name, fastmath in _engine_numba.variants().items()}

    def ours(pool: engine.Pool | None) -> dict[str, Work]:
        return {"engine": lambda: kernels.launch("saxpy", COUNT // 256, 256, [y, x, a, COUNT], pool)}

    ours(None)["engine"]()
    check("saxpy", y, a * x + start, 1e-5, 1e-6)
    product = np.empty_like(x)

    def plain() -> None:
        np.multiply(x, a, out=product)
        np.add(y, product, out=y)

    yardsticks: dict[str, Work] = {name: lambda f=f: f(z, x, a) for name, f in functions.items()}  # type: ignore[misc]
    return _beside_numba("saxpy, 4 Mi", ours(None), ours(one), yardsticks, plain)


def _softmax(count: int, one: engine.Pool) -> list[Row]:
    kernels = Kernels("softmax")
    x = floats(count, COLUMNS)
    y = np.zeros_like(x)
    functions = {name: _engine_numba.softmax(fastmath) for name, fastmath in _engine_numba.variants().items()}

    def ours(pool: engine.Pool | None) -> dict[str, Work]:
        return {
            BY_BLOCK: lambda: kernels.launch("softmax_block", count, 256, [y, x, COLUMNS], pool),
            BY_WARP: lambda: kernels.launch("softmax_warp", count // 8, 256, [y, x, count, COLUMNS], pool),
        }

    def plain() -> None:
        np.subtract(x, x.max(1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(1, keepdims=True), out=y)

    yardsticks: dict[str, Work] = {name: lambda f=f: f(y, x) for name, f in functions.items()}  # type: ignore[misc]
    expected = _softmax_exactly(x)
    for name, work in {**ours(None), **yardsticks, "numpy": plain}.items():
        y[:] = 0
        work()
        check(f"softmax by {name}", y, expected, 1e-5, 0)
    return _beside_numba(f"softmax, {count} x {COLUMNS}", ours(None), ours(one), yardsticks, plain)


def _softmax_exactly(x: Floats) -> npt.NDArray[np.float64]:
    powers: npt.NDArray[np.float64] = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _beside_numba(what: str, ours: dict[str, Work], single: dict[str, Work], numba: dict[str, Work],
                  numpy: Work) -> list[Row]:
    """``ours`` on all cores, ``single`` the same on one."""
    cores = len(os.sched_getaffinity(0))
    _engine_numba.set_threads(cores)
    times = interleaved({**ours, **numba, "numpy": numpy}, settling=tuple(numba))
    found = _rows(f"{what}, {cores} cores", times, list(ours))
    _engine_numba.set_threads(1)
    return found + _rows(f"{what}, one core", processor_seconds({**single, **numba, "numpy": numpy}), list(ours))


def _rows(what: str, times: dict[str, Times], ours: list[str]) -> list[Row]:
    found = [milliseconds(f"{what}: {name}", taken) for name, taken in times.items()]
    if _engine_numba.PLAIN in times:
        found += [share(f"{what}: {name}, speed : numba", times[name], times[_engine_numba.PLAIN], NUMBA_SHARE)
                  for name in ours]
    return found


def _sum() -> list[Row]:
    kernels = Kernels("movement")
    x = floats(COUNT)
    parts, total = np.zeros(256, np.float32), np.zeros(1, np.float32)

    def ours() -> None:
        kernels.launch("sum", 256, 256, [parts, x, COUNT])
        kernels.launch("sum", 1, 256, [total, parts, 256])

    ours()
    check("sum", total, np.array([x.sum(dtype=np.float64)]), 0, 0.05)
    return _beside_numpy("sum, 4 Mi", {"engine": ours, "numpy": x.sum})


def _transpose() -> list[Row]:
    kernels = Kernels("movement")
    x = floats(SIDE, SIDE)
    y = np.zeros_like(x)
    works: dict[str, Work] = {
        "engine": lambda: kernels.launch("transpose", (SIDE // 32, SIDE // 32), (32, 8), [y, x, SIDE, SIDE]),
        "numpy": lambda: np.copyto(y, x.T),
    }
    works["engine"]()
    check("transpose", y, x.T, 0, 0)
    return _beside_numpy(f"transpose, {SIDE} x {SIDE}", works)


def _beside_numpy(what: str, works: dict[str, Work]) -> list[Row]:
    times = interleaved(works)
    found = [milliseconds(f"{what}: {name}", taken) for name, taken in times.items()]
    return [*found, share(f"{what}: engine, speed : numpy", times["engine"], times["numpy"], NUMPY_SHARE)]
