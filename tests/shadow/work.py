"""What work of the program does to its memory when its turn comes, launches left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from shim import tails
from shim.wire import NodeKind, Record, lib
from tests.shadow.allocations import Allocations
from tests.shadow.errors import Fault, ShadowError
from tests.shadow.outcome import Arrived, Outcome
from tests.shadow.script import Script
from tests.shadow.space import Space

WAIT_32, WRITE_32, FLUSH, WAIT_64, WRITE_64, BARRIER = 1, 2, 3, 4, 5, 6
"""CUstreamBatchMemOpType."""
CONDITIONS: tuple[Callable[[int, int, int], bool], ...] = (
    lambda there, value, bits: (there - value) % (1 << bits) < 1 << bits - 1,
    lambda there, value, bits: there == value,
    lambda there, value, bits: there & value != 0,
    lambda there, value, bits: ~(there | value) % (1 << bits) != 0,
)
"""CUstreamWaitValue_flags: at least (cyclically), equal, and, nor."""


class Piece(NamedTuple):
    """Work of a record, or of a node of the graph that a record launches. ``of``: what has its body and tail."""

    sequence: int
    node: int
    kind: NodeKind
    context: int
    of: Record | tails.Node


class Doing(NamedTuple):
    """One thing after the other: what it does, and whether its turn may come. ``act`` gives the bytes written."""

    act: Callable[[], list[tuple[int, int]]]
    ready: Callable[[], bool] | None = None


class Work:
    """Of one program."""

    def __init__(self, space: Space, allocations: Allocations, script: Script, outcome: Outcome) -> None:
        self._space, self._allocations, self._script, self._outcome = space, allocations, script, outcome

    def of(self, piece: Piece) -> Iterator[Doing]:
        """What the piece does."""
        match piece.kind:
            case NodeKind.COPY:
                yield self._copying(piece)
            case NodeKind.SET:
                yield Doing(lambda: self._set(piece.of.body))
            case NodeKind.MEMORY_OPERATIONS:
                for operation in tails.memory_operations(piece.of):
                    yield self._operation(operation)
            case NodeKind.ALLOCATE:
                yield Doing(lambda: self._allocate(piece.of.body, piece.context))
            case NodeKind.FREE:
                yield Doing(lambda: self.free(piece.of.body.address))
            case NodeKind.HOST_FUNCTION | NodeKind.EMPTY | NodeKind.OTHER:
                yield Doing(list)  # it has its place in the order all the same

    def free(self, address: int) -> list[tuple[int, int]]:
        """Memory ends."""
        ended = self._allocations.remove(address)
        if ended is None:
            raise Fault(f"there is no memory at {address:#x} that could be freed")
        return [(address, address + ended.bytes)]

    def _allocate(self, body: Any, context: int) -> list[tuple[int, int]]:
        self._allocations.place(body.address, body.bytes, lib.WIRE_POOLED, context)
        return []

    def _copying(self, piece: Piece) -> Doing:
        body, source = piece.of.body, None
        size = body.width * body.height * body.depth
        if body.from_.kind == lib.WIRE_SIDE_HOST:
            source = self._script.source(piece.of, piece.sequence if piece.node < 0 else -1)
            if source is not None and len(source) != size:
                raise ShadowError(f"record {piece.sequence}: contents of {len(source)} bytes for a copy of {size}")
        return Doing(lambda: self._copy(piece, source) if size else [])

    def _copy(self, piece: Piece, data: bytes | None) -> list[tuple[int, int]]:
        body = piece.of.body
        shape = body.width, body.height, body.depth
        if data is None:
            if body.from_.kind == lib.WIRE_SIDE_HOST and not self._space.holds(_first(body.from_)):
                raise ShadowError(f"record {piece.sequence}: nobody recorded what this copy brings")
            data = self._read(body.from_, *shape)
        if body.to.kind == lib.WIRE_SIDE_HOST:
            self._outcome.arrived.append(Arrived(piece.sequence, piece.node, data))
            if not self._space.holds(_first(body.to)):
                return []
        return self._write(body.to, *shape, data)

    def _read(self, side: Any, width: int, height: int, depth: int) -> bytes:
        if side.kind == lib.WIRE_SIDE_ARRAY:
            return self._allocations.array(side.address)[_window(side, width, height, depth)].tobytes()
        return b"".join([self._space.read(start, size) for start, size in _rows(side, width, height, depth)])

    def _write(self, side: Any, width: int, height: int, depth: int, data: bytes) -> list[tuple[int, int]]:
        if side.kind == lib.WIRE_SIDE_ARRAY:
            array = self._allocations.array(side.address)
            array[_window(side, width, height, depth)] = np.frombuffer(data, np.uint8).reshape(depth, height, width)
            return []
        at, written = 0, []
        for start, size in _rows(side, width, height, depth):
            self._space.write(start, data[at:at + size])
            written.append((start, start + size))
            at += size
        return written

    def _set(self, body: Any) -> list[tuple[int, int]]:
        element = (body.value % (1 << 8 * body.element_bytes)).to_bytes(body.element_bytes, "little")
        written = []
        for row in range(body.height):
            start = body.address + row * body.pitch
            self._space.write(start, element * body.width)
            written.append((start, start + len(element) * body.width))
        return written

    def _operation(self, operation: Any) -> Doing:
        size = 8 if operation.type in (WAIT_64, WRITE_64) else 4
        value = operation.value % (1 << 8 * size)
        if operation.type in (WAIT_32, WAIT_64):
            condition = CONDITIONS[operation.flags & 3]
            return Doing(list, lambda: condition(
                int.from_bytes(self._space.read(operation.address, size), "little"), value, 8 * size))
        if operation.type in (WRITE_32, WRITE_64):
            return Doing(lambda: self._put(operation.address, value.to_bytes(size, "little")))
        if operation.type in (FLUSH, BARRIER):
            return Doing(list)
        raise ShadowError(f"memory operation {operation.type} is not supported")

    def _put(self, address: int, data: bytes) -> list[tuple[int, int]]:
        self._space.write(address, data)
        return [(address, address + len(data))]


def _first(side: Any) -> int:
    """The address of the first byte."""
    return int(side.address + side.x + side.pitch * (side.y + side.height * side.z))


def _rows(side: Any, width: int, height: int, depth: int) -> list[tuple[int, int]]:
    """Addresses and bytes of what lies together."""
    first = _first(side)
    if depth == 1 and (height == 1 or side.pitch == width):
        return [(first, width * height)]
    return [(first + (row + plane * side.height) * side.pitch, width) for plane in range(depth)
            for row in range(height)]


def _window(side: Any, width: int, height: int, depth: int) -> tuple[slice, slice, slice]:
    return slice(side.z, side.z + depth), slice(side.y, side.y + height), slice(side.x, side.x + width)
