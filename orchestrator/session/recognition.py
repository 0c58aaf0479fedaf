"""Steps that are known are taken as a whole.

A step's effects follow from its records and from the state in which it begins. So a step that has been taken record by
record is kept (:class:`orchestrator.session.memo.Memo`): what its records were as far as they matter, the states
before and behind it, and what happens in between. When a step begins in such a state, its records are compared with
those that are kept; as they go by its decisions are given, and behind the last one the state is set. If they go on
otherwise, all of the step is taken back and taken record by record, without the decisions that were given already: they
are the same.

Nothing is kept across a record that changes what there is.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from orchestrator.session.directory import Directory
from orchestrator.session.events import Session
from orchestrator.session.habits import Habits, Seen
from orchestrator.session.jobs import Placed
from orchestrator.session.journal import Journal
from orchestrator.session.memo import Match, Memo, State, StepKey, learned
from orchestrator.session.memos import Memos
from orchestrator.session.pattern import WORD, starts
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Placing
from orchestrator.session.tally import Tally
from shim.layout import layout
from shim.wire import Buffer, Record, WireError, fault, span, walk

LARGEST = 4 << 20
"""Bytes of the longest step that is kept."""
MOST_RECORDS = 1 << 62
"""Numbers of records behind which no step is known, so that none begins again at 0."""
_LOOK = 512
"""Words of a step by which one of those that may come is chosen."""
_HEAD = layout("wire_head")


class Taker(Protocol):
    """Who takes records one by one. ``expected``: the number of the next one."""

    expected: int | None

    @property
    def tally(self) -> Tally: ...

    def taken(self, record: Record) -> None: ...


@dataclass(eq=False)
class _Draft:
    """A step that is to be kept, and how things were when it began."""

    expected: Seen
    state: State
    token: Hashable
    tally: Tally
    ambiguous: int
    data: list[bytes] = field(default_factory=list)
    bytes: int = 0


class Recognition:
    """Of one program."""

    def __init__(self, taker: Taker, session: Session, placing: Placing, placement: Placement, directory: Directory,
                 journal: Journal) -> None:
        self._taker, self._session, self._placing, self._placement = taker, session, placing, placement
        self._directory, self._journal = directory, journal
        self.memos = Memos()
        self._version = -1
        self._habits = Habits()
        self._state: State | None = None
        self._match: Match | None = None
        self._draft: _Draft | None = None
        self._begins = False
        self._bytes = self._records = 0
        self.recognised = 0
        """How many steps were taken as a whole."""

    @property
    def open(self) -> tuple[Placed, ...]:
        """The launches of the segment that is not closed yet."""
        return self._placing.open if self._match is None else tuple(self._match.open)

    def take(self, data: Buffer) -> None:
        """Whole records. Raises as :meth:`orchestrator.session.tracker.Tracker.take`."""
        view = memoryview(data).toreadonly().cast("B")
        at, end = 0, -1
        while at < len(view):
            if self._begins:
                self._begin(view, at)
            if self._match is not None:
                at = self._follow(view, at)
                continue
            if end < at:
                end = at + span(view[at:])
            at = self._slowly(view, at, end)
            if at == end < len(view):
                number = len(starts(bytes(view[:end])))
                raise WireError(f"record {number}, at byte {end} of {len(view)}: {fault(view[end:])}")

    def leave(self) -> None:
        """The step that goes by is to be taken record by record from here on."""
        if self._match is not None:
            self._match.others.clear()
            self._deviate(self._match)

    def disturb(self) -> None:
        """Something has changed that no step has done."""
        self._state = None
        self._journal.spoil()

    def changed(self) -> None:
        """What there is has changed, or is about to: nothing is known of steps any more."""
        self.disturb()
        self.memos.clear()

    # a step begins

    def _begin(self, view: memoryview, at: int) -> None:
        self._begins = False
        version = self._session.memory.version
        if version != self._version:  # steps may change what there is without such a record: graphs that allocate
            self.changed()
            self._version = version
        if len(view) - at < _HEAD.size:
            return
        first = _HEAD.read(view, at).sequence
        due = self._habits.due()
        if first != self._taker.expected or first > MOST_RECORDS or not (self.memos or due):
            return
        token = self._placement.token()
        if token is None:
            return
        state = self._state = self._now()
        found = self.memos.starting(state, token)
        for number, memo in enumerate(found):
            count = min((len(view) - at) // WORD, memo.pattern.bytes // WORD, _LOOK)
            if memo.pattern.fits(np.frombuffer(view, np.uint64, count, at), 0, first):
                self._match = Match(memo, self._session, first, self._placing.number, list(found[number + 1:]))
                return
        self._note(state, token)

    def _now(self) -> State:
        found = self._state
        if found is None:
            found = State(self._directory.state(), tuple(self._placing.streams.active))
        return self.memos.state(found)

    # known steps

    def _follow(self, view: memoryview, at: int) -> int:
        match = self._match
        assert match is not None
        count = match.follow(view, at)
        if count is None:
            self._deviate(match)
            return at
        self._placing.decisions += match.given_out()
        if match.whole:
            self._complete(match)
        else:
            match.kept.append(match.raw)
        return at + count

    def _complete(self, match: Match) -> None:
        memo, placing = match.memo, self._placing
        if memo.after is not memo.before:
            self._directory.put(memo.after.directory)
            placing.streams.put(memo.after.active)
        self._taker.tally.add(memo.done)
        self._taker.expected = match.first + memo.pattern.records
        placing.number = match.number
        if memo.ambiguous:
            self._placement.ambiguous += memo.ambiguous
        placing.repeat(memo.past)
        self._match, self._state, self._begins = None, memo.after, True
        self.recognised += 1
        self._habits.count(memo.key).met()
        self.memos.met(memo)

    def _deviate(self, match: Match) -> None:
        """The step goes on otherwise: as another one that is known, or as none."""
        match.undo()
        kept, self._match = b"".join(match.kept), None
        for number, memo in enumerate(match.others):
            other = Match(memo, self._session, match.first, self._placing.number, match.others[number + 1:])
            if kept and other.follow(memoryview(kept), 0) != len(kept):
                other.undo()
                continue
            other.given_out()
            other.kept.append(kept)
            self._match = other
            return
        memo = match.memo
        self._note(memo.before, memo.token)
        before = len(self._placing.decisions)
        if kept:
            self._slowly(memoryview(kept), 0, len(kept))
        del self._placing.decisions[before:before + match.given]

    # steps that are taken record by record

    def _slowly(self, view: memoryview, at: int, end: int) -> int:
        """Up to the end of a step, or to an end of records; where that is."""
        placing, journal, taken = self._placing, self._journal, self._taker.taken
        begin, waits = at, placing.waits
        for record, stop in walk(view, begin, end):
            at = stop
            if journal.on:
                journal.place += 1
            self._records += 1
            taken(record)
            if placing.waits != waits:
                break
        self._bytes += at - begin
        draft = self._draft
        if draft is not None:
            draft.bytes += at - begin
            if draft.bytes > LARGEST or journal.spoiled:
                self._draft = None
                draft.expected.put_off()
                journal.end()
            else:
                draft.data.append(bytes(view[begin:at]))
        if placing.waits != waits:
            self._over()
        return at

    def _over(self) -> None:
        past = self._placing.classes.past
        key = StepKey(self._bytes, self._records, past.signature if past else "")
        self._bytes = self._records = 0
        self._state, self._begins = None, True
        self._habits.count(key)
        draft, self._draft = self._draft, None
        if draft is not None:
            draft.expected.put_off()
            self._keep(key, draft)
            self._journal.end()

    def _note(self, state: State, token: Hashable) -> None:
        expected = self._habits.due()
        if expected is not None and self._placing.classes.follows:
            self._draft = _Draft(expected, state, token, self._taker.tally.copy(), self._placement.ambiguous)
            self._journal.begin()

    def _keep(self, key: StepKey, draft: _Draft) -> None:
        data = b"".join(draft.data)
        pattern, events = learned(data, self._journal, self._session.memory)
        if not pattern.numbered:
            return
        before, after = self.memos.state(draft.state), self._now()
        if after == before:
            after = before
        self._state = after
        self.memos.add(Memo(
            key, pattern, events, before, after, draft.token, self._taker.tally.since(draft.tally),
            self._placing.classes.past, self._placement.ambiguous - draft.ambiguous))
