"""Block barriers (``bar``, ``barrier``): sixteen for each block.

A barrier instruction waits for the other non-exited threads of its warp and then marks the warp's arrival; what counts
is 32 for each arriving warp (PTX manual, section 9.7.13.1). ``sync`` and ``red`` then wait until the expected count has
arrived; without a count that is every warp of the block, where warps that have ended count as arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softgpu.reference.errors import InterpreterError
from softgpu.reference.issue import Issue, Rows

if TYPE_CHECKING:
    from softgpu.reference.team import Team

BARRIERS = 16
ALL = 0
"""Expected count of a barrier instruction that names none."""

Reduce = Callable[[Issue, npt.NDArray[np.bool_], npt.NDArray[np.intp]], None]
"""Writes the result of ``bar.red`` in the active rows, from the predicates of all participants (those of the active
rows first, in their order) and the block, within the team, that each belongs to."""


class Arrival(NamedTuple):
    """Rows that stand at one barrier instruction; they go on at ``key``. ``reduce`` is None but for ``bar.red``."""

    x: Issue
    key: int
    rows: Rows
    expected: int
    waits: bool
    reduce: Reduce | None
    predicate: npt.NDArray[np.bool_] | None


class Barrier:
    """State of the barriers of one number in all blocks of a team.

    ``gathering`` waits for the rest of its warps, ``waiting`` for other warps. ``arrived`` counts each warp's arrivals,
    ``expected`` (0: all) is what the block waits for, -1 while nobody has arrived.
    """

    def __init__(self, team: Team) -> None:
        self.gathering: list[Arrival] = []
        self.waiting: list[Arrival] = []
        self.arrived = np.zeros(team.warps, np.int64)
        self.expected = np.full(team.blocks, -1, np.int64)


class Barriers:
    """The barriers of a team."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.used: dict[int, Barrier] = {}

    def arrive(self, x: Issue, key: int, number: int, expected: int, waits: bool,
               reduce: Reduce | None = None, predicate: npt.NDArray[np.bool_] | None = None) -> bool:
        """The active rows arrive; True when they may go on at once (all live threads of the team came together)."""
        team = self.team
        if not 0 <= number < BARRIERS:
            raise InterpreterError(f"line {x.line}, {x.thread(0)}: barrier {number} does not exist (0 to 15 do)")
        if expected % 32 or (expected == ALL and not waits):
            raise InterpreterError(f"line {x.line}, {x.thread(0)}: barrier count {expected} is not a positive "
                                   "multiple of the warp size")
        barrier = self.used.get(number)
        if barrier is None:
            barrier = self.used[number] = Barrier(team)
        idle = not barrier.gathering and not barrier.waiting and (barrier.expected < 0).all()
        if waits and expected == ALL and x.count == team.live_count and idle:
            if reduce is not None and predicate is not None:
                reduce(x, predicate, team.block_of[x.rows()].astype(np.intp))
            return True
        rows = x.rows()
        mine = np.unique(team.block_of[rows])
        seen = barrier.expected[mine]
        clash = (seen >= 0) & (seen != expected)
        if clash.any():
            raise InterpreterError(f"line {x.line}, {x.thread(0)}: barrier {number} expects {expected} threads here "
                                   f"and {int(seen[clash][0])} elsewhere (0: all)")
        barrier.expected[mine] = expected
        barrier.gathering.append(Arrival(x, key, rows, expected, waits, reduce, predicate))
        self._settle(barrier)
        return False

    def threads_left(self) -> None:
        """Look again after threads have exited."""
        for barrier in self.used.values():
            if barrier.gathering or barrier.waiting:
                self._settle(barrier)

    def describe(self) -> list[str]:
        """Who waits where, for the deadlock message."""
        return [
            f"{self.team.thread_name(int(part.rows[0]))} and {len(part.rows) - 1} more at barrier {number}, "
            f"line {part.x.line}"
            for number, barrier in self.used.items() for part in barrier.gathering + barrier.waiting if len(part.rows)
        ]

    def _settle(self, barrier: Barrier) -> None:
        """Mark warps that are complete as arrived, then let blocks go on whose count is reached."""
        team = self.team
        if barrier.gathering:
            lanes = np.zeros(team.warps, np.uint32)
            for part in barrier.gathering:
                lanes |= team.lanes_by_warp(part.rows)
            complete = ((team.live_lanes & ~lanes) == 0) & (lanes != 0)
            if complete.any():
                barrier.arrived += complete
                gathering, barrier.gathering = barrier.gathering, []
                for part in gathering:
                    done = complete[team.warp_of[part.rows]]
                    here, rest = _split(part, done)
                    if rest is not None:
                        barrier.gathering.append(rest)
                    if here is not None and here.waits:
                        barrier.waiting.append(here)
                    elif here is not None:
                        team.push(here.key, _rows(team, here.rows))
        self._release(barrier)

    def _release(self, barrier: Barrier) -> None:
        team = self.team
        by_block = barrier.arrived.reshape(team.blocks, team.warps_per_block)
        ended = (team.live_lanes == 0).reshape(by_block.shape) & (by_block == 0)
        count = 32 * by_block.sum(axis=1)
        everyone = 32 * team.warps_per_block
        wanted = np.where(barrier.expected == ALL, everyone - 32 * ended.sum(axis=1), barrier.expected)
        ready = (barrier.expected >= 0) & (count >= np.maximum(wanted, 1))
        if not ready.any():
            return
        by_block[ready] = 0
        barrier.expected[ready] = -1
        for part in barrier.gathering:
            barrier.expected[np.unique(team.block_of[part.rows])] = part.expected
        waiting, barrier.waiting = barrier.waiting, []
        released: list[Arrival] = []
        for part in waiting:
            here, rest = _split(part, ready[team.block_of[part.rows]])
            if rest is not None:
                barrier.waiting.append(rest)
            if here is not None:
                released.append(here)
        _reduce(team, [part for part in released if part.reduce is not None])
        for part in released:
            team.push(part.key, _rows(team, part.rows))


def _rows(team: Team, rows: Rows) -> Rows | None:
    return None if len(rows) == team.rows else rows


def _split(part: Arrival, chosen: npt.NDArray[np.bool_]) -> tuple[Arrival | None, Arrival | None]:
    """The chosen rows of an arrival, and the others."""
    if chosen.all():
        return part, None
    if not chosen.any():
        return None, part
    halves = []
    for keep in (np.flatnonzero(chosen), np.flatnonzero(~chosen)):
        predicate = None if part.predicate is None else part.predicate[keep]
        halves.append(part._replace(x=part.x.only(keep), rows=part.rows[keep], predicate=predicate))
    return halves[0], halves[1]


def _reduce(team: Team, parts: list[Arrival]) -> None:
    """Give every part of a completed ``bar.red`` the predicates of all parts."""
    if not parts:
        return
    predicate = np.concatenate([part.predicate for part in parts if part.predicate is not None])
    blocks = team.block_of[np.concatenate([part.rows for part in parts])].astype(np.intp)
    start = 0
    for part in parts:
        assert part.reduce is not None
        own = np.arange(start, start + len(part.rows))
        start += len(part.rows)
        order = np.concatenate((own, np.setdiff1d(np.arange(len(blocks)), own)))
        part.reduce(part.x, predicate[order], blocks[order])
