"""Contents that a program sent, put together from their pieces and kept for as long as there is room."""

from __future__ import annotations

from orchestrator.session.budget import Budget
from shim import tails
from shim.wire import Kind, Record
from tessera.content import content as content_of

LIMIT = 256 << 20
"""Bytes of contents that are held, whole ones and those of which pieces are missing."""


class Payloads:
    """Contents by their hash. What a record announces takes no memory before it is there."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._whole: dict[bytes, bytes] = {}
        self._parts: dict[bytes, tuple[int, bytearray]] = {}
        self._budget: Budget[bytes] = Budget(limit, self._forget)

    def take(self, record: Record) -> bytes | None:
        """A record of DATA: the hash if the contents are whole with it. Pieces come in order, some of them twice if
        several threads send the same; one behind a gap is left out, as all are sent again then."""
        assert record.kind is Kind.DATA
        body = record.body
        name: bytes = body.content
        if name in self._whole or body.total > self._limit:
            return None
        total, have = self._parts.get(name, (body.total, bytearray()))
        if total != body.total and body.offset == 0:
            total, have = body.total, bytearray()
        if total != body.total or not body.offset <= len(have) < body.offset + body.bytes <= total:
            return None
        have += tails.data(record)[len(have) - body.offset :]
        if len(have) < total:
            self._parts[name] = total, have
            self._budget.use(name, len(have))
            return None
        self.drop(name)
        data = bytes(have)
        if content_of(data) != name:
            return None
        self._whole[name] = data
        self._budget.use(name, total)
        return name

    def get(self, content: bytes) -> bytes | None:
        """The bytes that have this hash, if they are here."""
        data = self._whole.get(content)
        if data is not None:
            self._budget.use(content, len(data))
        return data

    def drop(self, content: bytes) -> None:
        """Nobody needs them any more."""
        self._budget.forget(content)
        self._forget(content)

    def _forget(self, content: bytes) -> None:
        self._whole.pop(content, None)
        self._parts.pop(content, None)
