"""Reads a trace: checks what file it is, and hands out rows by view, table and sequence."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from orchestrator.traces import payloads, schema
from orchestrator.traces.errors import TraceError
from orchestrator.traces.salvage import salvage
from orchestrator.traces.views import VIEWS

BEGINNING = b"SQLite format 3\0"
HEADER_BYTES = 100


@dataclass(frozen=True)
class Query:
    """What a query gave: the names of its columns, and its rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Trace:
    """A trace that is there; a context manager. ``missing`` are sentences about what a damaged one lacks."""

    def __init__(self, path: str | os.PathLike[str], partial: bool = False) -> None:
        """Open it. ``partial``: of a damaged one take what can be read. Raises :class:`TraceError`."""
        self.path = Path(path)
        self.missing: list[str] = []
        size = _check_beginning(self.path)
        self._database = self._open()
        try:
            with self._errors():
                self._begin(size, partial)
        except TraceError:
            self._database.close()
            raise
        self._database.row_factory = sqlite3.Row

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        self._database.close()

    @property
    def about(self) -> dict[str, str]:
        """What the recorder said of the file: ``state`` is ``closed`` if it was closed properly."""
        return {row["key"]: row["value"] for row in self.rows("SELECT key, value FROM meta")}

    @property
    def complete(self) -> bool:
        """Whether it was closed, all its programs had ended without trouble, and nothing was lost or is missing."""
        lacking = self.rows("SELECT 1 FROM client WHERE NOT ended OR trouble IS NOT NULL UNION ALL SELECT 1 FROM gap")
        return self.about.get("state") == "closed" and not self.missing and not list(lacking)

    def rows(self, statement: str, *values: Any) -> Iterator[sqlite3.Row]:
        """The rows of a statement of ours. Raises :class:`TraceError` where the file is damaged."""
        with self._errors():
            # `yield from` would close the cursor of whoever stops early, and the file may be closed by then
            for row in self._database.execute(statement, values):  # noqa: UP028
                yield row

    def row(self, statement: str, *values: Any) -> sqlite3.Row | None:
        """The first row, or None."""
        return next(self.rows(statement, *values), None)

    def view(self, name: str, where: str = "", values: tuple[Any, ...] = (), limit: int | None = None) -> Query:
        """Rows of a view. ``where`` is ours, what users say stands in ``values``."""
        if name not in VIEWS:
            raise TraceError(f"{name!r} is no view of a trace; these are: {', '.join(sorted(VIEWS))}")
        condition = f" WHERE {where}" if where else ""
        bound = "" if limit is None else f" LIMIT {limit}"
        return self._query(f"SELECT * FROM {name}{condition}{bound}", values)

    def query(self, statement: str, most: int | None = None) -> Query:
        """A user's query, which can only read. At most ``most`` rows. Raises :class:`TraceError` for a wrong one."""
        self._database.set_authorizer(_may)
        try:
            return self._query(statement, (), most)
        finally:
            self._database.set_authorizer(None)

    def _query(self, statement: str, values: tuple[Any, ...], most: int | None = None) -> Query:
        try:
            cursor = self._database.execute(statement, values)
            rows = [tuple(row) for row in (cursor if most is None else cursor.fetchmany(most))]
        except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
            raise TraceError(f"{self.path}: {error}") from error
        return Query(tuple([column[0] for column in cursor.description or ()]), rows)

    def has_content(self, content: bytes) -> bool:
        """Whether all bytes of contents are there."""
        with self._errors():
            return payloads.has(self._database, content)

    def content(self, content: bytes) -> bytes:
        """The bytes by their hash. Raises :class:`~orchestrator.traces.payloads.ContentError`."""
        with self._errors():
            return payloads.load(self._database, content)

    def pieces(self, content: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Those pieces of contents that are there: see :func:`~orchestrator.traces.payloads.pieces`."""
        with self._errors():
            yield from payloads.pieces(self._database, content)

    def _open(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(f"file:{quote(str(self.path.absolute()))}?mode=ro", uri=True)
        except sqlite3.Error as error:
            raise TraceError(f"{self.path}: {error}") from error

    def _begin(self, size: int, partial: bool) -> None:
        self._check_kind()
        short = self._short(size)
        if partial:
            self._take_what_is_there(short)
        elif short:
            raise TraceError(f"{self.path}: {short}; --partial reads what is there")

    def _check_kind(self) -> None:
        self._database.execute("PRAGMA writable_schema = ON")  # to ask a file that is too short, too
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if application != schema.APPLICATION:
            raise TraceError(f"{self.path}: an SQLite file, but no trace (application_id {application:#x})")
        if version != schema.VERSION:
            raise TraceError(f"{self.path}: a trace of format version {version}; this Tessera reads {schema.VERSION}")

    def _short(self, size: int) -> str:
        """A sentence about bytes that are missing from the end."""
        (pages,) = self._database.execute("PRAGMA page_count").fetchone()
        with self.path.open("rb") as file:
            header = file.read(HEADER_BYTES)
        page = int.from_bytes(header[16:18], "big")
        page = 65536 if page == 1 else page
        claimed = int.from_bytes(header[28:32], "big")
        wal = Path(f"{self.path}-wal")
        if (wal.exists() and wal.stat().st_size) or size >= page * claimed:
            return ""
        return f"cut short: {size} of {page * max(claimed, pages)} bytes are there"

    def _take_what_is_there(self, short: str) -> None:
        sound, missing = salvage(self._database)
        self._database.close()
        self._database = sound
        self.missing = [*([short] if short else []), *missing]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise TraceError(f"{self.path}: damaged or not readable ({error}); --partial reads what is there"
                             ) from error


def _check_beginning(path: Path) -> int:
    """The file's size, if it begins as a trace does."""
    try:
        with path.open("rb") as file:
            beginning = file.read(HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    if not beginning.startswith(BEGINNING):
        raise TraceError(f"{path}: no trace, as it is no SQLite file")
    if len(beginning) < HEADER_BYTES:
        raise TraceError(f"{path}: cut short within its first {HEADER_BYTES} bytes; nothing of it can be read")
    return size


def _may(action: int, *names: object) -> int:
    """What a user's query may do: read. (Attaching files and pragmas that change something are what remains.)"""
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
    if action == sqlite3.SQLITE_FUNCTION and "load_extension" in names:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY
