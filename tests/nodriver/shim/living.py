"""What is alive after records, by the rules of ``shim/wire.h``: a second opinion on the library's own ledger."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shim.layout import lib
from shim.wire import Kind, Record

Key = tuple[Any, ...]
_FIRST = {Kind.CONTEXT: "handle", Kind.MODULE: "handle", Kind.FUNCTION: "handle", Kind.STREAM: "handle",
          Kind.EVENT: "handle", Kind.MEMORY: "address", Kind.RESERVATION: "address", Kind.PHYSICAL: "handle",
          Kind.ARRAY: "handle", Kind.GRAPH_EXEC: "exec", Kind.LINK_OUTPUT: "state", Kind.DEVICE: "ordinal"}
_WITH_CONTEXT = {Kind.MODULE, Kind.STREAM, Kind.EVENT, Kind.MEMORY, Kind.ARRAY, Kind.GRAPH_EXEC}


def key_of(record: Record) -> Key | None:
    """What tells an announced thing apart from others; None for a record that announces none."""
    body = record.body
    if record.kind in _FIRST:
        return record.kind, getattr(body, _FIRST[record.kind])
    if record.kind is Kind.ACCESS:
        return record.kind, body.address, body.bytes, body.location_type, body.location
    if record.kind is Kind.EXPORT:
        return record.kind, body.address, body.kind
    if record.kind is Kind.LINK_INPUT:
        return record.kind, body.state, body.content, bytes(record.tail)
    return None


def living(records: Iterable[Record]) -> dict[Key, Record]:
    """The records that announced what is alive after all of them, by key."""
    alive: dict[Key, Record] = {}
    for record in records:
        key = key_of(record)
        if record.flags & lib.WIRE_CAPTURED:
            continue
        if record.kind is Kind.END:
            _end(alive, record.body)
        elif key is not None:
            alive.pop(key, None)  # the new one is the last one
            alive[key] = record
    return alive


def _end(alive: dict[Key, Record], what: Any) -> None:
    gone = {key for key, record in alive.items() if _ends(key, record, what)}
    while gone:
        for key in gone:
            del alive[key]
        gone = {key for key, record in alive.items() if any(_owned(record, other) for other in gone)}


def _within(start: int, size: int, what: Any) -> bool:
    return bool(what.handle <= start and start + size <= what.handle + what.bytes)


def _ends(key: Key, record: Record, what: Any) -> bool:
    kind, body = record.kind, record.body
    if what.kind == Kind.LINK_INPUT:
        return kind in (Kind.LINK_INPUT, Kind.LINK_OUTPUT) and body.state == what.handle
    if what.kind == Kind.CONTEXT and kind in _WITH_CONTEXT and body.context == what.handle:
        return True
    if what.kind == Kind.MEMORY and what.memory == lib.WIRE_MAPPED:
        mapped = kind is Kind.MEMORY and body.kind == lib.WIRE_MAPPED
        return (mapped or kind is Kind.ACCESS) and _within(body.address, body.bytes, what)
    if what.kind == Kind.RESERVATION and kind is Kind.ACCESS:
        return _within(body.address, body.bytes, what)
    return key == (what.kind, what.handle)


def _owned(record: Record, other: Key) -> bool:
    kind, body = record.kind, record.body
    if kind is Kind.FUNCTION:
        return other == (Kind.MODULE, body.module)
    if kind is Kind.MODULE:
        return other == (Kind.MODULE, body.of)
    if kind is Kind.MEMORY and body.kind == lib.WIRE_VARIABLE:
        return other == (Kind.MODULE, body.owner)
    if kind is Kind.ARRAY:
        return other == (Kind.ARRAY, body.of)
    return kind is Kind.EXPORT and other == (body.kind, body.address)
