"""Contents of a trace, each once, by the hash of the whole; in pieces as they came, compressed where that pays."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator

from tessera.content import content as content_of
from tessera.errors import TesseraError

PLAIN, DEFLATED = 0, 1
SAMPLE = 4096
"""Bytes that are compressed to see whether the rest is worth it: weights hardly are, and they are most of a trace."""
WORTH = 0.9
FASTEST = 1

Row = tuple[bytes, int, int, int, bytes]


class ContentError(TesseraError):
    """Contents that a trace should have are missing, incomplete or not those that their hash names."""


def row(content: bytes, start: int, total: int, data: bytes) -> Row:
    """The row of the table ``payload`` for a piece of contents."""
    if len(zlib.compress(data[:SAMPLE], FASTEST)) < WORTH * min(len(data), SAMPLE):
        return content, start, total, DEFLATED, zlib.compress(data, FASTEST)
    return content, start, total, PLAIN, data


def has(database: sqlite3.Connection, content: bytes) -> bool:
    """Whether all bytes of the contents are there, by their lengths."""
    try:
        return bool(list(_whole(database, content)))
    except ContentError:
        return False


def load(database: sqlite3.Connection, content: bytes) -> bytes:
    """The bytes that have this hash. Raises :class:`ContentError`."""
    data = b"".join(_whole(database, content))
    if content_of(data) != content:
        raise ContentError(f"contents {content.hex()[:16]}: the trace holds other bytes than this hash names")
    return data


def pieces(database: sqlite3.Connection, content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Those pieces of contents that are there, in order: where each begins in the whole, how many bytes the whole has,
    and the piece. Raises :class:`ContentError` for one that is no such thing."""
    found = database.execute(
        "SELECT start, total, coding, data FROM payload WHERE content = ? ORDER BY start", (content,)
    )
    name = content.hex()[:16]
    for start, total, coding, data in found:
        if not (isinstance(start, int) and isinstance(total, int) and 0 <= start <= total):
            raise ContentError(f"contents {name}: a piece lies outside the whole")
        yield start, total, _plain(name, coding, data, total - start)


def _whole(database: sqlite3.Connection, content: bytes) -> Iterator[bytes]:
    """All pieces. Raises :class:`ContentError` if one is missing."""
    name, have, wanted = content.hex()[:16], 0, None
    for start, total, piece in pieces(database, content):
        wanted = total
        if start != have:
            raise ContentError(f"contents {name}: bytes {have} to {start} of {total} are missing from the trace")
        have += len(piece)
        yield piece
    if wanted is None:
        raise ContentError(f"contents {name} are not in the trace; `tessera record` keeps them, `tessera run` does not")
    if have != wanted:
        raise ContentError(f"contents {name}: {have} of {wanted} bytes are in the trace")


def _plain(name: str, coding: int, data: bytes, most: int) -> bytes:
    if not isinstance(data, bytes):
        raise ContentError(f"contents {name}: a piece is no bytes")
    if coding == PLAIN:
        return data
    if coding != DEFLATED:
        raise ContentError(f"contents {name}: coding {coding} is unknown; known are {PLAIN} and {DEFLATED}")
    unpacking = zlib.decompressobj()
    try:
        piece = unpacking.decompress(data, most + 1)
    except zlib.error as error:
        raise ContentError(f"contents {name}: {error}") from error
    if len(piece) > most or not unpacking.eof:
        raise ContentError(f"contents {name}: a piece is longer than the whole, or cut short")
    return piece
