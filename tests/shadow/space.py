"""One memory with the kernels that may touch it: of the program, or of a GPU that jobs are sent to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tests.shadow.errors import Fault
from tests.shadow.outcome import Ranges

FRESH, FORGOTTEN = 0xCD, 0xA5
"""What new memory of the program holds, and what replicas hold where nothing was gathered."""


class Grid(NamedTuple):
    """How a kernel is launched: extents, bytes of dynamic shared memory, the block of parameters."""

    grid: Sequence[int]
    block: Sequence[int]
    shared: int
    parameters: bytes
    cooperative: bool = False


class Touched(NamedTuple):
    """Bytes that a launch has really read and written; atomics are both."""

    read: Ranges
    written: Ranges


class Loaded(Protocol):
    """A module's own variables: (address, bytes) by name."""

    globals: dict[str, tuple[int, int]]

    def constant(self, name: str) -> bool:
        """Whether kernels cannot write it."""

    def move(self, name: str, address: int) -> None:
        """Give a variable another address, with its bytes."""

    def run(self, kernel: str, grid: Grid, log: bool) -> Touched | None:
        """Run a kernel to its end. Raises Fault."""


class Space(ABC):
    """What both kinds have in common. Allocations may touch each other, and copies go across them."""

    @abstractmethod
    def load(self, text: bytes) -> Loaded:
        """A copy of a module, with its variables as they begin."""

    @abstractmethod
    def place(self, address: int, size: int, *, constant: bool = False, physical: Any = None, offset: int = 0) -> None:
        """An allocation at an address: of :data:`FRESH` bytes, or the bytes at ``offset`` of physical memory."""

    @abstractmethod
    def allocate(self, size: int) -> int:
        """An allocation at any address, aligned to 256 bytes, of zeros."""

    @abstractmethod
    def remove(self, address: int) -> None:
        """End an allocation, given by where it begins."""

    @abstractmethod
    def physical(self, size: int) -> Any:
        """Memory that has no address yet."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""

    @abstractmethod
    def _piece(self, address: int) -> tuple[int, int] | None:
        """The allocation that holds a byte: its address and size."""

    @abstractmethod
    def _get(self, address: int, size: int) -> bytes: ...

    @abstractmethod
    def _put(self, address: int, data: bytes) -> None: ...

    def holds(self, address: int) -> bool:
        """Whether there is a byte."""
        return self._piece(address) is not None

    def read(self, address: int, size: int) -> bytes:
        """Raises Fault where there is no memory."""
        return b"".join([self._get(start, some) for start, some in self._pieces(address, size)])

    def write(self, address: int, data: bytes) -> None:
        """Raises Fault where there is no memory, having written nothing."""
        for start, some in list(self._pieces(address, len(data))):
            self._put(start, data[start - address:start - address + some])

    def _pieces(self, address: int, size: int) -> list[tuple[int, int]]:
        found, end = [], address + size
        while address < end:
            piece = self._piece(address)
            if piece is None:
                raise Fault(f"there is no memory at {address:#x} (of {size} bytes up to {end:#x})")
            some = min(end, sum(piece)) - address
            found.append((address, some))
            address += some
        return found
