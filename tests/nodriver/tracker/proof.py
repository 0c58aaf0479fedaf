"""A program placed by a tracker, and the same program on one GPU: whether anybody sees other bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from orchestrator.session.code import Code
from orchestrator.session.jobs import Decision, Job, Placed, Refused
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.step_classes import StepClass
from orchestrator.session.steps import LaunchKey
from orchestrator.session.tracker import Tracker
from shim.wire import records
from tessera.reasons import Reason
from tests.shadow import Outcome, Shadow
from tests.shadow.script import Given

CODE = Code()
ROOM = 1 << 40


class Way(NamedTuple):
    """How a program is placed. ``rooms``: bytes for replicas, by GPU. ``order``: seed of the delays."""

    rooms: tuple[int, ...]
    placement: Callable[[], Placement]
    order: int | None = None
    home: int = 0
    promised: bool = False
    capability: int = 0


@dataclass
class Run:
    """What came of it. ``sent`` and ``mirrored`` count launches of jobs, ``refused`` segments; ``known``: steps that
    were taken as a whole; ``mirrors``: the numbers of mirrored jobs."""

    outcome: Outcome
    jobs: int = 0
    sent: int = 0
    mirrored: int = 0
    evicted: int = 0
    known: int = 0
    mirrors: set[int] = field(default_factory=set)
    refused: Counter[Reason] = field(default_factory=Counter)

    def seen(self) -> Counter[str]:
        """All that, counted."""
        found = Counter(jobs=self.jobs, sent=self.sent, mirrored=self.mirrored, evicted=self.evicted, known=self.known,
                        mismatches=len(self.outcome.mismatches), voided=len(self.outcome.voided))
        return found + Counter({reason.value: count for reason, count in self.refused.items()})


class Listed:
    """A placement for tests: what each launch gets, in order; those that are not in the list stay."""

    ambiguous = 0

    def __init__(self, devices: Iterable[tuple[int, ...]]) -> None:
        self._left = iter([*devices])

    def token(self) -> None:
        return None

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        return next(self._left, ())

    def step_over(self, step: StepClass | None) -> None:
        pass


class _Witness:
    """A tracker whose decisions are counted. ``told``: what it is given instead of some records."""

    def __init__(self, tracker: Any, told: Mapping[int, bytes], run: Run) -> None:
        self._tracker, self._told, self._run = tracker, told, run
        self.withdraw = tracker.withdraw

    @property
    def open(self) -> Sequence[Placed]:
        return self._tracker.open  # type: ignore[no-any-return]

    def take(self, data: bytes) -> list[Decision]:
        if self._told:
            (record,) = records(data)
            data = self._told.get(record.sequence, data)
        return self._counted(self._tracker.take(data))

    def finish(self) -> list[Decision]:
        return self._counted(self._tracker.finish())

    def _counted(self, decisions: list[Decision]) -> list[Decision]:
        run = self._run
        for one in decisions:
            if isinstance(one, Job):
                run.jobs += 1
                run.sent += 0 if one.mirrored else len(one.launches)
                run.mirrored += len(one.launches) if one.mirrored else 0
                run.evicted += len(one.evicted)
                run.mirrors |= {one.number} if one.mirrored else set()
            elif isinstance(one, Refused):
                run.refused[one.reason] += 1
        return decisions


def bare(program: Iterable[Given], way: Way) -> Outcome:
    """All of it at home, in the order of the records."""
    return Shadow(len(way.rooms), None, way.home).run(program, None)


def placed(program: Iterable[Given], way: Way, told: Mapping[int, bytes] = {}, tracker: Any = Tracker) -> Run:
    """As a tracker decides; ``tracker``: its class."""
    run = Run(Outcome())
    gpus = tuple([Gpu(room, way.capability) for room in way.rooms])
    made = tracker(Settings(gpus, way.home, way.promised), way.placement(), CODE)
    run.outcome = Shadow(len(gpus), way.order, way.home).run(program, _Witness(made, told, run))
    run.known = made._steps.recognised
    return run


def overfull(run: Run, way: Way) -> list[str]:
    """GPUs with more replicas than they have room for."""
    most = run.outcome.replicas
    return [f"GPU {gpu} has {most[gpu]} bytes of replicas, and room for {room}" for gpu, room in enumerate(way.rooms)
            if most[gpu] > room]
