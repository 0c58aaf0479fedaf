"""Global memory: one flat 64-bit address space of separate buffers with gaps between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from softgpu.reference.errors import InterpreterError

Bytes = npt.NDArray[np.uint8]
Addresses = npt.NDArray[np.uint64]
Fault = Callable[[int, str], NoReturn]
"""Raises the MemoryFault for the access at a position of the address array, with a reason."""

FIRST_ADDRESS = 0x7_0000_0000
LAST_ADDRESS = 0x7000 << 32
GAP = 1 << 28
"""Unmapped addresses after every buffer, so that a miss by less than this faults."""

UNSIGNED: dict[int, np.dtype[np.unsignedinteger]] = {
    size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)
}
"""Register dtype by size in bytes."""


class Buffer:
    """One allocation: ``size`` bytes at ``start``, stored padded so that any aligned element type can view it."""

    __slots__ = ("constant", "data", "name", "size", "start", "views")

    def __init__(self, start: int, size: int, name: str, constant: bool) -> None:
        self.start = start
        self.size = size
        self.name = name
        self.constant = constant
        self.data: Bytes = np.zeros(-(-max(size, 1) // 16) * 16, np.uint8)
        self.views = {n: self.data.view(dtype) for n, dtype in UNSIGNED.items()}


class Piece(NamedTuple):
    """Part of a vectorised access: which elements (None: all), the storage by element size, their byte offsets, and
    whether it is global memory, so that it belongs in the log."""

    selected: npt.NDArray[np.intp] | None
    views: dict[int, npt.NDArray[np.unsignedinteger]]
    offsets: npt.NDArray[np.int64]
    is_global: bool = False


def check_alignment(addresses: Addresses, align: int, fault: Fault) -> None:
    """Call ``fault`` if an address is no multiple of ``align`` (a power of two)."""
    if align > 1:
        misaligned = addresses & np.uint64(align - 1)
        if misaligned.any():
            fault(int(np.flatnonzero(misaligned)[0]), f"not aligned to {align} bytes")


class Memory:
    """Buffers by address. Addresses are deterministic, never 0, and not reused after a free."""

    def __init__(self) -> None:
        self._next = FIRST_ADDRESS
        self._starts: list[int] = []
        self._buffers: list[Buffer] = []

    def allocate(self, size: int, align: int = 256, *, name: str = "", constant: bool = False) -> int:
        """Address of ``size`` new zero bytes; ``align`` is a power of two; kernels cannot write ``constant`` ones."""
        if size < 0 or align <= 0 or align & (align - 1):
            raise InterpreterError(f"cannot allocate {size} bytes aligned to {align}: "
                                   "the size must not be negative and the alignment a power of two")
        align = max(align, 256)
        start = -(-self._next // align) * align
        if start + size > LAST_ADDRESS:
            raise InterpreterError("no addresses left: use a new Memory")
        self._next = start + size + GAP
        self._starts.append(start)
        self._buffers.append(Buffer(start, size, name, constant))
        return start

    def free(self, address: int) -> None:
        """Give back the buffer that starts at ``address``; any later access to it faults."""
        position = bisect_right(self._starts, address) - 1
        if position < 0 or self._starts[position] != address:
            raise InterpreterError(f"{address:#x} is not the start of a buffer")
        del self._starts[position], self._buffers[position]

    def buffer_at(self, address: int) -> Buffer | None:
        """The buffer that holds the byte at ``address``."""
        position = bisect_right(self._starts, address) - 1
        if position >= 0:
            buffer = self._buffers[position]
            if address < buffer.start + buffer.size:
                return buffer
        return None

    def view(self, address: int, size: int) -> Bytes:
        """The bytes themselves (not a copy). Raises InterpreterError when they are not inside one buffer."""
        buffer = self.buffer_at(address)
        if buffer is None or address + size > buffer.start + buffer.size:
            if size == 0:
                return np.zeros(0, np.uint8)
            raise InterpreterError(f"{size} bytes at {address:#x} are not inside one buffer")
        return buffer.data[address - buffer.start:address - buffer.start + size]

    def read(self, address: int, size: int) -> bytes:
        """A copy of ``size`` bytes at ``address``."""
        return self.view(address, size).tobytes()

    def write(self, address: int, data: bytes | bytearray | memoryview | npt.NDArray[np.generic]) -> None:
        """Store the bytes of ``data`` (an array's in C order) at ``address``."""
        raw = np.frombuffer(data.tobytes() if isinstance(data, np.ndarray) else bytes(data), np.uint8)
        self.view(address, len(raw))[:] = raw

    def locate(self, addresses: Addresses, width: int, align: int, fault: Fault, *,
               writing: bool = False) -> list[Piece]:
        """Where accesses of ``width`` bytes lie; ``fault`` is called for the first that is outside every buffer or not
        aligned to ``align`` bytes (a power of two)."""
        check_alignment(addresses, align, fault)
        lowest, highest = int(addresses.min()), int(addresses.max())
        buffer = self.buffer_at(lowest)
        if buffer is not None and highest + width <= buffer.start + buffer.size:
            if writing and buffer.constant:
                fault(0, "constant memory cannot be written")
            return [Piece(None, buffer.views, (addresses - np.uint64(buffer.start)).view(np.int64),
                          not buffer.constant)]
        return self._locate_many(addresses, width, fault, writing)

    def _locate_many(self, addresses: Addresses, width: int, fault: Fault, writing: bool) -> list[Piece]:
        starts = np.array(self._starts, np.uint64)
        found = np.searchsorted(starts, addresses, "right") - 1
        pieces = []
        for position in np.unique(found):
            selected = np.flatnonzero(found == position)
            chosen = addresses[selected]
            if position < 0:
                fault(int(selected[0]), self._nearest(int(chosen[0])))
            buffer = self._buffers[position]
            distance = chosen - np.uint64(buffer.start)
            outside = distance > np.uint64(buffer.size - width) if buffer.size >= width else distance == distance
            if outside.any():
                first = int(selected[np.flatnonzero(outside)[0]])
                fault(first, self._nearest(int(addresses[first])))
            if writing and buffer.constant:
                fault(int(selected[0]), "constant memory cannot be written")
            pieces.append(Piece(selected, buffer.views, distance.view(np.int64), not buffer.constant))
        return pieces

    def _nearest(self, address: int) -> str:
        position = bisect_right(self._starts, address) - 1
        if position < 0:
            return "outside every buffer"
        buffer = self._buffers[position]
        name = f" ({buffer.name})" if buffer.name else ""
        return f"outside every buffer; the one before it is {buffer.size} bytes at {buffer.start:#x}{name}"
