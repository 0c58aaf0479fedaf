"""One program's records as they arrive: every message is checked before anybody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from shim.errors import WireError
from shim.layout import ffi, lib
from shim.listen import Client
from shim.messages import read_batch
from shim.wire import Buffer, Kind, fault, span


class Sink(Protocol):
    """Who gets what programs wrote. All is called in the reader's thread; what it raises ends the giving."""

    def begin(self, client: Client) -> None:
        """A program was accepted."""

    def batch(self, client: Client, batch: Any, data: memoryview) -> None:
        """Whole records without fault (for :func:`shim.wire.records`) in the order in which the program wrote them, all
        behind those of the batch before, or none; ``batch`` has the fields of ``struct wire_batch``, also the
        time by two clocks."""

    def end(self, client: Client, trouble: str | None) -> None:
        """Nothing more comes: the program has ended and this was all, or why it is not."""


class Session:
    """A program's messages in their order. ``trouble`` says why its records end before the program does, if so."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ended = False
        self.trouble: str | None = None
        self.lost = 0
        self._number = self._position = 0
        self._tally: Any = ffi.new("struct tally *")

    @property
    def records(self) -> int:
        return int(self._tally.records)

    @property
    def bytes(self) -> int:
        """Of all records."""
        return int(self._tally.bytes)

    @property
    def missing(self) -> int:
        """Records that are not there, by the numbers of those that are."""
        return int(self._tally.missing)

    @property
    def epochs(self) -> int:
        """How often records were lost and the program said anew what there is."""
        return int(self._tally.epochs)

    @property
    def kinds(self) -> dict[Kind, int]:
        """Records by kind."""
        return {kind: int(self._tally.kinds[kind]) for kind in Kind if self._tally.kinds[kind]}

    def take(self, message: Sequence[Buffer]) -> tuple[Any, memoryview]:
        """The head of a message, as :func:`shim.messages.read_batch` gives it, and its records. After the last message
        :attr:`ended` is set. Raises WireError for a message that cannot be this session's next one."""
        if len(message) != 2:
            raise WireError(f"message {self._number}: {len(message)} parts, and must be 2")
        batch, data = read_batch(message[0]), memoryview(message[1]).toreadonly()
        wanted = {"client": self.client.number, "process": self.client.process, "number": self._number,
                  "position": self._position, "bytes": len(data)}
        for name, value in wanted.items():
            if getattr(batch, name) != value:
                raise WireError(f"message {self._number}: {name} is {getattr(batch, name)}, and must be {value}")
        if self.ended:
            raise WireError(f"message {self._number} comes after the last one")
        whole = span(data)
        if whole != len(data):
            raise WireError(f"message {self._number}, at byte {whole} of {len(data)}: {fault(data[whole:])}")
        lib.record_tally(ffi.from_buffer(data), len(data), self._tally)
        if self._tally.disordered:
            raise WireError(f"message {self._number}: records in it are not in the order of their numbers")
        self._number += 1
        self._position += len(data)
        self.lost = max(self.lost, batch.lost)
        if batch.trouble:
            self.finish("what it wrote into its ring is no records")
        elif batch.last:
            self.finish(None)
        return batch, data

    def finish(self, trouble: str | None) -> None:
        """Nothing more comes; ``trouble`` says why it is not all, if it is not."""
        self.ended, self.trouble = True, trouble
