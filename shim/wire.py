"""Records as Python sees them: decoded from what ``wire.h`` says, each checked by ``check.c`` before it is looked at.

What stands behind a record's structure is its ``tail``: see :mod:`shim.tails`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from shim.errors import WireError
from shim.layout import Layout, ffi, layout, lib

__all__ = ["Head", "Kind", "NodeKind", "Record", "WireError", "encode", "lib", "records", "span"]

Buffer: TypeAlias = bytes | bytearray | memoryview


class Kind(IntEnum):
    """``enum wire_kind``."""

    DRIVER = lib.WIRE_DRIVER
    EPOCH = lib.WIRE_EPOCH
    DATA = lib.WIRE_DATA
    OUTCOME = lib.WIRE_OUTCOME
    CALL = lib.WIRE_CALL
    DOOR = lib.WIRE_DOOR
    DEVICE = lib.WIRE_DEVICE
    CONTEXT = lib.WIRE_CONTEXT
    MODULE = lib.WIRE_MODULE
    FUNCTION = lib.WIRE_FUNCTION
    STREAM = lib.WIRE_STREAM
    EVENT = lib.WIRE_EVENT
    MEMORY = lib.WIRE_MEMORY
    RESERVATION = lib.WIRE_RESERVATION
    PHYSICAL = lib.WIRE_PHYSICAL
    ARRAY = lib.WIRE_ARRAY
    GRAPH_EXEC = lib.WIRE_GRAPH_EXEC
    GRAPH_NODE = lib.WIRE_GRAPH_NODE
    LINK_INPUT = lib.WIRE_LINK_INPUT
    LINK_OUTPUT = lib.WIRE_LINK_OUTPUT
    ACCESS = lib.WIRE_ACCESS
    EXPORT = lib.WIRE_EXPORT
    END = lib.WIRE_END
    LAUNCH = lib.WIRE_LAUNCH
    COPY = lib.WIRE_COPY
    SET = lib.WIRE_SET
    GRAPH_LAUNCH = lib.WIRE_GRAPH_LAUNCH
    EVENT_RECORD = lib.WIRE_EVENT_RECORD
    EVENT_WAIT = lib.WIRE_EVENT_WAIT
    HOST_FUNCTION = lib.WIRE_HOST_FUNCTION
    MEMORY_OPERATIONS = lib.WIRE_MEMORY_OPERATIONS
    OTHER_WORK = lib.WIRE_OTHER_WORK
    SYNCHRONIZE = lib.WIRE_SYNCHRONIZE
    CAPTURE_BEGIN = lib.WIRE_CAPTURE_BEGIN
    CAPTURE_END = lib.WIRE_CAPTURE_END


class NodeKind(IntEnum):
    """``enum wire_node_kind``."""

    OTHER = lib.WIRE_NODE_OTHER
    LAUNCH = lib.WIRE_NODE_LAUNCH
    COPY = lib.WIRE_NODE_COPY
    SET = lib.WIRE_NODE_SET
    HOST_FUNCTION = lib.WIRE_NODE_HOST_FUNCTION
    EMPTY = lib.WIRE_NODE_EMPTY
    EVENT_RECORD = lib.WIRE_NODE_EVENT_RECORD
    EVENT_WAIT = lib.WIRE_NODE_EVENT_WAIT
    CHILD = lib.WIRE_NODE_CHILD
    ALLOCATE = lib.WIRE_NODE_ALLOCATE
    FREE = lib.WIRE_NODE_FREE
    MEMORY_OPERATIONS = lib.WIRE_NODE_MEMORY_OPERATIONS


class Record(NamedTuple):
    """``place`` is where work is queued: a tuple with ``stream`` and ``context``, None for records without. ``body``
    has the other fields of the record's structure by their names in C; for work that may also be a node of a graph
    these are those of its ``struct wire_*_body``. ``tail``: the bytes behind the structure."""

    kind: Kind
    flags: int
    sequence: int
    ticks: int
    thread: int
    function: int
    place: Any
    body: Any
    tail: memoryview


class Head(NamedTuple):
    """What :func:`encode` puts into a record's head."""

    flags: int = 0
    sequence: int = 0
    ticks: int = 0
    thread: int = 0
    function: int = 0


