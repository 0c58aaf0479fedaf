"""What one row of the opcode tables says."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Effect(Enum):
    """What an instruction does beyond computing its destinations from its register operands."""

    PURE = "pure"  # nothing
    LOAD = "load"  # reads memory through one address
    STORE = "store"  # writes memory through one address
    ATOMIC = "atomic"  # reads and writes memory through one address
    COPY = "copy"  # cp.async: global to shared, this thread's bytes
    CONTROL = "control"  # branches, returns, ends the thread
    CALL = "call"
    BARRIER = "barrier"  # waits for other threads
    FENCE = "fence"  # orders memory operations, moves no data
    WARP = "warp"  # exchanges registers within the warp
    TENSOR = "tensor"  # matrix arithmetic on registers
    MATRIX_LOAD = "matrix load"  # wmma.load: the warp reads a matrix from memory
    MATRIX_STORE = "matrix store"  # wmma.store: the warp writes a matrix to memory
    SHARED_MATRIX = "shared matrix"  # ldmatrix, stmatrix: shared memory only
    TEXTURE = "texture"
    SURFACE = "surface"
    BULK = "bulk"  # cp.async.bulk and tensor copies: whoever describes them needs all operands
    MBARRIER = "mbarrier"  # a barrier object in shared memory
    TENSORMAP = "tensormap"  # writes a tensor map
    MULTIMEM = "multimem"  # one address, memory of several GPUs
    FABRIC = "fabric"  # memory reached through a fabric handle
    WGMMA = "wgmma"  # asynchronous matrix arithmetic, operands in shared memory
    TCGEN05 = "tcgen05"  # matrix arithmetic and moves in tensor memory
    PREFETCH = "prefetch"  # hints about an address
    DISCARD = "discard"  # destroys the bytes at an address
    MISC = "misc"  # no effect on memory or registers other than the destination


class Kind(Enum):
    """What an instruction's operations count as; FLOAT is resolved by the instruction's type."""

    NONE = "none"
    INTEGER = "integer"
    FLOAT = "float"
    SPECIAL = "special"
    CONVERSION = "conversion"
    TENSOR = "tensor"


class Opcode(NamedTuple):
    """One row: an opcode with its modifiers, for one family of types.

    ``name`` is the opcode with the leading modifiers that distinguish it (``cp.async.bulk.tensor``). ``modifiers``
    are all others that it may carry, without their dots. ``destinations`` counts the leading operands that are
    written (a vector, or a pair ``d|p``, is one). ``operations`` is what one element of one thread's instruction
    counts as in ``kind``; ``family`` names the table. The rows follow the PTX ISA manual 9.4, chapter 9.
    """

    name: str
    family: str
    effect: Effect
    modifiers: frozenset[str]
    destinations: int
    kind: Kind = Kind.NONE
    operations: float = 0.0


class Row(NamedTuple):
    """An opcode as the tables write it: ``names`` and ``modifiers`` are lists of words separated by spaces."""

    names: str
    effect: Effect
    destinations: int
    modifiers: str
    kind: Kind = Kind.NONE
    operations: float = 0.0


def table(family: str, *rows: Row) -> tuple[Opcode, ...]:
    """The rows of one family, one :class:`Opcode` for each name."""
    return tuple(
        Opcode(name, family, row.effect, frozenset(row.modifiers.split()), row.destinations, row.kind, row.operations)
        for row in rows
        for name in row.names.split()
    )
