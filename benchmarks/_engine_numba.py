"""The yardstick for kernels without matrix products: the same algorithms in numba, parallel on all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import numba  # type: ignore[import-untyped]
except ImportError:
    numba = None

Function = Callable[..., Any]

MISSING = "numba is not installed (python3 build.py bench --clients engine), so its rows are missing. "
PLAIN = "numba"


def available() -> bool:
    return numba is not None


def variants() -> dict[str, bool]:
    """Names of what is measured, and whether it is compiled with fastmath; none without numba."""
    return {PLAIN: False, "numba with fastmath": True} if available() else {}


def set_threads(count: int) -> None:
    """Have parallel loops run on so many threads."""
    if available():
        numba.set_num_threads(count)


def describe() -> str:
    """What numba works with, after its first parallel run."""
    return f"numba {numba.__version__}, threads of {numba.threading_layer()}"


def saxpy(fastmath: bool) -> Function:
    """y[i] = a x[i] + y[i]"""

    @numba.njit(parallel=True, fastmath=fastmath)  # type: ignore[untyped-decorator]
    def run(y, x, a):  # type: ignore[no-untyped-def]
        for i in numba.prange(y.size):
            y[i] = a * x[i] + y[i]

    return run


def softmax(fastmath: bool) -> Function:
    """Rows of y are the softmax of those of x, by three passes over a row as in the kernels."""
    zero, one, least = np.float32(0), np.float32(1), np.float32(-np.inf)

    @numba.njit(parallel=True, fastmath=fastmath)  # type: ignore[untyped-decorator]
    def run(y, x):  # type: ignore[no-untyped-def]
        for row in numba.prange(x.shape[0]):
            most = least
            for i in range(x.shape[1]):
                most = max(most, x[row, i])
            sum_ = zero
            for i in range(x.shape[1]):
                e = np.exp(x[row, i] - most)
                y[row, i] = e
                sum_ += e
            scale = one / sum_
            for i in range(x.shape[1]):
                y[row, i] *= scale

    return run
