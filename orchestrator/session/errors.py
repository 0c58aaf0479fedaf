"""What can go wrong with the records of one program."""

from __future__ import annotations

from tessera.errors import ExitCode, TesseraError


class RecordError(TesseraError):
    """A record of a program contradicts what came before it, or itself. Nothing more can be said of that program."""

    def __init__(self, sequence: int, kind: str, what: str) -> None:
        super().__init__(f"record {sequence} ({kind.lower()}): {what}")
        self.sequence = sequence


class GraphMissing(TesseraError, ImportError):
    """What graphs are made with is not installed."""

    exit_code = ExitCode.NO_DRIVER
