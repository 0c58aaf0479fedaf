"""What lived on where records were lost, or where a call that was to end it failed. A trace has no rows for records
that said so: what they said is told by what did not die."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.traces.objects import LEGACY, LIVES, PER_THREAD
from orchestrator.traces.reader import Trace
from orchestrator.traces.timeline import THINGS
from shim.layout import lib

NEVER = 1 << 62
"""A number that no record has."""
NO_DEFAULT_STREAM = f"handle NOT IN ({LEGACY}, {PER_THREAD})"
"""Default streams have rows, but no records."""
PARENTS = {
    "module": ("context", "library_of"), "kernel": ("module",), "stream": ("context",), "event": ("context",),
    "array": ("context", "mipmap"), "graph": ("context",),
}  # fmt: skip
"""With what things end. Memory is told apart by its kind, below."""
PARTS = " UNION ALL ".join([
    *[f'SELECT id, {parent} AS parent FROM "{table}"' for table, parents in PARENTS.items() for parent in parents],
    f"""SELECT id, CASE kind WHEN {lib.WIRE_VARIABLE} THEN owner WHEN {lib.WIRE_POOLED} THEN NULL
        WHEN {lib.WIRE_MAPPED} THEN NULL ELSE context END FROM memory""",
])  # fmt: skip
ALL_OF = f"""WITH RECURSIVE part(id, parent) AS ({PARTS}), whole(id) AS (
    SELECT value FROM json_each(?) UNION SELECT part.id FROM whole JOIN part ON part.parent = whole.id)
    SELECT id FROM whole"""
"""Things by their numbers, and all that ends with them."""


class Survivor(NamedTuple):
    """A thing and its table."""

    table: str
    row: sqlite3.Row


class Survivors:
    """Those of one client."""

    def __init__(self, trace: Trace, client: int) -> None:
        self._trace, self._client = trace, client

    def settled(self, gap: int) -> int:
        """Where all had been restated after the records before number ``gap`` were lost: the number of the first record
        that restates nothing. What had not been restated by then died there."""
        first = min(self._first(table, gap) for table in ("operation", "ending", "door", "device", "gap"))
        died: dict[int, set[int]] = {}
        said: dict[int, dict[tuple[str, int], sqlite3.Row]] = {}
        for table in (*THINGS, "link"):
            dead = f'SELECT * FROM "{table}" WHERE client = ? AND died > ? AND died <= ?'
            for row in self._trace.rows(dead, self._client, gap, first):
                doubtful = died.setdefault(row["died"], set())
                if row["born"] < gap:
                    doubtful.add(row["id"])
                said.setdefault(row["died"], {})[table, row[_handle(table)]] = row
        for sequence in sorted(died):
            if not self._explained(sequence, died[sequence], said[sequence]):
                return sequence
        return first

    def living(self, gap: int, settled: int) -> Iterator[Survivor]:
        """What was restated between the two."""
        ended = self._trace.row("SELECT thing FROM ending WHERE client = ? AND sequence = ?", self._client, settled)
        condition = "born < ? AND (died IS NULL OR died > ? OR id = ?)"
        yield from self._those(condition, gap, settled, ended["thing"] if ended else None)

    def revived(self, end: int, outcome: int) -> Iterator[Survivor]:
        """What the call of the END at number ``end`` did not end, as the record at number ``outcome`` says, if that is
        the first one which says so."""
        row = self._trace.row("SELECT * FROM ending WHERE client = ? AND sequence = ?", self._client, end)
        told = "SELECT 1 FROM outcome WHERE client = ? AND subject = ? AND result != 0 AND sequence < ?"
        if row is None or row["thing"] is None or self._trace.row(told, self._client, end, outcome):
            return
        mapped = "SELECT id FROM memory WHERE address >= ? AND address < ? + ?"
        condition = f"born < ? AND (died IS NULL OR died > ?) AND id IN ({ALL_OF} UNION {mapped})"
        place = (row["handle"], row["handle"], row["bytes"])
        yield from self._those(condition, end, end, f"[{row['thing']}]", *place)

    def _those(self, condition: str, *values: object) -> Iterator[Survivor]:
        """The things that records announced, and of which a condition holds, in the order in which they came."""
        parts = [self._part(table, condition, *values) for table in THINGS]
        yield from heapq.merge(*parts, key=lambda found: int(found.row["id"]))

    def _part(self, table: str, condition: str, *values: object) -> Iterator[Survivor]:
        default = f" AND {NO_DEFAULT_STREAM}" if table == "stream" else ""
        statement = f'SELECT * FROM "{table}" WHERE client = ? AND announced{default} AND {condition} ORDER BY id'
        for row in self._trace.rows(statement, self._client, *values):
            yield Survivor(table, row)

    def _first(self, table: str, gap: int) -> int:
        """The first record behind a gap that restates nothing for sure."""
        order = "born" if table == "device" else "sequence"
        condition = " AND epoch IS NOT NULL" if table == "gap" else ""
        row = self._trace.row(f"SELECT min({order}) AS first FROM {table} WHERE client = ? AND {order} > ?{condition}",
                              self._client, gap)
        return NEVER if row is None or row["first"] is None else int(row["first"])

    def _explained(self, sequence: int, died: set[int], said: dict[tuple[str, int], sqlite3.Row]) -> bool:
        """Whether things died at a record since it announced others with their handles, restated but not the same."""
        replaced = []
        for (table, handle), row in said.items():
            again = self._trace.row(f'SELECT * FROM "{table}" WHERE client = ? AND born = ? AND announced '
                                    f"AND {_handle(table)} = ?", self._client, sequence, handle)
            if again is not None:
                if _values(again) == _values(row):
                    return False
                replaced.append(row["id"])
        gone = {row["id"] for row in self._trace.rows(ALL_OF, f"{replaced}")}
        return died <= gone


def _handle(table: str) -> str:
    """The column by which programs name things."""
    return "address" if table in ("memory", "reservation") else "handle"


def _values(row: sqlite3.Row) -> tuple[object, ...]:
    """What was said of a thing."""
    return tuple(row)[len(LIVES):]
