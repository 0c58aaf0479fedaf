"""Random launches of the engine's kernels."""

from __future__ import annotations

import random

from tests.random_kernels.engine_run import EngineCase
from tests.random_kernels.launches import ANY, SMALL
from tests.random_kernels.placed import Dimensions

BLOCKS: tuple[Dimensions, ...] = (
    (1, 1, 1), (31, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (8, 8, 1), (5, 7, 3), (32, 4, 1), (16, 16, 1),
    (128, 1, 1), (4, 2, 4), (2, 32, 1), (3, 3, 3), (1, 40, 1), (1, 1, 33), (16, 2, 3), (64, 2, 1), (96, 1, 1),
    (8, 4, 2), (16, 4, 2), (2, 2, 16), (24, 2, 1), (4, 4, 5), (1, 2, 32), (8, 1, 8),
)
LARGE: tuple[Dimensions, ...] = ((1023, 1, 1), (32, 32, 1), (10, 10, 10), (64, 3, 5))
GRIDS: tuple[Dimensions, ...] = ((1, 1, 1), (2, 1, 1), (3, 1, 1), (2, 2, 1), (1, 2, 2), (1, 1, 3))


def cases(seed: int, count: int) -> list[EngineCase]:
    """The first launches of the kernel of that seed; each has other options of the engine."""
    choose = random.Random(seed * 7919 + 3)
    found = []
    for number in range(count):
        grid, block = choose.choice(GRIDS), choose.choice(BLOCKS)
        if choose.random() < 0.04:
            grid, block = (1, 1, 1), choose.choice(LARGE)
        numbers = {name: choose.choice(SMALL if choose.random() < 0.9 else (13, 17)) for name in "nm"}
        threads = block[0] * block[1] * block[2]
        numbers["len"] = choose.choice((0, 1, threads - 1, threads, threads // 2, 27))
        numbers["w"], numbers["u"] = choose.choice(ANY), choose.choice(ANY)
        numbers["q"] = choose.choice((0, 1, 2, 5, -1, -4, 64, 100, 1 << 40))
        numbers["h"] = choose.choice((0, 1, 3, 12, 200, 65535, 32768))
        numbers["x"], numbers["y"] = choose.choice(SMALL), choose.choice((*SMALL, 16, 32))
        numbers["z"] = choose.choice((0, 1, 3, -2, 40))
        style = (seed + number) % 4
        found.append(EngineCase(grid, block, numbers, seed * 31 + number, style == 1, style == 2, style >= 2))
    return found
