"""Rows that wait for the next transaction, and the numbers of things and operations."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import Any

Values = tuple[Any, ...]

SENT_AGAIN = frozenset({"payload", "gap", "door", "access", "export", "ending", "outcome"})
"""Tables whose key stands in the records: the first row with a key stays."""


def signed(number: int) -> int:
    """64 bits as SQLite has them."""
    return number - (1 << 64) if number >> 63 else number


def unsigned(number: int) -> int:
    """The opposite of :func:`signed`."""
    return number & (1 << 64) - 1


def fitting(value: Any) -> Any:
    """A value that SQLite can hold."""
    return signed(value) if isinstance(value, int) and value > 0 else value


def text(name: str) -> str:
    """A name from a record, as far as it is UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


class Rows:
    """Collects rows by table and changes of rows that are there; ``flush`` writes all in one transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._tables: dict[str, list[Values]] = defaultdict(list)
        self._changes: list[tuple[str, Values]] = []
        self._last = 0
        self.waiting = 0

    def number(self) -> int:
        """The next ``id``."""
        self._last += 1
        return self._last

    def add(self, table: str, *values: Any) -> None:
        """A row with all columns of its table in order."""
        self._tables[table].append(values)
        self.waiting += 1

    def change(self, statement: str, *values: Any) -> None:
        """A statement that runs after the rows that wait already."""
        self._changes.append((statement, values))
        self.waiting += 1

    def flush(self) -> None:
        try:
            self._write()
        except OverflowError:  # sizes that no program has, but records may
            for table, rows in self._tables.items():
                self._tables[table] = [tuple([fitting(value) for value in row]) for row in rows]
            self._changes = [(statement, tuple([fitting(v) for v in values])) for statement, values in self._changes]
            self._write()
        self._tables.clear()
        self._changes.clear()
        self.waiting = 0

    def _write(self) -> None:
        with self._database:
            for table, rows in self._tables.items():
                marks = ", ".join("?" * len(rows[0]))
                insert = "INSERT OR IGNORE" if table in SENT_AGAIN else "INSERT"
                self._database.executemany(f'{insert} INTO "{table}" VALUES ({marks})', rows)
            for statement, values in self._changes:
                self._database.execute(statement, values)
