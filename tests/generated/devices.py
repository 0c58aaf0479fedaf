"""A placement for tests: anywhere, and the same every time."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

from orchestrator.session.operations import Dimensions
from orchestrator.session.step_classes import StepClass
from orchestrator.session.steps import LaunchKey


class RandomDevices:
    """See :func:`random_devices`."""

    ambiguous = 0

    def __init__(self, seed: int, gpus: int, home: float, mirrored: float, steady: bool, together: int) -> None:
        self.seed, self.gpus, self.home, self.mirrored = seed, gpus, home, mirrored
        self.steady, self.together = steady, together
        self._counts: dict[tuple[str, Dimensions], int] = {}
        self._launches = 0

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        what = launch.kernel, launch.grid
        count = self._counts[what] = self._counts.get(what, -1) + 1
        whole = (self.seed, *what, 0 if self.steady else count)
        run = self._launches // self.together
        self._launches += 1
        data = repr((self.seed, run) if self.together > 1 else whole).encode()
        number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
        share, device = (number >> 8 & 0xFFFF) / 0x10000, (number >> 32) % self.gpus
        if share < self.home or device == home:
            return ()
        return (home, device) if share < self.home + self.mirrored else (device,)

    def token(self) -> Hashable:
        return 0 if self.steady and self.together == 1 else None

    def step_over(self, step: StepClass | None) -> None:
        pass


def random_devices(seed: int, gpus: int, *, home: float = 0.1, mirrored: float = 0.2, steady: bool = False,
                   together: int = 1) -> RandomDevices:
    """A :class:`orchestrator.session.placement.Placement`: devices by a hash of the seed, the kernel, its grid and how
    often it was launched so; ``gpus`` are numbered from 0. Of all launches the share ``home`` stays, and ``mirrored``
    is mirrored; whatever is given its own home stays too. With ``steady`` how often does not count, so that steps
    repeat themselves; ``together``: so many launches in a row, of whatever kernels, are given the same devices, so that
    they may be one segment."""
    return RandomDevices(seed, gpus, home, mirrored, steady, together)
