"""Vectorised accesses: from addresses in some state space to storage, checked and logged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softgpu.reference.issue import Issue
from softgpu.reference.memory import Addresses, Piece
from softgpu.reference.program import Value
from softgpu.reference.ptx_types import B128, unsigned
from softgpu.reference.spaces import SHARED_WINDOW, WINDOWS

READ, WRITE, ATOMIC = b"R", b"W", b"A"


def resolve(x: Issue, space: str, addresses: Addresses, width: int, kind: bytes, align: int = 0) -> list[Piece]:
    """Storage of one access of ``width`` bytes per active row, logged where it is global.

    ``space`` "" means generic addresses. A single address stands for all rows. ``align`` defaults to ``width``.
    """
    writing = kind != READ
    if space:
        pieces = x.team.locate(x, space, addresses, width, align, writing)
    else:
        pieces = _generic(x, addresses, width, align, writing)
    if x.team.grid.log.enabled:
        for piece in pieces:
            if piece.is_global:
                log(x, addresses, width, kind, piece.selected)
    return pieces


def log(x: Issue, addresses: Addresses, width: int, kind: bytes, selected: npt.NDArray[np.intp] | None) -> None:
    """Log accesses at the selected positions of ``addresses`` (None: all)."""
    team = x.team
    if len(addresses) != x.count:
        addresses = np.repeat(addresses, x.count)
    rows = x.index
    if selected is not None and len(selected) != x.count:
        addresses = addresses[selected]
        rows = x.rows()[selected]
    if rows is None:
        team.grid.log.add(addresses, width, kind, x.line, team.grid_block_of, team.thread_of)
    else:
        team.grid.log.add(addresses, width, kind, x.line, team.grid_block_of[rows], team.thread_of[rows])


def _generic(x: Issue, addresses: Addresses, width: int, align: int, writing: bool) -> list[Piece]:
    """Generic addresses, by the windows they lie in."""
    lowest, highest = int(addresses.min()), int(addresses.max())
    if highest < SHARED_WINDOW:
        return x.team.locate(x, "global", addresses, width, align, writing)
    for space, window in WINDOWS.items():
        if lowest >= window and highest >> 32 == window >> 32:
            return x.team.locate(x, space, addresses - np.uint64(window), width, align, writing)
    pieces: list[Piece] = []
    high = addresses >> np.uint64(32)
    rest = np.ones(len(addresses), np.bool_)
    for space, window in WINDOWS.items():
        inside = high == np.uint64(window >> 32)
        rest &= ~inside
        pieces += _some(x, space, addresses - np.uint64(window), inside, width, align, writing)
    return pieces + _some(x, "global", addresses, rest, width, align, writing)


def _some(x: Issue, space: str, addresses: Addresses, chosen: npt.NDArray[np.bool_], width: int, align: int,
          writing: bool) -> list[Piece]:
    """The chosen positions, all in one space."""
    positions = np.flatnonzero(chosen)
    if len(positions) == 0:
        return []
    if len(positions) == len(addresses):
        return x.team.locate(x, space, addresses, width, align, writing)
    found = x.team.locate(x.only(positions), space, addresses[positions], width, align, writing)
    return [piece._replace(selected=positions if piece.selected is None else positions[piece.selected])
            for piece in found]


def load(pieces: list[Piece], size: int, element: int, count: int) -> Value:
    """Element ``element`` of each access, ``size`` bytes: a single value when all rows read the same place."""
    if size == 16:
        low, high = load(pieces, 8, 2 * element, count), load(pieces, 8, 2 * element + 1, count)
        return np.stack((low, high), axis=1).view(B128).reshape(len(low))
    shift = size.bit_length() - 1
    if len(pieces) == 1 and pieces[0].selected is None:
        only: Value = pieces[0].views[size][(pieces[0].offsets >> shift) + element]
        return only
    result = np.empty(count, unsigned(size))
    for piece in pieces:
        result[piece.selected] = piece.views[size][(piece.offsets >> shift) + element]
    return result


def store(x: Issue, pieces: list[Piece], size: int, element: int, value: Value) -> None:
    """Store ``value`` in element ``element`` of each access; of rows that store to the same place the last one wins."""
    if size == 16:
        words = np.ascontiguousarray(value).view(np.uint64).reshape(-1, 2)
        store(x, pieces, 8, 2 * element, words[:, 0])
        store(x, pieces, 8, 2 * element + 1, words[:, 1])
        return
    shift = size.bit_length() - 1
    for piece in pieces:
        places = (piece.offsets >> shift) + element
        chosen = value if piece.selected is None or len(value) == 1 else value[piece.selected]
        if len(places) == 1 and len(chosen) > 1:
            chosen = chosen[-1:]
        piece.views[size][places] = chosen


def load_bytes(x: Issue, address: int, size: int) -> bytes:
    """Bytes at a generic address as the first active row sees them; not logged (what printf and assertions read)."""
    alone = x.only(np.arange(1))
    pieces = _generic(alone, np.array([address], np.uint64), size, 1, False)
    start = int(pieces[0].offsets[0])
    return pieces[0].views[1][start:start + size].tobytes()
