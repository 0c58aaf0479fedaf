"""What can still be read of a trace that is damaged: copied row by row, with what is missing."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from orchestrator.traces import schema, views


def salvage(damaged: sqlite3.Connection) -> tuple[sqlite3.Connection, list[str]]:
    """A database of its own with the rows that can be read, and sentences about the others."""
    damaged.execute("PRAGMA writable_schema = ON")  # a file that is too short is opened all the same
    sound = sqlite3.connect("")  # a file without a name, gone with its connection
    for statement in schema.statements():
        sound.execute(statement)
    missing = []
    for table in schema.TABLES:
        rows, error = _copy(damaged, sound, table)
        if error:
            missing.append(f"table {table}: {rows} rows can be read, and not all ({error})")
    for statement in views.statements():
        sound.execute(statement)
    sound.commit()
    return sound, missing


def _copy(damaged: sqlite3.Connection, sound: sqlite3.Connection, table: str) -> tuple[int, str]:
    """Rows from the beginning up to the damage, and from the end down to it; how many, and what was wrong."""
    names = [str(row[1]) for row in sound.execute(f'PRAGMA table_info("{table}")')]
    keys = [str(row[1]) for row in sound.execute(f'PRAGMA table_info("{table}")') if row[5]]
    columns = names if table in schema.WITHOUT_ROWID else ["rowid", *names]
    order = keys if table in schema.WITHOUT_ROWID else ["rowid"]
    listed, marks = ", ".join([f'"{name}"' for name in columns]), ", ".join("?" * len(columns))
    wrong = ""
    for direction in ("ASC", "DESC"):
        ordered = ", ".join([f'"{name}" {direction}' for name in order])
        try:
            # a NOT INDEXED scan: an index may be damaged where the table is not
            for row in damaged.execute(f'SELECT {listed} FROM "{table}" NOT INDEXED ORDER BY {ordered}'):
                with suppress(sqlite3.IntegrityError):  # a page of something else
                    sound.execute(f'INSERT OR IGNORE INTO "{table}" ({listed}) VALUES ({marks})', row)
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            wrong = wrong or str(error)
            continue
        break
    (count,) = sound.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return count, wrong
