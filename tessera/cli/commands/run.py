"""``tessera run``: a program as it is, with the preload library under it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tessera.cli.under_shim import Wanted, run_program


def run(
    context: typer.Context,
    driver: Annotated[Path | None, typer.Option(metavar="PATH", help="The CUDA driver under the program.")] = None,
    fleet: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The GPUs: a fleet, such as A100-80G,L40S or cuda:0.")
    ] = None,
    transport: Annotated[str, typer.Option(metavar="ipc|tcp", help="How records go to this command.")] = "ipc",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what the program did as JSON, see docs/schema/run.json.")
    ] = None,
) -> None:
    """Run a program with the preload library under it: tessera run [OPTIONS] -- PROGRAM [ARGUMENT...]

    The exit code is the program's own, or 128 and the number of the signal that ended it. 127: there is no such
    program. 126: it cannot be started. 2, 3, 4 and 5 as for other verbs, before it is started.
    """
    wanted = Wanted(tuple(context.args), fleet, driver, transport)
    if report is None:
        raise typer.Exit(run_program(wanted, sys.stderr))
    from orchestrator.summary import Summary
    from tessera.cli.reporters import run_json

    summary = Summary()
    with run_json.opened(report) as out:
        raise typer.Exit(run_program(wanted, sys.stderr, [summary], lambda done: run_json.write(done, summary, out)))
