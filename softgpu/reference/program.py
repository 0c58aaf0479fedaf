"""A kernel and every function it may call, decoded into one list of operations with global program counters."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxparse.model import Function, Variable
from softgpu.reference.errors import UnsupportedInstruction

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue
    from softgpu.reference.strand import Strand

Value = npt.NDArray[Any]
"""What an operand yields: one element per active thread, or a single element that stands for all of them."""

Read = Callable[["Issue"], Value]
Write = Callable[["Issue", Value], None]
Run = Callable[["Issue"], None]
Control = Callable[["Strand", "Issue", int], "int | None"]
"""Control operations get the key they stand at and return the key at which these threads go on now, or None when
they have seen to that themselves (threads queued elsewhere, waiting, or gone)."""


class Kind(IntEnum):
    """How the issuing loop treats an operation."""

    PLAIN = 0
    BRANCH = 1
    CONTROL = 2


class Operation:
    """One decoded instruction: ``guard`` is the register slot of its predicate or -1, ``target`` a branch's goal."""

    __slots__ = ("control", "counted", "function", "guard", "kind", "line", "mnemonic", "negated", "run", "target")

    def __init__(self, mnemonic: str, line: int, function: FunctionCode) -> None:
        self.mnemonic = mnemonic
        self.line = line
        self.function = function
        self.kind = Kind.PLAIN
        self.run: Run = _nothing
        self.control: Control = _go_on
        self.guard = -1
        self.negated = False
        self.target = -1
        self.counted = True


def _nothing(x: Issue) -> None:
    """An operation without effect."""


def _go_on(strand: Strand, x: Issue, key: int) -> int | None:
    return key + 1


class Place(NamedTuple):
    """Where a variable that belongs to a function lies: its state space and the offset there."""

    space: str
    offset: int
    variable: Variable


class FunctionCode:
    """What decoding knows of one function.

    ``slots`` number its registers, ``dtypes`` are theirs; ``places`` its variables and formal parameters;
    ``frame_bytes`` the local memory an activation takes.
    """

    def __init__(self, function: Function, number: int) -> None:
        self.function = function
        self.number = number
        self.first = -1
        self.slots: dict[str, int] = {}
        self.dtypes: list[np.dtype[np.generic]] = []
        self.types: list[str] = []
        self.places: dict[str, Place] = {}
        self.frame_bytes = 0
        self.position: list[int] = []

    def slot(self, name: str, type_name: str, dtype: np.dtype[np.generic]) -> int:
        """The slot of a register, a new one at its first mention."""
        found = self.slots.get(name)
        if found is None:
            found = self.slots[name] = len(self.dtypes)
            self.dtypes.append(dtype)
            self.types.append(type_name)
        return found


class Program:
    """``code`` indexed by program counter. ``static_shared`` bytes are laid out; dynamic shared memory follows at
    ``dynamic_base``. ``may_wait``: it has loads or atomics with which threads wait for one another in loops."""

    def __init__(self, kernel: Function) -> None:
        self.kernel = kernel
        self.code: list[Operation] = []
        self.functions: list[FunctionCode] = []
        self.by_address: dict[int, FunctionCode] = {}
        self.unsupported: list[UnsupportedInstruction] = []
        self.shared: dict[str, int] = {}
        self.shared_variables: dict[str, Variable] = {}
        self.static_shared = 0
        self.dynamic_base = 0
        self.has_dynamic_shared = False
        self.may_wait = False
        self.parameter_bytes = 0
