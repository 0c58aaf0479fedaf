"""Launches of the corpus kernels made by numba-cuda.

An array is a row of words: two object pointers (unused on the device), number of items, item size, data pointer,
then shape and strides, one word for each dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.launches.case import Argument, Buffer, LaunchCase, Pointer, buffer, f32, i32, i64
from tests.launches.registry import Registry
from tests.launches.values import cover, element_counts, floats, sizes, spare, x

register = Registry("corpus", "numba")


def array(
    name: str, data: Buffer | Pointer, shape: Sequence[int], strides: Sequence[int], item: int = 4
) -> dict[str, Argument]:
    """The words of one array argument; ``strides`` in bytes."""
    words: dict[str, Argument] = {
        f"{name}.meminfo": i64(0), f"{name}.parent": i64(0), f"{name}.items": i64(int(np.prod(shape))),
        f"{name}.itemsize": i64(item), f"{name}.data": data}
    words.update({f"{name}.shape{d}": i64(extent) for d, extent in enumerate(shape)})
    words.update({f"{name}.stride{d}": i64(stride) for d, stride in enumerate(strides)})
    return words


def vector(rng: np.random.Generator, name: str, n: int) -> dict[str, Argument]:
    """A one-dimensional array: contiguous, every second element, or backwards."""
    step = int(rng.choice([1, 1, 2, -1])) if n else 1
    data = buffer(floats(rng, (n - 1) * abs(step) + 1 if n else 0))
    start = data.at(4 * (n - 1) * -step) if step < 0 else data
    return array(name, start, (n,), (4 * step,))


@register("corpus/ptx/numba_saxpy_sm80.ptx")
def saxpy(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, 3000 if large else 300):
        yield LaunchCase(x(cover(n, 64, spare(rng))), x(64), {
            "n": i32(n), "a": f32(1.5), **vector(rng, "x", n), **vector(rng, "y", n)})


@register("corpus/ptx/numba_red_sm80.ptx")
def red(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, 3000 if large else 300):
        yield LaunchCase(x(cover(n, 64, spare(rng))), x(64), {
            **vector(rng, "x", n), **array("out", buffer(floats(rng, 1)), (1,), (4,))})


def matrix(rng: np.random.Generator, name: str, rows: int, columns: int) -> dict[str, Argument]:
    """A two-dimensional array by rows, with or without a gap after each row."""
    pitch = columns + int(rng.choice([0, 0, 3]))
    data = buffer(floats(rng, pitch * (rows - 1) + columns if rows and columns else 0))
    return array(name, data, (rows, columns), (4 * pitch, 4))


@register("corpus/ptx/numba_mm_sm80.ptx")
def mm(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    most = 50 if large else 20
    for m, n, k in zip(sizes(rng, 1, 16, 17, high=most), sizes(rng, 1, 16, 20, high=most),
                       sizes(rng, 1, 16, 0, 33, high=40), strict=False):
        yield LaunchCase((cover(n, 16), cover(m, 16), 1), (16, 16, 1), {
            **matrix(rng, "a", m, k), **matrix(rng, "b", k, n), **matrix(rng, "c", m, n)})
