"""The records of a generated program, also those that nobody got to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from shim.wire import Head, Kind, encode, lib
from tests import program_records

TICKS = program_records.TICKS
CONTEXT, LEGACY = program_records.CONTEXT, program_records.LEGACY


class Written(NamedTuple):
    """One record. ``lost``: it found no room in the ring; what it tells of happened all the same."""

    data: bytes
    lost: bool


class Program(program_records.Program):
    """``records`` are all; ``data`` those that are not lost. Announcements are remembered, and said again after a
    gap."""

    def __init__(self, number: int = 1) -> None:
        super().__init__(number)
        self.records: list[Written] = []
        self.thread = 7
        self._living: dict[tuple[Any, ...], tuple[Kind, int, bytes, dict[str, Any]]] = {}
        self._before = self._during = self._lost = self._epochs = self._held = 0
        self._state = False

    def record(self, kind: Kind, /, *, marks: int = 0, place: tuple[int, int] = (LEGACY, CONTEXT), tail: bytes = b"",
               **fields: Any) -> int:
        losing = self._losing()
        if self._lost and not losing:
            self._gap()
        number = self.sequence
        head = Head(marks, number, TICKS * number, self.thread, 0)
        written = Written(encode(kind, head=head, place=place, tail=tail, **fields), losing)
        self.records.append(written)
        if not losing:
            self.data.append(written.data)
        self._lost += losing
        self.sequence += 1
        return number

    def lose(self, before: int, count: int) -> None:
        """So many records are written, then so many are lost."""
        if not self._during and not self._lost:
            self._before, self._during = before, count

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is lost all or not at all."""
        self._losing()
        self._held += 1
        yield
        self._held -= 1

    def _losing(self) -> bool:
        if not self._held:
            self._state = self._during > 0 and self._before <= 0
        if self._before > 0:
            self._before -= 1
        elif self._during > 0:
            self._during -= 1
        return self._state

    def _gap(self) -> None:
        lost, self._lost = self._lost, 0
        self._epochs += 1
        self.record(Kind.EPOCH, epoch=self._epochs, lost=lost)
        for kind, thread, tail, fields in list(self._living.values()):
            self.thread, mine = thread, self.thread
            self.record(kind, marks=lib.WIRE_RESTATED, tail=tail, **fields)
            self.thread = mine

    def announce(self, key: tuple[Any, ...], kind: Kind, /, tail: bytes = b"", **fields: Any) -> None:
        """A thing that is there from now on; ``key`` begins with its kind and its handle or address."""
        self._living.pop(key, None)
        self._living[key] = (kind, self.thread, tail, fields)
        self.record(kind, tail=tail, **fields)

    def announce_again(self, *key: Any) -> None:
        kind, _, tail, fields = self._living[key]
        self.record(kind, tail=tail, **fields)

    def forget(self, *key: Any) -> None:
        """The thing, or the things whose keys begin so, are no longer there."""
        for found in [k for k in self._living if k[:len(key)] == key]:
            del self._living[found]

    def begin(self) -> None:
        self.record(Kind.DRIVER, version=13000, path_bytes=16, tail=b"/lib/libcuda.so.")
        self.announce((Kind.DEVICE, 0), Kind.DEVICE, ordinal=0, capability=80, memory=1 << 30, name_bytes=3,
                      tail=b"GPU")
        self.announce((Kind.CONTEXT, CONTEXT), Kind.CONTEXT, handle=CONTEXT, device=0, primary=1)
