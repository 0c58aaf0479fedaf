"""One issue of an instruction: the rows (threads) it acts on and their registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softgpu.reference.errors import UndefinedBehaviour
from softgpu.reference.program import FunctionCode, Value

if TYPE_CHECKING:
    from softgpu.reference.team import Team

Rows = npt.NDArray[np.intp]


class Frame:
    """The registers of one function at one call depth: for each slot an array with an element per row of the team, or
    a single element while all rows hold the same value. Each thread is active in one function per depth, so the
    threads of all its activations share the arrays."""

    __slots__ = ("code", "registers")

    def __init__(self, code: FunctionCode) -> None:
        self.code = code
        self.registers: list[Value] = [np.zeros(1, dtype) for dtype in code.dtypes]


class Issue:
    """The active rows of one group: ``index`` sorted, or None for all rows of the team; ``count`` of them."""

    __slots__ = ("count", "depth", "frame", "index", "line", "registers", "team")

    def __init__(self, team: Team, frame: Frame, depth: int, index: Rows | None, line: int = 0) -> None:
        self.team = team
        self.frame = frame
        self.registers = frame.registers
        self.depth = depth
        self.index = index
        self.count = team.rows if index is None else len(index)
        self.line = line

    def get(self, slot: int) -> Value:
        """The active rows' values of a register (a single element if it is the same in all rows)."""
        value = self.registers[slot]
        if self.index is None or len(value) == 1:
            return value
        return value[self.index]

    def set(self, slot: int, value: Value) -> None:
        """Set a register in the active rows. ``value`` must share no memory with any register: it may be kept."""
        if self.index is None:
            self.registers[slot] = value
            return
        register = self.registers[slot]
        if len(register) == 1:
            register = self.registers[slot] = np.repeat(register, self.team.rows)
        register[self.index] = value

    def rows(self) -> Rows:
        """The active rows as an array."""
        return self.team.all_rows if self.index is None else self.index

    def full(self, value: Value) -> Value:
        """``value`` with one element per active row."""
        return value if len(value) == self.count else np.repeat(value, self.count)

    def thread(self, position: int) -> str:
        """Name of the active thread at a position, for messages."""
        row = int(self.rows()[position]) if position < self.count else int(self.rows()[0])
        return self.team.thread_name(row)

    def undefined(self, reason: str, position: int = 0) -> UndefinedBehaviour:
        """The error for behaviour the manual leaves undefined."""
        return UndefinedBehaviour(reason, self.line, self.thread(position))

    def only(self, keep: Rows) -> Issue:
        """The same issue for a selection of its positions (sorted)."""
        return Issue(self.team, self.frame, self.depth, self.rows()[keep], self.line)
