"""What the library and its readers say to each other besides records: the greeting, and the head of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from shim.errors import WireError
from shim.generate import digest
from shim.layout import layout, lib
from shim.wire import Buffer
from tessera.driver_api import functions

BATCH, HELLO, WELCOME = layout("wire_batch"), layout("wire_hello"), layout("wire_welcome")
BYE = b"bye"
"""What the reader of batches answers to the last one, and to one after which it wants no more."""


class Hello(NamedTuple):
    """A program that says hello: its process, as it numbers itself, and its file."""

    process: int
    program: str


def _check(said: Mapping[str, int], wanted: Mapping[str, int], what: str) -> None:
    for name, value in wanted.items():
        if said[name] != value:
            raise WireError(f"{what}: {name} is {said[name]}, and must be {value}")


def read_hello(message: bytes) -> Hello:
    """What the library sends first. Raises WireError if it is no greeting, or of a library that is not ours."""
    if len(message) != HELLO.size:
        raise WireError(f"greeting: {len(message)} bytes, and must be {HELLO.size}")
    said = HELLO.read(message)
    wanted = {"magic": lib.WIRE_MAGIC, "version": lib.WIRE_VERSION, "size": HELLO.size, "functions": len(functions()),
              "list": digest(), "ring_bytes": lib.WIRE_RING_BYTES}
    _check(said._asdict(), wanted, "greeting")
    return Hello(said.process, said.program.partition(b"\0")[0].decode(errors="replace"))


def hello(process: int, program: str, **other: int) -> bytes:
    """A greeting, as the library sends it; ``other`` values of its fields for tests."""
    said = HELLO.zero()._replace(magic=lib.WIRE_MAGIC, version=lib.WIRE_VERSION, size=HELLO.size, process=process,
                                 functions=len(functions()), list=digest(), ring_bytes=lib.WIRE_RING_BYTES,
                                 program=program.encode(errors="surrogateescape")[:255])
    return HELLO.pack(said._replace(**other))


def welcome(client: int | None, options: int = 0) -> bytes:
    """The answer: the client's number, or None for one that is not accepted."""
    return WELCOME.pack(WELCOME.type(lib.WIRE_MAGIC, lib.WIRE_VERSION, WELCOME.size, int(client is not None), options,
                                     client or 0))


def batch(**fields: int) -> bytes:
    """The head of a message with fields of ``struct wire_batch``; magic and version are set unless given."""
    return BATCH.pack(BATCH.zero()._replace(**{"magic": lib.WIRE_MAGIC, "version": lib.WIRE_VERSION, **fields}))


def read_batch(message: Buffer) -> Any:
    """The head of a message: a tuple with the fields of ``struct wire_batch``. Raises WireError if it is none."""
    if len(message) != BATCH.size:
        raise WireError(f"head of a message: {len(message)} bytes, and must be {BATCH.size}")
    said = BATCH.read(message)
    _check(said._asdict(), {"magic": lib.WIRE_MAGIC, "version": lib.WIRE_VERSION}, "head of a message")
    return said
