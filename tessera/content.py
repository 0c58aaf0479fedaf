"""The name of bytes in records and traces: a hash whose pieces do not depend on each other.

``shim/preload/content.c`` is the same in C, with several pieces hashed at a time.
"""

from __future__ import annotations

import hashlib

PIECE = 1 << 16
"""Bytes of a piece; the last one may be shorter."""

PERSON = b"tessera content"


def content(data: bytes | bytearray | memoryview) -> bytes:
    """32 bytes: BLAKE2b-256 (RFC 7693), personalised, of the length of ``data`` in bytes (64 bits, little-endian) and
    then the BLAKE2b-256 digests of its pieces; there are none of no bytes. ``data`` has to be contiguous."""
    view = memoryview(data)
    whole = hashlib.blake2b(view.nbytes.to_bytes(8, "little"), digest_size=32, person=PERSON)
    if view.nbytes:
        view = view.cast("B")
        for start in range(0, len(view), PIECE):
            whole.update(hashlib.blake2b(view[start : start + PIECE], digest_size=32).digest())
    return whole.digest()
