"""Random descriptor tables: what gather and apply copy is what numpy copies, and nothing else changes.

    python -m tests.device.programs.ranges DEVICE EXAMPLES
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from cuda.bindings import driver
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from orchestrator import exchange
from orchestrator.exchange import Entry
from tests.device.programs.device import Device, call, main

SIZE = 1 << 16
TABLE = exchange.table_size(64)
LENGTHS = st.one_of(st.integers(0, 40), st.integers(0, 5000), st.sampled_from([16, 32, 256, 4096, SIZE // 2]))


@st.composite
def moves(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Ranges (where they go, where they come from, bytes) within ``SIZE``; where they go they do not overlap."""
    found, at = [], 0
    for size in draw(st.lists(LENGTHS, max_size=12)):
        at += draw(st.integers(0, 50))
        if at + size > SIZE:
            break
        source = draw(st.integers(0, SIZE - size))
        if draw(st.booleans()):  # aligned alike
            source = min(source - (source - at) % exchange.VECTOR, SIZE - size) % (SIZE - size + 1)
        found.append((at, source, size))
        at += size
    return draw(st.permutations(found))


class Sides:
    """Program memory, and an exchange area of memory that the host and the GPU see, with a table behind it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.program = device.allocate(SIZE)
        flags = driver.CU_MEMHOSTALLOC_DEVICEMAP | driver.CU_MEMHOSTALLOC_PORTABLE
        host = int(call(driver.cuMemHostAlloc(SIZE + TABLE, flags)))
        self.area = int(call(driver.cuMemHostGetDevicePointer(host, 0)))
        memory = np.frombuffer((ctypes.c_uint8 * (SIZE + TABLE)).from_address(host), np.uint8)
        self.inside, self.table = memory[:SIZE], memory[SIZE:]
        names = (exchange.GATHER, exchange.APPLY)
        self.kernels = {name: device.kernel(exchange.image(name), exchange.entry_point(name)) for name in names}

    def check(self, name: str, ranges: list[tuple[int, int, int]], shape: tuple[int, int, int], fresh: bool) -> None:
        """One launch of a kernel with random bytes on both sides; unless ``fresh`` the table is of another epoch."""
        numbers = np.random.default_rng(len(ranges))
        program, inside = (numbers.integers(0, 256, SIZE, np.uint8) for _ in range(2))
        self.device.write(self.program, program)
        self.inside[:] = inside
        goes_in = name == exchange.GATHER
        entries = [Entry(self.program + (source if goes_in else to), to if goes_in else source, size)
                   for to, source, size in ranges]
        table = exchange.table(7, entries)
        self.table[: len(table)] = np.frombuffer(table, np.uint8)
        grid, block = (shape[0], shape[1], 1), (shape[2], 1, 1)
        self.device.launch(self.kernels[name], grid, block, self.area + SIZE, self.area, ctypes.c_uint32(6 + fresh))
        self.device.wait()
        target, origin = (inside, program) if goes_in else (program, inside)
        for to, source, size in ranges if fresh else ():
            target[to : to + size] = origin[source : source + size]
        same("program memory", self.device.read(self.program, SIZE), program)
        same("exchange area", self.inside, inside)
        same("table", self.table[: len(table)], np.frombuffer(table, np.uint8))


def same(what: str, found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        raise AssertionError(f"{what}: {wrong.size} bytes are wrong, the first at {wrong[0]}, the last at {wrong[-1]}")


def run(number: str, examples: str) -> dict[str, int]:
    sides = Sides(Device(int(number)))
    moved = 0

    @seed(1)
    @settings(max_examples=int(examples), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from([exchange.GATHER, exchange.APPLY]), moves(),
           st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 32, 64, 256])), st.integers(0, 9))
    def launches(name: str, ranges: list[tuple[int, int, int]], shape: tuple[int, int, int], age: int) -> None:
        nonlocal moved
        sides.check(name, ranges, shape, age != 0)
        moved += sum(size for _, _, size in ranges)

    launches()
    for name in sides.kernels:  # the shape that is used live, and a table as large as fits
        shape = (*exchange.GRID[:2], exchange.BLOCK[0])
        sides.check(name, [(n * (SIZE // 64) + n % 16, n * 512 + n % 5, 1000) for n in range(64)], shape, True)
        sides.check(name, [(0, 0, SIZE)], shape, True)
        sides.check(name, [(1, 2, SIZE - 2)], shape, True)
    return {"examples": int(examples), "bytes_moved": moved}


if __name__ == "__main__":
    main(run)
