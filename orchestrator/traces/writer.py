"""Writes a trace while programs run.

Everything goes in bounded transactions to SQLite's write-ahead log: whatever ends the recorder or a program, the file
holds what was there up to the last transaction, and says that it was not closed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from orchestrator.traces import schema, views
from orchestrator.traces.errors import TraceError
from orchestrator.traces.recorder import Recorder
from orchestrator.traces.rows import Rows, text
from orchestrator.traces.words import words
from shim.layout import lib
from shim.listen import Client
from shim.wire import Buffer, records
from tessera.driver_api import functions

SECONDS = 0.2
MOST_ROWS = 20_000
MOST_BYTES = 32 << 20
"""A transaction ends when it is this old, or has this many rows, or so many bytes of records have come."""


class Writer:
    """A new trace in a file that must not exist yet: a sink of records. ``options``: those of ``enum wire_option`` that
    programs are told; ``about``: what the file says of itself. A thread of its own ends transactions that are old."""

    def __init__(self, path: str | os.PathLike[str], options: int = 0, **about: str) -> None:
        self._path, self._options = Path(path), options
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise TraceError(f"{self._path} exists already: remove it, or name another file") from None
        except OSError as error:
            raise TraceError(f"{self._path}: {error.strerror}") from error
        self._database = sqlite3.connect(self._path, check_same_thread=False)
        self._rows = Rows(self._database)
        self._recorders: dict[int, Recorder] = {}
        self._bytes = 0
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._failure: TraceError | None = None
        self._thread = threading.Thread(target=self._flush_often, name="trace", daemon=True)
        try:
            wire = str(lib.WIRE_VERSION)
            self._begin({"state": "recording", "created_ns": str(time.time_ns()), "wire": wire, **about})
        except sqlite3.Error as error:
            self._database.close()
            raise TraceError(f"{self._path}: {error}") from error
        self._thread.start()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        self.close()

    def begin(self, client: Client) -> None:
        """A program has come."""
        with self._lock:
            self._rows.add("client", client.number, client.process, text(client.program), self._options, None, None,
                           None, None, None, None, 0, 0, 0, None)
            self._recorders[client.number] = Recorder(client.number, self._rows)

    def batch(self, client: Client, batch: Any, data: Buffer) -> None:
        """Records of a program, with the ``wire_batch`` of their message. Raises TraceError if it cannot write."""
        with self._lock:
            self._batch(client, batch, data)

    def _batch(self, client: Client, batch: Any, data: Buffer) -> None:
        if self._failure:
            raise self._failure
        recorder = self._recorders[client.number]
        for record in records(data):
            recorder.take(record)
        self._rows.change(
            "UPDATE client SET first_ticks = coalesce(first_ticks, ?1), first_ns = coalesce(first_ns, ?2), "
            "last_ticks = ?1, last_ns = ?2, batches = batches + 1, lost = ?3 WHERE id = ?4",
            batch.ticks, batch.nanoseconds, batch.lost, client.number)
        self._bytes += len(data)
        if self._rows.waiting > MOST_ROWS or self._bytes > MOST_BYTES:
            self.flush()

    def end(self, client: Client, trouble: str | None) -> None:
        """Nothing more comes of a program, and why that is not as it should be."""
        with self._lock:
            self._recorders[client.number].over()
            self._rows.change("UPDATE client SET ended = ?, trouble = ? WHERE id = ?", trouble is None, trouble,
                              client.number)
            self.flush()

    def flush(self) -> None:
        """End the transaction. Raises :class:`TraceError` if the file cannot be written."""
        with self._lock:
            try:
                self._rows.flush()
            except sqlite3.Error as error:
                raise TraceError(f"{self._path}: {error}") from error
            self._bytes = 0

    def _flush_often(self) -> None:
        while not self._stop.wait(SECONDS):
            try:
                if self._rows.waiting:
                    self.flush()
            except TraceError as error:  # whoever brings the next records hears of it
                self._failure = error
                return

    def close(self) -> None:
        """Write what waits; the trace is one file from now on, and says that it is whole."""
        self._end_thread()
        for recorder in self._recorders.values():
            recorder.over()
        self._rows.change("UPDATE meta SET value = 'closed' WHERE key = 'state'")
        try:
            self.flush()
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            raise TraceError(f"{self._path}: {error}") from error
        finally:
            self._database.close()

    def discard(self) -> None:
        """Remove the file: nothing was recorded."""
        self._end_thread()
        self._database.close()
        for end in ("", "-wal", "-shm"):
            Path(f"{self._path}{end}").unlink(missing_ok=True)

    def _end_thread(self) -> None:
        self._stop.set()
        self._thread.join()

    def _begin(self, about: dict[str, str]) -> None:
        database = self._database
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        with database:
            database.execute("BEGIN")
            database.execute(f"PRAGMA application_id = {schema.APPLICATION}")
            database.execute(f"PRAGMA user_version = {schema.VERSION}")
            for statement in (*schema.statements(), *views.statements()):
                database.execute(statement)
            database.executemany("INSERT INTO meta VALUES (?, ?)", about.items())
            database.executemany("INSERT INTO word VALUES (?, ?, ?)", words())
            symbols = enumerate([function.symbol for function in functions()])
            database.executemany("INSERT INTO function VALUES (?, ?)", symbols)
