"""Bytes of device memory that the tracker has seen: small tables that the program has uploaded.

What is believed here is compared before anything is done because of it (:class:`orchestrator.session.jobs.Assumed`): a
record says what a copy read, not that nobody has changed the memory behind it by ways that nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.session.intervals import Extent, IntervalMap, Intervals
from orchestrator.session.jobs import Assumed, Span
from orchestrator.session.journal import Journal
from orchestrator.session.operations import Known

LARGEST = 1 << 16
"""Bytes of the largest upload that is remembered."""
MOST = 16 << 20
"""Bytes that are remembered at most, small pieces counted as ``SMALLEST``; with more all is forgotten."""
SMALLEST = 64
MOST_RECENT = 4096
"""Copies of which a later record may still say that they failed, or what they read."""


class _Piece:
    """``data`` at ``address``; None until the record with the contents comes."""

    __slots__ = ("address", "data", "sequence")

    def __init__(self, address: int, data: bytes | None, sequence: int) -> None:
        self.address, self.data, self.sequence = address, data, sequence


class Saved(NamedTuple):
    """What was known at a moment."""

    pieces: IntervalMap[_Piece]
    recent: dict[int, tuple[int, int]]
    bytes: int


class Contents:
    """Of one program. ``version`` grows with everything that becomes known or is forgotten, ``places`` unless it is
    about bytes that were known before and still are. ``journal`` is told what is forgotten because it was written."""

    def __init__(self, journal: Journal) -> None:
        self.version = self.places = 0
        self._journal = journal
        self._pieces: IntervalMap[_Piece] = IntervalMap()
        self._recent: dict[int, tuple[int, int]] = {}
        self._bytes = 0

    def put(self, address: int, size: int, data: bytes | None, sequence: int) -> None:
        """A copy of record ``sequence`` has put bytes there; without ``data`` they are told later."""
        if not 0 < size <= LARGEST:
            return
        before = self._pieces.get(address, address + size)
        if not (len(before) == 1 and before[0][1] - before[0][0] == size
                and (before[0][2].data is None) == (data is None)):
            self.places += 1
        self._bytes += max(size, SMALLEST)
        if self._bytes > MOST:
            # So far what has been forgotten was counted, too.
            self._bytes = sum(max(end - start, SMALLEST) for start, end, _ in self._pieces)
            if self._bytes > MOST // 2:
                self.clear()
        self._pieces.set(address, address + size, _Piece(address, data, sequence))
        self._recent[sequence] = address, address + size
        if len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]
        self.version += 1

    def told(self, sequence: int, data: bytes | None) -> None:
        """What a copy has put there is known now; or (None) it is not, or nothing was copied."""
        lo, hi = self._recent.get(sequence, (0, 0))
        for start, end, piece in self._pieces.get(lo, hi):
            if piece.sequence != sequence:
                continue
            if data is None or len(data) != hi - lo:
                self._forget(start, end)
            else:  # no piece is changed: somebody may have saved it
                self._pieces.set(start, end, _Piece(piece.address, data, sequence))
                self.version += 1
                self.places += 1

    def range_of(self, sequence: int) -> tuple[int, int]:
        """Where a copy of late has put bytes that may be known; empty if nowhere."""
        return self._recent.get(sequence, (0, 0))

    def forget(self, lo: int, hi: int) -> None:
        """Something else may have been written there."""
        if self._journal.on:
            self._journal.forgot(lo, hi)
        self._forget(lo, hi)

    def touched(self, ranges: Intervals) -> list[Extent]:
        """The parts of these bytes that have something known."""
        if not self._bytes:
            return []
        if len(ranges) > self._pieces.changes:
            return [part for start, end, _ in self._pieces for part in ranges.overlap(start, end)]
        return [part for part in ranges if self._pieces.get(*part)]

    def save(self) -> Saved:
        """What is known, for :meth:`restore`."""
        return Saved(self._pieces.copy(), self._recent.copy(), self._bytes)

    def restore(self, saved: Saved) -> None:
        """Only that is known again. What was saved can be restored once."""
        self._pieces, self._recent, self._bytes = saved
        self.version += 1
        self.places += 1

    def _forget(self, lo: int, hi: int) -> None:
        if not self._bytes:
            return
        if self._pieces.get(lo, hi):
            self._pieces.remove(lo, hi)
            self.version += 1
            self.places += 1

    def within(self, lo: int, hi: int) -> list[Known]:
        """What is known of the bytes [lo, hi)."""
        if not self._bytes:
            return []
        return [Known(start, piece.data[start - piece.address:end - piece.address])
                for start, end, piece in self._pieces.get(lo, hi) if piece.data is not None]

    def assumed(self, gather: Iterable[Span], relied: tuple[Known, ...]) -> tuple[Assumed, ...]:
        """What is known of bytes that are gathered, or was when somebody ``relied`` on it."""
        if not self._bytes and not relied:
            return ()
        found: dict[Assumed, None] = {}
        for span in gather:
            lo, hi = span.address, span.address + span.bytes
            for address, data in (*self.within(lo, hi), *relied):
                first, last = max(lo, address), min(hi, address + len(data))
                if first < last:
                    found[Assumed(first, data[first - address:last - address])] = None
        return tuple(found)

    def clear(self) -> None:
        """Nothing is known any more."""
        if self._bytes:
            self._pieces.clear()
            self._recent.clear()
            self._bytes = 0
            self.version += 1
            self.places += 1
