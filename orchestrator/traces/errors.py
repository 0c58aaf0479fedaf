"""What can be wrong with a trace, or with doing it again."""

from __future__ import annotations

from tessera.errors import ExitCode, TesseraError


class TraceError(TesseraError):
    """A trace cannot be written or read: which file, and why."""


class ReplayError(TesseraError):
    """A trace cannot be replayed as it was asked for."""


class ReplayDriverError(ReplayError):
    """There is no driver, or it refuses."""

    exit_code = ExitCode.NO_DRIVER


class ReplayDeadline(ReplayError):
    """What is replayed does not end."""

    exit_code = ExitCode.DEADLINE


class TraceUsage(TraceError):
    """A trace is asked for what no trace has."""

    exit_code = ExitCode.USAGE
