"""The issuing loop: groups of threads by where they stand, the lowest program counter first.

A key names a place: the program counter minus 2**32 for every level of call depth. The group with the lowest key runs:
the deepest call first, then the lowest program counter. Groups that come to stand at the same key become one, which is
how threads reconverge. A group goes on until another's key is reached or passed, it branches apart, waits or ends.

Lowest-first alone would starve a thread for which others wait in a loop at lower addresses. So when other groups have
been waiting for ``patience`` issues, the one that has waited longest gets as many; patience is halved each time, since
such loops usually go on, and begins low where the program has what such loops need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softgpu.reference.issue import Issue, Rows
from softgpu.reference.program import Kind, Operation

if TYPE_CHECKING:
    from softgpu.reference.team import Team

DEPTH = 1 << 32
NO_KEY = 1 << 62
FIRST_PATIENCE = 8192
WAITING_PATIENCE = 256
LAST_PATIENCE = 32


class Strand:
    """The runnable groups of a team, or of one of its warps: rows by key (None: all rows of the team)."""

    def __init__(self, team: Team, start: int, rows: Rows | None) -> None:
        self.team = team
        self.groups: dict[int, Rows | None] = {start: rows}
        self.patience = WAITING_PATIENCE if team.program.may_wait else FIRST_PATIENCE
        self.unfair = 0

    def push(self, key: int, rows: Rows | None) -> None:
        """Queue a group; it joins the one that already stands at ``key``."""
        groups = self.groups
        if key in groups:
            there = groups[key]
            assert there is not None and rows is not None
            rows = np.concatenate((there, rows))
            rows.sort()
        groups[key] = None if rows is not None and len(rows) == self.team.rows else rows

    def _choose(self) -> tuple[int, int, bool]:
        """Key of the group to run, how many issues it may take, and whether that is out of turn."""
        groups = self.groups
        if len(groups) == 1:
            self.unfair = 0
            return next(iter(groups)), NO_KEY, False
        if self.unfair < self.patience:
            return min(groups), self.patience - self.unfair, False
        self.unfair = 0
        self.patience = max(self.patience // 2, LAST_PATIENCE)
        return next(iter(groups)), self.patience, True

    def advance(self, budget: int) -> int:
        """Issue at most ``budget`` instructions; returns how many were issued (0 only when no group is left)."""
        team = self.team
        grid = team.grid
        code, counts, groups = team.program.code, grid.counts, self.groups
        used = 0
        while groups and used < budget:
            key, allowed, out_of_turn = self._choose()
            rows = groups.pop(key)
            stop = min(groups) if groups and not out_of_turn else NO_KEY
            pc = key & (DEPTH - 1)
            depth = -(key >> 32)
            x = Issue(team, team.frame(depth, code[pc].function), depth, rows)
            start = used
            last = min(budget, used + allowed)
            while True:
                operation = code[pc]
                used += 1
                x.line = operation.line
                if operation.kind == Kind.PLAIN:
                    if operation.guard < 0:
                        counts[pc] += x.count
                        operation.run(x)
                    else:
                        counts[pc] += _guarded(operation, x)
                    pc += 1
                    key += 1
                elif operation.kind == Kind.BRANCH:
                    went = self._branch(operation, x, key, pc)
                    if went is None:
                        break
                    pc += went - key
                    key = went
                else:
                    went = self._control(operation, x, key, pc)
                    if went is None:
                        break
                    if went != key + 1:
                        team.push(went, x.index)
                        break
                    pc += 1
                    key += 1
                if key >= stop or used >= last or (out_of_turn and key in groups):
                    self.push(key, x.index)
                    break
            grid.clock += used - start
            if groups and not out_of_turn:
                self.unfair += used - start
        return used

    def _branch(self, operation: Operation, x: Issue, key: int, pc: int) -> int | None:
        """The key all rows go on at, or None when they went different ways (both queued)."""
        taken = key - pc + operation.target
        counts = self.team.grid.counts
        if operation.guard < 0:
            counts[pc] += x.count
            return taken
        condition = x.get(operation.guard)
        if operation.negated:
            condition = ~condition
        count = int(np.count_nonzero(condition))
        if count == 0:
            return key + 1
        if count == len(condition):
            counts[pc] += x.count
            return taken
        counts[pc] += count
        if taken == key + 1:
            return taken
        rows = x.rows()
        self.push(taken, rows[condition])
        self.push(key + 1, rows[~condition])
        return None

    def _control(self, operation: Operation, x: Issue, key: int, pc: int) -> int | None:
        counts = self.team.grid.counts
        if operation.guard < 0:
            if operation.counted:
                counts[pc] += x.count
            return operation.control(self, x, key)
        condition = x.get(operation.guard)
        if operation.negated:
            condition = ~condition
        count = int(np.count_nonzero(condition))
        if count == 0:
            return key + 1
        if count == len(condition):
            if operation.counted:
                counts[pc] += x.count
            return operation.control(self, x, key)
        inside = x.only(np.flatnonzero(condition))
        self.push(key + 1, x.rows()[~condition])
        if operation.counted:
            counts[pc] += count
        went = operation.control(self, inside, key)
        if went is not None:
            self.team.push(went, inside.index)
        return None


def _guarded(operation: Operation, x: Issue) -> int:
    """Run a plain operation in the rows whose guard holds; returns how many rows that were."""
    condition = x.get(operation.guard)
    if operation.negated:
        condition = ~condition
    count = int(np.count_nonzero(condition))
    if count == 0:
        return 0
    if count == len(condition):
        operation.run(x)
        return x.count
    operation.run(x.only(np.flatnonzero(condition)))
    return count
