"""A memory whose kernels the engine runs: its addresses are those of this process."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from softgpu.engine import EngineError, LoadedModule, Memory, Options, Pool, launch
from softgpu.engine.module import Kernel
from tests.shadow.errors import Fault, ShadowError
from tests.shadow.outcome import Ranges
from tests.shadow.pages import Pages
from tests.shadow.space import FRESH, Grid, Space, Touched
from tests.soundness import union

_KERNELS: dict[tuple[bytes, str, str], Kernel] = {}
"""Compiled once in a process."""
_POOLS: list[Pool] = []
DEADLINE = 20.0


class _Physical:
    """Bytes that have no address of their own."""

    def __init__(self, size: int) -> None:
        self.file = os.memfd_create("physical")
        with open(self.file, "wb", closefd=False) as file:
            file.write(bytes([FRESH]) * size)

    def __del__(self) -> None:
        os.close(self.file)


class _Module(LoadedModule):
    def __init__(self, text: bytes, space: EngineSpace) -> None:
        super().__init__(text, space.memory)
        self._space = space
        self._constants = {name for name, (address, _) in self.globals.items()
                           if (found := space.memory.allocation_at(address)) is not None and found.constant}

    def kernel(self, name: str, options: Options) -> Kernel:
        key = (self.text or b"", name, options.text())
        found = _KERNELS.get(key)
        if found is None:
            found = _KERNELS[key] = super().kernel(name, options)
        return found

    def constant(self, name: str) -> bool:
        return name in self._constants

    def move(self, name: str, address: int) -> None:
        old, size = self.globals[name]
        data = self.memory.read(old, size)
        self._space.remove(old)
        self._space.place(address, size, constant=self.constant(name))
        self.memory.write(address, data)
        self.globals[name] = (address, size)

    def run(self, kernel: str, grid: Grid, log: bool) -> Touched | None:
        if not _POOLS:
            _POOLS.append(Pool(1))  # small launches are slower on more
        try:
            result = launch(self, kernel, grid.grid, grid.block, grid.parameters, shared=grid.shared,
                            cooperative=grid.cooperative, log=log, deadline=DEADLINE, pool=_POOLS[0])
        except EngineError as error:
            raise Fault(str(error)) from error
        return Touched(_ranges(result.read, result.atomic), _ranges(result.written, result.atomic)) if log else None


def _ranges(*rows: Any) -> Ranges:
    return tuple((lo, hi) for lo, hi in union(np.concatenate(rows).tolist()).tolist())


class EngineSpace(Space):
    """``pages``: where this process has memory for fixed addresses; several spaces may share them."""

    def __init__(self, pages: Pages) -> None:
        self.memory = Memory()
        self._pages = pages
        self._shared: dict[int, tuple[int, _Physical]] = {}

    def load(self, text: bytes) -> _Module:
        return _Module(text, self)

    def place(self, address: int, size: int, *, constant: bool = False, physical: Any = None, offset: int = 0) -> None:
        if physical is None:
            self._pages.hold(address, size)
            ctypes.memset(address, FRESH, size)
        else:
            self._pages.share(address, size, physical.file, offset)
            self._shared[address] = (size, physical)
        try:
            whole = np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), np.uint8)
            self.memory.adopt(whole, constant=constant)
        except EngineError as error:
            raise ShadowError(f"memory at {address:#x}: {error}") from error

    def allocate(self, size: int) -> int:
        return self.memory.allocate(size)

    def remove(self, address: int) -> None:
        self.memory.free(address)
        size, _ = self._shared.pop(address, (0, None))
        if size:
            self._pages.unshare(address, size)

    def physical(self, size: int) -> _Physical:
        return _Physical(size)

    def close(self) -> None:
        self.memory = Memory()
        self._pages.close()

    def _piece(self, address: int) -> tuple[int, int] | None:
        found = self.memory.allocation_at(address)
        return None if found is None else (found.start, found.size)

    def _get(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def _put(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))
