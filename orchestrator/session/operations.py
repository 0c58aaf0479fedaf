"""What a program has asked of its GPUs, with the bytes that it reads and writes: the tracker's own words for records.

Addresses are the program's own. All memory of a program, of its GPUs and of its host, has one space of addresses, so
that a byte is named by its address alone. Module variables whose address nobody has asked for have addresses above 2⁶⁴
(:mod:`orchestrator.session.memory`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ptxparse.api import AccessProgram
from tessera.reasons import Reason

Dimensions = tuple[int, int, int]


class StreamKey(NamedTuple):
    """A stream: its context and handle, for the per-thread default stream (2) its thread, and the number of the record
    that announced it, since handles are used again. The legacy default stream is 1."""

    context: int
    stream: int
    thread: int = 0
    born: int = 0


class What(StrEnum):
    """The kinds of operation."""

    LAUNCH = "launch"
    COPY = "copy"
    SET = "set"
    FREE = "free"
    """Memory ends: nothing may be in flight that touches it. A write, for the order of things."""
    MEMORY_OPERATION = "memory operation"
    HOST_FUNCTION = "host function"
    NOTHING = "nothing"
    """A node of a graph that touches no memory."""
    OTHER = "other"
    """Work of which only the function is known."""


class Effect(NamedTuple):
    """Bytes at addresses [lo, hi) that are touched. ``kind`` is that of :class:`ptxparse.api.Range`: R, MAYW, MUSTW, A.
    ``word``: the parameter word by which a kernel reaches them, or -1; ``variable``: the module variable, or empty."""

    kind: str
    lo: int
    hi: int
    exact: bool = True
    word: int = -1
    variable: str = ""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of a module. ``program`` is its access program; without one ``reason`` says why. ``image`` is the
    hash of the module's image, ``module`` the number of the tracker's module."""

    name: str
    module: int
    image: bytes
    program: AccessProgram | None
    reason: Reason | None = None
    parameter_bytes: int = 0


class Pointer(NamedTuple):
    """The parameter word at byte ``word`` holds the address of byte ``offset`` of an allocation."""

    word: int
    allocation: int
    offset: int


class Known(NamedTuple):
    """Bytes that lie at an address, as the tracker believes."""

    address: int
    data: bytes


class Launch(NamedTuple):
    """A kernel launched. ``parameters``: its parameter block as the program gave it. ``pins``: why it has to run
    where it was launched. ``pointers``: the words to be changed for a replica. ``unbounded``: it may write anywhere
    in some allocation. ``assumed``: contents without which its ranges could not have been told."""

    kernel: Kernel
    grid: Dimensions
    block: Dimensions
    shared: int
    parameters: bytes
    pins: tuple[Reason, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    unbounded: bool = False
    assumed: tuple[Known, ...] = ()


class Operation(NamedTuple):
    """One piece of work. ``sequence``: of its record; ``node``: its position among the nodes in the record that
    announced the executable graph which this one launched, else -1. ``home``: the GPU (its number in the fleet) of its
    context. ``opaque``: what it does is not known, and why; ``effects`` are what it may do then. ``after``: the nodes
    of the same graph launch right before it; a child graph stands for its end."""

    sequence: int
    node: int
    what: What
    stream: StreamKey
    home: int
    effects: tuple[Effect, ...]
    opaque: Reason | None = None
    launch: Launch | None = None
    after: tuple[int, ...] = ()
