"""A program's streams: what records call them, and which may still have work."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.session.errors import RecordError
from orchestrator.session.operations import StreamKey
from shim.wire import Record

LEGACY, PER_THREAD = 1, 2
MOST_ACTIVE = 4096
MOST_STREAMS = 1 << 16


class Streams:
    """``active``: those that may have work which is not known to be done, the one used last at the end."""

    def __init__(self) -> None:
        self.active: dict[StreamKey, None] = {}
        self._born: dict[int, StreamKey] = {}
        self._keys: dict[tuple[int, int, int], StreamKey] = {}

    def put(self, active: Iterable[StreamKey]) -> None:
        """Make these the streams that may have work."""
        self.active = dict.fromkeys(active)

    def announce(self, record: Record) -> StreamKey:
        """The stream of a record of STREAM."""
        body = record.body
        if len(self._born) >= MOST_STREAMS:
            raise RecordError(record.sequence, "STREAM", f"more than {MOST_STREAMS} streams at the same time")
        made = self._born[body.handle] = StreamKey(body.context, body.handle, 0, record.sequence)
        self._keys.clear()
        return made

    def end(self, handle: int) -> StreamKey | None:
        """The handle is no longer this stream's, which is given if it was announced; its work may go on."""
        self._keys.clear()
        return self._born.pop(handle, None)

    def announced(self, handle: int) -> StreamKey | None:
        """The stream that was announced with a handle."""
        return self._born.get(handle)

    def key(self, record: Record) -> StreamKey:
        """Where the work of a record is queued."""
        place = record.place
        handle = place.stream or LEGACY
        thread = record.thread if handle == PER_THREAD else 0
        known = self._keys.get((place.context, handle, thread))
        if known is None:
            known = self._born.get(handle) if handle > PER_THREAD else None
            known = known or StreamKey(place.context, handle, thread)
            if len(self._keys) > MOST_ACTIVE:
                self._keys.clear()
            self._keys[place.context, handle, thread] = known
        return known

    def named(self, handle: int) -> StreamKey:
        """The stream that a handle means; nothing's, without one."""
        return self.announced(handle) or StreamKey(0, handle)

    def queued(self, key: StreamKey, sequence: int) -> None:
        """Work was queued. Raises RecordError for a program with more streams at work than anybody can follow."""
        active = self.active
        if key in active:
            return
        if len(active) >= MOST_ACTIVE:
            raise RecordError(sequence, "STREAM", f"more than {MOST_ACTIVE} streams have work at the same time")
        active[key] = None

    def waited(self, key: StreamKey, whole_context: bool) -> None:
        """The program has waited for a stream, or for all of a context."""
        if not whole_context:
            self.active.pop(key, None)
            return
        for other in [other for other in self.active if other.context == key.context]:
            del self.active[other]

    def end_context(self, context: int) -> None:
        """All its streams are gone, and their work is done."""
        for handle in [handle for handle, key in self._born.items() if key.context == context]:
            self.end(handle)
        self.waited(StreamKey(context, 0), True)

    def doubt(self) -> None:
        """Records were lost: any stream may have work."""
        for key in self._born.values():
            self.active.setdefault(key)
