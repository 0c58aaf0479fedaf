"""The allocations of a client at one moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

_tokens = count(1)


def _address(allocation: Allocation) -> int:
    return allocation.address


class Allocation(NamedTuple):
    """``size`` bytes at ``address``; ``id`` is the caller's name for it, unique among those given together."""

    id: object
    address: int
    size: int


class Allocations:
    """An unchanging set of allocations that do not overlap. ``token`` is different for every set made."""

    def __init__(self, items: Iterable[tuple[object, int, int]] = ()) -> None:
        self.items: Sequence[Allocation] = tuple(sorted((Allocation(*item) for item in items), key=_address))
        self.token = next(_tokens)
        self._starts = [a.address for a in self.items]
        self._by_id = {a.id: a for a in self.items}

    def find(self, address: int) -> Allocation | None:
        """The allocation that holds the byte at ``address``."""
        position = bisect_right(self._starts, address) - 1
        if position < 0:
            return None
        found = self.items[position]
        return found if address < found.address + found.size else None

    def ending_at(self, address: int) -> Allocation | None:
        """The allocation whose last byte is just before ``address``: a pointer may stand at its end."""
        position = bisect_right(self._starts, address - 1) - 1
        found = self.items[position] if position >= 0 else None
        return found if found is not None and found.address + found.size == address else None

    def by_id(self, identity: object) -> Allocation | None:
        return self._by_id.get(identity)


class LiveAllocations(Allocations):
    """A set that changes. What was evaluated with it before a change is not remembered for it afterwards, as
    ``token`` is another."""

    def __init__(self) -> None:
        super().__init__()
        self._live: list[Allocation] = []
        self.items = self._live

    def add(self, identity: object, address: int, size: int) -> None:
        """One more, which overlaps none that is there, and whose ``identity`` none has."""
        place = bisect_left(self._starts, address)
        self._starts.insert(place, address)
        self._live.insert(place, Allocation(identity, address, size))
        self._by_id[identity] = self._live[place]
        self.token = next(_tokens)

    def remove(self, identity: object) -> None:
        """Take one away. Raises KeyError when it is not there."""
        found = self._by_id.pop(identity)
        place = bisect_left(self._starts, found.address)
        del self._starts[place], self._live[place]
        self.token = next(_tokens)
