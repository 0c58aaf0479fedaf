"""Vector clocks of a generated program: what has happened before what, by the rules of streams alone.

Every stream counts its operations. A clock says of each stream how many are done for sure: for an operation those
before it, for the host those that it knows to be over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tests.generated.kernels import Addresses, Touch
from tests.generated.memory import Part, Space

MOST = 128
"""Streams of one program."""


def nothing() -> Addresses:
    return np.zeros(MOST, np.int64)


class Touched(NamedTuple):
    """The physical bytes of an operation."""

    reads: Sequence[Part]
    writes: Sequence[Part]
    adds: Sequence[Part]


def touched(space: Space, touch: Touch) -> Touched:
    """Raises :class:`tests.generated.memory.Unmapped`."""
    return Touched(space.resolve(np.concatenate([touch.reads, touch.own])),
                   space.resolve(np.concatenate([touch.writes, touch.own])), space.resolve(touch.adds))


@dataclass(eq=False)
class Stream:
    """``clock``: what anything queued now comes behind; ``worked``: what the last operation did, it included. Waits
    for events alone do not hold other streams up by the rules of default streams, as far as anybody may rely on it."""

    number: int
    handle: int
    thread: int = 7
    blocking: bool = True
    legacy: bool = False
    clock: Addresses = field(default_factory=nothing)
    worked: Addresses = field(default_factory=nothing)
    alive: bool = True


@dataclass(eq=False)
class Event:
    """``clock``: None before it is recorded for the first time."""

    handle: int
    clock: Addresses | None = None


class Clocks:
    """``unordered``: atomic additions of several streams need no order, as none shows."""

    def __init__(self, unordered: bool) -> None:
        self.host = nothing()
        self.streams: list[Stream] = []
        self.unordered = unordered

    def stream(self, handle: int, thread: int = 7, blocking: bool = True) -> Stream:
        made = Stream(len(self.streams), handle, thread, blocking, handle == 1)
        self.streams.append(made)
        return made

    def start(self, stream: Stream, work: bool = True) -> Addresses:
        """What something queued now comes behind; ``work``: it counts for the rules of default streams."""
        clock = np.maximum(stream.clock, self.host)
        if work and (stream.legacy or stream.blocking):
            for other in self.streams:
                if other.legacy or (stream.legacy and other.blocking):
                    clock = np.maximum(clock, other.worked)
        return clock

    def missing(self, clock: Addresses, what: Touched) -> dict[int, int]:
        """Streams, and their operations that something with this clock must come behind and does not."""
        found: dict[int, int] = {}

        def note(numbers: Addresses, counts: Addresses) -> None:
            late = counts > clock[numbers]
            for number, count in zip(numbers[late].tolist(), counts[late].tolist(), strict=True):
                found[number] = max(found.get(number, 0), count)

        for kind, parts in enumerate(what):
            for physical, offsets in parts:
                note(physical.writer[offsets], physical.written[offsets])
                others = [physical.readers] if kind else []
                if kind != 2 or not self.unordered:
                    others.append(physical.adders)
                for number, counts in [pair for other in others for pair in other.items()]:
                    note(np.full(len(offsets), number), counts[offsets])
        return found

    def queue(self, stream: Stream, what: Touched, work: bool = True) -> None:
        """An operation is given to a stream."""
        clock = self.start(stream, work)
        assert not self.missing(clock, what), "a race"
        clock[stream.number] += 1
        count = clock[stream.number]
        for physical, offsets in what.reads:
            physical.readers.setdefault(stream.number, np.zeros(physical.size, np.int64))[offsets] = count
        for physical, offsets in what.adds:
            physical.adders.setdefault(stream.number, np.zeros(physical.size, np.int64))[offsets] = count
        for physical, offsets in what.writes:
            physical.writer[offsets] = stream.number
            physical.written[offsets] = count
        stream.clock = clock
        if work:
            stream.worked = clock

    def record(self, stream: Stream, event: Event) -> None:
        event.clock = np.maximum(stream.clock, self.host)

    def wait(self, stream: Stream, event: Event) -> None:
        if event.clock is not None:
            stream.clock = np.maximum(stream.clock, event.clock)

    def waited(self, clock: Addresses) -> None:
        """The host knows it to be over."""
        self.host = np.maximum(self.host, clock)
