"""The records of a step as numbers of 64 bits, and which of their bits matter: another step is compared with these as
a whole, and what is equal is as valid as they are."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from orchestrator.session.events import PARAMETERS_AT, Parts
from shim import tails
from shim.layout import ffi, layout, lib
from shim.wire import Kind, NodeKind, Record

Words = NDArray[np.uint64]
WORD = 8
_BLOCK = 1 << 12
"""Words that are compared at a time."""


def _at(kind: str, *members: str) -> int:
    return int(ffi.offsetof(f"struct wire_{kind}", *members))


_SEQUENCE, _TICKS = _at("head", "sequence"), _at("head", "ticks")
_COPY, _COPIED = _at("copy", "body", "content"), ffi.sizeof("struct wire_copy")
SIDES = {"to": _at("copy", "body", "to", "address"), "from_": _at("copy", "body", "from", "address")}
"""Where the addresses of a copy's sides stand in its record, by the names of the sides."""
_OUTCOME_OF, _OUTCOME = _at("outcome", "of"), _at("outcome", "content")
_DATA, _DATA_TAIL = _at("data", "content"), ffi.sizeof("struct wire_data")
_OPERATION, _OPERATIONS = layout("wire_memory_operation").size, ffi.sizeof("struct wire_memory_operations")
_VALUE = _at("memory_operation", "value")
_HOST_DATA = _at("host_function", "body", "data")
_NODE = ffi.sizeof("struct wire_graph_node") + ffi.sizeof("struct wire_node")
_NODE_PARAMETERS = _NODE + ffi.sizeof("struct wire_launch_body")
_CONTENT = lib.WIRE_CONTENT_BYTES


def starts(data: bytes) -> list[int]:
    """Where the records begin that stand one after the other in bytes."""
    found, at = [], 0
    while at < len(data):
        found.append(at)
        at += int(struct.unpack_from("<I", data, at)[0])
    return found


class Pattern:
    """Of a step whose bytes are ``data``, with its records at ``starts``. Its numbers of records are compared relative
    to that of the first."""

    def __init__(self, data: bytes, starts: list[int]) -> None:
        self.words: Words = np.frombuffer(data, np.uint64)
        self.bytes, self.starts = len(data), starts
        self.records = len(starts)
        self._bits = np.full(len(data), 0xFF, np.uint8)
        self.mask: Words = self._bits.view(np.uint64)
        self._numbers = [at + _SEQUENCE for at in starts]
        for at in starts:
            self.free(at + _TICKS, WORD)
            self.free(at + _SEQUENCE, WORD)

    def free(self, at: int, size: int) -> None:
        """These bytes do not matter."""
        self._bits[at:at + size] = 0

    def ignore(self, record: Record, at: int, parameters: Parts, host: Mapping[str, object]) -> None:
        """What does not matter of a record that stands at ``at``: those ``parameters`` of a launch, the addresses of
        the sides ``host`` of a copy, contents, and values that no operation's bytes depend on."""
        body = record.body
        match record.kind:
            case Kind.LAUNCH:
                for part in parameters:
                    self.free(at + PARAMETERS_AT + part.start, part.stop - part.start)
            case Kind.COPY:
                self.free(at + _COPY, _CONTENT)
                self.free(at + _COPIED, body.inline_bytes)
                for side in host:
                    self.free(at + SIDES[side], WORD)
            case Kind.OUTCOME:
                self.free(at + _OUTCOME_OF, WORD)
                self._numbers.append(at + _OUTCOME_OF)
                self.free(at + _OUTCOME, _CONTENT)
            case Kind.DATA:
                self.free(at + _DATA, _CONTENT)
                self.free(at + _DATA_TAIL, body.bytes)
            case Kind.MEMORY_OPERATIONS:
                for number in range(body.count):
                    self.free(at + _OPERATIONS + number * _OPERATION + _VALUE, WORD)
            case Kind.HOST_FUNCTION:
                self.free(at + _HOST_DATA, WORD)
            case Kind.GRAPH_NODE:
                for node in tails.nodes(record):
                    if node.kind is NodeKind.LAUNCH:  # compared when the graph is launched
                        self.free(at + _NODE_PARAMETERS, node.body.parameter_bytes)

    def close(self) -> None:
        """No more is to be ignored."""
        self._numbers.sort()
        self._places = np.array(self._numbers, np.int64) // WORD
        self._relative: Words = self.words[self._places] - self.words[_SEQUENCE // WORD]
        self.mask.flags.writeable = False

    @property
    def numbered(self) -> bool:
        """Whether each record has the number behind that of the one before it."""
        numbers = self.words[np.array(self.starts, np.int64) // WORD + _SEQUENCE // WORD]
        return bool((np.diff(numbers) == 1).all())

    def fits(self, words: Words, first: int, number: int) -> bool:
        """Whether the step that begins with record ``number`` can go on, from the word ``first`` of it, with these,
        which are not more than are left of it."""
        base = np.uint64(number)
        for lo in range(0, len(words), _BLOCK):
            part = words[lo:lo + _BLOCK]
            begin, end = first + lo, first + lo + len(part)
            if ((part ^ self.words[begin:end]) & self.mask[begin:end]).any():
                return False
            one, other = np.searchsorted(self._places, (begin, end))
            if not np.array_equal(part[self._places[one:other] - begin] - base, self._relative[one:other]):
                return False
        return True

    def place(self, word: int) -> int | None:
        """How many records there are before a word; None if one does not end there."""
        if word * WORD == self.bytes:
            return self.records
        found = bisect_left(self.starts, word * WORD)
        return found if self.starts[found] == word * WORD else None
