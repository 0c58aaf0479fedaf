"""``tessera replay --offline``: a trace followed without a driver."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tessera.cli.inventory import take
from tessera.environment import OPAQUE
from tessera.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.traces.offline import NamedGpu
    from orchestrator.traces.reader import Trace

PROMISE = "parameters"


@dataclass(frozen=True)
class Wanted:
    """What to follow, and how; ``opaque`` None: what the environment says."""

    file: Path
    client: int | None
    partial: bool
    placement: str
    fleet: str | None
    gpus: int | None
    opaque: str | None
    jobs: bool
    as_json: bool


def show(wanted: Wanted) -> bool:
    """Everything to standard output; whether all clients could be followed to their ends. Raises TesseraError for a
    trace, a fleet or a placement that cannot be."""
    from orchestrator.session.placements.text import parse_placement
    from orchestrator.session.placing import Settings
    from orchestrator.traces.offline import chosen_clients, clients_offline
    from orchestrator.traces.reader import Trace
    from tessera.cli.reporters import offline_json, offline_text

    promised = _promised(wanted.opaque)
    with Trace(wanted.file, wanted.partial) as trace:
        gpus, note = _gpus(wanted, trace)
        parse_placement(wanted.placement, len(gpus))  # what is wrong with it is said before anything else
        clients = dict(chosen_clients(trace, wanted.client))
        report = offline_json.Document if wanted.as_json else offline_text.Lines
        out = report(wanted.file, wanted.placement, promised, gpus, [note, *trace.missing], clients, sys.stdout)
        settings = Settings(tuple([named.gpu for named in gpus]), promised=promised)
        well = True
        for client, found in clients_offline(trace, list(clients), settings,
                                             lambda: parse_placement(wanted.placement, len(gpus)),
                                             out.decided if wanted.jobs else None):
            out.client(client, found)
            well = well and not found.trouble
        out.end()
    return well


def _promised(option: str | None) -> bool:
    said, source = (os.environ.get(OPAQUE.name, ""), OPAQUE.name) if option is None else (option, "--opaque")
    if said not in ("", PROMISE):
        raise UsageError(f"{source} {said}: there is {PROMISE}")
    return said == PROMISE


def _gpus(wanted: Wanted, trace: Trace) -> tuple[list[NamedGpu], str]:
    from orchestrator.session.segments import Gpu
    from orchestrator.traces.offline import NamedGpu, fleet_of

    if wanted.fleet is None:
        return fleet_of(trace, wanted.gpus)
    if wanted.gpus is not None:
        raise UsageError("--gpus and --fleet both say which GPUs there are: leave one of them out")
    return [NamedGpu(device.gpu.name, Gpu(device.memory, 10 * device.capability[0] + device.capability[1]))
            for device in take(wanted.fleet, 0).devices], ""
