"""In which order blocks run and how their execution interleaves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LARGEST_BATCH_ROWS = 16384
"""Threads that advance in lock-step at most: what keeps a register array inside a core's second-level cache."""

DEFAULT_QUANTUM = 50_000
"""Issues a batch gets before the next one: large, since only blocks that wait for one another need switching."""

WAITING_QUANTUM = 1_000
"""The same for kernels whose threads may wait for one another in loops."""


@dataclass(frozen=True)
class Schedule:
    """One legal interleaving of the blocks of a grid.

    ``order``: blocks by linear index, forward, reverse, or shuffled by ``seed``. ``together``: how many consecutive
    blocks of that order advance in lock-step, instruction by instruction, lower positions first where they touch the
    same byte. None: as many as fit when neither ``quantum`` is given nor the order is random (reverse: at least
    four batches, so that some blocks finish before others start); 1 with a quantum; a random size for each batch in
    random order. ``quantum``: issues (one instruction for one group of threads) a batch gets before the next one runs.
    ``warps``: "together" merges the threads of all warps of a batch that stand at the same instruction; "apart" runs
    each warp for a quantum of its own.
    """

    order: Literal["forward", "reverse", "random"] = "forward"
    seed: int = 0
    quantum: int | None = None
    together: int | None = None
    warps: Literal["together", "apart"] = "together"

    def batches(self, blocks: int, most: int) -> Iterator[list[int]]:
        """Linear block indices, batch by batch, in the order of their first turn; at most ``most`` in a batch."""
        if self.order == "forward":
            order = range(blocks)
        elif self.order == "reverse":
            order = range(blocks - 1, -1, -1)
        shuffle = random.Random(self.seed)
        shuffled: list[int] = []
        if self.order == "random":
            shuffled = list(range(blocks))
            shuffle.shuffle(shuffled)
        start = 0
        while start < blocks:
            size = min(self._batch_size(blocks, shuffle), most)
            end = min(start + size, blocks)
            yield shuffled[start:end] if shuffled else list(order[start:end])
            start = end

    def _batch_size(self, blocks: int, shuffle: random.Random) -> int:
        if self.together is not None:
            return max(self.together, 1)
        if self.quantum is not None:
            return 1
        if self.order == "random":
            return shuffle.randint(1, max(blocks // 2, 1))
        if self.order == "reverse":
            return max(-(-blocks // 4), 1)
        return blocks

    def issues(self, may_wait: bool) -> int:
        """The quantum in force for a kernel whose threads may or may not wait for one another in loops."""
        if self.quantum is not None:
            return max(self.quantum, 1)
        return WAITING_QUANTUM if may_wait else DEFAULT_QUANTUM
