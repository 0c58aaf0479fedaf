"""The allocations of a client at one moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

_tokens = count(1)


class Allocation(NamedTuple):
    """``size`` bytes at ``address``; ``id`` is the caller's name for it, unique among those given together."""

    id: object
    address: int
    size: int


class Allocations:
    """An unchanging set of allocations that do not overlap. ``token`` is different for every set made."""

    def __init__(self, items: Iterable[tuple[object, int, int]] = ()) -> None:
        self.items = tuple(sorted((Allocation(*item) for item in items), key=lambda a: a.address))
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
