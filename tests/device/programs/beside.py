"""One of two programs that use a device at the same time: it goes on until both have done enough, and its memory stays
its own.

    python -m tests.device.programs.beside DEVICE SIDE FILE ROUNDS
"""

from __future__ import annotations

import ctypes
import struct
import time

import numpy as np
from cuda.bindings import driver

from tests.device.area import SECONDS, Mapping
from tests.device.programs.device import Device, main
from tests.device.programs.segment import BLOCK, GRID, WORDS, combine

ADDRESSES = 1024
"""Where each side says where its memory lies."""
LOOKED = 2
"""Flags: each side has looked at the other's address. The first two are their counts of rounds."""


def run(number: str, side_: str, file: str, rounds_: str) -> dict[str, object]:
    side, rounds = int(side_), int(rounds_)
    device, shared = Device(int(number)), Mapping(int(file))
    kernel = combine(device)
    words = np.random.default_rng(side).integers(0, 1 << 32, (3, WORDS), np.uint32)
    memory = device.allocate(words.nbytes)
    device.write(memory, words)
    struct.pack_into("<Q", shared.memory, ADDRESSES + 8 * side, memory)
    out, x, weights = words
    arrays = [memory + n * 4 * WORDS for n in range(3)]
    done, others, deadline = 0, [], time.monotonic() + SECONDS
    while min(done, shared.flag(1 - side)) < rounds:
        if time.monotonic() > deadline:
            raise TimeoutError(f"side {side} has done {done} rounds, the other one {shared.flag(1 - side)}")
        device.launch(kernel, GRID, BLOCK, *arrays, ctypes.c_uint32(WORDS))
        device.wait()
        out += 3 * x + weights
        if (device.read(memory, words.nbytes).view(np.uint32) != words.ravel()).any():
            raise AssertionError(f"round {done + 1}: the memory of side {side} is not what it wrote")
        done += 1
        shared.set_flag(side, done)
        others.append(shared.flag(1 - side))
    (theirs,) = struct.unpack_from("<Q", shared.memory, ADDRESSES + 8 * (1 - side))
    found = np.zeros(WORDS, np.uint32)  # for what lies where the other one has its x
    result = driver.cuMemcpyDtoH(found.ctypes.data, theirs + 4 * WORDS, found.nbytes)[0]
    if (found == np.random.default_rng(1 - side).integers(0, 1 << 32, (3, WORDS), np.uint32)[1]).all():
        raise AssertionError(f"side {side} has read the other's memory")
    shared.set_flag(LOOKED + side, 1)
    shared.wait(LOOKED + 1 - side, 1, "the other side")
    return {"rounds": done, "rounds_of_the_other_meanwhile": others[-1] - others[0], "same_address": theirs == memory,
            "copy_from_the_others_address": result.name}


if __name__ == "__main__":
    main(run)
