"""``tessera ptx``: what the kernels of PTX files read and write."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ptxparse.launch_text import EXAMPLE
from tessera.cli import exits
from tessera.errors import ExitCode, UsageError

if TYPE_CHECKING:  # imported when they are needed, so that other verbs start without what comes with them
    from tessera.cli.examination import FileFindings


def ptx(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="PTX files; - is standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, see docs/schema/ptx.json.")] = False,
    launch: Annotated[
        str | None, typer.Option(metavar="TEXT", help=f"Evaluate a launch of the kernel, such as '{EXAMPLE}'.")
    ] = None,
    kernel: Annotated[str | None, typer.Option(metavar="NAME", help="Only the kernel of this name.")] = None,
) -> None:
    """Say what the kernels of PTX files read and write.

    Exit code 1: a kernel is opaque, nothing bounded can be said of it. 2: an option does not fit. 3: a file is
    missing or malformed; the others are still shown.
    """
    from ptxparse.launch_text import parse_launch
    from tessera.cli.examination import apply_launch, examine
    from tessera.cli.reporters import ptx_json, ptx_text

    wanted = parse_launch(launch) if launch is not None else None
    found = [examine(path, kernel) for path in files]
    check_kernel(found, kernel)
    if wanted is not None:
        apply_launch(found, wanted)
    if as_json:
        ptx_json.write(found, sys.stdout)
    else:
        ptx_text.write(found)
    leave(found)


def check_kernel(found: list[FileFindings], kernel: str | None) -> None:
    """Raise if ``--kernel`` names none, unless a file that could not be read may hold it."""
    if kernel is None or any(file.kernels or file.error for file in found):
        return
    names = [f.name for file in found if file.module for f in file.module.entries]
    raise UsageError(f"no kernel is named '{kernel}'; there are: {', '.join(names) or 'none'}")


def leave(found: list[FileFindings]) -> None:
    """Errors of files to stderr, then the exit code: bad input before a finding."""
    errors = [file.error for file in found if file.error]
    for error in errors:
        exits.complain(error)
    if errors:
        raise typer.Exit(max(int(error.exit_code) for error in errors))
    if any(kernel.opaque for file in found for kernel in file.kernels):
        raise typer.Exit(int(ExitCode.FINDING))
