"""Does the records of one client again, one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

from orchestrator.traces.errors import ReplayError
from orchestrator.traces.reader import Trace
from orchestrator.traces.recorder import ENDS
from orchestrator.traces.replay.code import Code
from orchestrator.traces.replay.copies import Copies
from orchestrator.traces.replay.driver import CallFailed, call, cuda
from orchestrator.traces.replay.graphs import Graphs
from orchestrator.traces.replay.launches import Launches
from orchestrator.traces.replay.machine import Machine
from orchestrator.traces.replay.memory import Memory
from orchestrator.traces.replay.report import Report
from orchestrator.traces.replay.small import memory_operations, memset
from orchestrator.traces.replay.waits import Waits
from orchestrator.traces.timeline import timeline
from shim.layout import lib
from shim.wire import Kind, NodeKind

Progress = Callable[[int, str], None]


class Options(NamedTuple):
    """How to replay. ``device``: the GPU for everything, None for those of the trace. ``fixed``: have memory at its
    recorded addresses where the driver can. ``verify``: compare what comes to the host."""

    device: int | None = None
    fixed: bool = True
    verify: bool = False


class Player:
    """One client. ``progress`` is told the record that comes next, and what it is."""

    def __init__(self, trace: Trace, client: int, options: Options, report: Report, progress: Progress) -> None:
        self._trace, self._client, self._report, self._progress = trace, client, report, progress
        self._machine = Machine(trace, report, options.device)
        self._code = Code(trace, self._machine, report)
        self._waits = Waits(report)
        self._memory = Memory(trace, client, self._machine, self._code, report, self._waits, options.fixed)
        space = self._memory.space
        self._launches = Launches(self._code, space, report)
        self._copies = Copies(trace, client, self._machine, space, report, options.verify)
        self._graphs = Graphs(trace, self._machine, report, self._node)
        self._kernels: dict[int | None, str | None] = {}
        self._failed = {row["subject"] for row in trace.rows(
            "SELECT subject FROM outcome WHERE client = ? AND result != 0", client)}
        self._takers: dict[str, Callable[[sqlite3.Row], None]] = {
            "context": lambda row: self._void(self._machine.use(row["id"])), "module": self._code.load,
            "memory": self._memory.allocate, "reservation": self._memory.mappings.reserve,
            "physical": self._memory.mappings.create, "array": self._array, "graph": self._graphs.make,
            "node": self._graphs.change, "gap": self._gap, "export": self._export,
            "access": self._memory.mappings.access,
            "ending": self._ending, "operation": self._operation, "outcome": self._copies.outcome,
        }  # fmt: skip
        self._enders: dict[str, Callable[[int], None]] = {
            "context": self._end_context, "module": self._code.unload, "stream": self._machine.end_stream,
            "event": self._machine.end_event, "physical": self._memory.mappings.end_physical, "array": self._end_array,
        }  # fmt: skip

    def play(self) -> None:
        """All of it. Raises ReplayError with the record at which the driver refused."""
        for sequence, table, row in timeline(self._trace, self._client):
            if table != "outcome" and sequence in self._failed:
                self._report.notes["calls that failed when they were recorded are left out"] += 1
                continue
            self._progress(sequence, table)
            self._waits.moved()
            taker = self._takers.get(table)
            if taker is None:
                continue
            try:
                taker(row)
            except CallFailed as failed:
                raise ReplayError(f"client {self._client}, record {sequence} ({table}): {failed}") from failed
        self._progress(-1, "the end")
        self._machine.wait_for_all()
        self._waits.end()
        self._copies.end()
        self._memory.end()
        self._machine.end()
        self._report.clients += 1

    def _void(self, _: object) -> None:
        """A taker gives nothing back."""

    def _gap(self, row: sqlite3.Row) -> None:
        self._report.doubts["records that were lost"] += row["lost"]

    def _end_context(self, number: int) -> None:
        self._copies.settle(number)
        self._memory.settle(number)
        self._machine.end_context(number)

    def _export(self, row: sqlite3.Row) -> None:
        self._report.doubts["memory or events that other processes may use"] += 1

    def _array(self, row: sqlite3.Row) -> None:
        self._machine.use(row["context"])
        arrays = self._copies.arrays
        if row["mipmap"] is not None:
            level = cuda.cuMipmappedArrayGetLevel(arrays[row["mipmap"]], row["level"])
            arrays[row["id"]] = call(level, "cuMipmappedArrayGetLevel")
            return
        made = cuda.CUDA_ARRAY3D_DESCRIPTOR()
        made.Width, made.Height, made.Depth = row["width"], row["height"], row["depth"]
        made.Format, made.NumChannels = cuda.CUarray_format(row["format"]), row["channels"]
        made.Flags = row["flags"]
        if row["levels"]:
            arrays[row["id"]] = call(cuda.cuMipmappedArrayCreate(made, row["levels"]), "cuMipmappedArrayCreate")
        else:
            arrays[row["id"]] = call(cuda.cuArray3DCreate(made), "cuArray3DCreate")

    def _end_array(self, number: int) -> None:
        made = self._copies.arrays.pop(number, None)
        if isinstance(made, cuda.CUmipmappedArray):
            call(cuda.cuMipmappedArrayDestroy(made), "cuMipmappedArrayDestroy")
        elif made is not None:
            call(cuda.cuArrayDestroy(made), "cuArrayDestroy")

    def _ending(self, row: sqlite3.Row) -> None:
        table = ENDS.get(row["kind"])
        if table == "memory":
            self._memory.free(row)
        elif table == "reservation":
            self._memory.mappings.end_reservation(row["handle"])
        elif table in self._enders and row["thing"] is not None:
            self._enders[table](row["thing"])
            if table in ("context", "module"):
                self._memory.forget(row["sequence"])
                self._code.forget(row["sequence"], self._client)

    def _operation(self, row: sqlite3.Row) -> None:
        kind = row["kind"]
        if row["captured"] or kind in (Kind.CALL, Kind.CAPTURE_BEGIN, Kind.CAPTURE_END):
            return
        if kind == Kind.SYNCHRONIZE:
            self._synchronize(row)
            return
        stream = self._machine.stream(row["stream"], row["context"])
        if kind == Kind.GRAPH_LAUNCH:
            found = self._trace.row("SELECT graph FROM graph_launch WHERE id = ?", row["id"])
            if found:
                self._graphs.run(found["graph"], stream, row["stream"], row["context"])
            return
        self._work(Kind(kind), row["id"], row["sequence"], stream, row["stream"])

    def _node(self, kind: int, number: int, stream: Any, of_stream: int | None, context: int | None) -> None:
        node = NodeKind(kind)
        if node in (NodeKind.ALLOCATE, NodeKind.FREE):
            found = self._trace.row("SELECT * FROM node_memory WHERE id = ?", number)
            if found and node is NodeKind.ALLOCATE:
                self._memory.allocate_by_node(found, stream, context)
            elif found:
                self._memory.free_by_node(found, stream)
        elif node is NodeKind.OTHER:
            self._report.skip("nodes of graphs that records do not describe")
        elif node is not NodeKind.EMPTY:
            self._work(Kind[node.name], number, None, stream, of_stream)

    def _work(self, kind: Kind, number: int, sequence: int | None, stream: Any, of_stream: int | None) -> None:
        """Of an operation or a node; ``sequence`` is None for nodes."""
        if kind is Kind.LAUNCH:
            row = self._body("launch", number)
            self._kernels[of_stream] = self._launches.run(row, stream)
        elif kind is Kind.COPY:
            row = self._body("copy", number)
            self._copies.run(row, sequence, stream, of_stream, self._kernels.get(of_stream))
        elif kind is Kind.SET:
            memset(self._body("memset", number), self._memory.space, self._report, stream)
        elif kind is Kind.EVENT_RECORD:
            event = self._machine.event(self._body("event_use", number)["event"])
            call(cuda.cuEventRecord(event, stream), "cuEventRecord")
        elif kind is Kind.EVENT_WAIT:
            event = self._machine.event(self._body("event_use", number)["event"])
            call(cuda.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent")
        elif kind is Kind.MEMORY_OPERATIONS:
            rows = self._trace.rows("SELECT * FROM memory_operation WHERE id = ? ORDER BY position", number)
            memory_operations(rows, self._memory.space, self._waits, self._report, stream)
        elif kind is Kind.HOST_FUNCTION:
            self._report.skip("functions of the program on the host")
        else:
            self._report.skip("work that records do not describe")

    def _body(self, table: str, number: int) -> sqlite3.Row:
        row = self._trace.row(f"SELECT * FROM {table} WHERE id = ?", number)
        if row is None:
            raise ReplayError(f"client {self._client}: the trace lacks row {number} of table {table}")
        return row

    def _synchronize(self, row: sqlite3.Row) -> None:
        what = self._body("synchronization", row["id"])
        if what["what"] == lib.WIRE_WAITED_EVENT and what["event"] is not None:
            call(cuda.cuEventSynchronize(self._machine.event(what["event"])), "cuEventSynchronize")
        elif what["what"] == lib.WIRE_WAITED_STREAM:
            call(cuda.cuStreamSynchronize(self._machine.stream(row["stream"], row["context"])), "cuStreamSynchronize")
        else:
            self._machine.use(row["context"])
            call(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
