"""``tessera doctor``: whether Tessera works here, and with a program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def doctor(
    context: typer.Context,
    driver: Annotated[Path | None, typer.Option(metavar="PATH", help="The CUDA driver under the program.")] = None,
    fleet: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The GPUs: a fleet, such as A100-80G,L40S or cuda:0.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, see docs/schema/doctor.json.")] = False,
) -> None:
    """Say whether Tessera works here, and with a program: tessera doctor [OPTIONS] [-- PROGRAM [ARGUMENT...]]

    The program is run under the preload library; its standard output goes to standard error. Exit code 1: something is
    amiss. 2: an option does not fit. 3: such a fleet cannot be. 4: there is no driver.
    """
    from tessera.cli.doctor.report import examine
    from tessera.cli.reporters import doctor_json, doctor_text

    found = examine(tuple(context.args), fleet, driver)
    if as_json:
        doctor_json.write(found, sys.stdout)
    else:
        doctor_text.write(found)
    if found.exit_code:
        raise typer.Exit(int(found.exit_code))
