"""Memsets and memory operations of streams."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from orchestrator.traces.replay.driver import call, cuda
from orchestrator.traces.replay.report import Report
from orchestrator.traces.replay.space import Space
from orchestrator.traces.replay.waits import Waits
from orchestrator.traces.rows import unsigned

WAIT_32, WRITE_32, FLUSH, WAIT_64, WRITE_64, BARRIER = 1, 2, 3, 4, 5, 6
"""CU_STREAM_MEM_OP_*."""


def memset(row: sqlite3.Row, space: Space, report: Report, stream: Any) -> None:
    """A row of ``memset``."""
    width, rows, size = row["width"], row["height"], row["element_bytes"]
    if space.find(unsigned(row["address"])) is None:
        report.skip("memsets of memory that the trace does not know")
        return
    if not width or not rows:
        return
    address, bits = space.now(unsigned(row["address"])), 8 * size
    value = unsigned(row["value"]) & (1 << bits) - 1
    if rows == 1:
        one = {1: cuda.cuMemsetD8Async, 2: cuda.cuMemsetD16Async, 4: cuda.cuMemsetD32Async}[size]
        call(one(address, value, width, stream), f"cuMemsetD{bits}Async")
    else:
        many = {1: cuda.cuMemsetD2D8Async, 2: cuda.cuMemsetD2D16Async, 4: cuda.cuMemsetD2D32Async}[size]
        call(many(address, row["pitch"], value, width, rows, stream), f"cuMemsetD2D{bits}Async")
    report.memsets += 1


def memory_operations(rows: Iterable[sqlite3.Row], space: Space, waits: Waits, report: Report, stream: Any) -> None:
    """Rows of ``memory_operation`` of one call or node, in their order. Barriers and flushes are in what streams do
    anyway."""
    calls = {WAIT_32: cuda.cuStreamWaitValue32, WRITE_32: cuda.cuStreamWriteValue32, WAIT_64: cuda.cuStreamWaitValue64,
             WRITE_64: cuda.cuStreamWriteValue64}
    for row in rows:
        function, address = calls.get(row["type"]), unsigned(row["address"])
        place = space.find(address)
        if function is None:
            if row["type"] not in (FLUSH, BARRIER):
                report.skip(f"memory operations of type {row['type']}")
        elif place is None:
            report.skip("memory operations on memory that the trace does not know")
        else:
            bits = 64 if row["type"] in (WAIT_64, WRITE_64) else 32
            value = unsigned(row["value"]) & (1 << bits) - 1
            call(function(stream, space.now(address), value, row["flags"]), "a memory operation of a stream")
            if place.host and row["type"] in (WAIT_32, WAIT_64):
                host = place if place.alias is None else place.alias
                waits.queued(host.now + address - place.address, value, row["flags"], bits)
