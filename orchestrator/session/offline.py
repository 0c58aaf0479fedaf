"""The tracker over records that are there already, without a driver: what a placement would do, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from orchestrator.session.code import Code
from orchestrator.session.intervals import Intervals
from orchestrator.session.jobs import Decision, Job, Refused, Span
from orchestrator.session.operations import Operation, What
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Settings
from orchestrator.session.step_classes import STEADY, StepClass
from orchestrator.session.steps import LaunchKey
from orchestrator.session.tracker import Tracker
from shim.wire import Buffer
from tessera.errors import TesseraError
from tessera.reasons import Reason

Why = Counter[tuple[Reason, str]]
"""How often, by reason and kernel (empty for what is no launch)."""


@dataclass
class GpuCounts:
    """Of one GPU: launches that ran there as their home, that were sent and mirrored there; bytes that were gathered
    for it, of which ``weights`` are of weights, and that were applied from it."""

    home: int = 0
    sent: int = 0
    mirrored: int = 0
    gathered: int = 0
    weights: int = 0
    applied: int = 0


@dataclass
class Moved:
    """Bytes of an allocation's replica on a GPU that were gathered and applied. ``bytes``: of the allocation.
    ``variable``: its name, of a module's variable."""

    gpu: int
    allocation: int
    bytes: int
    variable: str
    gathered: int = 0
    weights: int = 0
    applied: int = 0


@dataclass
class StepCounts:
    """A step class: how many ``launches`` a step has, those of graphs one by one, and how often there was one.
    ``weights``: bytes that it reads and nobody writes; of classes in the steady state, and as they were at a repeat
    past the first half, since programs free them at the end. ``jobs``, ``gathered`` and ``applied`` (bytes by
    GPU) are those of its last repeat."""

    signature: str
    launches: int
    count: int = 0
    steady: bool = False
    weights: int = 0
    jobs: int = 0
    gathered: Counter[int] = field(default_factory=Counter)
    applied: Counter[int] = field(default_factory=Counter)


@dataclass
class Findings:
    """Of one client. ``trouble``: why its records could not be followed to their end; what stands here is of those
    before. ``allocations``: those with the most bytes first. ``forgotten``: step classes that are not listed."""

    records: int = 0
    gaps: int = 0
    launches: int = 0
    jobs: int = 0
    gpus: list[GpuCounts] = field(default_factory=list)
    refused: Why = field(default_factory=Counter)
    pinned: Why = field(default_factory=Counter)
    opaque: Why = field(default_factory=Counter)
    steps: list[StepCounts] = field(default_factory=list)
    forgotten: int = 0
    allocations: list[Moved] = field(default_factory=list)
    trouble: str = ""


def offline(batches: Iterable[Buffer], settings: Settings, placement: Placement, code: Code,
            decided: Callable[[Decision], None] | None = None) -> Findings:
    """Take the records of one client, whole ones in each batch; ``decided`` is called with every decision in order.
    Records that cannot be end it, and their error is the ``trouble`` of what was found."""
    return _Run(settings, placement, code, decided).all(batches)


class _Run:
    """The placement that the tracker asks stands in between, so that steps are seen."""

    ambiguous = 0

    def __init__(self, settings: Settings, placement: Placement, code: Code,
                 decided: Callable[[Decision], None] | None) -> None:
        self._placement, self._decided = placement, decided
        self._found = Findings(gpus=[GpuCounts() for _ in settings.gpus])
        self._tracker = Tracker(settings, self, code, self._operation)
        self._steps: dict[str, StepCounts] = {}
        self._before: tuple[int, Counter[int], Counter[int]] = 0, Counter(), Counter()
        self._moved: dict[tuple[int, int], Moved] = {}
        self._spans: Counter[tuple[int, Span]] = Counter()
        self._weights = Intervals()

    def all(self, batches: Iterable[Buffer]) -> Findings:
        found = self._found
        try:
            for batch in batches:
                self._take(self._tracker.take(batch))
            self._take(self._tracker.finish())
        except TesseraError as error:
            found.trouble = str(error)
        tally = self._tracker.tally
        found.records, found.gaps, found.launches = tally.records, tally.gaps, tally.launches
        self._classes()
        found.allocations = sorted(self._moved.values(), key=lambda one: (-one.gathered - one.applied, one.gpu,
                                                                          one.allocation))
        return found

    # as a placement

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        return self._placement.devices(launch, home)

    def token(self) -> None:
        """Steps are not taken as a whole where every operation is heard of."""

    def step_over(self, step: StepClass | None) -> None:
        tally, (jobs, gathered, applied) = self._tracker.tally, self._before
        self._before = tally.jobs, tally.gathered.copy(), tally.applied.copy()
        if step is not None:
            of_class = self._steps.setdefault(step.signature, StepCounts(step.signature, len(step.launches)))
            of_class.jobs = tally.jobs - jobs
            of_class.gathered, of_class.applied = tally.gathered - gathered, tally.applied - applied
            if step.count == STEADY or (step.steady and not step.count & (step.count - 1)):
                of_class.weights = self._weigh(step)
        self._placement.step_over(step)

    def _weigh(self, step: StepClass) -> int:
        weights = self._tracker.classes.weights(step.signature)
        for lo, hi in weights:
            self._weights.add(lo, hi)
        return weights.total()

    # what is done, and decided

    def _operation(self, operation: Operation) -> None:
        launch = operation.launch
        if operation.what is What.LAUNCH:
            self._found.gpus[operation.home].home += 1
        name = launch.kernel.name if launch is not None else ""
        if operation.opaque is not None:
            self._found.opaque[operation.opaque, name] += 1
        for reason in launch.pins if launch is not None else ():
            self._found.pinned[reason, name] += 1

    def _take(self, decisions: Iterable[Decision]) -> None:
        for one in decisions:
            if isinstance(one, Job):
                self._job(one)
            elif isinstance(one, Refused):
                self._found.refused[one.reason, one.kernel] += 1
            if self._decided is not None:
                self._decided(one)

    def _job(self, job: Job) -> None:
        self._found.jobs += 1
        gpu, home = self._found.gpus[job.device], self._found.gpus[job.home]
        if job.mirrored:
            gpu.mirrored += len(job.launches)
        else:
            gpu.sent += len(job.launches)
            home.home -= len(job.launches)
        for replica in job.replicas:
            self._moved.setdefault((job.device, replica.allocation),
                                   Moved(job.device, replica.allocation, replica.bytes, replica.variable))
        for span in job.gather:
            self._spans[job.device, span] += 1
            gpu.gathered += span.bytes
            self._moved[job.device, span.allocation].gathered += span.bytes
        for span in job.apply:
            gpu.applied += span.bytes
            self._moved[job.device, span.allocation].applied += span.bytes

    # at the end

    def _classes(self) -> None:
        classes = self._tracker.classes
        for known in classes:
            of_class = self._steps.get(known.signature)
            if of_class is None:
                continue  # its first step is not over for the placement, as the records could not be followed
            of_class.count, of_class.steady = known.count, known.steady
            self._found.steps.append(of_class)
        self._found.steps.sort(key=lambda step: (-step.count, step.signature))
        self._found.forgotten = classes.forgotten
        for (device, span), times in self._spans.items():
            moved = times * sum(hi - lo for lo, hi in self._weights.overlap(span.address, span.address + span.bytes))
            self._found.gpus[device].weights += moved
            self._moved[device, span.allocation].weights += moved
