"""Work takes its place: at home, where it makes bytes stale elsewhere, or in a segment that is sent away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from orchestrator.session.contents import Contents
from orchestrator.session.directory import Directory
from orchestrator.session.events import Rested
from orchestrator.session.jobs import Decision, Job, Placed, Rest
from orchestrator.session.journal import Journal
from orchestrator.session.launches import Prepared
from orchestrator.session.memory import Memory
from orchestrator.session.operations import Effect, Operation, StreamKey, What
from orchestrator.session.placement import Placement
from orchestrator.session.segments import WRITES, Gpu, Segment, carried, decide, written
from orchestrator.session.step_classes import Past, StepClasses
from orchestrator.session.steps import LaunchKey
from orchestrator.session.streams import Streams
from orchestrator.session.tally import Tally


class Settings(NamedTuple):
    """``home``: the number in the fleet of the program's device 0; its device o is GPU ``(o + home) % len(gpus)``.
    ``promised``: the user says that opaque kernels touch only allocations whose addresses are in their parameters."""

    gpus: tuple[Gpu, ...]
    home: int = 0
    promised: bool = False


class Where(NamedTuple):
    """GPUs other than home that a launch is for, and whether it runs at home as well."""

    others: tuple[int, ...]
    mirrored: bool


class Placing:
    """Of one program. ``operations`` is called with every operation in order; ``decisions`` grows. ``number``: of the
    next segment; ``waits``: how often the program has waited."""

    def __init__(self, settings: Settings, placement: Placement, memory: Memory, contents: Contents,
                 directory: Directory, runs_on: Callable[[int, int], bool],
                 operations: Callable[[Operation], None] | None, journal: Journal) -> None:
        self._settings, self._placement = settings, placement
        self._memory, self._contents, self._directory = memory, contents, directory
        self._runs_on, self._operations, self._journal = runs_on, operations, journal
        self.streams = Streams()
        self.tally = Tally()
        self.classes = StepClasses()
        self.decisions: list[Decision] = []
        self._segment: Segment | None = None
        self._graph: int | None = None
        self._rest: list[int] = []
        self._apart = False
        self.number = self.waits = 0
        self._off = False

    @property
    def open(self) -> tuple[Placed, ...]:
        """The launches of the segment that is not closed yet."""
        return tuple(self._segment.placed) if self._segment else ()

    def given(self) -> list[Decision]:
        """What was decided since this was asked before."""
        given, self.decisions = self.decisions, []
        return given

    def work(self, operation: Operation) -> None:
        """Something that is no launch: it runs where the program put it."""
        self.close()
        if self._operations is not None:
            self._operations(operation)
        self.tally.worked(operation)
        self._classed(operation.effects)
        self._written_at_home(operation.effects)
        self._stays(operation.node)

    def skip(self, operation: Operation) -> None:
        """A node of a graph that is switched off. Others come behind it all the same."""
        if self._operations is not None:
            self._operations(operation)

    def where(self, launch: LaunchKey, key: StreamKey, context: int) -> Where:
        """The next launch's place: in a stream, to run in a context, as nodes of graphs may have one of their own."""
        home = self.home(context)
        devices = self._placement.devices(launch, home)
        others = tuple([device for device in devices if device != home])
        if self._off or home != self.home(key.context):
            others = ()
        return Where(others, home in devices)

    def matters(self, where: Where, prepared: Prepared) -> bool:
        """Whether anything depends on which bytes exactly a launch touches."""
        if where.others or self._operations is not None:
            return True
        return any(self._contents.within(lo, hi) or self._directory.holds(lo, hi) for lo, hi in written((prepared,)))

    def launch(self, sequence: int, node: int, key: StreamKey, context: int, prepared: Prepared, where: Where,
               after: tuple[int, ...] = ()) -> None:
        """A kernel is launched."""
        launch = prepared.launch
        home = self.home(context)
        self.tally.launched(prepared)
        if node < 0:
            self.classes.launched(sequence, prepared.text, (prepared.key,))
        self._classed(prepared.effects)
        if self._operations is not None:
            self._operations(Operation(sequence, node, What.LAUNCH, key, home, prepared.effects, prepared.opaque,
                                       launch, after))
        if where.others:
            self._sent(sequence, node, key, prepared, home, where.others, where.mirrored)
            return
        self.close()
        self.streams.queued(key, sequence)
        self.tally.home += 1
        self._written_at_home(prepared.effects)
        self._stays(node)

    def home(self, context: int) -> int:
        """The GPU of a context, as the fleet numbers it."""
        return (self._memory.device_of(context) + self._settings.home) % len(self._settings.gpus)

    def _sent(self, sequence: int, node: int, key: StreamKey, prepared: Prepared, home: int, others: tuple[int, ...],
              mirrored: bool) -> None:
        segment = self._segment
        if segment is None or (segment.stream, segment.devices, segment.mirrored) != (key, others, mirrored):
            self.close()
            waits = tuple(other for other in self.streams.active if other != key)
            self._segment = segment = Segment(key, home, others, mirrored, waits)
        self.streams.queued(key, sequence)
        segment.add(sequence, node, prepared)
        if self._journal.on:
            self._journal.launched(node, prepared.launch)
        for lo, hi in written((prepared,)):
            self._contents.forget(lo, hi)  # at once: launches of the same segment come behind it

    def close(self) -> None:
        """Nothing more is a part of the open segment."""
        segment, self._segment = self._segment, None
        if segment is None:
            return
        devices = segment.devices if segment.mirrored else segment.devices[:1]
        found = [decide(self.number + i, segment, device, self._settings.gpus, self._directory, self._memory,
                        self._contents, self._runs_on) for i, device in enumerate(devices)]
        self.number += len(found)
        jobs = [one for one in found if isinstance(one, Job)]
        if segment.mirrored and jobs:
            found[found.index(jobs[-1])] = jobs[-1] = jobs[-1]._replace(runs_home=True)
        self._flush()
        if self._journal.on:
            self._journal.decided(found)
        self.decisions += found
        self.tally.decided(found)
        reached = [job.device for job in jobs]
        for lo, hi in written(segment.prepared):
            self._directory.stale(lo, hi, reached)
        for job in jobs:
            carried(job, segment, self._directory, self._memory)

    def failed(self, sequence: int) -> None:
        """The driver has refused what a record says: nothing was done."""
        self._journal.spoil()
        segment = self._segment
        if segment is not None and segment.remove(sequence) and not segment.placed:
            self._segment = None

    def step_over(self) -> None:
        """The program has waited for its GPUs, or ended."""
        self.close()
        self._placement.step_over(self.classes.over())
        self._off = False
        self.waits += 1

    def repeat(self, past: Past | None) -> None:
        """The program has waited, behind a step like one that is over."""
        self._placement.step_over(self.classes.repeat(past))
        self.waits += 1

    def lost(self) -> None:
        """Records are missing: nothing is placed before the next step, and nothing valid elsewhere."""
        self.close()
        self.tally.gaps += 1
        self._directory.withdraw()
        self._contents.clear()
        self.streams.doubt()
        self._off = True

    # graphs that are taken apart

    def graph(self, sequence: int, text: bytes, keys: Sequence[LaunchKey]) -> None:
        """The nodes of a graph launch come next, whose kernels are ``keys``; ``text``: what it is in its step."""
        self.close()
        self.classes.launched(sequence, text, keys)
        self._graph, self._apart = sequence, False

    def graph_over(self) -> None:
        """These were all its nodes. If none is sent away the graph is launched as it is, and nothing said about it."""
        self.close()
        if self._apart:
            self._flush()
        self._graph = None
        self._rest.clear()

    def _stays(self, node: int) -> None:
        if self._graph is not None:
            self._rest.append(node)

    def _flush(self) -> None:
        """What stays at home of a graph, up to here."""
        if self._graph is not None:
            self._apart = True
            if self._rest:
                rest = Rest(self._graph, tuple(self._rest))
                if self._journal.on:
                    self._journal.note(Rested(self._journal.place, rest.nodes))
                self.decisions.append(rest)
                self._rest.clear()

    def _classed(self, effects: Iterable[Effect]) -> None:
        """The step class of what is going on learns what is read and written."""
        for effect in effects:
            if effect.kind != "MUSTW":
                self.classes.reads(effect.lo, effect.hi)
            if effect.kind != "R":
                self.classes.written(effect.lo, effect.hi)

    def _written_at_home(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if effect.kind in WRITES:
                self._directory.stale(effect.lo, effect.hi)
                self._contents.forget(effect.lo, effect.hi)

