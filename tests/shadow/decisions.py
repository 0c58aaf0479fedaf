"""Decisions of the tracker, queued to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.session.jobs import Decision, Job, Placed, Refused, Rest
from tests.shadow.errors import Fault
from tests.shadow.modules import Copy
from tests.shadow.outcome import Outcome
from tests.shadow.space import Space
from tests.shadow.streams import Hold, Stream, Streams
from tests.shadow.workers import Sending, Worker

Name = tuple[int, int]
"""A launch: sequence of its record, position of the node or -1."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """Work that the program has asked for. ``queue`` puts it into its stream, ``run`` does it now; ``copy`` is the
    module of a launch. ``idle``: it does nothing, so that no decision has to name it."""

    stream: Stream
    home: int
    queue: Callable[[], None]
    run: Callable[[], None] | None = None
    copy: Copy | None = None
    idle: bool = False


class Decisions:
    """``worker(d)`` is GPU d. ``modules`` learns the tracker's numbers."""

    def __init__(self, space: Space, streams: Streams, outcome: Outcome, worker: Callable[[int], Worker],
                 modules: dict[int, Copy]) -> None:
        self._space, self._streams, self._outcome = space, streams, outcome
        self._worker, self._modules = worker, modules
        self._wanted: dict[Name, Wanted] = {}
        self._settled: set[Name] = set()

    def want(self, name: Name, wanted: Wanted) -> None:
        """What a decision may name from now on."""
        self._wanted[name] = wanted

    def home(self, name: Name) -> None:
        """It is in no decision."""
        self._settle(name).queue()

    @property
    def waiting(self) -> list[Name]:
        """What nobody has decided on, in order."""
        return sorted(self._wanted)

    def forget(self, sequence: int) -> list[Name]:
        """The nodes of a graph launch that no decision has named, and that do something; all are forgotten."""
        left = {name: self._wanted.pop(name) for name in self.waiting if name[0] == sequence}
        return [name for name, wanted in left.items() if not wanted.idle]

    def take(self, decisions: Sequence[Decision], open_: Iterable[Placed]) -> set[int]:
        """Queue them. A launch that was waiting and is neither decided nor open any more is queued at home where it
        belongs among them. Gives the sequences of graph launches that they take apart."""
        still = {(placed.sequence, placed.node) for placed in open_}
        named = {name for decision in decisions for name in _names(decision)}
        left = [name for name in self.waiting if name[1] < 0 and name not in still and name not in named]
        at = 0
        while at < len(decisions):
            group = [decisions[at]]
            names = _names(group[0])
            while at + len(group) < len(decisions) and _names(decisions[at + len(group)]) == names:
                group.append(decisions[at + len(group)])
            at += len(group)
            while left and names and left[0] < names[0]:
                self.home(left.pop(0))
            self._decide(group, names)
        for name in left:
            self.home(name)
        return {sequence for sequence, node in named if node >= 0}

    def _decide(self, group: list[Decision], names: list[Name]) -> None:
        """Decisions on the same launches: one, or several that mirror them."""
        if names and all(name in self._settled for name in names):
            self._outcome.voided += [decision.number for decision in group if not isinstance(decision, Rest)]
            return
        wanted = [self._settle(name) for name in names]
        jobs = [decision for decision in group if isinstance(decision, Job)]
        if len(group) > 1 and not all(isinstance(d, Job | Refused) and d.mirrored for d in group):
            raise Fault(f"launches {names} are decided on more than once")
        for decision in group:
            if not isinstance(decision, Rest):
                self._check(decision, wanted)
        for job in jobs:
            self._send(job, wanted)
            if job.runs_home:
                _queue(wanted)
        if not jobs:
            _queue(wanted)

    def _settle(self, name: Name) -> Wanted:
        found = self._wanted.pop(name, None)
        if found is None:
            raise Fault(f"record {name[0]}, node {name[1]} is decided on, and is no work that waits for that")
        self._settled.add(name)
        return found

    def _check(self, decision: Job | Refused, wanted: list[Wanted]) -> None:
        stream = self._streams.keyed(decision.stream)
        for placed, one in zip(decision.launches, wanted, strict=True):
            if one.stream is not stream or one.home != decision.home or one.copy is None:
                raise Fault(f"job {decision.number}: record {placed.sequence}, node {placed.node} is not a launch of "
                            f"{decision.stream} on GPU {decision.home}")
            known = self._modules.setdefault(placed.launch.kernel.module, one.copy)
            if known != one.copy:
                raise Fault(f"job {decision.number}: module {placed.launch.kernel.module} is two modules")

    def _send(self, job: Job, wanted: list[Wanted]) -> None:
        streams, stream = self._streams, self._streams.keyed(job.stream)
        sending = Sending(job, [one.copy for one in wanted if one.copy is not None])
        label = f"job {job.number}"
        streams.put(stream, f"{label}, waits", None, [streams.keyed(key).queue.last for key in job.waits])
        gathered = streams.put(stream, f"{label}, gather", lambda: self._gather(sending))
        worked = self._worker(job.device).put(sending, gathered)
        if not job.mirrored:
            applied = streams.put(stream, f"{label}, apply", lambda: self._apply(sending, wanted), [worked])
            if job.holds:
                streams.holds.append(Hold(stream, applied))

    def _gather(self, sending: Sending) -> None:
        sending.snapshot = [self._space.read(span.address, span.bytes) for span in sending.job.gather]
        self._outcome.gathered[sending.job.number] += sum(map(len, sending.snapshot))

    def _apply(self, sending: Sending, wanted: list[Wanted]) -> None:
        if sending.cancelled:
            for one in wanted:
                assert one.run is not None
                one.run()
            return
        for span, data in zip(sending.job.apply, sending.results, strict=True):
            self._space.write(span.address, data)
        self._outcome.applied[sending.job.number] += sum(map(len, sending.results))


def _queue(wanted: Iterable[Wanted]) -> None:
    for one in wanted:
        one.queue()


def _names(decision: Decision) -> list[Name]:
    if isinstance(decision, Rest):
        return [(decision.sequence, node) for node in decision.nodes]
    return [(placed.sequence, placed.node) for placed in decision.launches]
