"""A program's records decoded, with what later ones say of earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shim import tails
from shim.wire import Kind, Record, lib, records
from tests.shadow.errors import ShadowError

Given = bytes | tuple[bytes, bool]
"""One record; or that and whether it was lost: then it happened, but nobody tells the tracker."""


class Item(NamedTuple):
    """One record, its bytes, and whether it was lost."""

    record: Record
    data: bytes
    lost: bool


class Script:
    """``failed``: sequences of calls that did nothing. ``waited``: of those whose end is recorded."""

    def __init__(self, given: Iterable[Given]) -> None:
        pairs = [one if isinstance(one, tuple) else (one, False) for one in given]
        decoded = list(records(b"".join([data for data, _ in pairs])))
        if len(decoded) != len(pairs):
            raise ShadowError(f"{len(decoded)} records in {len(pairs)} items: each must be one record")
        self.items = [Item(record, data, lost) for record, (data, lost) in zip(decoded, pairs, strict=True)]
        self.failed: set[int] = set()
        self.waited: set[int] = set()
        self.contents: dict[bytes, bytearray] = {}
        self._named: dict[int, bytes] = {}
        for record in decoded:
            if record.kind is Kind.OUTCOME:
                self._outcome(record)
            elif record.kind is Kind.DATA:
                whole = self.contents.setdefault(bytes(record.body.content), bytearray(record.body.total))
                piece = tails.data(record)
                whole[record.body.offset:record.body.offset + len(piece)] = piece

    def _outcome(self, record: Record) -> None:
        body = record.body
        self.waited.add(body.of)
        if body.result:
            self.failed.add(body.of)
        if body.has_content:
            self._named[body.of] = bytes(body.content)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def outcome(self, sequence: int) -> bytes | None:
        """The hash of the bytes of a copy, as its outcome says."""
        return self._named.get(sequence)

    def source(self, copy: Record | tails.Node, sequence: int) -> bytes | None:
        """The bytes that a copy from host memory brings; None if nobody recorded them. ``sequence``: -1 for a node."""
        body = copy.body
        name = self._named.get(sequence)
        if name is None and body.content_kind == lib.WIRE_INLINE_CONTENT:
            return bytes(tails.inline_content(copy))
        if name is None and body.content_kind == lib.WIRE_HASHED_CONTENT:
            name = bytes(body.content)
        if name is None:
            return None
        if name == bytes(body.content) and body.content_kind == lib.WIRE_INLINE_CONTENT:
            return bytes(tails.inline_content(copy))
        if name not in self.contents:
            raise ShadowError(f"record {sequence}: its contents are not in the records")
        return bytes(self.contents[name])
