"""Random values and sizes for launch cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tests.launches.case import Shape

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, 1e-38, 65504.0, 65520.0, 0.5)


def floats(
    rng: np.random.Generator, count: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32, special: bool = False
) -> npt.NDArray[np.generic]:
    """Normal values; with ``special`` about one in eight is a zero, an infinity, a NaN, a subnormal or an extreme."""
    values = rng.standard_normal(count)
    if special and values.size:
        marks = rng.random(values.shape) < 0.125
        values[marks] = rng.choice(SPECIAL, int(marks.sum()))
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def bfloats(rng: np.random.Generator, count: int | tuple[int, ...], special: bool = False) -> npt.NDArray[np.uint16]:
    """bfloat16 values by their bits (the upper half of a float)."""
    return (floats(rng, count, np.float32, special).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def ints(
    rng: np.random.Generator, count: int | tuple[int, ...], dtype: npt.DTypeLike = np.int32,
    low: int | None = None, high: int | None = None,
) -> npt.NDArray[np.generic]:
    """Uniform integers in ``[low, high)``; without bounds the whole range of the type."""
    info = np.iinfo(np.dtype(dtype).type)
    lowest = int(info.min) if low is None else low
    if high is None:
        return rng.integers(lowest, int(info.max), count, dtype=np.dtype(dtype).type, endpoint=True)
    return rng.integers(lowest, high, count, dtype=np.dtype(dtype).type)


def sizes(rng: np.random.Generator, *edges: int, low: int = 1, high: int) -> Iterator[int]:
    """The edge values first (those up to ``high``), then uniform ones in ``[low, high]`` without end."""
    yield from (edge for edge in edges if edge <= high)
    while True:
        yield int(rng.integers(low, high, endpoint=True))


def element_counts(rng: np.random.Generator, block: int, high: int, zero: bool = True) -> Iterator[int]:
    """Counts around the multiples of a block: 1, 0, block - 1, block, block + 1, two blocks, then random."""
    edges = (1, block, block + 1, block - 1, 2 * block, *((0,) if zero else ()), 3 * block - 7)
    yield from sizes(rng, *(e for e in edges if e >= (0 if zero else 1)), high=high)


def cover(count: int, block: int, spare: int = 0) -> int:
    """Blocks needed for ``count`` elements (at least one), and ``spare`` more that find nothing to do."""
    return max(1, -(-count // block)) + spare


def x(extent: int) -> Shape:
    """A one-dimensional shape."""
    return (extent, 1, 1)


def blocks(*choices: int) -> Iterator[int]:
    """Block sizes in turn, without end."""
    return itertools.cycle(choices)


def spare(rng: np.random.Generator) -> int:
    """Mostly no block too many, sometimes one or two."""
    return int(rng.choice([0, 0, 1, 2]))
