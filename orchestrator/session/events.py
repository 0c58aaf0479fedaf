"""What happens while a step goes by that is known: what cannot be done in one piece at its end.

An event belongs to a record of the step, by its place from 0. It happens when that record is there, behind the events
before it; one that says False has found that the step goes on otherwise than the one that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from orchestrator.session.graphs import Graphs
from orchestrator.session.intervals import Intervals
from orchestrator.session.jobs import Decision, Job, Placed, Refused, Rest, relied
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
_PARAMETERS = Launch._fields.index("parameters")
_LAUNCHES, _ASSUMED = Job._fields.index("launches"), Job._fields.index("assumed")
_new = tuple.__new__  # of which there are many: the tuples' own functions check their lengths


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
    ``open``: the launches of the segment that is not closed; ``made``: decisions. ``raw``: the bytes that came just
    now; what is at some offset of the step is at ``shift`` more of these."""

    session: Session
    first: int
    number: int
    open: list[Placed]
    made: list[Decision]
    raw: bytes
    shift: int

    def record(self, place: int) -> Record:
        """The record, if it came just now."""

    def save(self) -> None:
        """Known contents will be changed."""

    def change(self, record: Record) -> None:
        """A node of a graph is changed."""


class Event(Protocol):
    place: int

    def happens(self, now: Moment) -> bool: ...


@dataclass(eq=False, slots=True)
class Written:
    """Bytes are written, or may be, since the event before."""

    place: int
    ranges: Intervals
    nothing: int = -1
    """The ``places`` of contents with which nothing lies there."""

    def happens(self, now: Moment) -> bool:
        contents = now.session.contents
        if contents.places != self.nothing:
            touched = contents.touched(self.ranges)
            if touched:
                now.save()
            for lo, hi in touched:
                contents.forget(lo, hi)
            self.nothing = contents.places
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
        at = now.shift + self.offset + _OF_AT
        lo, hi = now.session.contents.range_of(int.from_bytes(now.raw[at:at + 8], "little"))
        return lo >= hi


@dataclass(eq=False, slots=True)
class Sent:
    """A piece of contents."""

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
        at = now.shift + self.offset
        address = int.from_bytes(now.raw[at:at + 8], "little")
        return address == self.address or now.session.memory.find(address + self.beyond) is None


@dataclass(eq=False, slots=True)
class Changed:
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


class Launched:
    """A launch becomes part of a segment. ``offset``: where its parameters stand in the step if they may change, -1 if
    they may not; ``exec``: of a node."""

    __slots__ = ("_before", "_behind", "_launch", "_parameters", "exec", "node", "offset", "place")

    def __init__(self, place: int, node: int, launch: Launch, exec_: int = 0) -> None:
        self.place, self.node, self.offset, self.exec = place, node, -1, exec_
        self._launch, self._parameters = launch, launch.parameters
        self._before, self._behind = launch[:_PARAMETERS], launch[_PARAMETERS + 1:]

    def happens(self, now: Moment) -> bool:
        launch, parameters = self._launch, self._parameters
        if self.node >= 0:
            graph = now.session.graphs.find(self.exec)
            assert graph is not None, "it was looked at as it was launched"
            parameters = bytes(tails.launch_parameters(graph.nodes[self.node]))
        elif self.offset >= 0:
            at = now.shift + self.offset
            parameters = now.raw[at:at + len(parameters)]
        if parameters != self._parameters:
            launch = _new(Launch, (*self._before, parameters, *self._behind))
        now.open.append(_new(Placed, (now.first + self.place, self.node, launch)))
        return True


class Decided:
    """The segment is closed: what becomes of it."""

    __slots__ = ("_found", "_nothing", "_relied", "place")

    def __init__(self, place: int, found: Sequence[Job | Refused]) -> None:
        self.place = place
        self._found = [(one, one[1:_LAUNCHES], one[_LAUNCHES + 1:_ASSUMED], one[_ASSUMED + 1:]) for one in found]
        self._relied = relied(found[0].launches)
        self._nothing = -1  # the ``places`` of contents with which nothing is known of what is gathered

    def happens(self, now: Moment) -> bool:
        launches = tuple(now.open)
        now.open.clear()
        contents = now.session.contents
        known = contents.places != self._nothing
        some = False
        for one, first, second, third in self._found:
            made: Job | Refused
            if isinstance(one, Job):
                assumed = contents.assumed(one.gather, self._relied) if known else ()
                some |= bool(assumed)
                made = _new(Job, (now.number, *first, launches, *second, assumed, *third))
            else:
                made = one._replace(number=now.number, launches=launches)
            now.made.append(made)
            now.number += 1
        if not some:
            self._nothing = contents.places
        return True


@dataclass(eq=False, slots=True)
class Rested:
    """Nodes of a graph run at home."""

    place: int
    nodes: tuple[int, ...]

    def happens(self, now: Moment) -> bool:
        now.made.append(Rest(now.first + self.place, self.nodes))
        return True
