"""Starts a replay in a process of its own, and ends it when it does not go on."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.traces.errors import ReplayDeadline, ReplayDriverError, ReplayError
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.report import Report, report_of
from tessera.errors import ExitCode

END_SECONDS = 10.0
"""For a process that has said everything to end."""
CHUNK = 1 << 16
WORKER = "orchestrator.traces.replay.worker"


@dataclass(frozen=True)
class Request:
    """What to replay. ``client``: None for all, one after the other; ``driver``: an absolute path, None for the one on
    the loader's path; ``seconds``: how long nothing may go on."""

    trace: Path
    client: int | None = None
    device: int | None = None
    fixed: bool = True
    verify: bool = False
    partial: bool = False
    driver: str | None = None
    seconds: float = 120.0


def replay(request: Request, environment: Mapping[str, str]) -> Report:
    """Replay in a process with this environment. Raises TesseraError: the trace is damaged or lacks something, the
    driver is not there or refuses, or nothing goes on for too long."""
    _check(request)
    process = subprocess.Popen([sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=dict(environment))
    try:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin, process.stdout:
            process.stdin.write(json.dumps(asdict(request), default=str).encode())
            process.stdin.close()
            return _answer(process, process.stdout.fileno(), request)
    except BrokenPipeError as error:
        raise ReplayDriverError("the process of the replay ended before it began") from error
    finally:
        process.kill()
        process.wait(END_SECONDS)


def _check(request: Request) -> None:
    """What needs no driver, before one is started."""
    with Trace(request.trace, request.partial) as trace:
        clients = [row["id"] for row in trace.rows("SELECT id FROM client ORDER BY id")]
        if request.client is not None and request.client not in clients:
            known = ", ".join(map(str, clients)) or "none"
            raise ReplayError(f"{request.trace}: no client {request.client}; there are: {known}")


def _answer(process: subprocess.Popen[bytes], descriptor: int, request: Request) -> Report:
    """The report that the process sends at last."""
    at = ["the beginning"]
    for message in _messages(descriptor, request, at):
        if "report" in message:
            return report_of(message["report"])
        if "error" in message:
            raise _error(message["error"], message["code"])
        at[0] = "client {client}, record {sequence} ({what})".format(**message["at"])
    status = process.wait(END_SECONDS)
    raise ReplayDriverError(f"the process of the replay ended with {status} at {at[0]}; its messages stand above")


def _messages(descriptor: int, request: Request, at: list[str]) -> Iterator[dict[str, Any]]:
    """The lines that the process writes, until it ends. Raises ReplayDeadline when none comes for too long."""
    held = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(request.seconds):
                raise ReplayDeadline(f"{request.trace}: nothing went on for {request.seconds:g} s at {at[0]}: "
                                     "a kernel does not end, or waits for what the program did; --deadline SECONDS "
                                     "waits longer")
            data = os.read(descriptor, CHUNK)
            if not data:
                return
            *lines, held = (held + data).split(b"\n")
            yield from [json.loads(line) for line in lines]


def _error(text: str, code: int) -> ReplayError:
    """What the process could not do, with the exit code that it gave."""
    error = ReplayError(text)
    error.exit_code = ExitCode(code)
    return error
