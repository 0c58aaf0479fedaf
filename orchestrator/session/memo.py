"""A step that is known: what its records were, and all that it does; and another step that goes by as it did."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from orchestrator.session.contents import Saved
from orchestrator.session.directory import DirectoryState
from orchestrator.session.events import PARAMETERS_AT, Event, Host, Launched, Session, Untold
from orchestrator.session.graphs import Executable
from orchestrator.session.jobs import Decision, Placed
from orchestrator.session.journal import Journal
from orchestrator.session.memory import Memory
from orchestrator.session.operations import StreamKey
from orchestrator.session.pattern import SIDES, WORD, Pattern, Words, starts
from orchestrator.session.step_classes import Past
from orchestrator.session.tally import Tally
from shim.layout import lib
from shim.tails import Node
from shim.wire import Kind, Record, walk

_EVENT_BYTES, _STATE_BYTES = 600, 100


class State:
    """What steps change that is neither said nor told: the directory, and the streams that may have work. Made once,
    and compared and looked up often."""

    __slots__ = ("_hash", "active", "directory")

    def __init__(self, directory: DirectoryState, active: tuple[StreamKey, ...]) -> None:
        self.directory, self.active = directory, active
        self._hash = hash((directory.valid, directory.used, active))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, State) and self.active == other.active and self.directory == other.directory)

    @property
    def bytes(self) -> int:
        """Of memory, roughly."""
        items = sum(map(len, self.directory.valid)) + sum(map(len, self.directory.held)) + len(self.active)
        return _STATE_BYTES * (items + 1)


class StepKey(NamedTuple):
    """What is soon known of a step that is over; its signature, empty if it launched nothing."""

    bytes: int
    records: int
    signature: str


@dataclass(eq=False)
class Memo:
    """``before`` and ``after``: the states at its ends; ``token``: of the placement when it began. ``done`` is what it
    adds to the tally, ``past`` what it is for its class; ``ambiguous`` as the placement counts."""

    key: StepKey
    pattern: Pattern
    events: list[Event]
    before: State
    after: State
    token: Hashable
    done: Tally
    past: Past | None
    ambiguous: int

    @property
    def bytes(self) -> int:
        """Of memory, roughly."""
        past = len(self.past.launches) + len(self.past.reads) if self.past else 0
        return 2 * self.pattern.bytes + _EVENT_BYTES * len(self.events) + 2 * self.before.bytes + _STATE_BYTES * past


def learned(data: bytes, journal: Journal, memory: Memory) -> tuple[Pattern, list[Event]]:
    """The pattern of a step whose bytes are ``data``, and what happens in it."""
    places = starts(data)
    pattern = Pattern(data, places)
    found: list[Event] = []
    view = memoryview(data)
    for place, (record, _) in enumerate(walk(view, 0, len(view))):
        if record.flags & lib.WIRE_CAPTURED:
            continue
        hosts = _hosts(place, places[place], record, memory) if record.kind is Kind.COPY else {}
        found += hosts.values()
        pattern.ignore(record, places[place], journal.free.get(place, ()), hosts)
    pattern.close()
    for event in journal.events:
        if isinstance(event, Launched) and event.node < 0 and journal.free.get(event.place):
            event.offset = places[event.place] + PARAMETERS_AT
        elif isinstance(event, Untold):
            event.offset = places[event.place]
    return pattern, sorted([*found, *journal.events], key=lambda event: event.place)


def _hosts(place: int, at: int, record: Record, memory: Memory) -> dict[str, Host]:
    """The sides of a copy that are in memory which no GPU sees."""
    found = {}
    for name, offset in SIDES.items():
        side = getattr(record.body, name)
        beyond = side.x + side.y * side.pitch + side.z * side.pitch * side.height
        if side.kind == lib.WIRE_SIDE_HOST and memory.find(side.address + beyond) is None:
            found[name] = Host(place, at + offset, side.address, beyond)
    return found


@dataclass(eq=False)
class Match:
    """A step that goes by as ``memo`` did so far: ``words`` of it, the last of them just now. ``first``: the number of
    its first record; ``kept``: its bytes but for those that came just now, ``given``: how many decisions these had.
    ``others`` may be tried if it goes on otherwise."""

    memo: Memo
    session: Session
    first: int
    number: int
    others: list[Memo]
    words: int = 0
    kept: list[bytes] = field(default_factory=list)
    given: int = 0
    open: list[Placed] = field(default_factory=list)
    made: list[Decision] = field(default_factory=list)
    _next: int = 0
    raw: bytes = b""
    shift: int = 0
    _saved: Saved | None = None
    _changed: list[tuple[Executable, int, Node, bool]] = field(default_factory=list)

    def follow(self, view: memoryview, at: int) -> int | None:
        """The step goes on with what stands at ``at``: how many bytes of it belong to the step, None if these are not
        what they are in the memo. Then :meth:`undo` must be called."""
        pattern = self.memo.pattern
        count = min((len(view) - at) // WORD, pattern.bytes // WORD - self.words)
        words: Words = np.frombuffer(view, np.uint64, count, at)
        if not count or not pattern.fits(words, self.words, self.first):
            return None
        place = pattern.place(self.words + count)
        if place is None:
            return None
        self.raw, self.shift = bytes(view[at:at + count * WORD]), -self.words * WORD
        events, number = self.memo.events, self._next
        while number < len(events) and events[number].place < place:
            if not events[number].happens(self):
                return None
            number += 1
        self._next = number
        self.words += count
        return count * WORD

    @property
    def whole(self) -> bool:
        return self.words * WORD == self.memo.pattern.bytes

    def given_out(self) -> list[Decision]:
        """What was decided since this was asked before."""
        made, self.made = self.made, []
        self.given += len(made)
        return made

    def undo(self) -> None:
        """Nothing of it has happened."""
        if self._saved is not None:
            self.session.contents.restore(self._saved)
        for graph, position, node, whole in reversed(self._changed):
            graph.whole = whole
            if position >= 0:
                graph.nodes[position] = node

    # for events

    def record(self, place: int) -> Record:
        at = self.shift + self.memo.pattern.starts[place]
        return next(walk(memoryview(self.raw), at, len(self.raw)))[0]

    def save(self) -> None:
        if self._saved is None:
            self._saved = self.session.contents.save()

    def change(self, record: Record) -> None:
        self._changed += self.session.graphs.changed(record)
        self.session.graphs.change(record)
