"""Bytes of device memory that the tracker has seen: small tables that the program has uploaded.

What is believed here is compared before anything is done because of it (:class:`orchestrator.session.jobs.Assumed`): a
record says what a copy read, not that nobody has changed the memory behind it by ways that nobody sees.
"""

from __future__ import annotations

from orchestrator.session.intervals import IntervalMap
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


class Contents:
    """Of one program. ``version`` grows with everything that becomes known or is forgotten."""

    def __init__(self) -> None:
        self.version = 0
        self._pieces: IntervalMap[_Piece] = IntervalMap()
        self._recent: dict[int, tuple[int, int]] = {}
        self._bytes = 0

    def put(self, address: int, size: int, data: bytes | None, sequence: int) -> None:
        """A copy of record ``sequence`` has put bytes there; without ``data`` they are told later."""
        if not 0 < size <= LARGEST:
            return
        self.forget(address, address + size)
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
                self.forget(start, end)
            else:
                piece.data = data
                self.version += 1

    def range_of(self, sequence: int) -> tuple[int, int]:
        """Where a copy of late has put bytes that may be known; empty if nowhere."""
        return self._recent.get(sequence, (0, 0))

    def forget(self, lo: int, hi: int) -> None:
        """Something else may have been written there."""
        if not self._bytes:
            return
        if self._pieces.get(lo, hi):
            self._pieces.remove(lo, hi)
            self.version += 1

    def within(self, lo: int, hi: int) -> list[Known]:
        """What is known of the bytes [lo, hi)."""
        if not self._bytes:
            return []
        return [Known(start, piece.data[start - piece.address:end - piece.address])
                for start, end, piece in self._pieces.get(lo, hi) if piece.data is not None]

    def clear(self) -> None:
        """Nothing is known any more."""
        if self._bytes:
            self._pieces.clear()
            self._recent.clear()
            self._bytes = 0
            self.version += 1
