"""What happens while a step goes by that is known: what cannot be done in one piece at its end.

An event belongs to a record of the step, by its place from 0. It happens when that record is there, behind the events
before it; one that says False has found that the step goes on otherwise than the one that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from orchestrator.session.graphs import Graphs
from orchestrator.session.intervals import Intervals
from orchestrator.session.jobs import Decision, Job, Placed, Refused, Rest
from orchestrator.session.memory import Memory
from orchestrator.session.operations import Known, Launch
from ptxparse.program import AccessProgram
from shim import tails
from shim.layout import ffi
from shim.tails import Node
from shim.wire import Record

if TYPE_CHECKING:
    from orchestrator.session.contents import Contents

Parts = tuple[slice, ...]
"""Of a block of parameters."""
PARAMETERS_AT: int = ffi.sizeof("struct wire_launch")
_OF_AT: int = ffi.offsetof("struct wire_outcome", "of")
_WORDS = 1 << 64


class Session(NamedTuple):
    """What events change, and ask. ``known``: what is known of the tables that a kernel may read; ``uploaded``,
    ``told``, ``sent`` take records as they are taken otherwise."""

    contents: Contents
    memory: Memory
    graphs: Graphs
    known: Callable[[AccessProgram, bytes], list[Known]]
    uploaded: Callable[[Record], None]
    told: Callable[[Record, bool], None]
    sent: Callable[[Record], None]


class Moment(Protocol):
    """The step as far as it has gone by. ``first``: the number of its first record; ``number``: of the next segment;
    ``open``: the launches of the segment that is not closed; ``made``: decisions."""

    session: Session
    first: int
    number: int
    open: list[Placed]
    made: list[Decision]

    def record(self, place: int) -> Record:
        """The record, if it came just now."""

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """Bytes of the step, if they came just now."""

    def save(self) -> None:
        """Known contents will be changed."""

    def change(self, record: Record) -> None:
        """A node of a graph is changed."""


class Event(Protocol):
    """``place`` of the record."""

    place: int

    def happens(self, now: Moment) -> bool: ...


@dataclass(eq=False, slots=True)
class Written:
    """Bytes are written, or may be, since the event before."""

    place: int
    ranges: Intervals
    nothing: int = -1
    """The version of contents of which nothing lies there."""

    def happens(self, now: Moment) -> bool:
        contents = now.session.contents
        if contents.version != self.nothing:
            touched = contents.touched(self.ranges)
            if touched:
                now.save()
            for lo, hi in touched:
                contents.forget(lo, hi)
            self.nothing = contents.version
        return True


@dataclass(eq=False, slots=True)
class Uploaded:
    """A copy puts bytes into device memory."""

    place: int

    def happens(self, now: Moment) -> bool:
        now.save()
        now.session.uploaded(now.record(self.place))
        return True


@dataclass(eq=False, slots=True)
class Told:
    """What a copy of this step has put there is told. ``gathered``: it may have been gathered already."""

    place: int
    gathered: bool

    def happens(self, now: Moment) -> bool:
        now.save()
        now.session.told(now.record(self.place), self.gathered)
        return True


@dataclass(eq=False, slots=True)
class Untold:
    """Contents are told of a record that has put nothing anywhere."""

    place: int
    offset: int

    def happens(self, now: Moment) -> bool:
        at = self.offset + _OF_AT
        lo, hi = now.session.contents.range_of(int.from_bytes(now.bytes_at(at, 8), "little"))
        return lo >= hi


@dataclass(eq=False, slots=True)
class Sent:
    """A piece of contents comes."""

    place: int

    def happens(self, now: Moment) -> bool:
        now.session.sent(now.record(self.place))
        return True


@dataclass(eq=False, slots=True)
class Tables:
    """A kernel is launched that reads tables: ``known`` is what its ranges follow from."""

    place: int
    program: AccessProgram
    parameters: bytes
    known: list[Known]
    same: int = -1
    """The version of contents of which it is."""

    def happens(self, now: Moment) -> bool:
        version = now.session.contents.version
        if version != self.same:
            if now.session.known(self.program, self.parameters) != self.known:
                return False
            self.same = version
        return True


@dataclass(eq=False, slots=True)
class Host:
    """Memory of the program that no GPU sees has a part in a copy. The address in the record stands at ``offset`` of
    the step, ``address`` was in it, and ``beyond`` bytes behind it begins what is copied."""

    place: int
    offset: int
    address: int
    beyond: int

    def happens(self, now: Moment) -> bool:
        address = int.from_bytes(now.bytes_at(self.offset, 8), "little")
        return address == self.address or now.session.memory.find(address + self.beyond) is None


@dataclass(eq=False, slots=True)
class Changed:
    """A node of a graph is changed."""

    place: int

    def happens(self, now: Moment) -> bool:
        now.change(now.record(self.place))
        return True


@dataclass(eq=False, slots=True)
class Graphed:
    """A graph is launched whose nodes are ``nodes``; what is in ``free`` of their parameters does not matter. None: it
    is not known what it does."""

    place: int
    exec: int
    nodes: list[Node] | None
    free: dict[int, Parts]

    def happens(self, now: Moment) -> bool:
        graph = now.session.graphs.find(self.exec)
        if graph is None or not graph.whole:
            return self.nodes is None
        if self.nodes is None:
            return False
        for position, (mine, its) in enumerate(zip(self.nodes, graph.nodes, strict=True)):
            if mine is not its:
                if not _alike(mine, its, self.free.get(position, ())):
                    return False
                self.nodes[position] = its
        return True


def _alike(one: Node, other: Node, free: Parts) -> bool:
    if one._replace(tail=other.tail) != other:
        return False
    return one.tail == other.tail or _without(one.tail, free) == _without(other.tail, free)


def _without(tail: memoryview, free: Parts) -> bytes:
    data = bytearray(tail)
    for part in free:
        data[part] = bytes(part.stop - part.start)
    return bytes(data)


@dataclass(eq=False, slots=True)
class Launched:
    """A launch becomes part of a segment. ``offset``: where its parameters stand in the step if they may change, -1 if
    they may not; ``exec``: of a node."""

    place: int
    node: int
    launch: Launch
    offset: int = -1
    exec: int = 0

    def happens(self, now: Moment) -> bool:
        launch = self.launch
        if self.node >= 0:
            graph = now.session.graphs.find(self.exec)
            assert graph is not None, "it was looked at as it was launched"
            launch = _with(launch, tails.launch_parameters(graph.nodes[self.node]))
        elif self.offset >= 0:
            launch = _with(launch, now.bytes_at(self.offset, len(launch.parameters)))
        now.open.append(Placed((now.first + self.place) % _WORDS, self.node, launch))
        return True


def _with(launch: Launch, parameters: memoryview) -> Launch:
    return launch if launch.parameters == parameters else launch._replace(parameters=bytes(parameters))


@dataclass(eq=False, slots=True)
class Decided:
    """The segment is closed: what becomes of it."""

    place: int
    found: tuple[Job | Refused, ...]

    def happens(self, now: Moment) -> bool:
        launches = tuple(now.open)
        now.open.clear()
        for one in self.found:
            made: Job | Refused
            if isinstance(one, Job):
                assumed = now.session.contents.assumed(one.gather)
                made = one._replace(number=now.number, launches=launches, assumed=assumed)
            else:
                made = one._replace(number=now.number, launches=launches)
            now.made.append(made)
            now.number += 1
        return True


@dataclass(eq=False, slots=True)
class Rested:
    """Nodes of a graph run at home."""

    place: int
    nodes: tuple[int, ...]

    def happens(self, now: Moment) -> bool:
        now.made.append(Rest(now.first + self.place, self.nodes))
        return True
