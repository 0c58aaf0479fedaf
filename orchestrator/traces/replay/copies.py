"""Copies of all kinds, with the recorded bytes where they come from the host; what comes to the host is compared."""

from __future__ import annotations

import ctypes
import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.traces.payloads import ContentError
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.driver import call, cuda
from orchestrator.traces.replay.machine import Machine
from orchestrator.traces.replay.report import Mismatch, Report
from orchestrator.traces.replay.scratch import Scratch
from orchestrator.traces.replay.space import Space
from orchestrator.traces.rows import unsigned
from shim.layout import lib
from tessera.content import content as content_of

HOST, DEVICE, ARRAY, MANAGED = lib.WIRE_SIDE_HOST, lib.WIRE_SIDE_DEVICE, lib.WIRE_SIDE_ARRAY, lib.WIRE_SIDE_MANAGED
LATER = "SELECT content FROM outcome WHERE client = ? AND subject = ? AND content IS NOT NULL"


@dataclass
class Side:
    """One end of a copy as it is now. ``scratch``: it is a block of ours, to be given back."""

    kind: int
    address: int
    array: Any = None
    context: Any = None
    x: int = 0
    y: int = 0
    z: int = 0
    pitch: int = 0
    height: int = 0
    level: int = 0
    scratch: bool = False

    @property
    def first(self) -> int:
        """The address of its first byte."""
        return self.address + self.x + self.pitch * (self.y + self.height * self.z)


class Came(NamedTuple):
    """Bytes that come to the host when ``event`` does."""

    event: Any
    side: Side
    width: int
    rows: int
    depth: int
    stream: int | None
    kernel: str | None


