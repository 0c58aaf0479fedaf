"""Memory that kernels may touch: numpy buffers at their own host addresses."""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.engine.errors import EngineError

Bytes = npt.NDArray[np.uint8]

_MAP_FIXED_NOREPLACE = 0x100000
_MAP_FAILED = ctypes.c_void_p(-1).value


@dataclass(eq=False)
class Allocation:
    """``size`` bytes at ``start``; ``owner`` keeps them alive. Kernels cannot write ``constant`` ones."""

    start: int
    size: int
    constant: bool
    owner: Any

    def view(self) -> Bytes:
        """The bytes as a numpy array."""
        return np.frombuffer(memoryview((ctypes.c_char * self.size).from_address(self.start)), np.uint8)


class Memory:
    """Allocations by address. Not to be changed while a launch that uses it runs."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._allocations: dict[int, Allocation] = {}
        self.version = 0

    def allocate(self, size: int, align: int = 256, *, constant: bool = False, address: int | None = None) -> int:
        """Address of ``size`` new zero bytes; ``align`` is a power of two. ``address`` asks for a place of one's own
        choice; EngineError when something is there."""
        if size < 0 or align <= 0 or align & (align - 1):
            raise EngineError(f"cannot allocate {size} bytes aligned to {align}: "
                              "the size must not be negative and the alignment a power of two")
        if address is not None:
            return self._add(Allocation(address, size, constant, _Mapped(address, max(size, 1))))
        align = max(align, 256)
        owner = np.zeros(size + align, np.uint8)
        start = -(-owner.ctypes.data // align) * align
        return self._add(Allocation(start, size, constant, owner))

    def adopt(self, array: npt.NDArray[Any], *, constant: bool = False) -> int:
        """Let kernels touch the bytes of a contiguous array; its address. The array itself is used, not a copy."""
        if not array.flags.c_contiguous or (not constant and not array.flags.writeable):
            raise EngineError("an array that kernels use must be contiguous, and writable unless it is constant")
        start = array.ctypes.data
        known = self._allocations.get(start)
        if known is not None and known.owner is array:
            return start
        return self._add(Allocation(start, array.nbytes, constant, array))

    def _add(self, allocation: Allocation) -> int:
        start, end = allocation.start, allocation.start + allocation.size
        place = bisect_right(self._starts, start)
        before = self._allocations[self._starts[place - 1]] if place else None
        after = self._allocations[self._starts[place]] if place < len(self._starts) else None
        if (before is not None and before.start + before.size > start) or (after is not None and after.start < end) or (
                start in self._allocations):
            raise EngineError(f"{allocation.size} bytes at {start:#x} overlap another allocation")
        insort(self._starts, start)
        self._allocations[start] = allocation
        self.version += 1
        return start

    def free(self, address: int) -> None:
        """Give back the allocation that starts at ``address``; later accesses to it fault."""
        if address not in self._allocations:
            raise EngineError(f"{address:#x} is not the start of an allocation")
        self._starts.remove(address)
        del self._allocations[address]
        self.version += 1

    def allocation_at(self, address: int) -> Allocation | None:
        """The allocation that holds the byte at ``address``."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        found = self._allocations[self._starts[place]]
        return found if address < found.start + found.size else None

    def _inside(self, address: int, size: int) -> Allocation:
        found = self.allocation_at(address)
        if found is None or address + size > found.start + found.size:
            raise EngineError(f"{size} bytes at {address:#x} are not inside an allocation")
        return found

    def read(self, address: int, size: int) -> bytes:
        """A copy of some bytes."""
        if size:
            self._inside(address, size)
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes | bytearray | npt.NDArray[Any]) -> None:
        """Store bytes, or the bytes of an array."""
        raw = np.ascontiguousarray(data).tobytes() if isinstance(data, np.ndarray) else bytes(data)
        if raw:
            self._inside(address, len(raw))
            ctypes.memmove(address, raw, len(raw))

    def allocations(self) -> list[Allocation]:
        """All, by address."""
        return [self._allocations[start] for start in self._starts]


class _Mapped:
    """Pages at a fixed address, unmapped with the object."""

    def __init__(self, address: int, size: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                                    ctypes.c_long]
        self._libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        page = mmap.PAGESIZE
        self.start = address // page * page
        self.length = -(-(address + size) // page) * page - self.start
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
        found = self._libc.mmap(self.start, self.length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if found == _MAP_FAILED or found != self.start:
            if found not in (None, _MAP_FAILED):
                self._libc.munmap(found, self.length)
            self.length = 0
            raise EngineError(f"no {size} bytes are free at {address:#x}")

    def close(self) -> None:
        """Unmap the pages now."""
        if self.length:
            self._libc.munmap(self.start, self.length)
            self.length = 0

    def __del__(self) -> None:
        if getattr(self, "length", 0):
            self.close()
