"""The program that a command runs: started with the command's own input and output, told what the command is told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from shim.errors import ShimTrouble

PASSED_ON = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes of shells for a program that is not there, and for one that cannot be started."""


class CannotStart(ShimTrouble):
    """The program could not be started; ``code`` is what shells return then."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Signals:
    """Signals that are taken from a queue between ``with`` and its end, in all threads that are started there. There
    must be no other threads: one that does not block a signal would get it, and the process would end."""

    def __enter__(self) -> Signals:
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
        self.child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # one that ignores it never hears how children end
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        while signal.sigpending() & PASSED_ON:
            signal.sigwaitinfo(PASSED_ON)  # they have been obeyed: the program is over
        signal.signal(signal.SIGCHLD, self.child)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def pause(self, seconds: float) -> bool:
        """Wait so long; whether a signal came meanwhile that asks to end. Not by ``sigtimedwait``: in Python 3.11 that
        gives a signal that never came, when the process was stopped for longer than it was to wait."""
        time.sleep(seconds)
        came = signal.sigpending() & PASSED_ON
        if came:
            signal.sigwaitinfo(came)
        return bool(came)


def run(command: Sequence[str], environment: Mapping[str, str], signals: Signals,
        started: Callable[[int], None] = lambda _: None) -> int:
    """Run a program to its end, and pass signals on to it; its exit code, 128 and the number of a signal that ended it.
    ``started`` is told its process. Raises CannotStart."""
    process = _start(command, environment, signals)
    started(process)
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        told = signal.sigwaitinfo(PASSED_ON | {signal.SIGCHLD})
        # What the kernel itself sends comes from the terminal, which has told the program too.
        if told.si_signo != signal.SIGCHLD and told.si_code <= 0:
            os.kill(process, told.si_signo)


def _start(command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> int:
    try:
        return os.posix_spawnp(command[0], list(command), environment, setsigmask=signals.before,
                               setsigdef=_IGNORED_BY_PYTHON)
    except FileNotFoundError:
        raise CannotStart(f"{command[0]}: there is no such program", NOT_FOUND) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStart(f"{command[0]} cannot be started: {reason}", NOT_STARTED) from None
