"""What a client did, in its order, from all tables."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.traces.reader import Trace

THINGS = ("context", "module", "kernel", "stream", "event", "reservation", "physical", "memory", "array", "graph")
DONE = ("gap", "access", "export", "ending", "operation", "outcome")


class Happening(NamedTuple):
    """A row, the table it is from, and the number of its record. A thing's row stands where it was made."""

    sequence: int
    table: str
    row: sqlite3.Row


def timeline(trace: Trace, client: int) -> Iterator[Happening]:
    """All of it. Things that no record announced are left out, as are nodes of graphs but for their changes."""
    parts = [part(trace, client, table, "born", " AND announced") for table in THINGS]
    changed = " AND born > (SELECT graph.born FROM graph WHERE graph.id = node.graph)"
    parts.append(part(trace, client, "node", "born", changed))
    parts += [part(trace, client, table, "sequence") for table in DONE]
    return heapq.merge(*parts, key=_sequence)


def _sequence(happening: Happening) -> int:
    return happening.sequence


def part(trace: Trace, client: int, table: str, order: str, condition: str = "") -> Iterator[Happening]:
    """The rows of one table by ``order``, a column with numbers of records. ``condition``: SQL behind the first one."""
    statement = f'SELECT * FROM "{table}" WHERE client = ?{condition} ORDER BY {order}'
    for row in trace.rows(statement, client):
        yield Happening(row[order], table, row)
