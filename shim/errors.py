"""What can go wrong between a program and the reader of its records."""

from __future__ import annotations

from tessera.errors import ExitCode, TesseraError


class WireError(TesseraError):
    """Bytes that are no records, or no message, as ``wire.h`` has them: which, and what is wrong with it."""


class ShimTrouble(TesseraError):
    """Programs cannot be run under the shim here: why, and what to do."""


class ShimMissing(TesseraError, ImportError):
    """What is compiled for the shim is not there."""

    exit_code = ExitCode.NO_DRIVER