_PLACE, _BODY = 7, 9
"""Where place and body begin among a record's values; a record without a place has its body there."""


class _Shape:
    """How records of one kind are read: ``code`` of the module struct for all of it, and the layouts of its parts."""

    def __init__(self, kind: Kind) -> None:
        name = "capture" if kind in (Kind.CAPTURE_BEGIN, Kind.CAPTURE_END) else kind.name.lower()
        structure = ffi.typeof(f"struct wire_{name}")
        members = dict(structure.fields)
        self.placed = "place" in members
        if "body" in members:
            self.body = layout(members["body"].type.cname.removeprefix("struct "))
            self.skipped = 0
        else:
            before = ("head", "place")
            self.body = Layout(f"wire_{name}", before)
            first = layout("wire_head").size + (layout("wire_place").size if self.placed else 0)
            self.skipped = first  # the code begins by leaving these out
        self.size: int = ffi.sizeof(structure)
        body_code = self.body.code.removeprefix(f"{self.skipped}x")
        self.make = self.body.maker(_BODY if self.placed else _PLACE)
        self.read = struct.Struct("<" + layout("wire_head").code + ("QQ" if self.placed else "") + body_code)
        assert self.read.size == self.size, kind


_SHAPES = {kind: _Shape(kind) for kind in Kind}
_NOTHING = memoryview(b"")
_ZERO = Head()


def span(data: Buffer, most: int = 1 << 62) -> int:
    """How many bytes at the beginning are whole records without fault, at most ``most``."""
    return int(lib.ring_span(ffi.from_buffer(data), len(data), most))


def fault(data: Buffer) -> str | None:
    """What is wrong with the record at the beginning of bytes; None if nothing is."""
    wrong = lib.record_wrong(ffi.from_buffer(data), len(data))
    return None if wrong == ffi.NULL else ffi.string(wrong).decode()


def records(data: Buffer) -> Iterator[Record]:
    """The records that stand one after the other in bytes, which nobody may change meanwhile. Raises WireError behind
    the last one that is right."""
    view = memoryview(data).toreadonly().cast("B")
    whole, end, number = len(view), span(data), 0
    for record, _ in walk(view, 0, end):
        yield record
        number += 1
    if end < whole:
        raise WireError(f"record {number}, at byte {end} of {whole}: {fault(view[end:])}")


def walk(view: memoryview, offset: int, end: int) -> Iterator[tuple[Record, int]]:
    """The records from one place of read-only bytes up to another, between which all are whole and without fault
    (:func:`span`), each with the place where it ends."""
    peek = struct.Struct("<IH").unpack_from
    shapes = {int(kind): (kind, s.read.unpack_from, s.size, s.make, s.placed) for kind, s in _SHAPES.items()}
    place_of = layout("wire_place").type._make
    record, tuple_new = Record, tuple.__new__
    while offset < end:
        size, code = peek(view, offset)
        kind, unpack, fixed, make, placed = shapes[code]
        v = unpack(view, offset)
        place = place_of(v[_PLACE:_BODY]) if placed else None
        tail = view[offset + fixed:offset + size] if size > fixed else _NOTHING
        offset += size
        yield tuple_new(record, (kind, v[2], v[3], v[4], v[5], v[6], place, make(v), tail)), offset


def padded(data: Buffer) -> bytes:
    """The bytes with zeros up to a multiple of 8."""
    return bytes(data) + bytes(-len(data) % 8)


def encode(kind: Kind, /, *, head: Head = _ZERO, place: tuple[int, int] = (0, 0), tail: Buffer = b"",
           **fields: Any) -> bytes:
    """The bytes of a record with fields of its body; those not named are 0. Raises WireError for a name or a value
    that the record cannot have; what ``fields`` say of the tail is not checked."""
    shape = _SHAPES[kind]
    rest = padded(tail)
    try:
        body = shape.body.flat(shape.body.zero()._replace(**fields))
        beginning = (shape.size + len(rest), int(kind), *head, *(place if shape.placed else ()))
        return shape.read.pack(*beginning, *body) + rest
    except (struct.error, TypeError, ValueError) as error:
        raise WireError(f"no record {kind.name} has these fields: {error}") from None
