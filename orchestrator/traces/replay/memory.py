"""The memory of a replayed client, of every kind but reservations, which ``mappings`` has."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

from orchestrator.traces.living import LivingRanges
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.code import Code
from orchestrator.traces.replay.driver import call, cuda
from orchestrator.traces.replay.extents import Extents, granularity, pages
from orchestrator.traces.replay.machine import Machine
from orchestrator.traces.replay.mappings import Mappings
from orchestrator.traces.replay.report import Report
from orchestrator.traces.replay.space import Place, Space
from orchestrator.traces.replay.waits import Waits
from orchestrator.traces.rows import unsigned
from shim.layout import lib

PORTABLE = 1
"""CU_MEMHOSTALLOC_PORTABLE: for all contexts."""
ATTACH_GLOBAL = 1
PAGE = 4096
MOST_ZEROED = 1 << 30
"""Bytes."""
POOLED = lib.WIRE_POOLED
OF_DEVICE = (lib.WIRE_ALLOCATED, lib.WIRE_PITCHED, lib.WIRE_POOLED, lib.WIRE_IMPORTED)


class _Leaving(NamedTuple):
    """Addresses of an extent that are free when an event of a context has come."""

    start: int
    end: int
    event: Any
    context: int | None


class Memory:
    """Allocates and frees. Addresses of an extent that are used again hold zeros, as new memory mostly does."""

    def __init__(self, trace: Trace, client: int, machine: Machine, code: Code, report: Report, waits: Waits,
                 fixed: bool) -> None:
        self._trace, self._client, self._machine, self._code, self._report = trace, client, machine, code, report
        self.space, self._waits = Space(), waits
        self.mappings = Mappings(trace, machine, report, self.space)
        self._extents = Extents(self._wanted() if fixed else (), self._ordinals())
        self._leaving: list[_Leaving] = []
        self._used: LivingRanges[int] = LivingRanges()
        self._makers: dict[int, Callable[[sqlite3.Row], Place | None]] = {
            **dict.fromkeys(OF_DEVICE, self._of_device), lib.WIRE_MANAGED: self._managed, lib.WIRE_HOST: self._of_host,
            lib.WIRE_REGISTERED: self._of_host, lib.WIRE_MAPPED: self.mappings.map, lib.WIRE_VARIABLE: self._variable,
        }  # fmt: skip

    def allocate(self, row: sqlite3.Row) -> None:
        """A row of the table ``memory``."""
        place = self._makers[row["kind"]](row)
        if place is None:
            return
        if row["kind"] == lib.WIRE_IMPORTED:
            self._report.doubts["memory of another process"] += 1
        self.space.add(place)
        device_address = unsigned(row["device_address"] or 0)
        if place.host and device_address not in (0, place.address):
            now = int(call(cuda.cuMemHostGetDevicePointer(place.now, 0), "cuMemHostGetDevicePointer"))
            self.space.add(Place(device_address, place.bytes, now, place.kind, host=True, alias=place))
        self._report.allocations["recorded" if place.now == place.address else "elsewhere"] += 1

    def allocate_by_node(self, row: sqlite3.Row, stream: Any, context: int | None) -> None:
        """What a node of a graph allocates: a row of ``node_memory``."""
        address, size = unsigned(row["address"]), row["bytes"]
        if self.space.find(address) is None:
            device = self._machine.device_of(context)
            place = self._from_extent(address, size, device, stream, POOLED)
            self.space.add(place or self._pooled(address, size, stream))

    def free_by_node(self, row: sqlite3.Row, stream: Any) -> None:
        place = self.space.remove(unsigned(row["address"]))
        if place:
            self._free(place, stream)

    def free(self, ending: sqlite3.Row) -> None:
        """A row of the table ``ending`` whose kind is memory."""
        address = unsigned(ending["handle"])
        if ending["bytes"]:
            self.mappings.unmap(address, ending["bytes"])
            return
        place = self.space.remove(address)
        if place is None:
            return
        self._free(place, None if ending["stream"] is None else self._machine.stream(ending["stream"], None))

    def forget(self, sequence: int) -> None:
        """All that ended with something else, at this record."""
        ended = "SELECT address FROM memory WHERE client = ? AND died = ?"
        for row in self._trace.rows(ended, self._client, sequence):
            self.space.remove(unsigned(row["address"]))

    def settle(self, context: int) -> None:
        """Wait for the frees in the order of a context's streams, and all else: it is about to end."""
        self._machine.wait_for_all()
        self._waits.clear()
        for left in self._leaving:
            if left.context == context:
                call(cuda.cuEventSynchronize(left.event), "cuEventSynchronize")
                call(cuda.cuEventDestroy(left.event), "cuEventDestroy")
        self._leaving = [left for left in self._leaving if left.context != context]

    def end(self) -> None:
        """Give the extents back; all work is done."""
        self.mappings.end()
        self._extents.end()

    def _ordinals(self) -> list[int]:
        rows = self._trace.rows("SELECT DISTINCT device FROM context WHERE client = ?", self._client)
        return sorted({self._machine.ordinal(row["device"]) for row in rows})

    def _wanted(self) -> Any:
        marks = ", ".join("?" * len(OF_DEVICE))
        rows = self._trace.rows(
            "SELECT address, bytes, coalesce((SELECT c.device FROM context c WHERE c.id = memory.context), device) "
            f"AS gpu FROM memory WHERE client = ? AND kind IN ({marks}) UNION SELECT m.address, m.bytes, m.device FROM "
            "node_memory m JOIN node ON node.id = m.id WHERE node.client = ? AND m.bytes > 0",
            self._client, *OF_DEVICE, self._client)
        ranges = [(unsigned(row["address"]), row["bytes"], self._machine.ordinal(row["gpu"])) for row in rows]
        return pages(ranges, max([granularity(device) for device in {r[2] for r in ranges}], default=1))

    def _of_device(self, row: sqlite3.Row) -> Place:
        address, size, pooled = unsigned(row["address"]), row["bytes"], row["kind"] == POOLED
        context = row["context"] if row["context"] is not None else self._machine.on(row["device"])
        device = self._machine.device_of(context)
        stream = self._machine.stream(row["stream"], context) if pooled else self._machine.own(context)
        place = self._from_extent(address, size, device, stream, row["kind"])
        if place is None and pooled:
            place = self._pooled(address, size, stream)
        if place is None:
            now = int(call(cuda.cuMemAlloc(size), "cuMemAlloc"))
            place = Place(address, size, now, row["kind"])
        if not pooled:
            call(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize")
        return place

    def _from_extent(self, address: int, size: int, device: int, stream: Any, kind: int) -> Place | None:
        if not self._extents.hold(address, size, device):
            return None
        still = []
        for left in self._leaving:
            if left.start < address + size and address < left.end:
                call(cuda.cuStreamWaitEvent(stream, left.event, 0), "cuStreamWaitEvent")
                call(cuda.cuEventDestroy(left.event), "cuEventDestroy")
            else:
                still.append(left)
        self._leaving = still
        again = self._used.add(address, size, address)
        if again and size > MOST_ZEROED:
            self._report.notes["large allocations at addresses that were used before, and are not zeros"] += 1
        elif again:
            call(cuda.cuMemsetD8Async(address, 0, size, stream), "cuMemsetD8Async")
        return Place(address, size, address, kind, fixed=True)

    def _pooled(self, address: int, size: int, stream: Any) -> Place:
        now = int(call(cuda.cuMemAllocAsync(size, stream), "cuMemAllocAsync"))
        return Place(address, size, now, POOLED)

    def _managed(self, row: sqlite3.Row) -> Place:
        self._machine.use(row["context"])
        now = int(call(cuda.cuMemAllocManaged(row["bytes"], row["flags"] or ATTACH_GLOBAL), "cuMemAllocManaged"))
        return Place(unsigned(row["address"]), row["bytes"], now, row["kind"], host=True)

    def _of_host(self, row: sqlite3.Row) -> Place:
        """Pinned memory, also for what the program registered; at the same place within a page."""
        address, size = unsigned(row["address"]), row["bytes"]
        self._machine.use(row["context"])
        inside = address % PAGE
        flags = PORTABLE | (row["flags"] or 0) & 2  # CU_MEMHOSTALLOC_DEVICEMAP is the same bit for both functions
        now = int(call(cuda.cuMemHostAlloc(size + inside, flags), "cuMemHostAlloc")) + inside
        return Place(address, size, now, row["kind"], host=True)

    def _variable(self, row: sqlite3.Row) -> Place | None:
        now = self._code.variable(row)
        return None if now is None else Place(unsigned(row["address"]), row["bytes"], now, row["kind"])

    def _free(self, place: Place, stream: Any) -> None:
        if place.kind == lib.WIRE_VARIABLE:
            return
        if place.fixed and stream is not None:
            event, end = self._machine.mark(stream), place.address + place.bytes
            self._leaving.append(_Leaving(place.address, end, event, self._machine.current))
        elif place.fixed:
            self._machine.wait_for_all()
        elif stream is not None and place.kind == POOLED:
            call(cuda.cuMemFreeAsync(place.now, stream), "cuMemFreeAsync")
        elif place.kind in (lib.WIRE_HOST, lib.WIRE_REGISTERED):
            self._machine.wait_for_all()
            self._waits.clear()
            call(cuda.cuMemFreeHost(place.now - place.address % PAGE), "cuMemFreeHost")
        else:
            self._machine.wait_for_all()  # as the function does, too
            self._waits.clear()
            call(cuda.cuMemFree(place.now), "cuMemFree")
