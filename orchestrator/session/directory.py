"""Which bytes of a program are valid where.

Home memory, where the program has put it, is always valid: a GPU's **replica** of an allocation holds some of its
bytes, and never the only copy. So all there is to know is, for each GPU, the set of bytes of its replicas that equal
those at home after everything the records have told of so far.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from orchestrator.session.intervals import Intervals
from orchestrator.session.memory import Allocation


class Held(NamedTuple):
    """Memory of a GPU for a replica of the bytes [lo, hi); ``bytes``: what it takes there."""

    lo: int
    hi: int
    bytes: int


class DirectoryState(NamedTuple):
    """All that a directory knows: for each GPU the edges of what is valid, its replicas in order, bytes used, and those
    of allocations that have ended."""

    valid: tuple[tuple[int, ...], ...]
    held: tuple[tuple[tuple[int, Held], ...], ...]
    used: tuple[int, ...]
    ended: tuple[tuple[int, ...], ...]


class Directory:
    """For each GPU of the fleet, whose memory for replicas is ``gpus`` bytes."""

    def __init__(self, gpus: Iterable[int]) -> None:
        self.room = tuple(gpus)
        self.valid = [Intervals() for _ in self.room]
        self.held: list[dict[int, Held]] = [{} for _ in self.room]
        self.used = [0 for _ in self.room]
        self._ended: list[list[int]] = [[] for _ in self.room]

    def state(self) -> DirectoryState:
        return DirectoryState(tuple([valid.edges() for valid in self.valid]),
                              tuple([tuple(held.items()) for held in self.held]), tuple(self.used),
                              tuple([tuple(ended) for ended in self._ended]))

    def put(self, state: DirectoryState) -> None:
        """Make it what it was when that was its state."""
        for valid, edges in zip(self.valid, state.valid, strict=True):
            valid.put(edges)
        self.held[:] = [dict(held) for held in state.held]
        self.used[:] = state.used
        self._ended[:] = [list(ended) for ended in state.ended]

    def stale(self, lo: int, hi: int, but: Collection[int] = ()) -> None:
        """Home has other bytes there now than any GPU ``but`` those."""
        for device, valid in enumerate(self.valid):
            if device not in but:
                valid.remove(lo, hi)

    def everywhere(self, lo: int, hi: int) -> None:
        """All GPUs have these bytes: a module variable's first ones, which come with the module."""
        for valid in self.valid:
            valid.add(lo, hi)

    def withdraw(self, device: int | None = None) -> None:
        """Nothing is valid any more on a GPU, or (None) on any."""
        for number, valid in enumerate(self.valid):
            if device is None or number == device:
                valid.clear()

    def ended(self, lo: int, hi: int, allocation: Allocation) -> None:
        """Bytes of an allocation are gone, perhaps all of it."""
        self.stale(lo, hi)
        if (lo, hi) == (allocation.address, allocation.end):
            for device, held in enumerate(self.held):
                if allocation.number in held and held[allocation.number].bytes:
                    self._ended[device].append(allocation.number)
                self.give_back(device, allocation.number)

    def give_back(self, device: int, allocation: int) -> None:
        """A GPU has no memory for this replica any more."""
        held = self.held[device].pop(allocation, None)
        if held is not None:
            self.used[device] -= held.bytes
            self.valid[device].remove(held.lo, held.hi)

    def make_room(self, device: int, wanted: dict[int, Held]) -> tuple[int, ...] | None:
        """Which replicas go: those of allocations that have ended, and as many as must so that these have room, those
        first that were used longest ago; None if that is not enough."""
        held = self.held[device]
        lacking = self.used[device] - self.room[device] + sum(
            one.bytes - (held[number].bytes if number in held else 0) for number, one in wanted.items())
        evicted = []
        for number, one in held.items():
            if lacking <= 0:
                break
            if number not in wanted and one.bytes:
                evicted.append(number)
                lacking -= one.bytes
        return (*self._ended[device], *evicted) if lacking <= 0 else None

    def hold(self, device: int, evicted: Iterable[int], wanted: dict[int, Held]) -> None:
        """The replicas are there, used now, and the others gone."""
        for number in evicted:
            self.give_back(device, number)
        self._ended[device].clear()
        held = self.held[device]
        for number, one in wanted.items():
            old = held.pop(number, None)
            held[number] = one
            self.used[device] += one.bytes - (old.bytes if old else 0)
