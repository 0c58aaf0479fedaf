"""The one exception root and the exit codes it maps to.

Every error a user can cause derives from :class:`TesseraError`; the command line turns it into one line on stderr
and the exit code of its class. Nothing else in the project calls ``sys.exit``.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes of every verb except ``run`` and ``record``, which return the child's own."""

    OK = 0
    FINDING = 1
    USAGE = 2
    BAD_INPUT = 3
    NO_DRIVER = 4
    DEADLINE = 5


class TesseraError(Exception):
    """Root of all errors that a user can cause; ``exit_code`` is what the command line returns for it."""

    exit_code: ExitCode = ExitCode.BAD_INPUT


class UsageError(TesseraError):
    """The command was asked for something it does not do; the message says what it does."""

    exit_code = ExitCode.USAGE
