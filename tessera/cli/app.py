"""The application: its verbs, the options that belong to no verb, and its way out."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Annotated, NoReturn

import typer

from tessera.cli import exits
from tessera.cli.commands import devices, doctor, graph, ptx, record, replay, run, trace

DISTRIBUTION = "tessera-gpu"
COMMAND_BEHIND = {"allow_extra_args": True, "allow_interspersed_args": False}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("devices")(devices.devices)
app.command("doctor", context_settings=COMMAND_BEHIND)(doctor.doctor)
app.command("graph")(graph.graph)
app.command("ptx")(ptx.ptx)
app.command("record", context_settings=COMMAND_BEHIND)(record.record)
app.command("replay")(replay.replay)
app.command("run", context_settings=COMMAND_BEHIND)(run.run)
app.add_typer(trace.trace, name="trace")


def version() -> str:
    """The installed version; from a source tree that is not installed, a word saying so."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"tessera {version()}")
        raise typer.Exit


@app.callback()
def options(
    show: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Place single GPU kernels: know which bytes each launch reads and writes."""


def main() -> NoReturn:
    """Run the command line and leave the process with an exit code of ``tessera.errors.ExitCode``."""
    sys.exit(exits.run(app))
