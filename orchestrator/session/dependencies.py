"""Which operation has to come after which, because of the bytes that they touch.

For every byte it is known who wrote it last and who has read it since. A must-write ends what was known before. A
may-write or an atomic operation does not: whoever reads the byte then may get it from any of the writers since the last
must-write, and depends on all of them. What may touch anything reads and may-writes every byte.

The edges are complete together with the order of streams: any order of the operations that keeps both gives the same
bytes. A byte's list of readers or writers is bounded; what falls out of it is ordered by its stream before another one
in the list, or stands in it as :data:`EARLIER`. Bytes with more than one address must be in an operation's effects
under each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from orchestrator.session.intervals import Extent, IntervalMap
from orchestrator.session.operations import Effect, Operation, StreamKey, What
from orchestrator.session.touched import EVERYTHING


class Node(NamedTuple):
    """An operation: its record, and its node of a graph or -1."""

    sequence: int
    node: int = -1


EARLIER = Node(-1)
"""Stands for operations from so long ago that they are no longer told apart."""


class Dependency(StrEnum):
    """Why one operation comes after another."""

    RAW = "RAW"
    """It reads what the other wrote, or may have written."""
    WAR = "WAR"
    """It writes what the other read before."""
    WAW = "WAW"
    """It writes what the other wrote."""


class Edge(NamedTuple):
    """``target`` comes after ``source`` because of the bytes ``ranges``, in order and apart, ``bytes`` in all. They are
    those of the effects ``source_effects`` and ``target_effects`` (positions in the operations' lists); an operation
    that may touch anything has none. Between two of those, ``ranges`` has bytes that others touched, or nothing."""

    source: Node
    target: Node
    kind: Dependency
    ranges: tuple[Extent, ...]
    bytes: int
    source_effects: tuple[int, ...]
    target_effects: tuple[int, ...]


def touches_anything(operation: Operation) -> bool:
    """Whether it may touch all memory that there is."""
    return any(effect.hi >= EVERYTHING for effect in operation.effects)


class _Access(NamedTuple):
    """An operation in the list of a byte."""

    node: Node
    stream: StreamKey | None
    effects: tuple[int, ...]


class _State(NamedTuple):
    """What is known of a byte: its writers since the last must-write, which is the first of them, and its readers since
    the last of these."""

    writers: tuple[_Access, ...] = ()
    readers: tuple[_Access, ...] = ()


class _Touch(NamedTuple):
    """What an operation does to a byte, by the positions of its effects."""

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    certain: bool = False


@dataclass
class _Found:
    """An edge that grows. Ranges come in order of their addresses."""

    ranges: list[Extent] = field(default_factory=list)
    sources: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)

    def add(self, lo: int, hi: int, sources: tuple[int, ...], targets: tuple[int, ...]) -> None:
        if self.ranges and self.ranges[-1][1] == lo:
            lo = self.ranges.pop()[0]
        self.ranges.append((lo, hi))
        self.sources.update(sources)
        self.targets.update(targets)


_Edges = dict[tuple[Node, Dependency], _Found]
_UNTOUCHED = _State()
_BEFORE = _Access(EARLIER, None, ())
_OLD = _State((_BEFORE,), (_BEFORE,))
_ANYTHING = _Touch((), (), False)


class Dependencies:
    """Of one program. ``most_accesses``: writers, and readers, in the list of a byte. ``most_pieces``: ranges of bytes
    that are told apart; when there are more, those that were not touched for the longest time become :data:`EARLIER`'s,
    and so do all bytes of which nothing was known."""

    def __init__(self, most_accesses: int = 16, most_pieces: int = 1 << 14) -> None:
        self._most_accesses, self._most_pieces = most_accesses, most_pieces
        self._states: IntervalMap[_State] = IntervalMap()
        self._elsewhere = _UNTOUCHED  # the state of all bytes that are not in the map

    def take(self, operation: Operation) -> list[Edge]:
        """The next operation, in the order of records: on which earlier ones it depends, by their order."""
        node, edges = Node(operation.sequence, operation.node), _Edges()
        if touches_anything(operation):
            self._touch_all(_Access(node, operation.stream, ()), edges)
        else:
            for lo, hi, touch in _touches(operation.effects, operation.what is What.FREE):
                self._touch(lo, hi, touch, node, operation.stream, edges)
        if self._states.changes > self._most_pieces:
            self._merge_old()
        return [
            Edge(source, node, kind, tuple(found.ranges), sum(hi - lo for lo, hi in found.ranges),
                 tuple(sorted(found.sources)), tuple(sorted(found.targets)))
            for (source, kind), found in sorted(edges.items())
        ]

    def forget(self) -> None:
        """Records were lost: nothing is known of any byte."""
        self._states.clear()
        self._elsewhere = _UNTOUCHED

    @property
    def pieces(self) -> int:
        """How many ranges of bytes are told apart, those of which nothing is known included."""
        return self._states.changes

    def _touch(self, lo: int, hi: int, touch: _Touch, node: Node, stream: StreamKey, edges: _Edges) -> None:
        for start, end, state in self._states.pieces(lo, hi):
            _connect(edges, self._elsewhere if state is None else state, touch, start, end)
        self._states.update(lo, hi, lambda state: self._after(state or self._elsewhere, touch, node, stream))

    def _touch_all(self, access: _Access, edges: _Edges) -> None:
        for start, end, state in self._states:
            _connect(edges, state, _ANYTHING, start, end)
        for other in self._elsewhere.writers:
            edges.setdefault((other.node, Dependency.RAW), _Found())
            edges.setdefault((other.node, Dependency.WAW), _Found())
        for other in self._elsewhere.readers:
            edges.setdefault((other.node, Dependency.WAR), _Found())
        old, self._elsewhere = self._states, self._after_all(self._elsewhere, access)
        self._states = IntervalMap()
        for start, end, state in old:
            after = self._after_all(state, access)
            self._states.set(start, end, None if after == self._elsewhere else after)

    def _after_all(self, state: _State, access: _Access) -> _State:
        return _State(self._bounded((*state.writers, access)))

    def _after(self, state: _State, touch: _Touch, node: Node, stream: StreamKey) -> _State:
        """What is known of a byte that was touched."""
        if touch.certain:
            return _State((_Access(node, stream, touch.writes),))
        if touch.writes:
            return _State(self._bounded((*state.writers, _Access(node, stream, touch.writes))))
        return state._replace(readers=self._bounded((*state.readers, _Access(node, stream, touch.reads))))

    def _bounded(self, accesses: tuple[_Access, ...]) -> tuple[_Access, ...]:
        """A list without one of those that need not be in it, if it is too long."""
        if len(accesses) <= self._most_accesses:
            return accesses
        streams = [access.stream for access in accesses]
        for place, stream in enumerate(streams):
            if stream is not None and stream in streams[place + 1:]:
                return accesses[:place] + accesses[place + 1:]
        return (_BEFORE, *accesses[2:])

    def _merge_old(self) -> None:
        """All but an eighth of the pieces, those touched last, are given up."""
        def last(state: _State) -> Node:
            return max(access.node for access in (*state.writers, *state.readers))

        pieces = sorted(self._states, key=lambda piece: last(piece[2]))
        for lo, hi, _ in pieces[: -max(self._most_pieces // 8, 1)]:
            self._states.remove(lo, hi)
        self._elsewhere = _OLD


def _connect(edges: _Edges, state: _State, touch: _Touch, lo: int, hi: int) -> None:
    """Note the edges to whoever touches bytes in a state."""
    anything = touch is _ANYTHING
    if touch.reads or anything:
        for access in state.writers:
            edges.setdefault((access.node, Dependency.RAW), _Found()).add(lo, hi, access.effects, touch.reads)
    if touch.writes or anything:
        for access in state.writers:
            edges.setdefault((access.node, Dependency.WAW), _Found()).add(lo, hi, access.effects, touch.writes)
        for access in state.readers:
            edges.setdefault((access.node, Dependency.WAR), _Found()).add(lo, hi, access.effects, touch.writes)


@lru_cache(4096)
def _touches(effects: tuple[Effect, ...], free: bool) -> tuple[tuple[int, int, _Touch], ...]:
    """What is done to which bytes: ranges that are apart, by address."""
    found: IntervalMap[_Touch] = IntervalMap()
    for place, effect in enumerate(effects):
        reads = (place,) if effect.kind in ("R", "A") and not free else ()
        writes = (place,) if effect.kind != "R" or free else ()
        touch = _Touch(reads, writes, free or effect.kind == "MUSTW")
        found.update(effect.lo, effect.hi, lambda old, touch=touch: touch if old is None else _Touch(  # type: ignore[misc]
            old.reads + touch.reads, old.writes + touch.writes, old.certain or touch.certain))
    return tuple(found)
