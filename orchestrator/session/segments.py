"""From a segment, what is valid where, and the memory there is, to a job: or why there is none.

:func:`decide` changes nothing; :func:`carried` then tells the directory what a job has made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.session.contents import Contents
from orchestrator.session.directory import Directory, Held
from orchestrator.session.intervals import Intervals
from orchestrator.session.jobs import Job, Placed, Refused, Replica, Span, relied
from orchestrator.session.launches import Prepared
from orchestrator.session.memory import NOWHERE, Allocation, Memory
from orchestrator.session.operations import StreamKey
from shim.layout import lib
from tessera.reasons import Reason


class Gpu(NamedTuple):
    """A GPU of the fleet: bytes of memory for replicas; its compute capability, 80 for 8.0, or 0 if any kernel runs."""

    memory: int
    capability: int = 0


WRITES = frozenset({"MAYW", "MUSTW", "A"})


@dataclass(eq=False)
class Segment:
    """Launches of one stream for the same GPUs: ``devices`` other than ``home``. ``waits``: the streams that had work
    when it began."""

    stream: StreamKey
    home: int
    devices: tuple[int, ...]
    mirrored: bool
    waits: tuple[StreamKey, ...]
    placed: list[Placed] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)

    def add(self, sequence: int, node: int, prepared: Prepared) -> None:
        self.placed.append(Placed(sequence, node, prepared.launch))
        self.prepared.append(prepared)

    def remove(self, sequence: int) -> bool:
        """A launch was not made; whether it was in here."""
        kept = [i for i, one in enumerate(self.placed) if one.sequence != sequence]
        changed = len(kept) < len(self.placed)
        self.placed, self.prepared = [self.placed[i] for i in kept], [self.prepared[i] for i in kept]
        return changed


class _Refusal(Exception):
    def __init__(self, reason: Reason, kernel: str) -> None:
        self.reason, self.kernel = reason, kernel


@dataclass(eq=False)
class _Needs:
    """By allocation: what must be gathered, and what is written."""

    gather: dict[int, Intervals] = field(default_factory=dict)
    written: dict[int, Intervals] = field(default_factory=dict)
    touched: dict[int, Allocation] = field(default_factory=dict)


def decide(number: int, segment: Segment, device: int, gpus: Sequence[Gpu], directory: Directory, memory: Memory,
           contents: Contents, runs_on: Callable[[int, int], bool]) -> Job | Refused:
    """The job of a segment for one of its GPUs, without ``runs_home``. ``runs_on``: whether a module has an image for a
    compute capability."""
    try:
        _check(segment, device, gpus, runs_on)
        needs = _needs(segment, device, directory, memory)
        wanted = {held.number: _held(held) for held in needs.touched.values()}
        evicted = directory.make_room(device, wanted)
        if evicted is None:
            raise _Refusal(Reason.FULL_DEVICE, segment.placed[0].launch.kernel.name)
    except _Refusal as refusal:
        return Refused(number, device, segment.home, segment.stream, tuple(segment.placed), segment.mirrored,
                       refusal.reason, refusal.kernel)
    gather = _spans(needs.gather, needs.touched)
    return Job(
        number=number, device=device, home=segment.home, stream=segment.stream, launches=tuple(segment.placed),
        mirrored=segment.mirrored, runs_home=False, waits=segment.waits,
        holds=not segment.mirrored,
        replicas=tuple(_replica(held) for _, held in sorted(needs.touched.items())),
        evicted=evicted, gather=gather, assumed=contents.assumed(gather, relied(segment.placed)),
        apply=() if segment.mirrored else _spans(needs.written, needs.touched))


def carried(job: Job, segment: Segment, directory: Directory, memory: Memory) -> None:
    """What is valid on the job's GPU behind it. What was written at other places is not for this to say."""
    found = {one.allocation: memory.number(one.allocation) for one in job.replicas}
    directory.hold(job.device, job.evicted, {number: _held(one) for number, one in found.items() if one is not None})
    valid = directory.valid[job.device]
    for span in job.gather:
        valid.add(span.address, span.address + span.bytes)
    for lo, hi in written(segment.prepared):
        valid.add(lo, hi)


