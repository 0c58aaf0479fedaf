"""How programs got at driver functions, and which of them their records name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from shim import tails
from shim.listen import Client
from shim.wire import Kind, Record, lib, records

DLSYM, PROC_ADDRESS = "dlsym", "proc_address"
_WAYS = {lib.WIRE_BY_DLSYM: DLSYM, lib.WIRE_BY_PROC_ADDRESS: PROC_ADDRESS}
_NO_CALLS = frozenset({Kind.DRIVER, Kind.EPOCH, Kind.DATA, Kind.OUTCOME, Kind.DOOR, Kind.DEVICE, Kind.FUNCTION,
                       Kind.STREAM})
"""Records that do not name the function that was called."""


@dataclass
class Used:
    """Of one program. ``driver``: its file, and ``version`` a number as in 13000. ``ways``: how it got at functions of
    the list, by their numbers; ``unlisted``: names that it got and the list has not. ``records``: how many records name
    a function as the one that was called."""

    driver: str = ""
    version: int = 0
    ways: dict[int, set[str]] = field(default_factory=dict)
    unlisted: set[str] = field(default_factory=set)
    records: Counter[int] = field(default_factory=Counter)


class Doors:
    """Adds up the records of all programs, by client."""

    def __init__(self) -> None:
        self.used: dict[Client, Used] = {}

    def begin(self, client: Client) -> None:
        self.used[client] = Used()

    def end(self, client: Client, trouble: str | None) -> None:
        pass

    def batch(self, client: Client, batch: Any, data: memoryview) -> None:
        used = self.used[client]
        for record in records(data):
            self._add(used, record)

    def _add(self, used: Used, record: Record) -> None:
        if record.kind is Kind.DRIVER:
            used.driver, used.version = tails.name(record), record.body.version
        elif record.kind is Kind.DOOR:
            if record.body.name_bytes:
                used.unlisted.add(tails.name(record))
            else:
                used.ways.setdefault(record.function, set()).add(_WAYS.get(record.body.how, "other"))
        elif record.kind not in _NO_CALLS and not record.flags & lib.WIRE_RESTATED:
            used.records[record.function] += 1
