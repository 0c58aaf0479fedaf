"""Sets of bytes and values by bytes: half-open ranges [lo, hi) of integers, kept merged.

Both keep one sorted list of the places where something changes, so that every question is two bisections and every
change one slice. An empty range is allowed everywhere and touches nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

Value = TypeVar("Value")
Extent: TypeAlias = tuple[int, int]


class Intervals:
    """A set of integers."""

    __slots__ = ("_edges",)

    def __init__(self, spans: Iterable[Extent] = ()) -> None:
        self._edges: list[int] = []  # first integer of a range, end of it, first of the next, ...: all differ
        for lo, hi in spans:
            self.add(lo, hi)

    def add(self, lo: int, hi: int) -> None:
        if lo >= hi:
            return
        edges = self._edges
        first, last = bisect_left(edges, lo), bisect_right(edges, hi)
        edges[first:last] = _kept(not first & 1, lo, not last & 1, hi)

    def remove(self, lo: int, hi: int) -> None:
        if lo >= hi:
            return
        edges = self._edges
        first, last = bisect_left(edges, lo), bisect_right(edges, hi)
        edges[first:last] = _kept(first & 1, lo, last & 1, hi)

    def overlap(self, lo: int, hi: int) -> list[Extent]:
        """The parts of a range that are in the set, in order."""
        if lo >= hi:
            return []
        edges = self._edges
        first, last = bisect_right(edges, lo), bisect_left(edges, hi)
        return _pairs(([lo] if first & 1 else []) + edges[first:last] + ([hi] if last & 1 else []))

    def missing(self, lo: int, hi: int) -> list[Extent]:
        """The parts of a range that are not in the set, in order."""
        if lo >= hi:
            return []
        edges = self._edges
        first, last = bisect_right(edges, lo), bisect_left(edges, hi)
        return _pairs(([] if first & 1 else [lo]) + edges[first:last] + ([] if last & 1 else [hi]))

    def contains(self, lo: int, hi: int) -> bool:
        """Whether all of a range is in the set."""
        if lo >= hi:
            return True
        first = bisect_right(self._edges, lo)
        return bool(first & 1) and self._edges[first] >= hi

    def total(self) -> int:
        """How many integers are in the set."""
        return sum(self._edges[1::2]) - sum(self._edges[::2])

    def edges(self) -> tuple[int, ...]:
        """Beginnings and ends of its ranges, in order."""
        return tuple(self._edges)

    def put(self, edges: Iterable[int]) -> None:
        """Make it the set of which :meth:`edges` were these."""
        self._edges[:] = edges

    def copy(self) -> Intervals:
        made = Intervals()
        made._edges = self._edges.copy()
        return made

    def clear(self) -> None:
        self._edges.clear()

    def __iter__(self) -> Iterator[Extent]:
        return iter(_pairs(self._edges))

    def __len__(self) -> int:
        """How many ranges it takes to write the set down."""
        return len(self._edges) // 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals) and self._edges == other._edges

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Intervals({list(self)})"


def _kept(low: object, lo: int, high: object, hi: int) -> list[int]:
    """Those of the two edges of a changed range that are edges of the set afterwards."""
    return ([lo] if low else []) + ([hi] if high else [])


def _pairs(edges: list[int]) -> list[Extent]:
    return list(zip(edges[::2], edges[1::2], strict=True))


class IntervalMap(Generic[Value]):
    """Values by integers. None is no value: what has none is not in the map. Neighbours of equal values are one range;
    values must not be changed in place."""

    __slots__ = ("_starts", "_values")

    def __init__(self) -> None:
        self._starts: list[int] = []  # a value holds from its start up to the next
        self._values: list[Value | None] = []

    def set(self, lo: int, hi: int, value: Value | None) -> None:
        """Give every integer of a range a value."""
        if lo < hi:
            self._replace(lo, hi, [lo], [value])

    def remove(self, lo: int, hi: int) -> None:
        self.set(lo, hi, None)

    def update(self, lo: int, hi: int, function: Callable[[Value | None], Value | None]) -> None:
        """Replace the values of a range by what ``function`` makes of them, also of None where there is none. It is
        called once for each range of equal values."""
        starts, values = self._starts, self._values
        place = bisect_left(starts, lo)
        if place + 1 < len(starts) and starts[place] == lo and starts[place + 1] == hi:  # one range, as it often is
            value = function(values[place])
            if value != self._before(place) and value != values[place + 1]:
                values[place] = value
            else:
                self._replace(lo, hi, [lo], [value])
            return
        pieces = self.pieces(lo, hi)
        if pieces:
            self._replace(lo, hi, [piece[0] for piece in pieces], [function(piece[2]) for piece in pieces])

    def get(self, lo: int, hi: int) -> list[tuple[int, int, Value]]:
        """Ranges and values inside a range, in order; parts without a value are left out."""
        return [(start, end, value) for start, end, value in self.pieces(lo, hi) if value is not None]

    def pieces(self, lo: int, hi: int) -> list[tuple[int, int, Value | None]]:
        """As :meth:`get`, with the parts that have no value."""
        if lo >= hi:
            return []
        first, last = bisect_right(self._starts, lo), bisect_left(self._starts, hi)
        edges = [lo, *self._starts[first:last], hi]
        values = [self._before(first), *self._values[first:last]]
        return list(zip(edges, edges[1:], values, strict=False))

    def copy(self) -> IntervalMap[Value]:
        made: IntervalMap[Value] = IntervalMap()
        made._starts, made._values = self._starts.copy(), self._values.copy()
        return made

    def clear(self) -> None:
        self._starts.clear()
        self._values.clear()

    def __iter__(self) -> Iterator[tuple[int, int, Value]]:
        return iter(self.get(self._starts[0], self._starts[-1]) if self._starts else ())

    def __len__(self) -> int:
        """How many ranges have a value."""
        return sum(value is not None for value in self._values)

    @property
    def changes(self) -> int:
        """At how many places the value changes: what the map takes, known without counting."""
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntervalMap) and self._starts == other._starts and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"IntervalMap({list(self)})"

    def _before(self, place: int) -> Value | None:
        return self._values[place - 1] if place else None

    def _replace(self, lo: int, hi: int, starts: list[int], values: list[Value | None]) -> None:
        """Put the values from ``starts`` on, of which ``lo`` is the first, in the place of what is in [lo, hi)."""
        first, last = bisect_left(self._starts, lo), bisect_right(self._starts, hi)
        previous, after = self._before(first), self._before(last)
        kept_starts: list[int] = []
        kept_values: list[Value | None] = []
        for start, value in zip([*starts, hi], [*values, after], strict=True):
            if value != previous:
                kept_starts.append(start)
                kept_values.append(value)
                previous = value
        self._starts[first:last] = kept_starts
        self._values[first:last] = kept_values
