"""Kernels compiled at test time, by every producer that is installed; what is missing, and what to install for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from benchmarks.producers import Missing, cuda_kernels, numba_kernels, tinygrad_kernels, triton_kernels
from tests.launches.registry import KernelLaunches

PRODUCERS: dict[str, Callable[[], list[KernelLaunches]]] = {
    "nvcc": cuda_kernels.nvcc_kernels,
    "NVRTC": cuda_kernels.nvrtc_kernels,
    "tinygrad": tinygrad_kernels.renderer_kernels,
    "tinygrad through NVRTC": tinygrad_kernels.nvrtc_kernels,
    "Triton": triton_kernels.kernels,
    "numba-cuda": numba_kernels.kernels,
}


@cache
def compiled_by(producer: str) -> tuple[KernelLaunches, ...] | str:
    """The kernels of one producer, or why there are none."""
    try:
        return tuple(PRODUCERS[producer]())
    except Missing as missing:
        return str(missing)


def compiled_kernels() -> tuple[list[KernelLaunches], dict[str, str]]:
    """All kernels that can be compiled here, and by producer why others cannot."""
    kernels: list[KernelLaunches] = []
    missing: dict[str, str] = {}
    for producer in PRODUCERS:
        found = compiled_by(producer)
        if isinstance(found, str):
            missing[producer] = found
        else:
            kernels.extend(found)
    return kernels, missing
