"""The process in which a trace is replayed. ``parent`` starts it: a driver that hangs or crashes harms nobody else.

It takes a request as JSON from standard input and writes lines of JSON to standard output: ``{"at": ...}`` before what
may take long, and at last ``{"report": ...}`` or ``{"error": ..., "code": ...}``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, TextIO

from orchestrator.traces.reader import Trace
from orchestrator.traces.replay import driver
from orchestrator.traces.replay.player import Options, Player
from orchestrator.traces.replay.report import Report
from tessera.errors import TesseraError

SECONDS = 0.1
"""Between two lines that say where it is. A line is written before whatever can wait, however soon."""
QUICK = frozenset({"context", "kernel", "stream", "event", "physical", "array", "graph", "node", "gap", "access"})


class Progress:
    """Says where the replay is."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._said = out, 0.0
        self.client = 0

    def __call__(self, sequence: int, what: str) -> None:
        now = time.monotonic()
        if what not in QUICK or now - self._said > SECONDS:
            self._said = now
            say(self._out, at={"client": self.client, "sequence": sequence, "what": what})


def say(out: TextIO, **message: Any) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def run(request: dict[str, Any], out: TextIO) -> Report:
    """What a request asks for."""
    driver.load(request["driver"])
    report, progress = Report(), Progress(out)
    options = Options(request["device"], request["fixed"], request["verify"])
    started = time.monotonic()
    with Trace(request["trace"], request["partial"]) as trace:
        wanted = request["client"]
        clients = [row["id"] for row in trace.rows("SELECT id FROM client ORDER BY id")]
        for client in clients if wanted is None else [wanted]:
            progress.client = client
            Player(trace, client, options, report, progress).play()
    report.seconds = time.monotonic() - started
    return report


def main() -> int:
    request = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what kernels and the driver print is not ours
    with out:
        try:
            report = run(request, out)
        except TesseraError as error:
            say(out, error=str(error), code=int(error.exit_code))
            return 0
        say(out, report=report.plain())
    return 0


if __name__ == "__main__":
    sys.exit(main())
