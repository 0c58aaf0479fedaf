"""Memory and arrays of the program."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shim.wire import Record, lib
from tests.shadow.errors import ShadowError
from tests.shadow.space import FRESH, Space


class Live(NamedTuple):
    """An allocation. ``context``: with which it ends, or 0."""

    bytes: int
    kind: int
    context: int


class Allocations:
    """Of one program, whose memory is ``space``."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.live: dict[int, Live] = {}
        self._physical: dict[int, Any] = {}
        self._arrays: dict[int, npt.NDArray[np.uint8]] = {}

    def announce(self, record: Record) -> None:
        """A record of MEMORY that is there from now on."""
        body = record.body
        known = self.live.get(body.address)
        if known is not None and (known.bytes, known.kind) == (body.bytes, body.kind):
            return  # said again
        if body.device_address not in (0, body.address):
            raise ShadowError(f"record {record.sequence}: host memory with another address for GPUs is not supported")
        physical = self._physical.get(body.owner) if body.kind == lib.WIRE_MAPPED else None
        self.place(body.address, body.bytes, body.kind, body.context, physical, body.offset)

    def place(self, address: int, size: int, kind: int, context: int, physical: Any = None, offset: int = 0) -> None:
        self._space.place(address, size, physical=physical, offset=offset)
        self.live[address] = Live(size, kind, context)

    def remove(self, address: int) -> Live | None:
        """The allocation that ended."""
        found = self.live.pop(address, None)
        if found is not None:
            self._space.remove(address)
        return found

    def unmap(self, address: int, size: int) -> None:
        """All that is mapped in a range."""
        for start in [start for start, live in self.live.items()
                      if live.kind == lib.WIRE_MAPPED and address <= start < address + size]:
            self.remove(start)

    def end_context(self, context: int) -> None:
        for start in [start for start, live in self.live.items() if live.context == context]:
            self.remove(start)

    def create(self, record: Record) -> None:
        """A record of PHYSICAL."""
        if not (record.flags & lib.WIRE_RESTATED and record.body.handle in self._physical):
            self._physical[record.body.handle] = self._space.physical(record.body.bytes)

    def release(self, handle: int) -> None:
        """Nobody can map it any more; where it is mapped it stays."""
        self._physical.pop(handle, None)

    def make_array(self, record: Record) -> None:
        """A record of ARRAY."""
        body = record.body
        if (record.flags & lib.WIRE_RESTATED and body.handle in self._arrays) or not body.element_bytes:
            return
        shape = max(body.depth, 1), max(body.height, 1), body.width * body.element_bytes
        self._arrays[body.handle] = np.full(shape, FRESH, np.uint8)

    def end_array(self, handle: int) -> None:
        self._arrays.pop(handle, None)

    def array(self, handle: int) -> npt.NDArray[np.uint8]:
        """Its bytes: slices, rows, bytes of a row."""
        if handle not in self._arrays:
            raise ShadowError(f"array {handle:#x} is not there, or has no elements of one size")
        return self._arrays[handle]

    def contents(self) -> dict[int, bytes]:
        """The bytes of all memory by address."""
        return {address: self._space.read(address, live.bytes) for address, live in self.live.items()}
