"""Errors of the PTX reader."""

from __future__ import annotations

from tessera.errors import TesseraError


class PtxError(TesseraError):
    """Malformed PTX text.

    ``line`` and ``column`` count from 1; ``expected`` says what would have been accepted there.
    """

    def __init__(self, expected: str, line: int, column: int, found: str = "", path: str = "") -> None:
        self.expected = expected
        self.line = line
        self.column = column
        self.found = found
        self.path = path
        super().__init__(self._text())

    def _text(self) -> str:
        where = f"{self.path or 'PTX'}:{self.line}:{self.column}"
        found = f", found {self.found!r}" if self.found else ""
        return f"{where}: expected {self.expected}{found}"

    def in_file(self, path: str) -> PtxError:
        """The same error, naming the file it is in."""
        return PtxError(self.expected, self.line, self.column, self.found, path)
