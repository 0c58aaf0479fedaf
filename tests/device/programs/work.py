"""A small program of everything that records have to keep apart: two streams that wait for each other by events, copies
from and to pinned memory, and a captured graph that is launched several times.

    python -m tests.device.programs.work DEVICE ROUNDS

Reports how many kernels, graphs and copies it asked for, and what the words add up to.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

import numpy as np
from cuda.bindings import driver

from tests.device.programs.device import Device, call, main
from tests.device.programs.segment import BLOCK, GRID, WORDS, combine

SIZE = WORDS * 4
IN_GRAPH = 3
"""How often a round launches the graph."""


class Work:
    """out += 3 * x + weights, by a launch of its own and by those of the graph; x comes from pinned memory on another
    stream, out goes to pinned memory, by the graph and without it."""

    def __init__(self, number: int) -> None:
        self.device = Device(number)
        self.kernel = combine(self.device)
        self.x, self.weights, self.out = (self.device.allocate(SIZE) for _ in range(3))
        self.from_here, self.new_x = self.device.pinned(WORDS)
        self.to_here, self.found = self.device.pinned(2 * WORDS)
        self.feeder = call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.fed, self.free = (call(driver.cuEventCreate(2)) for _ in range(2))  # CU_EVENT_DISABLE_TIMING
        self.numbers = np.random.default_rng(0)
        self.expected_weights = self.numbers.integers(0, 1 << 32, WORDS, np.uint32)
        self.device.write(self.weights, self.expected_weights)
        call(driver.cuMemsetD32Async(self.out, 7, WORDS, self.device.stream))
        self.expected = np.full(WORDS, 7, np.uint32)
        self.graph = self.capture()
        self.asked: Counter[str] = Counter()

    def add(self) -> None:
        self.device.launch(self.kernel, GRID, BLOCK, self.out, self.x, self.weights, ctypes.c_uint32(WORDS))

    def capture(self) -> Any:
        """A graph of the kernel and of a copy of what it has made."""
        stream = self.device.stream
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        call(driver.cuStreamBeginCapture(stream, mode))
        self.add()
        call(driver.cuMemcpyDtoHAsync(self.to_here, self.out, SIZE, stream))
        return call(driver.cuGraphInstantiate(call(driver.cuStreamEndCapture(stream)), 0))

    def round(self, number: int) -> None:
        stream = self.device.stream
        self.new_x[:] = self.numbers.integers(0, 1 << 32, WORDS, np.uint32)
        call(driver.cuStreamWaitEvent(self.feeder, self.free, 0))
        call(driver.cuMemcpyHtoDAsync(self.x, self.from_here, SIZE, self.feeder))
        call(driver.cuEventRecord(self.fed, self.feeder))
        call(driver.cuStreamWaitEvent(stream, self.fed, 0))
        self.add()
        for _ in range(IN_GRAPH):
            call(driver.cuGraphLaunch(self.graph, stream))
        call(driver.cuMemcpyDtoHAsync(self.to_here + SIZE, self.out, SIZE, stream))
        call(driver.cuEventRecord(self.free, stream))
        self.device.wait()
        self.asked.update(kernels=1, graphs=IN_GRAPH, copies=2)
        self.expected += (1 + IN_GRAPH) * (3 * self.new_x + self.expected_weights)
        for found in (self.found[:WORDS], self.found[WORDS:]):
            if (found != self.expected).any():
                raise AssertionError(f"round {number}: {(found != self.expected).sum()} words are wrong")


def run(number: str, rounds: str) -> dict[str, Any]:
    work = Work(int(number))
    for turn in range(int(rounds)):
        work.round(turn)
    last = work.device.read(work.out, SIZE).view(np.uint32)
    return {**work.asked, "sum": int(last.sum(dtype=np.uint64))}


if __name__ == "__main__":
    main(run)
