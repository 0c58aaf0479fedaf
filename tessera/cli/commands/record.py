"""``tessera record``: a program as ``tessera run`` has it, with all that it asks of the driver kept in a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tessera.cli.under_shim import Wanted, run_program, say
from tessera.errors import TesseraError


def record(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The trace, a new file.")],
    driver: Annotated[Path | None, typer.Option(metavar="PATH", help="The CUDA driver under the program.")] = None,
    fleet: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The GPUs: a fleet, such as A100-80G,L40S or cuda:0.")
    ] = None,
    transport: Annotated[str, typer.Option(metavar="ipc|tcp", help="How records go to this command.")] = "ipc",
) -> None:
    """Record what a program asks of its CUDA driver: tessera record -o FILE [OPTIONS] -- PROGRAM [ARGUMENT...]

    The trace is for tessera replay and tessera trace. Exit codes are those of tessera run.
    """
    from orchestrator.traces.writer import Writer
    from shim.layout import lib

    wanted = Wanted(tuple(context.args), fleet, driver, transport, lib.WIRE_PAYLOADS)
    writer = Writer(output, wanted.options, command=" ".join(wanted.command))
    try:
        code = run_program(wanted, sys.stderr, [writer])
    except TesseraError:
        writer.discard()
        raise
    try:
        writer.close()
    except TesseraError as error:  # the program has ended, and its exit code is this command's
        say(sys.stderr, str(error))
    raise typer.Exit(code)
