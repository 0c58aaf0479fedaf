"""Steps: what a program launches between two moments at which it waits for its GPUs.

A step ends where the program waits for a context, a stream or an event, hears from one that all is done, or gets bytes
of a GPU by a copy that returns when they are there; if nothing was launched since the last of these, it is none. For a
server of a language model that is a token. Two steps are alike if they launch the same kernels with the same grids and
blocks in the same order: their signatures are equal then.
"""

from __future__ import annotations

import hashlib

from orchestrator.traces.rows import Rows

SIGNATURE_BYTES = 8


class Steps:
    """The step that a client is in."""

    def __init__(self, client: int, rows: Rows) -> None:
        self._client, self._rows = client, rows
        self._step: int | None = None

    def launched(self, sequence: int, what: bytes) -> int:
        """Something was launched: the number of the step that it is in. ``what``: the same for the same work."""
        if self._step is None:
            self._step = self._rows.number()
            self._first, self._count = sequence, 0
            self._hash = hashlib.blake2b(digest_size=SIGNATURE_BYTES)
        self._hash.update(what + b"\n")
        self._last, self._count = sequence, self._count + 1
        return self._step

    def over(self) -> None:
        """The program has waited, or ended."""
        if self._step is not None:
            signature = self._hash.hexdigest()
            self._rows.add("step", self._step, self._client, self._first, self._last, self._count, signature)
            self._step = None
