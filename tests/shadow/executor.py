"""Runs a program from its records: at home, or as a tracker decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from orchestrator.session.jobs import Decision, Placed
from shim.wire import Kind, Record
from tessera.content import content
from tests.shadow.decisions import Decisions
from tests.shadow.engine_space import EngineSpace
from tests.shadow.errors import Fault
from tests.shadow.modules import Copy
from tests.shadow.outcome import Outcome
from tests.shadow.pages import Pages
from tests.shadow.program import Program
from tests.shadow.queues import Schedule
from tests.shadow.reference_space import ReferenceSpace
from tests.shadow.script import Given, Item, Script
from tests.shadow.space import Space
from tests.shadow.streams import Streams
from tests.shadow.workers import Worker

HOME, WORKERS = 0x4000 << 32, 0x5000 << 32
"""Where the interpreter has what programs name no addresses for."""


class Tracker(Protocol):
    """What :class:`orchestrator.session.tracker.Tracker` is for this."""

    @property
    def open(self) -> Sequence[Placed]:
        """Launches that are not decided on yet."""

    def take(self, data: bytes) -> Sequence[Decision]:
        """One record."""

    def finish(self) -> Sequence[Decision]:
        """No more records."""

    def withdraw(self, device: int) -> None:
        """Nothing on that GPU counts any more."""


class Shadow:
    """``gpus``: how many; the program's device o is GPU ``(o + home) % gpus``. ``seed``: how work of several queues is
    mixed; None: as it came. ``engine``: compiled kernels, else the reference interpreter's, which is slower, but has
    memory at any multiple of 16. ``log``: what work at home really touches."""

    def __init__(self, gpus: int, seed: int | None, home: int = 0, engine: bool = True, log: bool = False) -> None:
        self._gpus, self._seed, self._home, self._engine, self._log = gpus, seed, home, engine, log

    def run(self, records: Iterable[Given], tracker: Tracker | None) -> Outcome:
        """Run a program; without a tracker all of it at home, in the order of its records and of the seed. Raises
        ShadowError for records that are not supported. One run at a time: it has this process's memory at the program's
        addresses."""
        script = Script(records)
        run = _Run(script, self._gpus, self._home, self._seed, self._space, self._log)
        try:
            return run.all(tracker)
        finally:
            run.close()

    def _space(self, device: int | None) -> Space:
        if self._engine:
            return EngineSpace(Pages())
        return ReferenceSpace(HOME if device is None else WORKERS + (device << 40))


class _Run:
    """One run of one program."""

    def __init__(self, script: Script, gpus: int, home: int, seed: int | None, space: Callable[[int | None], Space],
                 log: bool) -> None:
        self._script, self._gpus, self._make = script, gpus, space
        self._outcome, self._schedule = Outcome(), Schedule(seed)
        self._streams = Streams(self._schedule)
        self._space = space(None)
        self._modules: dict[int, Copy] = {}
        self._workers: dict[int, Worker] = {}
        self._decisions = Decisions(self._space, self._streams, self._outcome, self._worker, self._modules)
        self._program = Program(script, self._space, self._schedule, self._streams, self._outcome,
                                lambda ordinal: (max(ordinal, 0) + home) % gpus, log)
        self._withdrawn: list[int] = []
        self._apart: set[int] = set()

    def all(self, tracker: Tracker | None) -> Outcome:
        outcome = self._outcome
        try:
            for item in self._script:
                self._item(item, None if item.lost else tracker)
                self._schedule.between()
            if tracker is not None:
                self._withdraw(tracker)
                self._take(tracker.finish(), ())
            self._schedule.drain_all()
            self._program.end()
        except Fault as fault:
            outcome.faults.append(str(fault))
        outcome.arrived.sort()
        for arrived in outcome.arrived:
            recorded = self._script.outcome(arrived.sequence) if arrived.node < 0 else None
            if recorded is not None and recorded != content(arrived.data):
                outcome.unlike.append(arrived.sequence)
        return outcome

    def close(self) -> None:
        self._space.close()
        for worker in self._workers.values():
            worker.close()

    def _item(self, item: Item, tracker: Tracker | None) -> None:
        record = item.record
        if tracker is None:
            for name in self._decisions.waiting:  # nobody will decide in time
                self._decisions.home(name)
            self._apart.clear()
        else:
            self._withdraw(tracker)
            decisions = tracker.take(item.data)
        self._program.note(record)
        graph = record.kind is Kind.GRAPH_LAUNCH
        order = self._want(record) if graph or record.kind is Kind.LAUNCH else []
        if tracker is not None:
            self._take(decisions, tracker.open)
        if order and graph and record.sequence not in self._apart:
            for name in order:
                self._decisions.home(name)
        elif order and tracker is None:
            self._decisions.home(order[0])
        self._program.do(record)

    def _want(self, record: Record) -> list[tuple[int, int]]:
        wanted, order = self._program.wanted(record)
        for name, one in wanted.items():
            self._decisions.want(name, one)
        return order

    def _take(self, decisions: Sequence[Decision], open_: Sequence[Placed]) -> None:
        """Queue decisions, and look whether all nodes of graphs that were taken apart are in them."""
        named = self._decisions.take(decisions, open_)
        still = {placed.sequence for placed in open_}
        self._apart |= named | {placed.sequence for placed in open_ if placed.node >= 0}
        for sequence in self._apart - still:
            left = [node for _, node in self._decisions.forget(sequence)]
            if left:
                raise Fault(f"record {sequence}: its graph is taken apart, and nodes {left} are in no decision")
        self._apart &= still | named

    def _withdraw(self, tracker: Tracker) -> None:
        for device in self._withdrawn:
            tracker.withdraw(device)
        self._withdrawn.clear()

    def _worker(self, device: int) -> Worker:
        if not 0 <= device < self._gpus:
            raise Fault(f"there is no GPU {device}")
        if device not in self._workers:
            self._workers[device] = Worker(device, self._make(device), self._schedule, self._outcome,
                                           self._modules, self._withdrawn.append)
        return self._workers[device]
