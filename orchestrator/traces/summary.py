"""What a trace holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator.traces.reader import Trace

COUNTED = ("modules", "kernels", "streams", "events", "allocations", "graphs", "launches", "graph_launches", "copies",
           "memsets", "synchronizations", "steps", "failures")


@dataclass(frozen=True)
class Summary:
    """``clients``: rows of the view with counts of their own; ``payload_bytes`` of contents, ``stored_bytes`` of those
    in the file; ``lost`` records; ``missing``: sentences about a damaged file; ``reasons``: why it is not complete."""

    path: str
    about: dict[str, str]
    complete: bool
    reasons: list[str]
    missing: list[str]
    clients: list[dict[str, Any]]
    counts: dict[str, int]
    steps: list[dict[str, Any]]
    payloads: int
    payload_bytes: int
    stored_bytes: int


MOST_STEPS = 10


def summary_of(trace: Trace) -> Summary:
    """The whole of it. Raises TraceError where it is damaged."""
    clients = [dict(row) for row in trace.rows("SELECT * FROM clients ORDER BY client")]
    for client in clients:
        number = client["client"]
        client["devices"] = [row["name"] for row in trace.rows(
            "SELECT name FROM devices WHERE client = ? ORDER BY ordinal", number)]
        client["gaps"] = _count(trace, f"SELECT count(*) AS n FROM gaps WHERE client = {number:d}")
    sizes = trace.row("SELECT count(*) AS n, total(bytes) AS b, total(stored_bytes) AS s FROM payloads")
    assert sizes is not None
    steps = trace.rows(f"SELECT * FROM step_classes ORDER BY times DESC, example LIMIT {MOST_STEPS}")
    return Summary(
        str(trace.path), trace.about, trace.complete, _reasons(trace, clients), trace.missing, clients,
        {name: _count(trace, f"SELECT count(*) AS n FROM {name}") for name in COUNTED}, [dict(row) for row in steps],
        sizes["n"], int(sizes["b"]), int(sizes["s"]),
    )


def _count(trace: Trace, statement: str) -> int:
    row = trace.row(statement)
    return int(row["n"]) if row else 0


def _reasons(trace: Trace, clients: list[dict[str, Any]]) -> list[str]:
    """Why it is not complete."""
    found = []
    if trace.about.get("state") != "closed":
        found.append("it was not closed: the recorder was ended, or is still recording")
    for client in clients:
        name = f"client {client['client']} (process {client['process']})"
        if client["trouble"]:
            found.append(f"{name}: {client['trouble']}")
        elif not client["ended"]:
            found.append(f"{name}: its end was not recorded")
        if client["gaps"]:
            found.append(f"{name}: records were lost, in {client['gaps']} gaps")
    return found + trace.missing
