"""Running a program under the preload library, whatever becomes of its records."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tessera.cli.target import choose
from tessera.environment import DISABLE, DRIVER, SOCKET
from tessera.errors import TesseraError, UsageError

if TYPE_CHECKING:  # imported when they are needed: other verbs do without cffi and ZeroMQ
    from orchestrator.session.messages import Session, Sink

PRELOAD = "LD_PRELOAD"
LINGER_SECONDS = 5.0
"""For processes that outlive the program."""


@dataclass(frozen=True)
class Wanted:
    """A program with its arguments, and what it is to run on; ``variables`` come into its environment."""

    command: tuple[str, ...]
    fleet: str | None = None
    driver: Path | None = None
    transport: str = "ipc"
    options: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """How it went: the exit code, all sessions, processes that go on, why connections were refused, how often."""

    wanted: Wanted
    code: int
    sessions: Sequence[Session] = ()
    living: Sequence[int] = ()
    refused: tuple[tuple[str, int], ...] = ()


def run_program(wanted: Wanted, out: TextIO, sinks: Sequence[Sink] = (),
                finished: Callable[[Done], None] = lambda _: None,
                started: Callable[[int], None] = lambda _: None) -> int:
    """Run a program and give its records to ``sinks``; its exit code. Lines about what is not as usual go to ``out``;
    ``started`` is told the program's process, and ``finished`` is called when all is read. Raises :class:`TesseraError`
    only before the program is started."""
    from orchestrator.child import CannotStart, Signals, run
    from orchestrator.service import TRANSPORTS, Service

    if not wanted.command:
        raise UsageError("no program to run: tessera run [OPTIONS] -- PROGRAM [ARGUMENT...]")
    if wanted.transport not in TRANSPORTS:
        raise UsageError(f"--transport {wanted.transport}: there are {', '.join(TRANSPORTS)}")
    target = choose(wanted.fleet, wanted.driver)
    if target.note:
        say(out, target.note)
    try:
        with Signals() as signals:
            if disabled():
                done = Done(wanted, run(wanted.command, {**target.environment, **wanted.variables}, signals, started))
                failure = None
            else:
                with Service(sinks, wanted.transport, wanted.options) as service:
                    added = {DRIVER.name: target.driver, SOCKET.name: str(service.socket),
                             PRELOAD: preloaded(target.environment.get(PRELOAD, ""))}
                    told = {**target.environment, **wanted.variables, **added}
                    code = run(wanted.command, told, signals, started)
                    living = service.drain(LINGER_SECONDS, signals.pause)
                sessions, failure = service.reader.sessions(), service.reader.failure
                done = Done(wanted, code, sessions, [client.process for client in living],
                            tuple(sorted(service.listener.refused.items())))
                complain(done, out)
    except CannotStart as error:
        say(out, str(error))
        return error.code
    try:
        if failure is not None:
            raise failure
        finished(done)
    except TesseraError as error:  # the program's own exit code is the command's, whatever became of its records
        say(out, str(error))
    return done.code


def disabled() -> bool:
    return os.environ.get(DISABLE.name, "") not in ("", "0")


def preloaded(before: str) -> str:
    """What the loader is told: the library, before all that it was told already. Raises TesseraError."""
    from shim.places import library

    return " ".join([str(library()), *before.replace(":", " ").split()])


def say(out: TextIO, line: str) -> None:
    print(f"tessera: {line}", file=out, flush=True)


def complain(done: Done, out: TextIO) -> None:
    """A line for each thing that the user would not expect."""
    for reason, count in done.refused:
        say(out, f"refused {count} who said hello: {reason}")
    if not done.sessions and not done.refused:
        say(out, "the program called no function of the CUDA driver, so there are no records")
    for session in done.sessions:
        if session.trouble and session.client.process not in done.living:
            say(out, f"process {session.client.process}: {session.trouble}")
    lost = sum([session.lost for session in done.sessions])
    if lost:
        say(out, f"{lost} records found no room and are missing; {sum([s.records for s in done.sessions])} are there")
    if done.living:
        listed = ", ".join([str(process) for process in done.living])
        say(out, f"the program has ended, and processes that it started go on, from now on unrecorded: {listed}")


