"""Records of programs that are known: what they asked for is what was recorded, and a replay gives the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.traces.reader import Trace
from tests.device.machine import Machine, python, say
from tests.device.recorded import check_complete, recorded, replayed

ROUNDS = 20


def test_graphs_events_and_pinned_copies_are_recorded_and_replayed(machine: Machine, tmp_path: Path) -> None:
    command, file = python("work", machine.home, ROUNDS), tmp_path / "work.trace"
    asked = machine.run("work", machine.home, ROUNDS)
    assert json.loads(recorded(machine, file, command)) == asked
    with Trace(file) as trace:
        counts = check_complete(trace)
        kernels = len(list(trace.rows("SELECT 1 FROM launches WHERE NOT captured AND NOT result")))
        nodes = sorted(row["kind"] for row in trace.rows("SELECT kind FROM nodes"))
    assert (kernels, counts["graph_launches"], nodes) == (asked["kernels"], asked["graphs"], ["copy", "launch"])
    again = replayed(machine, file)
    say("graphs, events and pinned copies", {"recorded": counts, "replay": again})
    assert again["verified"] > ROUNDS


def test_two_programs_are_recorded_at_the_same_time(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "pair.trace"
    rounds = {int(process): count for process, count in json.loads(
        recorded(machine, file, python("pair", machine.home, 50))).items()}
    with Trace(file) as trace:
        counts = check_complete(trace)
        launches = {row["process"]: row["launches"] for row in trace.rows(
            "SELECT process, (SELECT count(*) FROM launches WHERE launches.client = clients.client) AS launches "
            "FROM clients")}
    assert len(rounds) == 2 and launches == rounds
    say("two programs at the same time", {"recorded": counts, "launches": sorted(launches.values())})
