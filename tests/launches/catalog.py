"""All kernels with launches: our own fixtures always, the corpus when the reference material is there."""

from __future__ import annotations

from functools import cache

from tests.launches.corpus import numba, nvcc, tinygrad, triton
from tests.launches.fixtures import (
    atomics,
    bits,
    bulk_sm90,
    calls,
    control,
    division,
    elementwise,
    gather,
    halves,
    hand,
    math,
    matmul,
    memory,
    reduce,
    rope,
    rows,
    structs,
    sync,
    tensor,
    warp,
)
from tests.launches.registry import KernelLaunches
from tests.material import material

FIXTURES = (
    atomics, bits, bulk_sm90, calls, control, division, elementwise, gather, halves, hand, math, matmul, memory, reduce,
    rope, rows, structs, sync, tensor, warp,
)
CORPUS = (nvcc, numba, triton)


def fixture_kernels() -> list[KernelLaunches]:
    """Kernels of our own fixtures, in file order."""
    return [entry for module in FIXTURES for entry in module.register.entries]


@cache
def corpus_kernels() -> tuple[KernelLaunches, ...]:
    """Kernels of the corpus; none when the reference material is not there."""
    folder = material()
    if folder is None:
        return ()
    entries = [entry for module in CORPUS for entry in module.register.entries]
    for registry in tinygrad.registries(folder):
        entries.extend(registry.entries)
    return tuple(entries)


def all_kernels() -> list[KernelLaunches]:
    return [*fixture_kernels(), *corpus_kernels()]
