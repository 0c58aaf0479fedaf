"""Bytes that are known to lie in device memory: the tables through which accesses can be evaluated exactly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Piece(NamedTuple):
    """Known bytes from ``address`` on. ``whole`` says that they are all of their allocation: then no load that really
    happens lies outside."""

    address: int
    data: bytes
    whole: bool


class Contents:
    """Known bytes by address; pieces do not overlap. False when there are none."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self.pieces = sorted(pieces)

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def gather(self, addresses: npt.NDArray[np.int64], size: int, signed: bool) -> npt.NDArray[np.int64] | None:
        """The integers of ``size`` bytes at the addresses; None unless all of them lie in one known piece. Where the
        piece is whole, an address outside stands for a load that is never made; any value will do for it."""
        low, high = int(addresses.min()), int(addresses.max())
        for start, data, whole in self.pieces:
            end = start + len(data) - size
            if start <= low and high <= end:
                return _read(data, addresses - start, size, signed)
            if whole and low <= end and start <= high and end >= start:
                return _read(data, np.clip(addresses, start, end) - start, size, signed)
        return None


def _read(data: bytes, offsets: npt.NDArray[np.int64], size: int, signed: bool) -> npt.NDArray[np.int64] | None:
    raw = np.frombuffer(data, dtype=np.uint8)
    total = np.zeros(offsets.shape, dtype=np.uint64)
    for byte in range(size):
        total |= raw[offsets + byte].astype(np.uint64) << np.uint64(8 * byte)
    if size == 8:
        values = total.astype(np.int64)
        # An unsigned number past 2^63 has no place in signed tables; such an index cannot be in bounds anyway.
        return values if signed or not (values < 0).any() else None
    values = total.astype(np.int64)
    if signed:
        values -= (values >> (8 * size - 1)) << (8 * size)
    return values
