"""What a bare run on the software driver really touched: the driver's log of accesses, beside the records of its trace.

A tracker follows the records, so that steps, decisions and the log can be counted over the same launches. All work has
to be in one stream: then the log is in the order of the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.session.code import Code
from orchestrator.session.jobs import Decision
from orchestrator.session.operations import Operation, What
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.step_classes import StepClass
from orchestrator.session.steps import LaunchKey
from orchestrator.session.tally import Tally
from orchestrator.session.tracker import Tracker
from orchestrator.traces.reader import Trace
from orchestrator.traces.records import records
from shim import wire
from shim.wire import Kind
from tests.shadow.outcome import Logged, Ranges
from tests.shadow.program import QUIET
from tests.soundness import union

GPUS = (Gpu(80 << 30, 80), Gpu(48 << 30, 89))


class StepEnd(NamedTuple):
    """A step is over: its class and which repeat of it this was, how many launches there were before, how many bytes
    were gathered and applied."""

    signature: str
    repeat: int
    launches: int
    gathered: int
    applied: int


class Followed:
    """A trace's only client with a placement: its launches, the ends of its steps, what was decided, and on which GPUs
    each launch was to be."""

    def __init__(self, path: Path, placement: Placement) -> None:
        self.launches: list[Operation] = []
        self.ends: list[StepEnd] = []
        self.wishes: dict[tuple[int, int], tuple[int, ...]] = {}
        self.decisions: list[Decision] = []
        self.runs: dict[int, int] = {}
        self._run = 0
        self._wish: tuple[int, ...] = ()
        self._placement = placement
        self.tracker = Tracker(Settings(GPUS), self, Code(), self._operation)
        with Trace(path) as trace:
            ((client,),) = trace.query("SELECT id FROM client").rows
            for batch in records(trace, client):
                self._count_runs(batch)
                self.decisions += self.tracker.take(batch)
        self.decisions += self.tracker.finish()

    @property
    def tally(self) -> Tally:
        return self.tracker.tally

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        self._wish = self._placement.devices(launch, home)
        return self._wish

    def step_over(self, step: StepClass | None) -> None:
        if step is not None:
            tally = self.tally
            self.ends.append(StepEnd(step.signature, step.count, len(self.launches), tally.gathered.total(),
                                     tally.applied.total()))
        self._placement.step_over(step)

    def _operation(self, operation: Operation) -> None:
        if operation.what is What.LAUNCH:
            self.launches.append(operation)
            self.wishes[operation.sequence, operation.node] = self._wish

    def _count_runs(self, batch: bytes) -> None:
        """Launches that nothing separates which closes a segment have the same number."""
        for record in wire.records(batch):
            if record.kind not in QUIET and record.kind is not Kind.LAUNCH:
                self._run += 1
            if record.kind in (Kind.LAUNCH, Kind.GRAPH_LAUNCH):
                self.runs[record.sequence] = self._run


def logged(lines: Iterable[dict[str, Any]], followed: Followed) -> list[Logged]:
    """The log of a bare run of the program, or of the run that was recorded: its launches and what was copied to a GPU.
    Launches that are not those of the trace, in its order, are an error."""
    found: list[Logged] = []
    launches = iter(followed.launches)
    for line in lines:
        if "launch" in line:
            one = next(launches)
            assert one.launch is not None
            said = (line["launch"], tuple(line["grid"]), tuple(line["block"]))
            assert (one.launch.kernel.name, one.launch.grid, one.launch.block) == said
            found.append(Logged(one.sequence, one.node, one.home, followed.runs[one.sequence], said[0],
                                ranges(line["read"], line["atomic"]), ranges(line["written"], line["atomic"])))
        elif line.get("work") == "copy" and line["bytes"] and line["destination"]["memory"] == "device":
            assert line["rows"] == line["slices"] == 1
            lo = int(line["destination"]["address"], 16)
            found.append(Logged(-1, -1, 0, -len(found) - 1, "", (), ((lo, lo + line["bytes"]),)))
    assert next(launches, None) is None, "the log has fewer launches than the trace"
    return found


def ranges(*logs: Sequence[Sequence[str]]) -> Ranges:
    """Ranges of the driver's log."""
    pairs = [(int(lo, 16), int(hi, 16)) for log in logs for lo, hi in log]
    return tuple((lo, hi) for lo, hi in union(pairs).tolist())


def until(log: Sequence[Logged], launches: int) -> Sequence[Logged]:
    """The part of a log with so many launches, the last of them at its end."""
    places = [place for place, one in enumerate(log) if one.kernel]
    return log[:places[launches - 1] + 1]
