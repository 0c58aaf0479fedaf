"""Pages of this process at addresses of one's own choice."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable

from tests.shadow.errors import ShadowError

CHUNK = 1 << 16
_FIXED, _FIXED_NOREPLACE, _NORESERVE = 0x10, 0x100000, 0x4000
_FAILED = ctypes.c_void_p(-1).value
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


class Pages:
    """Mapped in whole chunks where they are asked for, until :meth:`close`."""

    def __init__(self) -> None:
        self._libc = _libc()
        self._chunks: set[int] = set()

    def hold(self, address: int, size: int) -> None:
        """Have pages there. Raises ShadowError if this process has other things there."""
        for start, end in _runs(set(range(address // CHUNK, -(-(address + size) // CHUNK))) - self._chunks):
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE | _NORESERVE
            self._map(start * CHUNK, (end - start) * CHUNK, flags, -1, 0)
            self._chunks.update(range(start, end))

    def share(self, address: int, size: int, file: int, offset: int) -> None:
        """Have the bytes of a file there."""
        if (address | size | offset) % mmap.PAGESIZE:
            raise ShadowError(f"{size} bytes of physical memory at {address:#x}: not whole pages")
        self.hold(address, size)
        self._map(address, size, mmap.MAP_SHARED | _FIXED, file, offset)

    def unshare(self, address: int, size: int) -> None:
        """Have pages of no file there again."""
        self._map(address, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED | _NORESERVE, -1, 0)

    def close(self) -> None:
        """Give all back; nobody may touch them any more."""
        for start, end in _runs(self._chunks):
            self._libc.munmap(start * CHUNK, (end - start) * CHUNK)
        self._chunks.clear()

    def _map(self, address: int, size: int, flags: int, file: int, offset: int) -> None:
        found = self._libc.mmap(address, size, _PROTECTION, flags, file, offset)
        if found == _FAILED:
            raise ShadowError(f"{size} bytes at {address:#x}: {ctypes.get_errno()}; this process may be there itself")


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as ranges."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return found