class Copies:
    """Of one client."""

    def __init__(self, trace: Trace, client: int, machine: Machine, space: Space, report: Report, verify: bool) -> None:
        self._trace, self._client, self._machine, self._space = trace, client, machine, space
        self._report, self._verify = report, verify
        self._scratch = Scratch()
        self._coming: dict[int, Came] = {}
        self.arrays: dict[int, Any] = {}

    def run(self, row: sqlite3.Row, sequence: int | None, stream: Any, number: int | None, kernel: str | None) -> None:
        """A row of ``copy``. ``sequence`` is that of its record, None for a node of a graph; ``number`` the stream's,
        ``kernel`` the one before in it."""
        size = row["width"] * row["height"] * row["depth"]
        if not size:
            return
        source, target = self._source(row, sequence, size), self._side(row, "to", size)
        if source is None or target is None:
            return
        self._copy(row, source, target, stream)
        self._report.copies += 1
        self._report.copied_bytes += size
        if source.scratch:
            self._scratch.give_after(self._machine.mark(stream), source.address)
        came = target.kind == HOST
        if came and sequence is not None:
            event = self._machine.mark(stream)
            self._coming[sequence] = Came(event, target, row["width"], row["height"], row["depth"], number, kernel)
        elif came and target.scratch:
            self._scratch.give_after(self._machine.mark(stream), target.address)
        if row["flags"] & lib.WIRE_SYNCHRONOUS:
            call(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize")

    def outcome(self, row: sqlite3.Row) -> None:
        """A row of ``outcome`` of a copy: the program had its bytes now."""
        came = self._coming.pop(row["subject"], None)
        if came is None:
            return
        call(cuda.cuEventSynchronize(came.event), "cuEventSynchronize")
        call(cuda.cuEventDestroy(came.event), "cuEventDestroy")
        if self._verify and row["content"] is not None:
            self._compare(came, row)
        if came.side.scratch:
            self._scratch.give(came.side.address)

    def end(self) -> None:
        """Nothing more comes: what the program never waited for was not compared."""
        self._report.unchecked += len(self._coming) if self._verify else 0

    def _compare(self, came: Came, row: sqlite3.Row) -> None:
        side, rows = came.side, []
        if (side.pitch in (0, came.width) or came.rows == 1) and came.depth == 1:
            rows.append(ctypes.string_at(side.first, came.width * came.rows))
        else:
            for slice_ in range(came.depth):
                start = side.first + slice_ * side.pitch * side.height
                rows += [ctypes.string_at(start + line * side.pitch, came.width) for line in range(came.rows)]
        data = b"".join(rows)
        found = content_of(data)
        if found == row["content"]:
            self._report.verified += 1
        elif self._report.doubts:
            self._report.unverifiable += 1
        else:
            self._report.mismatch(Mismatch(self._client, row["subject"], came.stream, came.kernel, len(data),
                                           row["content"].hex(), found.hex()))

    def _source(self, row: sqlite3.Row, sequence: int | None, size: int) -> Side | None:
        if row["from_kind"] != HOST:
            if row["from_kind"] == MANAGED:
                self._report.doubts["copies from managed memory, which programs write without a record"] += 1
            return self._side(row, "from", size)
        later = None if sequence is None else self._trace.row(LATER, self._client, sequence)
        content = later["content"] if later else row["content"]
        if content is not None and self._trace.has_content(content):
            data = self._trace.content(content)
            if len(data) != size:
                raise ContentError(f"record {sequence}: its contents are {len(data)} bytes, it copies {size}")
            side = self._dense(row, size)
            ctypes.memmove(side.address, data, size)
            return side
        if self._space.find(unsigned(row["from_address"])):
            self._report.doubts["copies from host memory whose contents were not recorded"] += 1
            return self._side(row, "from", size)
        self._report.skip("copies from host memory whose contents were not recorded")
        return None

    def _dense(self, row: sqlite3.Row, size: int) -> Side:
        return Side(HOST, self._scratch.take(size), pitch=row["width"], height=row["height"], scratch=True)

    def _side(self, row: sqlite3.Row, name: str, size: int) -> Side | None:
        kind, address = row[f"{name}_kind"], unsigned(row[f"{name}_address"])
        if kind == ARRAY:
            array = self.arrays.get(row[f"{name}_thing"])
            if array is None:
                self._report.skip("copies of arrays that are not there")
                return None
        elif kind == HOST and self._space.find(address) is None:
            return self._dense(row, size)
        elif self._space.find(address) is None:
            self._report.skip("copies of memory that the trace does not know")
            return None
        context = row[f"{name}_context"]
        return Side(kind, 0 if kind == ARRAY else self._space.now(address), array if kind == ARRAY else None,
                    None if context is None else self._machine.handle(context), row[f"{name}_x"], row[f"{name}_y"],
                    row[f"{name}_z"], row[f"{name}_pitch"], row[f"{name}_height"], row[f"{name}_level"])

    def _copy(self, row: sqlite3.Row, source: Side, target: Side, stream: Any) -> None:
        width, rows, depth = row["width"], row["height"], row["depth"]
        between = source.context is not None and target.context is not None
        if rows == depth == 1 and ARRAY not in (source.kind, target.kind) and not between:
            call(cuda.cuMemcpyAsync(target.first, source.first, width, stream), "cuMemcpyAsync")
            return
        parameters = cuda.CUDA_MEMCPY3D_PEER() if between else cuda.CUDA_MEMCPY3D()
        parameters.WidthInBytes, parameters.Height, parameters.Depth = width, rows, depth
        for name, side in (("src", source), ("dst", target)):
            self._describe(parameters, name, side, width, rows)
            if between:
                setattr(parameters, f"{name}Context", side.context)
        if between:
            call(cuda.cuMemcpy3DPeerAsync(parameters, stream), "cuMemcpy3DPeerAsync")
        else:
            call(cuda.cuMemcpy3DAsync(parameters, stream), "cuMemcpy3DAsync")

    def _describe(self, parameters: Any, name: str, side: Side, width: int, rows: int) -> None:
        types = cuda.CUmemorytype
        kind = {HOST: types.CU_MEMORYTYPE_HOST, DEVICE: types.CU_MEMORYTYPE_DEVICE, ARRAY: types.CU_MEMORYTYPE_ARRAY,
                MANAGED: types.CU_MEMORYTYPE_UNIFIED}[side.kind]
        fields = {"MemoryType": kind, "XInBytes": side.x, "Y": side.y, "Z": side.z, "LOD": side.level}
        if side.kind == ARRAY:
            fields["Array"] = side.array
        else:
            fields["Host" if side.kind == HOST else "Device"] = side.address
            fields |= {"Pitch": side.pitch or side.x + width, "Height": side.height or side.y + rows}
        for field, value in fields.items():
            setattr(parameters, name + field, value)
