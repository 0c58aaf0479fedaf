"""A placement for tests: anywhere, and the same every time."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

from orchestrator.session.operations import Dimensions
from orchestrator.session.step_classes import StepClass


class RandomDevices:
    """Devices by a hash of the seed, the kernel, its grid and how often it was launched so; ``gpus`` are numbered from
    0. Of all launches ``home`` stay, and ``mirrored`` are mirrored. With ``steady`` how often does not count, so that
    steps repeat themselves."""

    ambiguous = 0

    def __init__(self, seed: int, gpus: int, home: float = 0.3, mirrored: float = 0.2, steady: bool = False) -> None:
        self.seed, self.gpus, self.home, self.mirrored, self.steady = seed, gpus, home, mirrored, steady
        self._counts: dict[tuple[str, Dimensions], int] = {}
        self.steps = 0

    def devices(self, kernel: str, grid: Dimensions, block: Dimensions, home: int) -> tuple[int, ...]:
        count = self._counts[kernel, grid] = self._counts.get((kernel, grid), -1) + 1
        what = repr((self.seed, kernel, grid, 0 if self.steady else count))
        number = int.from_bytes(hashlib.blake2b(what.encode(), digest_size=8).digest(), "little")
        share, device = (number >> 8 & 0xFFFF) / 0x10000, (number >> 32) % self.gpus
        if share < self.home or device == home:
            return ()
        return (home, device) if share < self.home + self.mirrored else (device,)

    def token(self) -> Hashable:
        return 0 if self.steady else None

    def step_over(self, step: StepClass | None) -> None:
        self.steps += 1


def random_devices(seed: int, gpus: int, *, home: float = 0.3, mirrored: float = 0.2,
                   steady: bool = False) -> RandomDevices:
    """A :class:`orchestrator.session.placement.Placement`."""
    return RandomDevices(seed, gpus, home, mirrored, steady)
