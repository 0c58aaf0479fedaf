"""One launch as data: where the PTX is, grid, block and arguments, with buffers of exactly the legal size.

Buffers are objects: the same buffer may be named by several arguments, by a table of pointers, by a struct passed by
value or by a module variable. Addresses come only when the case is placed (:mod:`tests.launches.place`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Shape = tuple[int, int, int]


@dataclass(eq=False)
class Buffer:
    """Bytes in global memory. ``data`` is what it holds before the launch: an array, or values that hold pointers."""

    data: Array | Packed
    name: str = ""

    def at(self, offset: int) -> Pointer:
        """A pointer ``offset`` bytes into the buffer."""
        return Pointer(self, offset)

    @property
    def size(self) -> int:
        return self.data.size if isinstance(self.data, Packed) else self.data.nbytes


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address inside a buffer (or just past it); ``buffer`` None is an address of no buffer, such as null."""

    buffer: Buffer | None
    offset: int = 0


NULL = Pointer(None)

Value = Buffer | Pointer | int | float | bytes


@dataclass(frozen=True, eq=False)
class Packed:
    """Values laid out like a C struct: ``format`` as in :mod:`struct` with native alignment, ``P`` for pointers.

    Used for structs passed by value, for buffers that hold pointers and for module variables. ``half`` bits are
    passed as ``H``; the size is padded to the alignment of the widest member.
    """

    format: str
    values: tuple[Value, ...]

    @property
    def size(self) -> int:
        widest = max((struct.calcsize(c) for c in self.format if c.isalpha()), default=1)
        return -(-struct.calcsize("@" + self.format) // widest) * widest

    def buffers(self) -> Iterator[Buffer]:
        for value in self.values:
            yield from reached(value)


def packed(format: str, *values: Value) -> Packed:
    """A struct of these members, in order."""
    return Packed(format, values)


def pointers(*targets: Buffer | Pointer) -> Packed:
    """An array of addresses."""
    return Packed(f"{len(targets)}P" if targets else "", targets)


Argument = Buffer | Pointer | np.generic | Packed


def reached(value: Argument | Value | Array) -> Iterator[Buffer]:
    """Every buffer that a value leads to, through tables and structs as well; a buffer may come more than once."""
    if isinstance(value, Pointer):
        if value.buffer is not None:
            yield from reached(value.buffer)
    elif isinstance(value, Buffer):
        yield value
        if isinstance(value.data, Packed):
            yield from value.data.buffers()
    elif isinstance(value, Packed):
        yield from value.buffers()


@dataclass(frozen=True, eq=False)
class LaunchCase:
    """One valid launch. ``arguments`` are by name, in the order of the kernel's parameters.

    ``globals`` holds what module variables contain before the launch; ``note`` says what the case is about;
    ``shared`` is dynamic shared memory in bytes.
    """

    grid: Shape
    block: Shape
    arguments: Mapping[str, Argument]
    shared: int = 0
    cooperative: bool = False
    globals: Mapping[str, Packed | Array] = field(default_factory=dict)
    note: str = ""

    @property
    def threads(self) -> int:
        """Number of threads of the whole launch."""
        total = 1
        for extent in (*self.grid, *self.block):
            total *= extent
        return total

    def buffers(self) -> list[Buffer]:
        """All buffers of the launch, each once, in the order in which the arguments name them; all have names."""
        found: list[Buffer] = []
        for owner, values in (("", self.arguments), ("global ", self.globals)):
            for name, value in values.items():
                for buffer in reached(value):
                    if all(buffer is not known for known in found):
                        buffer.name = buffer.name or self._free_name(owner + name, found)
                        found.append(buffer)
        return found

    @staticmethod
    def _free_name(wanted: str, found: Sequence[Buffer]) -> str:
        taken = {buffer.name for buffer in found}
        if wanted not in taken:
            return wanted
        return next(f"{wanted}.{i}" for i in range(1, len(taken) + 2) if f"{wanted}.{i}" not in taken)


def buffer(data: npt.ArrayLike, dtype: npt.DTypeLike | None = None, name: str = "") -> Buffer:
    """A buffer with these contents (copied)."""
    return Buffer(np.array(data, dtype=dtype, order="C"), name)


def i32(value: int) -> np.generic:
    return np.int32(value)


def u32(value: int) -> np.generic:
    return np.uint32(value)


def i64(value: int) -> np.generic:
    return np.int64(value)


def u64(value: int) -> np.generic:
    return np.uint64(value)


def f32(value: float) -> np.generic:
    return np.float32(value)


def f64(value: float) -> np.generic:
    return np.float64(value)
