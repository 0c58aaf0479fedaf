"""Programs that never ran: the records that the library would have written for them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from orchestrator.traces.writer import Writer
from shim import tails
from shim.layout import layout
from shim.listen import Client
from shim.wire import Head, Kind, encode, lib
from tessera.content import content

CONTEXT, MODULE, SAXPY = 0xC000, 0xA000, 0xF000
START_NS = 1_700_000_000_000_000_000
TICKS, NS = 100, 50
"""Ticks from record to record, and the nanoseconds that they last."""
LEGACY = 1


class Program:
    """Records one after the other. What it does is said by the methods that the tests need."""

    def __init__(self, number: int = 1, process: int = 4242) -> None:
        self.client = Client(number, process, "/usr/bin/program")
        self.sequence = 0
        self.data: list[bytes] = []

    def record(self, kind: Kind, /, *, marks: int = 0, place: tuple[int, int] = (LEGACY, CONTEXT), tail: bytes = b"",
               **fields: Any) -> int:
        """A record, with ``marks`` of ``enum wire_flag``; its number."""
        number = self.sequence
        head = Head(marks, number, TICKS * number, 7, 0)
        self.data.append(encode(kind, head=head, place=place, tail=tail, **fields))
        self.sequence += 1
        return number

    def begin(self) -> None:
        """The driver, a GPU, a context."""
        self.record(Kind.DRIVER, version=13000, path_bytes=16, tail=b"/lib/libcuda.so.")
        self.record(Kind.DEVICE, ordinal=0, capability=80, memory=1 << 30, name_bytes=3, tail=b"GPU")
        self.record(Kind.CONTEXT, handle=CONTEXT, device=0, primary=1)

    def payload(self, data: bytes) -> bytes:
        """The bytes of contents; their hash."""
        name = content(data)
        for start in range(0, len(data), lib.WIRE_PIECE_BYTES):
            piece = data[start : start + lib.WIRE_PIECE_BYTES]
            self.record(Kind.DATA, content=name, total=len(data), offset=start, bytes=len(piece), tail=piece)
        return name

    def module(self, image: bytes, handle: int = MODULE, library: int = 0) -> None:
        name = self.payload(image)
        self.record(Kind.MODULE, handle=handle, context=0 if library else CONTEXT, library=library,
                    image=lib.WIRE_IMAGE_PTX, bytes=len(image), content=name)

    def function(self, name: str, sizes: list[tuple[int, int]], handle: int = SAXPY, module: int = MODULE) -> None:
        self.record(Kind.FUNCTION, handle=handle, module=module, known=1, parameters=len(sizes),
                    parameter_bytes=sum(sizes[-1]), name_bytes=len(name), tail=tails.function_tail(sizes, name))

    def memory(self, address: int, size: int, kind: int = lib.WIRE_ALLOCATED, **fields: Any) -> None:
        self.record(Kind.MEMORY, address=address, bytes=size, context=CONTEXT, kind=kind, **fields)

    def free(self, address: int) -> int:
        return self.ended(Kind.MEMORY, address)

    def ended(self, kind: Kind, handle: int, **fields: Any) -> int:
        return self.record(Kind.END, handle=handle, kind=int(kind), **fields)

    def launch(self, parameters: bytes, function: int = SAXPY, grid: int = 1, block: int = 64, **more: Any) -> int:
        return self.record(Kind.LAUNCH, function=function, grid=(grid, 1, 1), block=(block, 1, 1),
                           parameter_bytes=len(parameters), tail=tails.launch_tail(parameters), **more)

    def to_device(self, address: int, data: bytes, **more: Any) -> int:
        """Bytes from pageable memory, in the record if they are few."""
        small = len(data) <= lib.WIRE_INLINE_BYTES
        name = content(data) if small else self.payload(data)
        kind = lib.WIRE_INLINE_CONTENT if small else lib.WIRE_HASHED_CONTENT
        return self.record(Kind.COPY, width=len(data), height=1, depth=1, to=side(address, lib.WIRE_SIDE_DEVICE),
                           from_=side(0x5000, lib.WIRE_SIDE_HOST), flags=lib.WIRE_SYNCHRONOUS, content_kind=kind,
                           inline_bytes=len(data) if small else 0, content=name, tail=data if small else b"", **more)

    def to_host(self, address: int, data: bytes, host: int = 0x6000, flags: int = lib.WIRE_SYNCHRONOUS) -> int:
        """Bytes that came to the host: these, the program found."""
        number = self.record(Kind.COPY, width=len(data), height=1, depth=1, to=side(host, lib.WIRE_SIDE_HOST),
                             from_=side(address, lib.WIRE_SIDE_DEVICE), flags=flags,
                             content_kind=lib.WIRE_LATER_CONTENT)
        self.outcome(number, data)
        return number

    def outcome(self, of: int, data: bytes | None = None, result: int = 0) -> None:
        if data is None:
            self.record(Kind.OUTCOME, of=of, result=result)
        else:
            self.record(Kind.OUTCOME, of=of, has_content=1, bytes=len(data), content=content(data))

    def synchronize(self) -> None:
        self.outcome(self.record(Kind.SYNCHRONIZE, what=lib.WIRE_WAITED_CONTEXT))


def side(address: int, kind: int, **fields: int) -> Any:
    return layout("wire_side").zero()._replace(address=address, kind=kind, **fields)


def write(path: Path, *programs: Program, batches: int = 1, close: bool = True) -> Path:
    """A trace of programs, each in so many messages."""
    writer = Writer(path, lib.WIRE_PAYLOADS)
    for program in programs:
        writer.begin(program.client)
        head = layout("wire_batch").zero()._replace(nanoseconds=START_NS)
        writer.batch(program.client, head, b"")
        step = -(-len(program.data) // batches)
        for start in range(0, len(program.data), step):
            last = TICKS * (start + step)
            head = head._replace(ticks=last, nanoseconds=START_NS + last * NS // TICKS)
            writer.batch(program.client, head, b"".join(program.data[start : start + step]))
        writer.end(program.client, None)
    if close:
        writer.close()
    return path


def saxpy_parameters(y: int, x: int, a: float, n: int) -> bytes:
    return struct.pack("<QQfi", y, x, a, n)


SAXPY_PARAMETERS = [(0, 8), (8, 8), (16, 4), (20, 4)]
