"""Steps: what a program launches between two moments at which it waits for its GPUs.

A step ends where the program waits for a context, a stream or an event, hears from one that all is done, or gets bytes
of a GPU by a copy that returns when they are there; if nothing was launched since the last of these, it is none. For a
server of a language model that is a token. Two steps are alike if they launch the same kernels with the same grids and
blocks in the same order: their signatures are equal then. A graph counts as one launch there, named for its kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.session.operations import Dimensions
from shim.wire import Kind, Record, lib

SIGNATURE_BYTES = 8


class LaunchKey(NamedTuple):
    """What launches of two steps have in common if the steps are alike. ``in_graph``: it is a graph's."""

    kernel: str
    grid: Dimensions
    block: Dimensions
    in_graph: bool = False


class Step(NamedTuple):
    """A step that is over. ``number``: among the client's, from 0; ``first``, ``last``: the records of its launches,
    of which there are ``launches``, a graph being one; ``signature``: hexadecimal, the same for steps that are alike.
    """

    number: int
    first: int
    last: int
    launches: int
    signature: str


def launch_text(launch: LaunchKey) -> bytes:
    """What a signature is made of, for the launch of a kernel; its name as :func:`shim.tails.name` has it."""
    name = launch.kernel
    if not name.isascii():
        name = name.encode(errors="surrogateescape").decode(errors="replace")
    return f"{name} {launch.grid} {launch.block}".encode()


def graph_text(launches: Iterable[bytes]) -> bytes:
    """The same for a graph; ``launches``: those of its kernel nodes as they were made, in the order in which the record
    of the executable graph has them."""
    return b";".join([b"graph", *launches])


def ends_step(record: Record) -> bool:
    """Whether this is the program's waiting with which a step ends."""
    if record.flags & lib.WIRE_CAPTURED:
        return False
    if record.kind is not Kind.COPY:
        return record.kind is Kind.SYNCHRONIZE
    body = record.body
    home = body.to.kind == lib.WIRE_SIDE_HOST and body.from_.kind != lib.WIRE_SIDE_HOST
    return bool(home and body.flags & lib.WIRE_SYNCHRONOUS)


class Steps:
    """The step that a client is in."""

    def __init__(self) -> None:
        self._number = self._launches = 0

    def launched(self, sequence: int, text: bytes) -> bool:
        """Something was launched, of which :func:`launch_text` or :func:`graph_text` says what; whether a step begins
        with it."""
        begins = not self._launches
        if begins:
            self._first = sequence
            self._hash = hashlib.blake2b(digest_size=SIGNATURE_BYTES)
        self._hash.update(text + b"\n")
        self._last = sequence
        self._launches += 1
        return begins

    def skip(self) -> None:
        """A step has begun and ended; what it launched is not told."""
        self._number += 1

    def over(self) -> Step | None:
        """The program has waited, or ended: the step that is over, if there is one."""
        if not self._launches:
            return None
        step = Step(self._number, self._first, self._last, self._launches, self._hash.hexdigest())
        self._number += 1
        self._launches = 0
        return step
