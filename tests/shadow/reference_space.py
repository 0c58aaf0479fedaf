"""A memory whose kernels the reference interpreter runs: addresses are mere numbers."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import Module
from ptxparse.parser import parse
from softgpu.reference import InterpreterError, LoadedModule, Memory, launch
from softgpu.reference.memory import GAP, UNSIGNED, Buffer
from tests.shadow.errors import Fault, ShadowError
from tests.shadow.space import FRESH, Grid, Space, Touched
from tests.soundness import union

ALIGN = 16
"""The interpreter's accesses count from the beginning of a buffer."""


@lru_cache(maxsize=64)
def _parsed(text: bytes) -> Module:
    return parse(text.decode())


class _Memory(Memory):
    """With buffers wherever they are asked for."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._next = first

    def allocate(self, size: int, align: int = 256, *, name: str = "", constant: bool = False) -> int:
        start = -(-self._next // max(align, 256)) * max(align, 256)
        self._next = start + size + GAP
        self.place(Buffer(start, size, name, constant))
        return start

    def place(self, buffer: Buffer) -> None:
        place = bisect_right(self._starts, buffer.start)
        before, after = self._buffers[place - 1:place], self._buffers[place:place + 1]
        if any(b.start + b.size > buffer.start for b in before) or any(buffer.start + buffer.size > b.start
                                                                      for b in after):
            raise ShadowError(f"{buffer.size} bytes at {buffer.start:#x} overlap another allocation")
        self._starts.insert(place, buffer.start)
        self._buffers.insert(place, buffer)


class _Module(LoadedModule):
    def __init__(self, text: bytes, space: ReferenceSpace) -> None:
        super().__init__(_parsed(text), space.memory)
        self._space = space

    def constant(self, name: str) -> bool:
        return self.space_of(name) == "const"

    def move(self, name: str, address: int) -> None:
        old, size = self.globals[name]
        data = self.memory.read(old, size)
        self._space.remove(old)
        self._space.place(address, size, constant=self.constant(name))
        self.memory.write(address, data)
        self.globals[name] = (address, size)
        self._programs.clear()  # they have the old one

    def run(self, kernel: str, grid: Grid, log: bool) -> Touched | None:
        try:
            result = launch(self, kernel, tuple(grid.grid), tuple(grid.block), grid.parameters, shared=grid.shared,
                            cooperative=grid.cooperative, log=log)
        except InterpreterError as error:
            raise Fault(str(error)) from error
        if not log:
            return None
        found: dict[bytes, list[npt.NDArray[np.int64]]] = {b"R": [], b"W": [], b"A": []}
        for addresses, width, kind, _ in result.log.chunks():
            low = addresses.astype(np.int64)
            found[kind].append(np.stack([low, low + width], axis=1))
        read, written = (union(np.concatenate([*found[kind], *found[b"A"], np.zeros((0, 2), np.int64)]).tolist())
                         for kind in (b"R", b"W"))
        return Touched(tuple(map(tuple, read.tolist())), tuple(map(tuple, written.tolist())))


class ReferenceSpace(Space):
    """``first``: where allocations begin that are not asked for anywhere."""

    def __init__(self, first: int) -> None:
        self.memory = _Memory(first)

    def load(self, text: bytes) -> _Module:
        return _Module(text, self)

    def place(self, address: int, size: int, *, constant: bool = False, physical: Any = None, offset: int = 0) -> None:
        if address % ALIGN or offset % ALIGN:
            raise ShadowError(f"memory at {address:#x}: the interpreter has it at multiples of {ALIGN} only")
        buffer = Buffer(address, size, "", constant)
        if physical is None:
            buffer.data[:] = FRESH
        else:
            buffer.data = physical[offset:offset + len(buffer.data)]
            buffer.views = {n: buffer.data.view(dtype) for n, dtype in UNSIGNED.items()}
        self.memory.place(buffer)

    def allocate(self, size: int) -> int:
        return self.memory.allocate(size)

    def remove(self, address: int) -> None:
        self.memory.free(address)

    def close(self) -> None:
        """Its bytes are arrays, which go by themselves."""

    def physical(self, size: int) -> npt.NDArray[np.uint8]:
        return np.full(-(-size // ALIGN) * ALIGN, FRESH, np.uint8)

    def _piece(self, address: int) -> tuple[int, int] | None:
        found = self.memory.buffer_at(address)
        return None if found is None else (found.start, found.size)

    def _get(self, address: int, size: int) -> bytes:
        return self.memory.read(address, size)

    def _put(self, address: int, data: bytes) -> None:
        self.memory.write(address, data)
