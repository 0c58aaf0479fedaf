"""A segment's round trip: gathered by the program, executed by a worker, applied by the program."""

from __future__ import annotations

import struct
from collections.abc import Callable

from orchestrator import exchange
from tests.device.area import PAGE, Mapping, shared_file
from tests.device.layout import (
    ADDRESSES,
    APPLY_TABLE,
    AREA,
    ASKED,
    DATA,
    DECIDED,
    EPOCH,
    GATHER_TABLE,
    READY,
    ROUNDS,
    SIZE,
    TOLD,
)
from tests.device.machine import Machine, finish

PARTS = {"decided": "round trip, decided on demand", "ready": "round trip, ready before", "fork": "fork",
         "away": "from fork to join", "join": "join", "copy_in": "copies to the worker's device",
         "kernel": "the worker's kernel", "copy_out": "copies from the worker's device"}


class Orchestrator:
    """What fills the tables and says that they are ready: here without any driver, as the program asks."""

    def __init__(self, file: int) -> None:
        self.area = Mapping(file)

    def run(self) -> None:
        """Raises TimeoutError when the program does not ask in time."""
        self.area.wait(TOLD, 1, "the program's addresses")
        x, weights, out = struct.unpack_from("<3Q", self.area.memory, ADDRESSES)
        for number in range(1, DECIDED + 1):
            self.area.wait(ASKED, number, f"segment {number}")
            stale = [x, weights, out] if number == 1 else [x]
            gathered = exchange.arrange([(address, SIZE) for address in stale], DATA, AREA)
            applied = exchange.arrange([(out, SIZE)], DATA, AREA)
            self.write(GATHER_TABLE, gathered)
            self.write(APPLY_TABLE, applied)
            self.area.set_flag(READY, number if number < DECIDED else ROUNDS)

    def write(self, offset: int, entries: list[exchange.Entry]) -> None:
        table = exchange.table(EPOCH, entries)
        assert len(table) <= PAGE // 2
        self.area.memory[offset : offset + len(table)] = table


def test_a_segment_goes_away_and_comes_back(
    machine: Machine, record_property: Callable[[str, object], None]
) -> None:
    with shared_file(AREA) as file:
        roles = [("client", machine.home), ("worker", machine.worker)]
        programs = [machine.start("segment", role, device, file, files=[file]) for role, device in roles]
        client, worker = finish(*programs, meanwhile=Orchestrator(file).run)
    times = client | worker
    busy = sum(worker.values())
    for part, name in PARTS.items():
        record_property(f"microseconds: {name}", times[part])
    record_property("microseconds: a hop", round((client["away"] - busy) / 2, 1))
