"""Reserved addresses, physical memory, and what is mapped of it."""

from __future__ import annotations

import sqlite3
from typing import Any

from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.driver import CallFailed, call, cuda
from orchestrator.traces.replay.extents import grant, granularity, properties, reserve
from orchestrator.traces.replay.machine import Machine
from orchestrator.traces.replay.report import Report
from orchestrator.traces.replay.space import Place, Space
from orchestrator.traces.rows import unsigned
from shim.layout import lib

ON_A_GPU = 1
"""CU_MEM_LOCATION_TYPE_DEVICE."""


class Mappings:
    """Physical memory is mapped at the same offsets of its reservations."""

    def __init__(self, trace: Trace, machine: Machine, report: Report, space: Space) -> None:
        self._trace, self._machine, self._report, self._space = trace, machine, report, space
        self._reservations: dict[int, tuple[int, int]] = {}
        self._physical: dict[int, Any] = {}

    def reserve(self, row: sqlite3.Row) -> None:
        """A row of ``reservation``: at the recorded address if the driver has it."""
        address, size = unsigned(row["address"]), row["bytes"]
        now = reserve(address, size)
        if now is None:
            now = int(call(cuda.cuMemAddressReserve(size, 0, 0, 0), "cuMemAddressReserve"))
        self._reservations[address] = (now, size)

    def end_reservation(self, address: int) -> None:
        found = self._reservations.pop(address, None)
        if found:
            call(cuda.cuMemAddressFree(*found), "cuMemAddressFree")

    def create(self, row: sqlite3.Row) -> None:
        """A row of ``physical``."""
        if row["imported"]:
            self._report.doubts["memory of another process"] += 1
        if row["location_type"] != ON_A_GPU:
            self._report.skip("physical memory that is not a GPU's")
            return
        device = self._machine.ordinal(row["location"])
        step = granularity(device)
        size = -(-(row["bytes"] or self._used(row["id"])) // step) * step
        self._physical[row["id"]] = call(cuda.cuMemCreate(size, properties(device), 0), "cuMemCreate")

    def _used(self, number: int) -> int:
        """How many bytes of physical memory are mapped anywhere: of what another process made nobody says its size."""
        used = "SELECT max(start + bytes) AS bytes FROM memory WHERE kind = ? AND owner = ?"
        found = self._trace.row(used, lib.WIRE_MAPPED, number)
        return int(found["bytes"] or 1) if found else 1

    def end_physical(self, number: int) -> None:
        made = self._physical.pop(number, None)
        if made is not None:
            call(cuda.cuMemRelease(made), "cuMemRelease")

    def map(self, row: sqlite3.Row) -> Place | None:
        """A row of ``memory`` that is mapped; it can be used when ``access`` has said so."""
        address, size = unsigned(row["address"]), row["bytes"]
        memory, now = self._physical.get(row["owner"]), self._reserved(address, size)
        if memory is None or now is None:
            self._report.skip("a mapping of memory or of addresses that are not there")
            return None
        call(cuda.cuMemMap(now, size, row["start"] or 0, memory, 0), "cuMemMap")
        return Place(address, size, now, row["kind"])

    def access(self, row: sqlite3.Row) -> None:
        """A row of ``access``: rights of one GPU; taking them away is left out, as no program can rely on that."""
        now = self._reserved(unsigned(row["address"]), row["bytes"])
        if now is not None and row["flags"] and row["location_type"] == ON_A_GPU:
            grant(now, row["bytes"], self._machine.ordinal(row["location"]), ())

    def unmap(self, address: int, size: int) -> None:
        """What is mapped in a range is mapped no longer."""
        for place in self._space.within(address, size):
            self._machine.wait_for_all()
            call(cuda.cuMemUnmap(place.now, place.bytes), "cuMemUnmap")
            self._space.remove(place.address)

    def end(self) -> None:
        """Unmap and give back everything."""
        for address, (now, size) in self._reservations.items():
            try:
                self.unmap(address, size)
                call(cuda.cuMemAddressFree(now, size), "cuMemAddressFree")
            except CallFailed as failed:
                self._report.notes[f"at the end: {failed}"] += 1
        for number in list(self._physical):
            self.end_physical(number)

    def _reserved(self, address: int, size: int) -> int | None:
        """Where a range of a reservation is now."""
        for start, (now, whole) in self._reservations.items():
            if start <= address and address + size <= start + whole:
                return now + address - start
        return None
