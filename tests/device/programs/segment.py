"""The way of a segment of one launch to another device and back (section "the way of one launch" of the design).

    python -m tests.device.programs.segment client DEVICE FILE
    python -m tests.device.programs.segment worker DEVICE FILE

Who starts both writes the tables. Each program reports the median microseconds of the parts of its own way.
"""

from __future__ import annotations

import ctypes
import struct
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from cuda.bindings import driver

from orchestrator import exchange
from tests.device.layout import (
    ADDRESSES,
    APPLY_TABLE,
    ASKED,
    DECIDED,
    EPOCH,
    FORKED,
    GATHER_TABLE,
    JOINED,
    READY,
    ROUNDS,
    SIZE,
    TOLD,
    WORDS,
)
from tests.device.programs.device import Area, Device, call, main

BLOCK = (256, 1, 1)
GRID = (-(-WORDS // BLOCK[0]), 1, 1)
GUARD = 64
"""Words beside each array that nobody may touch."""


def combine(device: Device) -> Any:
    text = Path(__file__).with_name("combine.ptx").read_bytes()
    return device.kernel(text + b"\0", b"combine")


class Times:
    """Events on a stream, and the microseconds between them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.events = [call(driver.cuEventCreate(0)) for _ in range(len(names) + 1)]
        self.found: list[list[float]] = []

    def mark(self, device: Device, number: int) -> None:
        call(driver.cuEventRecord(self.events[number], device.stream))

    def take(self) -> None:
        pairs = zip(self.events, self.events[1:], strict=False)
        self.found.append([call(driver.cuEventElapsedTime(*pair)) * 1e3 for pair in pairs])

    def medians(self, start: int) -> dict[str, float]:
        columns = zip(*self.found[start:], strict=True)
        return {name: round(median(column), 1) for name, column in zip(self.names, columns, strict=True)}


class Client:
    """The program: its arrays, and the kernels of ours that copy from and to them."""

    def __init__(self, device: Device, area: Area) -> None:
        self.device, self.area = device, area
        self.memory = device.allocate((4 * WORDS + 5 * GUARD) * 4)
        self.x, self.weights, self.out, self.at_home = (
            self.memory + (GUARD + n * (WORDS + GUARD)) * 4 for n in range(4))
        self.gather, self.apply = (device.kernel(exchange.image(name), exchange.entry_point(name))
                                   for name in (exchange.GATHER, exchange.APPLY))
        self.combine = combine(device)
        self.times = Times(("fork", "away", "join"))
        self.expected = np.random.default_rng(0).integers(0, 1 << 32, 4 * WORDS + 5 * GUARD, np.uint32)
        device.write(self.memory, self.expected)
        self.put(self.at_home, self.part(self.out))
        struct.pack_into("<3Q", area.memory, ADDRESSES, self.x, self.weights, self.out)
        area.set_flag(TOLD, 1)

    def part(self, address: int) -> np.ndarray[Any, Any]:
        """What should stand in an array."""
        start = (address - self.memory) // 4
        return self.expected[start : start + WORDS]

    def put(self, address: int, words: np.ndarray[Any, Any]) -> None:
        self.part(address)[:] = words
        self.device.write(address, words)

    def segment(self, turn: int) -> None:
        """Queue it; nothing here waits."""
        copy = (self.area.on_device, ctypes.c_uint32(EPOCH))
        self.times.mark(self.device, 0)
        self.area.stream_waits(self.device, READY, turn)
        self.device.launch(self.gather, exchange.GRID, exchange.BLOCK, self.area.on_device + GATHER_TABLE, *copy)
        self.area.stream_writes(self.device, FORKED, turn)
        self.times.mark(self.device, 1)
        self.area.stream_waits(self.device, JOINED, turn)
        self.times.mark(self.device, 2)
        self.device.launch(self.apply, exchange.GRID, exchange.BLOCK, self.area.on_device + APPLY_TABLE, *copy)
        self.times.mark(self.device, 3)

    def turn(self, number: int) -> float:
        """A segment with a new x, and the same launch at home; the seconds until the segment's end."""
        self.put(self.x, np.random.default_rng(number).integers(0, 1 << 32, WORDS, np.uint32))
        begun = time.perf_counter()
        self.segment(number)
        self.area.set_flag(ASKED, number)
        self.device.wait()
        took = time.perf_counter() - begun
        self.times.take()
        self.device.launch(self.combine, GRID, BLOCK, self.at_home, self.x, self.weights, ctypes.c_uint32(WORDS))
        self.device.wait()
        for array in (self.out, self.at_home):
            self.part(array)[:] += 3 * self.part(self.x) + self.part(self.weights)
        found = self.device.read(self.memory, self.expected.nbytes).view(np.uint32)
        if (found != self.expected).any():
            wrong = np.flatnonzero(found != self.expected)
            raise AssertionError(f"round {number}: {wrong.size} words are wrong, from {wrong[0]} to {wrong[-1]}")
        return took


def client(device: Device, area: Area) -> dict[str, Any]:
    program = Client(device, area)
    took = [program.turn(number) for number in range(1, ROUNDS + 1)]
    return {"decided": round(median(took[:DECIDED]) * 1e6, 1), "ready": round(median(took[DECIDED:]) * 1e6, 1),
            **program.times.medians(DECIDED)}


def worker(device: Device, area: Area) -> dict[str, Any]:
    """It has replicas of the arrays, and copies what the tables say from and to them."""
    kernel = combine(device)
    area.wait(TOLD, 1, "the program's addresses")
    homes = struct.unpack_from("<3Q", area.memory, ADDRESSES)
    replicas = {home: device.allocate(SIZE) for home in homes}
    times = Times(("copy_in", "kernel", "copy_out"))
    x, weights, out = homes
    for number in range(1, ROUNDS + 1):
        area.wait(READY, number, f"the tables of segment {number}")
        area.stream_waits(device, FORKED, number)
        times.mark(device, 0)
        for home, offset, size in exchange.read_table(area.memory, GATHER_TABLE):
            call(driver.cuMemcpyHtoDAsync(replicas[home], area.address + offset, size, device.stream))
        times.mark(device, 1)
        device.launch(kernel, GRID, BLOCK, replicas[out], replicas[x], replicas[weights], ctypes.c_uint32(WORDS))
        times.mark(device, 2)
        for home, offset, size in exchange.read_table(area.memory, APPLY_TABLE):
            call(driver.cuMemcpyDtoHAsync(area.address + offset, replicas[home], size, device.stream))
        times.mark(device, 3)
        area.stream_writes(device, JOINED, number)
        device.wait()
        times.take()
    return times.medians(DECIDED)


def run(role: str, number: str, file: str) -> dict[str, Any]:
    device = Device(int(number))
    return {"client": client, "worker": worker}[role](device, Area(int(file)))


if __name__ == "__main__":
    main(run)
