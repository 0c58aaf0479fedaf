"""A generated program's addresses, and the physical bytes behind them: two addresses may be of one byte."""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import count
from random import Random
from typing import NamedTuple

import numpy as np

from tests.generated.kernels import Addresses

_SERIALS = count()


class Unmapped(Exception):
    """Nothing is at an address."""


class Physical:
    """Bytes. What :mod:`tests.generated.clocks` knows of each: its last writer and when, and its readers."""

    def __init__(self, size: int) -> None:
        self.serial = next(_SERIALS)
        self.size = size
        self.writer = np.zeros(size, np.int64)
        self.written = np.zeros(size, np.int64)
        self.readers: dict[int, Addresses] = {}
        self.adders: dict[int, Addresses] = {}


class Mapping(NamedTuple):
    """``size`` bytes at an address, which are those at ``offset`` of ``physical``."""

    address: int
    size: int
    physical: Physical
    offset: int


class Part(NamedTuple):
    """Bytes of one piece of physical memory, by their offsets."""

    physical: Physical
    offsets: Addresses


class Space:
    """What is mapped where."""

    def __init__(self) -> None:
        self._mappings: dict[int, Mapping] = {}
        self._starts: list[int] = []

    def add(self, mapping: Mapping) -> None:
        insort(self._starts, mapping.address)
        self._mappings[mapping.address] = mapping

    def remove(self, address: int) -> Mapping:
        self._starts.remove(address)
        return self._mappings.pop(address)

    def at(self, address: int) -> Mapping | None:
        """What begins there."""
        return self._mappings.get(address)

    def inside(self, address: int, size: int) -> list[Mapping]:
        """What begins in a range."""
        return [m for m in self._mappings.values() if address <= m.address < address + size]

    def resolve(self, addresses: Addresses) -> list[Part]:
        """The physical bytes at addresses, each as often as it stands there. Raises Unmapped."""
        parts = []
        left = np.sort(addresses)
        while len(left):
            place = bisect_right(self._starts, int(left[0])) - 1
            found = self._mappings[self._starts[place]] if place >= 0 else None
            if found is None or left[0] >= found.address + found.size:
                raise Unmapped(hex(int(left[0])))
            here = int(np.searchsorted(left, found.address + found.size))
            parts.append(Part(found.physical, left[:here] - found.address + found.offset))
            left = left[here:]
        return parts


class Window:
    """Addresses for new memory: those given back are used again, often; new ones often lie right behind others."""

    def __init__(self, rng: Random, start: int, reuse: bool) -> None:
        self.rng, self.next, self.reuse = rng, start, reuse
        self._free: list[tuple[int, int]] = []

    def take(self, size: int, align: int = 256) -> int:
        fitting = [place for place in self._free if place[1] >= size and not place[0] % align]
        if fitting and self.reuse and self.rng.random() < 0.6:
            place = self.rng.choice(fitting)
            self._free.remove(place)
            return place[0]
        address = -(-self.next // align) * align
        if self.rng.random() < 0.4:
            address += align * self.rng.randrange(1, 40)
        self.next = address + size
        return address

    def give(self, address: int, size: int) -> None:
        self._free.append((address, size))
