"""``tessera replay``: what a trace holds, done again on any driver, or followed without one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tessera.cli.target import choose
from tessera.errors import ExitCode, UsageError

ADDRESSES = ("recorded", "any")


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace of tessera record.")],
    client: Annotated[int | None, typer.Option(metavar="N", help="Only this program of it; else all in order.")] = None,
    device: Annotated[int | None, typer.Option(metavar="N", help="One GPU for everything; else as recorded.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare all bytes that come to the host.")] = False,
    addresses: Annotated[
        str, typer.Option(metavar="recorded|any", help="Memory where it was, if the driver can; or anywhere.")
    ] = "recorded",
    partial: Annotated[bool, typer.Option("--partial", help="Take what can be read of a damaged trace.")] = False,
    deadline: Annotated[float, typer.Option(metavar="SECONDS", help="How long nothing may go on.")] = 120.0,
    driver: Annotated[Path | None, typer.Option(metavar="PATH", help="The CUDA driver.")] = None,
    fleet: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The GPUs: a fleet, such as A100-80G,L40S or cuda:0.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Without a driver: what a placement would send, and move.")
    ] = False,
    placement: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Offline: where launches are to run; else all at home.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, max=64, metavar="N", help="Offline: so many GPUs, those of the trace first.")
    ] = None,
    opaque: Annotated[
        str | None, typer.Option(metavar="parameters", help="Offline: what opaque kernels are promised to touch.")
    ] = None,
    jobs: Annotated[bool, typer.Option("--jobs", help="Offline: list every decision.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, see docs/schema.")] = False,
) -> None:
    """Do again what a trace holds: modules, memory, copies, launches, graphs, streams and events.

    With --offline nothing is done: the records are followed, and what a placement would send away is counted.

    Exit code 1: with --verify, bytes are not those of the trace. 3: the trace is damaged, or lacks what was asked for.
    4: no driver, or one that refuses. 5: nothing goes on.
    """
    if offline:
        from tessera.cli import offline as without_driver

        if device is not None or verify or driver is not None or addresses != ADDRESSES[0]:
            raise UsageError("--offline does nothing again: --device, --verify, --driver and --addresses do not fit")
        wanted = without_driver.Wanted(file, client, partial, placement or "home", fleet, gpus, opaque, jobs, as_json)
        if not without_driver.show(wanted):
            raise typer.Exit(int(ExitCode.BAD_INPUT))
        return
    if placement is not None or gpus is not None or opaque is not None or jobs:
        raise UsageError("--placement, --gpus, --opaque and --jobs go with --offline")
    from orchestrator.traces.replay.parent import Request
    from orchestrator.traces.replay.parent import replay as run
    from tessera.cli.reporters import replay_json, replay_text

    if addresses not in ADDRESSES:
        raise UsageError(f"--addresses {addresses}: there are {', '.join(ADDRESSES)}")
    if not deadline > 0:
        raise UsageError(f"--deadline {deadline:g}: must be a number of seconds above 0")
    target = choose(fleet, driver)
    request = Request(file, client, device, addresses == "recorded", verify, partial, target.driver, deadline)
    report = run(request, target.environment)
    if as_json:
        replay_json.write(request, report, sys.stdout)
    else:
        replay_text.write(request, report)
    if report.mismatched or (request.verify and not report.all_agree):
        raise typer.Exit(int(ExitCode.FINDING))
