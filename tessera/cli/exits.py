"""The one place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tessera.errors import ExitCode, TesseraError


def complain(error: TesseraError) -> None:
    """The error as one line on stderr, after whatever stdout holds already."""
    sys.stdout.flush()
    print(f"tessera: {error}", file=sys.stderr)


def run(application: Callable[[], object]) -> int:
    """Run ``application``; its exit code, also for errors that a user can cause. Every other exception propagates:
    it is a defect, and its traceback is what a report of it needs."""
    try:
        application()
    except TesseraError as error:
        complain(error)
        return int(error.exit_code)
    except SystemExit as leaving:
        if not isinstance(leaving.code, int | None):
            raise
        return leaving.code or int(ExitCode.OK)
    return int(ExitCode.OK)
