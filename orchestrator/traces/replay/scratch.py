"""Pinned host memory for bytes on their way, which is used again when the copy is done."""

from __future__ import annotations

from collections import deque
from typing import Any

from orchestrator.traces.replay.driver import call, cuda
from orchestrator.traces.replay.machine import Machine

LEAST = 1 << 12
MOST_UNDER_WAY = 256 << 20
"""Bytes in flight before the oldest copy is waited for."""


class Scratch:
    """Blocks whose sizes are powers of two, in a context that lasts."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._under_way: deque[tuple[Any, int]] = deque()
        self._bytes = 0

    def take(self, size: int) -> int:
        """The address of at least so many bytes."""
        while self._under_way and (self._bytes > MOST_UNDER_WAY or self._done(self._under_way[0][0])):
            self._wait()
        rounded = max(LEAST, 1 << (size - 1).bit_length()) if size else LEAST
        kept = self._free.get(rounded)
        if kept:
            return kept.pop()
        context = self._machine.current
        self._machine.use_lasting()
        address = int(call(cuda.cuMemHostAlloc(rounded, 1), "cuMemHostAlloc"))  # CU_MEMHOSTALLOC_PORTABLE
        self._machine.use(context)
        self._sizes[address] = rounded
        return address

    def give(self, address: int) -> None:
        """Nobody uses a block any more."""
        self._free.setdefault(self._sizes[address], []).append(address)

    def give_after(self, event: Any, address: int) -> None:
        """The same when an event has come, which is destroyed then."""
        self._under_way.append((event, address))
        self._bytes += self._sizes[address]

    def settle(self) -> None:
        """Wait for all copies that use blocks: their events are about to end."""
        while self._under_way:
            self._wait()

    def _wait(self) -> None:
        event, address = self._under_way.popleft()
        call(cuda.cuEventSynchronize(event), "cuEventSynchronize")
        call(cuda.cuEventDestroy(event), "cuEventDestroy")
        self._bytes -= self._sizes[address]
        self.give(address)

    def end(self) -> None:
        """Free all blocks."""
        self.settle()
        for address in self._sizes:
            call(cuda.cuMemFreeHost(address), "cuMemFreeHost")
        self._sizes.clear()
        self._free.clear()

    def _done(self, event: Any) -> bool:
        return int(cuda.cuEventQuery(event)[0]) == 0
