"""Bytes that are known to lie in device memory: the tables through which accesses can be evaluated exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Piece(NamedTuple):
    """Known bytes from ``address`` on, in the allocation at [first, last)."""

    address: int
    data: bytes
    first: int
    last: int


class Contents:
    """Known bytes by address; pieces do not overlap. False when there are none."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self.pieces = sorted(pieces)

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def gather(
        self, addresses: npt.NDArray[np.int64], size: int, signed: bool, bases: Sequence[int]
    ) -> npt.NDArray[np.int64] | None:
        """The integers of ``size`` bytes at the addresses; None unless they are known.

        They are those of one piece, in the allocation that exactly one of ``bases`` points into: the load cannot leave
        it. When the piece is all of the allocation, an address outside stands for a load that is never made; any value
        will do for it.
        """
        inside = [piece for piece in self.pieces if any(piece.first <= base < piece.last for base in bases)]
        if len({(piece.first, piece.last) for piece in inside}) != 1 or len(bases) != 1:
            return None
        low, high = int(addresses.min()), int(addresses.max())
        for piece in inside:
            end = piece.address + len(piece.data) - size
            if piece.address <= low and high <= end:
                return _read(piece.data, addresses - piece.address, size, signed)
            whole = piece.address == piece.first and piece.address + len(piece.data) == piece.last
            if whole and end >= piece.address:
                return _read(piece.data, np.clip(addresses, piece.address, end) - piece.address, size, signed)
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
