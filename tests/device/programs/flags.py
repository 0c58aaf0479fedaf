"""One side of a ping-pong by flags of streams: each round a side waits for the other's flag, checks what lies in the
area, writes its own there and sets its flag; all on a stream.

    python -m tests.device.programs.flags DEVICE SIDE FILE ROUNDS        side 0 begins
"""

from __future__ import annotations

import time
from statistics import median

from cuda.bindings import driver

from tests.device.area import FLAGS
from tests.device.programs.device import Area, Device, call, main

WORDS = 1024
"""32-bit words of data, which say who wrote them and in which round."""


def word(side: int, turn: int) -> int:
    return (side << 20) + turn


def run(number: str, side_: str, file: str, rounds_: str) -> dict[str, float]:
    side, rounds = int(side_), int(rounds_)
    device, area = Device(int(number)), Area(int(file))
    own = device.allocate(WORDS * 4)
    place, seen = device.pinned(WORDS)
    other, data = 1 - side, area.on_device + FLAGS
    times = []
    for turn in range(1, rounds + 1):
        call(driver.cuMemsetD32Async(own, word(side, turn), WORDS, device.stream))
        begun = time.perf_counter()
        if side == 1:
            area.stream_waits(device, other, turn)
            call(driver.cuMemcpyDtoHAsync(place, data, WORDS * 4, device.stream))
        call(driver.cuMemcpyDtoDAsync(data, own, WORDS * 4, device.stream))
        area.stream_writes(device, side, turn)
        if side == 0:
            area.stream_waits(device, other, turn)
            call(driver.cuMemcpyDtoHAsync(place, data, WORDS * 4, device.stream))
        device.wait()
        times.append(time.perf_counter() - begun)
        if not (seen == word(other, turn)).all():
            raise AssertionError(f"round {turn}: side {side} found {seen[seen != word(other, turn)][:4]} in the area")
    return {"microseconds_a_round": median(times) * 1e6}


if __name__ == "__main__":
    main(run)
