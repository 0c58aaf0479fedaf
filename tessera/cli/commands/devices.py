"""``tessera devices``: the GPUs that a program would see."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tessera.cli.inventory import take
from tessera.cli.reporters import devices_json, devices_text


def devices(
    fleet: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A fleet, such as A100-80G,L40S or cuda:0 or @fleet.toml.")
    ] = None,
    home: Annotated[int, typer.Option(metavar="N", help="The GPU of the fleet that is a program's device 0.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, see docs/schema/devices.json.")] = False,
) -> None:
    """Show the GPUs that a program would see, and what is between them.

    Without --fleet these are the real ones, or where NVIDIA's driver is not found the software ones. Exit code 3: such
    a fleet cannot be. 4: real GPUs are asked for and their driver is not there or does not work. 5: it does not answer.
    """
    found = take(fleet, home)
    if as_json:
        devices_json.write(found, sys.stdout)
    else:
        devices_text.write(found)
