"""A placement at random that is the same whenever it is asked for: for tests, and to see what may be placed at all."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

from orchestrator.session.placement import named
from orchestrator.session.step_classes import StepClass
from orchestrator.session.steps import LaunchKey


class Random:
    """Each of ``gpus`` GPUs gets the same share of the launches; of those that do not stay at home the share
    ``mirrored`` is mirrored. What a launch gets depends on ``seed``, its kernel, its grid and its place in the step."""

    ambiguous = 0

    def __init__(self, seed: int, gpus: int, mirrored: float = 0.25) -> None:
        self._seed, self._gpus, self._mirrored = seed, gpus, mirrored
        self._index = 0

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        text = f"{self._seed} {launch.kernel} {launch.grid} {self._index}"
        self._index += 1
        drawn = int.from_bytes(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest())
        high, low = divmod(drawn, 1 << 32)
        gpu = low % self._gpus
        return named((home, gpu) if high < self._mirrored * (1 << 32) else (gpu,), home)

    def token(self) -> Hashable:
        return 0

    def step_over(self, step: StepClass | None) -> None:
        self._index = 0
