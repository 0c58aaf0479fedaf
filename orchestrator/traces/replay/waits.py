"""Waits of streams for values in host memory, which a program's threads write without a record."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import NamedTuple

from orchestrator.traces.replay.report import Report

SECONDS = 0.5
"""So long nothing goes on before a value is written that something may be waiting for."""
NEXT_SECONDS = 0.01
"""After that, before the next one; twice as long each time that something has gone on."""
GREATER, EQUAL, AND, NOR = 0, 1, 2, 3
"""CU_STREAM_WAIT_VALUE_*, in the lowest two bits of the flags."""
REASON = "values in host memory that the program wrote, and the replay in its place"


class _Wait(NamedTuple):
    address: int
    value: int
    flags: int
    bits: int

    def met(self, found: int) -> bool:
        """Whether a value ends the wait (CUDA Driver API, CUstreamWaitValue_flags)."""
        mask = (1 << self.bits) - 1
        how = self.flags & 3
        if how == GREATER:
            return not ((found - self.value) & mask) >> self.bits - 1
        if how == EQUAL:
            return found == self.value
        return bool(found & self.value if how == AND else ~(found | self.value) & mask)

    def wanted(self) -> int:
        """A value that ends it."""
        return ~self.value & (1 << self.bits) - 1 if self.flags & 3 == NOR else self.value


class Waits:
    """The waits that were queued, in their order. A thread sees to it that none of them lasts: when nothing has gone on
    for a while, it writes what the first one waits for that is not met."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._waits: deque[_Wait] = deque()
        self._moved = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="waits", daemon=True)

    def queued(self, address: int, value: int, flags: int, bits: int) -> None:
        """A stream waits for a value of 32 or 64 bits at an address of the host."""
        with self._lock:
            self._waits.append(_Wait(address, value, flags, bits))
        if not self._thread.is_alive():
            self._thread.start()

    def moved(self) -> None:
        """Something has gone on."""
        self._moved += 1

    def clear(self) -> None:
        """Everything is done, so all waits are over; memory is about to go."""
        with self._lock:
            self._waits.clear()

    def end(self) -> None:
        """No more waits come."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        seen, pause = -1, SECONDS
        while not self._stop.wait(pause):
            with self._lock:
                still = seen == self._moved and self._release()
            pause = NEXT_SECONDS if still else min(2 * pause, SECONDS)
            seen = self._moved

    def _release(self) -> bool:
        """Write what the oldest wait needs that is not met, if there is one; those before it are over."""
        while self._waits:
            wait = self._waits.popleft()
            kind = ctypes.c_uint64 if wait.bits == 64 else ctypes.c_uint32
            place = kind.from_address(wait.address)
            if not wait.met(place.value):
                place.value = wait.wanted()
                self._report.doubts[REASON] += 1
                return True
        return False