def written(prepared: Iterable[Prepared]) -> Iterable[tuple[int, int]]:
    """The bytes that launches may write."""
    for one in prepared:
        for effect in one.effects:
            if effect.kind in WRITES:
                yield effect.lo, effect.hi


def _check(segment: Segment, device: int, gpus: Sequence[Gpu], runs_on: Callable[[int, int], bool]) -> None:
    for one in segment.prepared:
        launch = one.launch
        program, name = launch.kernel.program, launch.kernel.name
        if not 0 <= device < len(gpus):
            raise _Refusal(Reason.UNKNOWN_DEVICE, name)
        if one.opaque is not None or program is None:
            raise _Refusal(one.opaque or Reason.UNKNOWN_KERNEL, name)
        if launch.pins:
            raise _Refusal(launch.pins[0], name)
        capability = gpus[device].capability
        if capability and not runs_on(launch.kernel.module, capability):
            raise _Refusal(Reason.NO_IMAGE, name)
        if segment.mirrored:
            if not program.deterministic:
                raise _Refusal(Reason.NOT_DETERMINISTIC, name)
            if not program.device_invariant:
                raise _Refusal(Reason.DEVICE_VARIANT, name)
        elif launch.unbounded:
            raise _Refusal(Reason.UNBOUNDED_WRITE, name)


def _needs(segment: Segment, device: int, directory: Directory, memory: Memory) -> _Needs:
    needs, valid = _Needs(), directory.valid[device]
    made = Intervals()  # what launches of the segment surely have written before
    for one in segment.prepared:
        for effect in one.effects:
            if effect.lo >= effect.hi:
                continue
            held = memory.find(effect.lo)
            name = one.launch.kernel.name
            if held is None or effect.hi > held.end:
                raise _Refusal(Reason.UNKNOWN_BASE, name)
            if held.kind == lib.WIRE_VARIABLE and held.module != one.launch.kernel.module:
                raise _Refusal(Reason.FOREIGN_VARIABLE, name)
            needs.touched[held.number] = held
            if effect.kind != "MUSTW":
                missing = [part for lo, hi in valid.missing(effect.lo, effect.hi) for part in made.missing(lo, hi)]
                if missing and effect.lo >= NOWHERE:
                    raise _Refusal(Reason.UNKNOWN_ADDRESS, name)
                gather = needs.gather.setdefault(held.number, Intervals())
                for lo, hi in missing:
                    gather.add(lo, hi)
            if effect.kind in WRITES:
                if effect.lo >= NOWHERE and not segment.mirrored:
                    raise _Refusal(Reason.UNKNOWN_ADDRESS, name)
                needs.written.setdefault(held.number, Intervals()).add(effect.lo, effect.hi)
        for effect in one.effects:
            if effect.kind == "MUSTW":
                made.add(effect.lo, effect.hi)
    return needs


def _spans(ranges: dict[int, Intervals], touched: dict[int, Allocation]) -> tuple[Span, ...]:
    return tuple(Span(lo, number, lo - touched[number].address, hi - lo)
                 for number in sorted(ranges) for lo, hi in ranges[number])


def _replica(held: Allocation) -> Replica:
    if held.kind == lib.WIRE_VARIABLE:
        return Replica(held.number, held.bytes, held.variable, held.module)
    mapped = [(lo - held.address, hi - held.address) for lo, hi in sorted(held.regions.items())]
    return Replica(held.number, held.bytes, mapped=tuple(mapped))


def _held(one: Allocation) -> Held:
    """Variables take no memory for replicas: they are in the GPU's copy of the module."""
    taken = 0 if one.kind == lib.WIRE_VARIABLE else sum(m.bytes for m in one.mappings.values()) or one.bytes
    return Held(one.address, one.end, taken)
