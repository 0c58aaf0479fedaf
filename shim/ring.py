"""The ring of a program, from the reading side."""

from __future__ import annotations

from types import TracebackType

from shim.errors import WireError
from shim.layout import ffi, lib
from shim.wire import fault, span


class Ring:
    """The ring behind a descriptor, which may be closed afterwards. Raises WireError if it is none."""

    def __init__(self, descriptor: int) -> None:
        wrong = ffi.new("const char **")
        self._ring = lib.ring_map(descriptor, wrong)
        if self._ring == ffi.NULL:
            raise WireError(f"descriptor {descriptor} is no ring: {ffi.string(wrong[0]).decode()}")

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        ring, self._ring = self._ring, None
        lib.ring_unmap(ring)

    @property
    def position(self) -> int:
        """How many bytes were read."""
        return int(lib.ring_position(self._ring))

    @property
    def lost(self) -> int:
        """How many records found no room, as the program says."""
        return int(lib.ring_lost(self._ring))

    def wait(self, process: int, parent: int, microseconds: int) -> None:
        """Return when there is something to read, when one of two descriptors (-1: none) is ready, or when the time is
        over."""
        lib.ring_wait(self._ring, process, parent, microseconds)

    def take(self, most: int) -> bytes:
        """A copy of the next whole records, at most so many bytes unless the first has more; empty if there is none.
        They stay in the ring until :meth:`advance`. Raises WireError for what is no record."""
        available = lib.ring_available(self._ring)
        if available < 0:
            raise WireError("the positions in the ring cannot be")
        if not available:
            return b""
        source = lib.ring_records(self._ring)
        # The program could change what was looked at, so a copy is looked at.
        data = bytes(ffi.buffer(source, min(available, most)))
        whole = span(data)
        if not whole and available > most:
            data = bytes(ffi.buffer(source, min(available, lib.WIRE_LARGEST_RECORD)))
            whole = span(data, max(most, int.from_bytes(data[:4], "little")))
        if not whole:
            raise WireError(f"at position {self.position}: {fault(data)}")
        return data if whole == len(data) else data[:whole]

    def advance(self, size: int) -> None:
        """Give the program room for so many bytes again."""
        lib.ring_advance(self._ring, size)
