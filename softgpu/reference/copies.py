"""Asynchronous copies (``cp.async``) that are under way.

The source is read, checked and logged at issue; the destination is written when the thread waits for the copy's group.
That is one of the orders the manual allows, and the one in which a program that forgets to wait computes wrongly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softgpu.reference.issue import Issue, Rows

if TYPE_CHECKING:
    from softgpu.reference.team import Team


class Copy(NamedTuple):
    """Words on their way to shared memory: element indices into the view of that word size, (words, rows) values."""

    rows: Rows
    size: int
    places: npt.NDArray[np.int64]
    values: npt.NDArray[np.unsignedinteger]
    group: npt.NDArray[np.int64]


class PendingCopies:
    """The copies of a team. Each thread counts the groups it has committed; a copy belongs to the next one."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.committed = np.zeros(team.rows, np.int64)
        self.pending: list[Copy] = []

    def issue(self, x: Issue, size: int, places: npt.NDArray[np.int64],
              values: npt.NDArray[np.unsignedinteger]) -> None:
        """Start copies in the active rows; ``values`` (words, rows) of ``size`` bytes each, the first at ``places``."""
        rows = x.rows()
        self.pending.append(Copy(rows, size, places, values, self.committed[rows]))

    def commit(self, x: Issue) -> None:
        """Close the active threads' current group."""
        self.committed[x.rows()] += 1

    def wait(self, x: Issue, newest: int | None) -> None:
        """Finish the active threads' copies but for their ``newest`` committed groups; None: also uncommitted ones."""
        if not self.pending:
            return
        limit = np.full(self.team.rows, -1, np.int64)
        rows = x.rows()
        limit[rows] = self.committed[rows] + 1 if newest is None else self.committed[rows] - newest
        rest = []
        for copy in self.pending:
            done = copy.group < limit[copy.rows]
            if done.any():
                self._deliver(copy, done)
                keep = ~done
                if not keep.any():
                    continue
                copy = Copy(copy.rows[keep], copy.size, copy.places[keep], copy.values[:, keep], copy.group[keep])
            rest.append(copy)
        self.pending = rest

    def _deliver(self, copy: Copy, done: npt.NDArray[np.bool_]) -> None:
        view = self.team.shared.views[copy.size]
        places = copy.places[done]
        for word, values in enumerate(copy.values[:, done]):
            view[places + word] = values
