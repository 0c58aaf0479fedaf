"""Traces through the tracker: which GPUs there are, and what a placement would do with each client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.session.code import Code
from orchestrator.session.jobs import Decision
from orchestrator.session.offline import Findings, offline
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.traces.errors import TraceError, TraceUsage
from orchestrator.traces.reader import Trace
from orchestrator.traces.records import records


@dataclass(frozen=True)
class NamedGpu:
    """A GPU of the fleet, and what it is called."""

    name: str
    gpu: Gpu


def recorded_gpus(trace: Trace) -> list[NamedGpu]:
    """The GPUs of the client that has used the most, by their ordinals."""
    by_client: dict[int, list[NamedGpu]] = {}
    for row in trace.rows("SELECT * FROM device ORDER BY client, ordinal"):
        found = NamedGpu(row["name"], Gpu(row["memory"], row["capability"]))
        by_client.setdefault(row["client"], []).append(found)
    return max(by_client.values(), key=len, default=[])


def fleet_of(trace: Trace, count: int | None = None) -> tuple[list[NamedGpu], str]:
    """The GPUs of a trace, so many of them, without a number two at least, and a sentence on those that are added: they
    are like the last. Raises TraceUsage for a trace without any."""
    found = recorded_gpus(trace)
    if not found:
        raise TraceUsage(f"{trace.path}: no GPUs were recorded; --fleet says which there are to be")
    known, wanted = len(found), count or max(2, len(found))
    if wanted <= known:
        return found[:wanted], ""
    note = f"GPUs that the trace has: {known}; like the last one are {wanted - known} more, --fleet names others"
    return found + found[-1:] * (wanted - known), note


def chosen_clients(trace: Trace, client: int | None = None) -> list[tuple[int, str]]:
    """The clients of a trace with their programs, or that one. Raises TraceError for one that is not there."""
    rows = [(row["id"], row["program"]) for row in trace.rows("SELECT id, program FROM client ORDER BY id")]
    found = [row for row in rows if client in (None, row[0])]
    if not found:
        known = ", ".join([str(number) for number, _ in rows]) or "none"
        raise TraceError(f"{trace.path}: no client{'' if client is None else f' {client}'}; there are: {known}")
    return found


def clients_offline(
    trace: Trace, clients: list[int], settings: Settings, placement: Callable[[], Placement],
    decided: Callable[[int, Decision], None] | None = None,
) -> Iterator[tuple[int, Findings]]:
    """Each client with a ``placement`` of its own; ``decided`` is called with the client and each decision."""
    code = Code()
    for client in clients:
        def said(decision: Decision, client: int = client) -> None:
            assert decided is not None
            decided(client, decision)

        yield client, offline(records(trace, client), settings, placement(), code, said if decided else None)
