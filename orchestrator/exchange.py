"""The exchange area between a program and the workers: descriptor tables, and the two kernels that move bytes by them.

The area is host memory that a program's process and the workers map and register. What the kernels ``gather`` and
``apply`` copy stands in a descriptor table, which lies in memory that their GPU reads, 8-byte aligned::

    head   u32 count, u32 epoch, u64 unused
    entry  u64 program address, u64 offset in the area, u64 bytes      (``count`` of them)

Both have the parameters ``u64 table, u64 area, u32 epoch``: addresses as the GPU has them
(``cuMemHostGetDevicePointer`` for registered memory), and the epoch that the table has to be of. With another one
nothing is copied, so that who gives up on a segment makes its kernels harmless by one store. They take any grid,
``GRID`` fits most, and one-dimensional blocks. Entries of one table are copied at the same time: what they write must
not overlap.

Load them (``cuFuncLoad``, or a launch) before a stream waits for anything: a driver that loads a kernel by its first
launch may wait for all work of the context first.

Neither kernel has a fence: ``cuStreamWriteValue32``, which tells the other process that a copy is done, has one unless
it is told otherwise, and what a stream waits for comes before the loads of the kernel behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from mmap import mmap
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tessera.errors import TesseraError

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
HEAD = struct.Struct("<II8x")
ENTRY = struct.Struct("<QQQ")
VECTOR = 16
"""Bytes that a kernel moves at once, where both sides are aligned alike; so is the area's beginning."""
GRID = (32, 8, 1)
BLOCK = (256, 1, 1)
GATHER, APPLY = "gather", "apply"
KERNELS = Path(__file__).with_name("kernels")


class ExchangeError(TesseraError):
    """Ranges that do not fit into the exchange area."""


class Entry(NamedTuple):
    """One range: its address in program memory, its offset in the exchange area, its length in bytes."""

    address: int
    offset: int
    size: int


def arrange(ranges: Iterable[tuple[int, int]], start: int, end: int) -> list[Entry]:
    """Entries for ranges (address, bytes), one behind the other in ``start:end`` of the area, and each aligned as its
    address is, so that it moves in vectors. Raises :class:`ExchangeError` when they need more room."""
    entries = []
    at = start
    for address, size in ranges:
        at += (address - at) % VECTOR
        entries.append(Entry(address, at, size))
        at += size
    if at > end:
        raise ExchangeError(f"{len(entries)} ranges take {at - start} bytes of the exchange area, "
                            f"which has {end - start} for them: send fewer, or make it larger")
    return entries


def table_size(count: int) -> int:
    """Bytes of a table with so many entries."""
    return HEAD.size + count * ENTRY.size


def table(epoch: int, entries: Iterable[Entry]) -> bytes:
    """A descriptor table; ``epoch`` below 2³²."""
    rows = [ENTRY.pack(*entry) for entry in entries]
    return HEAD.pack(len(rows), epoch) + b"".join(rows)


def read_table(memory: Buffer, offset: int) -> list[Entry]:
    """The entries of the table that lies at an offset of some memory. Raises :class:`ExchangeError` for one that says
    that it is longer than the memory."""
    count, _ = HEAD.unpack_from(memory, offset)
    first = offset + HEAD.size
    if first + count * ENTRY.size > len(memory):
        raise ExchangeError(f"the table at offset {offset} says that it has {count} entries, more than fit behind it")
    return [Entry(*ENTRY.unpack_from(memory, first + number * ENTRY.size)) for number in range(count)]


def image(kernel: str) -> bytes:
    """The module of ``GATHER`` or ``APPLY``, as ``cuModuleLoadData`` takes it."""
    return (KERNELS / f"{kernel}.ptx").read_bytes() + b"\0"


def entry_point(kernel: str) -> bytes:
    """The kernel's name in its module."""
    return f"tessera_{kernel}".encode()
