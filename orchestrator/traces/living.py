"""Ranges of addresses that live at one time, and which of them holds an address."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LivingRanges(Generic[Value]):
    """Values by ranges of addresses that do not overlap; a range that is added ends those in its way."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: dict[int, tuple[int, Value]] = {}

    def add(self, start: int, size: int, value: Value) -> list[Value]:
        """Put a range in, ``size`` in bytes, at least one; the values of those that had to go."""
        end = start + max(size, 1)
        gone = [self.remove(begin) for begin, _ in list(self.within(start, end))]
        before = self._before(start)
        if before is not None and self._ranges[before][0] > start:
            gone.append(self.remove(before))
        insort(self._starts, start)
        self._ranges[start] = (end, value)
        return [value for value in gone if value is not None]

    def remove(self, start: int) -> Value | None:
        """Take the range out that begins there; its value, or None if none does."""
        found = self._ranges.pop(start, None)
        if found is None:
            return None
        del self._starts[bisect_left(self._starts, start)]
        return found[1]

    def find(self, address: int) -> tuple[int, int, Value] | None:
        """First byte, end and value of the range that holds an address."""
        start = self._before(address + 1)
        if start is None:
            return None
        end, value = self._ranges[start]
        return (start, end, value) if address < end else None

    def within(self, start: int, end: int) -> Iterator[tuple[int, Value]]:
        """Beginnings and values of the ranges that begin between two addresses."""
        for begin in self._starts[bisect_left(self._starts, start):bisect_left(self._starts, end)]:
            yield begin, self._ranges[begin][1]

    def _before(self, address: int) -> int | None:
        place = bisect_right(self._starts, address - 1)
        return self._starts[place - 1] if place else None
