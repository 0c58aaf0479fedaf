"""Sets of bytes as separate pieces: spans moved by all sums of independent parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Interval = tuple[int, int]
Spans = tuple[Interval, ...]
Digit = tuple[int, int]
"""(step, count): the values 0, step, ..., step * (count - 1)."""

Listed = npt.NDArray[np.int64]
"""Rising values of which the first is 0."""

MOST_PIECES = 64
_MOST_BETWEEN = 4 * MOST_PIECES
"""Pieces held while parts remain that may close the gaps between them."""


class Pieces(NamedTuple):
    """Bytes in rising order as intervals [lo, hi) that do not touch. Both ends of each are bytes of the set; ``full``
    says that all between them are."""

    intervals: list[Interval]
    full: bool


def digits_of(values: Listed) -> list[Digit] | None:
    """Sorted distinct values as a sum of digits, smallest step first; None when they are none."""
    digits: list[Digit] = []
    while len(values) > 1:
        steps = np.diff(values)
        step = int(steps[0])
        breaks = np.flatnonzero(steps != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(values)
        if len(values) % run:
            return None
        rows = values.reshape(-1, run)
        if not (np.diff(rows, axis=1) == step).all():
            return None
        digits.append((step, run))
        values = rows[:, 0]
    return digits


def pieces(
    spans: Sequence[Interval], digits: Sequence[Digit], lists: Sequence[Listed] = (), most: int = MOST_PIECES
) -> Pieces:
    """The bytes of ``spans`` around all sums of one value per digit and list, in at most ``most`` pieces: where it
    takes more, the gaps of smaller steps are closed first."""
    if len(spans) == 1 and not lists:
        # Mostly there are no gaps at all.
        ((lo, hi),) = spans
        for step, count in sorted(digits):
            if step > hi - lo and count > 1:
                break
            hi += step * (count - 1)
        else:
            return Pieces([(lo, hi)], True)
    parts: list[_Sequence | _List] = [_Sequence(*digit) for digit in digits if digit[1] > 1]
    parts += [_List(values) for values in lists]
    parts.sort(key=_step)
    found = _sum(spans, parts, max(_MOST_BETWEEN, most))
    return found if len(found.intervals) <= most else _sum(spans, parts, most)


class _Sequence:
    """A digit as a part of a sum."""

    def __init__(self, step: int, count: int) -> None:
        self.step, self.count = step, count
        self.extent = step * (count - 1)

    def runs(self, width: int, most: int) -> list[Interval]:
        """First and last value of the runs whose steps are at most ``width``; nothing when they are more than
        ``most``."""
        if self.step <= width:
            return [(0, self.extent)]
        return [(value, value) for value in range(0, self.extent + 1, self.step)] if self.count <= most else []


class _List:
    """Listed values as a part of a sum."""

    def __init__(self, values: Listed) -> None:
        self.values = values
        self.steps = np.diff(values)
        self.step, self.extent = int(self.steps.min()), int(values[-1])

    def runs(self, width: int, most: int) -> list[Interval]:
        """As of a digit."""
        breaks = np.flatnonzero(self.steps > width)
        if len(breaks) >= most:
            return []
        firsts, lasts = self.values[[0, *(breaks + 1)]], self.values[[*breaks, -1]]
        return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _sum(spans: Sequence[Interval], parts: Sequence[_Sequence | _List], most: int) -> Pieces:
    found, full = joined(spans), True
    for part in parts:
        runs = part.runs(min(hi - lo for lo, hi in found), most)
        if len(found) > 1 and len(runs) != 1 and (not runs or len(found) * len(runs) > most):
            found, full = [(found[0][0], found[-1][1])], False
            runs = part.runs(found[0][1] - found[0][0], most)
        if not runs:
            runs, full = [(0, part.extent)], False
        found = joined((lo + first, hi + last) for first, last in runs for lo, hi in found)
    if len(found) > most:
        found, full = [(found[0][0], found[-1][1])], False
    return Pieces(found, full)


def _step(part: _Sequence | _List) -> int:
    return part.step


def joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Intervals in rising order, those put together that touch."""
    result: list[Interval] = []
    for lo, hi in sorted(intervals):
        if result and lo <= result[-1][1]:
            if hi > result[-1][1]:
                result[-1] = (result[-1][0], hi)
        else:
            result.append((lo, hi))
    return result
