"""Records that have no number yet, and the handles that they name things by."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from orchestrator.traces.errors import TraceError
from orchestrator.traces.reader import Trace
from orchestrator.traces.rows import unsigned
from shim.wire import Kind

REMEMBERED = 1 << 14
"""How many handles are remembered."""


class Draft(NamedTuple):
    """A record without its head's number, time and flags of what was lost. ``fields`` and ``tail`` are those of
    :func:`shim.wire.encode`. ``contents``: the hashes that it names, whose bytes come before it. ``ticks``: None if the
    trace has them elsewhere, or not at all."""

    kind: Kind
    fields: dict[str, Any]
    tail: bytes = b""
    place: tuple[int, int] = (0, 0)
    flags: int = 0
    thread: int = 0
    function: int = 0
    ticks: int | None = None
    contents: tuple[bytes, ...] = ()


class Names:
    """The handles of things by their numbers. 0 is nothing, and no thing."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.handle = lru_cache(REMEMBERED)(self._handle)
        self.stream = lru_cache(REMEMBERED)(self._stream)

    def _handle(self, table: str, number: int | None) -> int:
        """Raises TraceError for a thing that the trace lacks."""
        return unsigned(self._thing(table, number)["handle"]) if number else 0

    def _stream(self, number: int | None) -> tuple[int, int]:
        """Handle of a stream, and the thread if it is its default stream, else 0."""
        if not number:
            return 0, 0
        row = self._thing("stream", number)
        return unsigned(row["handle"]), row["thread"] or 0

    def _thing(self, table: str, number: int | None) -> Any:
        row = self._trace.row(f'SELECT * FROM "{table}" WHERE id = ?', number)
        if row is None:
            raise TraceError(f"{self._trace.path}: the trace lacks row {number} of table {table}")
        return row
