"""Random launches of a generated kernel: grids, parameter values, memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ptxparse.model import Module, parameter_layout
from softgpu.reference import LoadedModule, Memory
from tests.random_kernels.memory import BYTES, MIDDLE, sparse
from tests.random_kernels.placed import Dimensions, Placed

WINDOW = 1 << 14
"""Bytes to either side of the middle of a buffer that hold numbers; the rest is zero."""
BUFFERS = ("A", "B", "C", "T")
READ_ONLY: frozenset[object] = frozenset({"B", "T"})
SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 9, -1, -3)
ANY = (0, 1, 3, 16, 100, -1, -7, 1000, 65535, 65536, 1 << 20, 0x7FFFFFFF, -0x80000000, 0x3FFFFFFF, 123456789)


@dataclass(frozen=True)
class Case:
    """A launch without addresses. ``aliased``: the buffers A and C are one."""

    grid: Dimensions
    block: Dimensions
    numbers: dict[str, int]
    seed: int
    aliased: bool = False


def cases(seed: int, count: int) -> list[Case]:
    """The first launches of the kernel of that seed."""
    choose = random.Random(seed * 7919 + 1)
    found = []
    for number in range(count):
        grid, block = _shape(choose)
        numbers = {name: choose.choice(SMALL if choose.random() < 0.9 else (13, 17, 21)) for name in "nm"}
        threads = block[0] * block[1] * block[2] * grid[0] * grid[1] * grid[2]
        lengths = (0, 1, threads - 1, threads, threads + 5, threads // 2, choose.randrange(200), 27)
        numbers["len"] = choose.choice(lengths)
        numbers["w"], numbers["u"] = choose.choice(ANY), choose.choice(ANY)
        numbers["q"] = choose.choice((0, 1, 2, 5, -1, -4, 64, 100))
        numbers["h"] = choose.choice((0, 1, 3, 12, 200, 65535, 32768))
        numbers["x"], numbers["y"] = choose.choice(SMALL), choose.choice((*SMALL, 16, 32))
        numbers["z"] = choose.choice((0, 1, 3, -2, 40))
        found.append(Case(grid, block, numbers, seed * 31 + number, choose.random() < 0.12))
    return found


def _shape(choose: random.Random) -> tuple[Dimensions, Dimensions]:
    style = choose.random()
    if style < 0.5:
        return (choose.choice((1, 1, 2, 3, 4, 5)), 1, 1), (choose.choice((1, 2, 7, 16, 32, 33, 64)), 1, 1)
    if style < 0.8:
        return ((choose.choice((1, 2, 3)), choose.choice((1, 2)), 1),
                (choose.choice((1, 4, 8, 16)), choose.choice((1, 2, 4, 5)), 1))
    return ((choose.choice((1, 2)), choose.choice((1, 2)), choose.choice((1, 2))),
            (choose.choice((2, 3, 8)), choose.choice((1, 2, 3)), choose.choice((1, 2, 3))))


def place(module: Module, case: Case, spacing: int = 0) -> Placed:
    """Fresh memory with the buffers of a case; ``spacing`` bytes before them move all addresses."""
    memory = Memory()
    if spacing:
        memory.allocate(spacing)
    loaded = LoadedModule(module, memory)
    addresses = {name: sparse(memory) for name in BUFFERS}
    choose = np.random.default_rng(case.seed)
    known: list[tuple[object, int, bytes]] = []
    for name, address in addresses.items():
        words = _contents(choose, name)
        memory.write(address + MIDDLE - WINDOW, words)
        known.append((name, MIDDLE - WINDOW, words.tobytes()))
    for address, size in loaded.globals.values():
        middle = size // 2 // 4 * 4
        memory.write(address + middle, choose.integers(0, 50, min(1024, (size - middle) // 4), np.int32))
    middles = {name: address + MIDDLE for name, address in addresses.items()}
    if case.aliased:
        middles["C"] = middles["A"] + 512
    places: list[tuple[object, int, int]] = [(name, address, BYTES) for name, address in addresses.items()]
    return Placed(memory, loaded, case.grid, case.block, _parameters(module, case, middles), places, known, READ_ONLY,
                  f"grid {case.grid} block {case.block} {case.numbers}", lambda more: place(module, case, more))


def _contents(choose: np.random.Generator, name: str) -> npt.NDArray[np.int32]:
    count = 2 * WINDOW // 4
    if name == "T":
        return choose.integers(-20, 60, count, np.int32)
    words = choose.integers(-100, 1000, count, np.int32)
    large = choose.random(count) < 0.05
    words[large] = choose.integers(-(1 << 31), 1 << 31, int(large.sum()), np.int32)
    return words


def _parameters(module: Module, case: Case, middles: dict[str, int]) -> bytes:
    slots, size = parameter_layout(module.entries[0])
    block = bytearray(size)
    numbers = case.numbers

    def packed(value: int, width: int) -> bytes:
        return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")

    values: dict[str, Callable[[], bytes]] = {
        "S": lambda: b"".join((packed(middles["C"] + 1024, 8), packed(numbers["x"], 4), packed(numbers["y"], 4),
                               packed(numbers["z"], 8), packed(middles["B"] - 256, 8))),
        "PA": lambda: b"".join(packed(middles["AC"[i % 2]] + 512 * i, 8) for i in range(4)),
        "IA": lambda: b"".join(packed(numbers["x"] + i * numbers["y"], 4) for i in range(8)),
    }
    for slot in slots:
        if slot.name in values:
            data = values[slot.name]()
        elif slot.name in middles:
            data = packed(middles[slot.name], 8)
        else:
            data = packed(numbers[slot.name], slot.size)
        block[slot.offset:slot.offset + slot.size] = data
    return bytes(block)
