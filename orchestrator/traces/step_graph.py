"""From a trace to the graph of one of its steps: what ``tessera graph`` shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import closing
from typing import Any, NamedTuple, cast

from orchestrator.session.code import Code
from orchestrator.session.graph import Area, Done, step_graph
from orchestrator.session.intervals import Intervals
from orchestrator.session.operations import Operation
from orchestrator.session.order import Stamp
from orchestrator.session.placement import Home
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.stamps import Stamps
from orchestrator.session.step_classes import STEADY
from orchestrator.session.steps import ends_step
from orchestrator.session.touched import EVERYTHING
from orchestrator.session.tracker import Tracker
from orchestrator.traces.errors import TraceError
from orchestrator.traces.reader import Trace
from orchestrator.traces.records import records
from shim.wire import Kind
from shim.wire import records as decoded

CLASSES = """SELECT client, signature, times FROM step_classes
    WHERE (? IS NULL OR client = ?) AND substr(signature, 1, length(?)) = ? ORDER BY times DESC, example"""

STEPS = """SELECT id AS step, first, last FROM step WHERE client = ? AND signature = ? AND NOT EXISTS (
    SELECT 1 FROM gap WHERE gap.client = step.client AND gap.sequence BETWEEN first AND last) ORDER BY first LIMIT ?"""


class ChosenStep(NamedTuple):
    """Step ``step`` of a trace: number ``repeat``, from 1, of the ``times`` steps that the client has of its class
    ``signature``. ``first`` and ``last`` are the records of its launches."""

    client: int
    signature: str
    times: int
    step: int
    repeat: int
    first: int
    last: int


def choose_step(trace: Trace, client: int | None = None, signature: str = "") -> ChosenStep:
    """The most frequent class of steps, of a client and with a beginning of its signature if these are given; of it the
    step with which the steady state begins, or the last one before; steps in which records are missing do not count.
    Raises TraceError if there is none, or if several signatures begin like that."""
    rows = [dict(row) for row in trace.rows(CLASSES, client, client, signature, signature)]
    where = f"{trace.path}" if client is None else f"{trace.path}, client {client}"
    if not rows:
        what = f"no step whose signature begins with {signature!r}" if signature else "no steps"
        raise TraceError(f"{where}: {what}; tessera trace info and tessera trace ls step_classes show what there is")
    names = sorted({row["signature"] for row in rows})
    if signature and len(names) > 1:
        raise TraceError(f"{where}: {len(names)} signatures begin with {signature!r}: {', '.join(names[:10])}")
    chosen = rows[0]
    steps = list(trace.rows(STEPS, chosen["client"], chosen["signature"], STEADY))
    if not steps:
        raise TraceError(f"{where}: records are missing in every step of signature {chosen['signature']}")
    return ChosenStep(**chosen, **dict(steps[-1]), repeat=len(steps))


def graph_of(trace: Trace, chosen: ChosenStep) -> Any:
    """The graph of a step, as :func:`orchestrator.session.graph.step_graph` has it. Raises TraceError where the trace
    is damaged, RecordError where its records contradict each other."""
    row = trace.row("SELECT min(last) AS last FROM step WHERE client = ?", chosen.client)
    assert row is not None
    gpus = tuple([Gpu(row["memory"], row["capability"]) for row in trace.rows(
        "SELECT memory, capability FROM device WHERE client = ? ORDER BY ordinal", chosen.client)])
    collecting = _Collecting(Settings(gpus or (Gpu(0),)), chosen, row["last"])
    with closing(cast("Generator[bytes, None, None]", records(trace, chosen.client))) as batches:
        for batch in batches:
            collecting.feed(batch)
            if collecting.step is not None:
                break
    collecting.end()
    if collecting.step is None:
        raise TraceError(f"{trace.path}: the records of step {chosen.step}, from {chosen.first} on, are not all there")
    return step_graph(collecting.step, collecting.changed)


class _Collecting:
    """The operations of the step that a program is in; ``step`` once the chosen one is over. ``changed``: what was
    written since the end of the first step."""

    def __init__(self, settings: Settings, chosen: ChosenStep, first_step: int) -> None:
        self.step: list[Done] | None = None
        self.changed: Intervals | None = None
        self._chosen, self._first_step = chosen, first_step
        self._tracker = Tracker(settings, Home(), Code(), self._take)
        self._order = Stamps()
        self._stamps: dict[int, Stamp] = {}
        self._cuts: deque[tuple[int, bool]] = deque()  # records with which a step is over, and whether others are lost
        self._now: list[Done] = []
        self._seen = -1

    def feed(self, batch: bytes) -> None:
        """Whole records."""
        self._stamps.clear()
        for record in decoded(batch):
            stamp = self._order.take(record)
            if stamp is not None:
                self._stamps[record.sequence] = stamp
            lost = record.kind is Kind.EPOCH
            if lost or ends_step(record):
                self._cuts.append((record.sequence, lost))
        self._tracker.take(batch)

    def _take(self, operation: Operation) -> None:
        """The next one. A copy for which the program waits is the last of its step."""
        while self._cuts and self._cuts[0][0] < operation.sequence:
            if self._cuts.popleft()[1]:
                self._lost()
            else:
                self.end()
        if self.step is not None:
            return
        self._seen = operation.sequence
        areas = tuple([self._area(effect.lo) for effect in operation.effects])
        self._now.append(Done(operation, self._stamps.get(operation.sequence), areas))
        if self.changed is not None:
            for effect in operation.effects:
                if effect.kind != "R":
                    self.changed.add(effect.lo, effect.hi)

    def end(self) -> None:
        """The program has waited: what was collected is a step, or belongs to none if nothing was launched."""
        if self.step is None and any(done.operation.sequence == self._chosen.first for done in self._now):
            self.step = self._now
        if self.changed is None and self.step is None and self._first_step <= self._seen:
            self.changed = Intervals()
        self._now = []

    def _lost(self) -> None:
        """What was collected has a gap at its end, and anything may have been written there."""
        self._now = []
        if self.changed is not None:
            self.changed.add(0, EVERYTHING)

    def _area(self, address: int) -> Area | None:
        found = self._tracker.memory.find(address)
        if found is None:
            return None
        return Area(found.number, found.address, found.bytes, found.device, found.variable, found.pin is not None)
