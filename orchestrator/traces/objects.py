"""What the handles and addresses of one client mean at a moment: numbers of things, which are given here."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from orchestrator.traces.living import LivingRanges
from orchestrator.traces.rows import Rows, signed
from orchestrator.traces.schema import TABLES

LEGACY, PER_THREAD = 1, 2
"""The handles of default streams in records."""
MOST_ENDS = 1024
"""How many ends are remembered: the outcome of a call that failed stands soon behind its record."""
LIVES = ("id", "client", "announced", "born", "born_ticks", "died", "died_ticks")

Key = tuple[str, Hashable]


@dataclass
class Living:
    """A thing that is there: what was said of it, and the ranges of addresses that are its."""

    number: int
    key: Key
    said: tuple[Any, ...]
    ranges: tuple[tuple[int, int], ...]
    parents: tuple[int, ...]


def columns(table: str) -> int:
    """How many columns a table of things has behind those of all things."""
    return TABLES[table].count(",") + 1 - len(LIVES)


class Objects:
    """The living things of a client. ``at`` says where in the records we are."""

    def __init__(self, client: int, rows: Rows) -> None:
        self._client, self._rows = client, rows
        self._living: dict[Key, Living] = {}
        self._children: dict[int, dict[Key, None]] = defaultdict(dict)
        self._ended: OrderedDict[int, list[Living]] = OrderedDict()
        self._unconfirmed: set[Key] = set()
        self._revived: set[Key] = set()
        self.memory: LivingRanges[int] = LivingRanges()
        self.sequence = self.ticks = self.thread = 0

    def announce(self, table: str, handle: Hashable, *values: Any, ranges: tuple[tuple[int, int], ...] = (),
                 parents: tuple[int | None, ...] = (), again: bool = False) -> tuple[int, bool]:
        """The number of a thing that a record announces, and whether it is new. ``again``: if it is there already with
        the same ``values``, it is that one. It ends with any of ``parents``."""
        key = (table, handle)
        known = self._living.get(key)
        self._unconfirmed.discard(key)
        if known and key in self._revived:  # what a call that failed did not end is announced once more
            self._revived.discard(key)
            return known.number, False
        if known and again and known.said == values:
            return known.number, False
        if known:
            self._die(known)
        number = self._make(key, 1, values, ranges, tuple(parent for parent in parents if parent))
        return number, True

    def named(self, table: str, handle: int) -> int | None:
        """The thing that a handle means; a new one of which nothing is known if no record has announced it."""
        if not handle:
            return None
        known = self._living.get((table, handle))
        if known:
            return known.number
        rest = (signed(handle), *[None] * (columns(table) - 1))
        return self._make((table, handle), 0, rest, (), ())

    def stream(self, handle: int, context: int | None) -> int | None:
        """The stream of a place. Default streams belong to their context, and to the thread if each has one."""
        if handle not in (LEGACY, PER_THREAD):
            return self.named("stream", handle)
        thread = self.thread if handle == PER_THREAD else None
        key = ("stream", (handle, context, thread))
        known = self._living.get(key)
        if known:
            return known.number
        return self._make(key, 1, (handle, context, 0, 0, thread), (), (context,) if context else ())

    def said(self, table: str, handle: int, column: int) -> Any:
        """What was said of the thing that a handle means, by column behind those of all things; None if nothing was."""
        known = self._living.get((table, handle))
        return known.said[column] if known else None

    def holding(self, address: int) -> int | None:
        """The memory that holds an address."""
        found = self.memory.find(address)
        return found[2] if found else None

    def end(self, table: str, handle: Hashable) -> int | None:
        """The thing ends, with all that belongs to it."""
        known = self._living.get((table, handle))
        if known is None:
            return None
        self._remember(self._die(known))
        return known.number

    def end_range(self, start: int, size: int) -> int | None:
        """All memory that begins in a range ends; the first of it."""
        found = [self._living[("memory", begin)] for begin, _ in list(self.memory.within(start, start + size))
                 if ("memory", begin) in self._living]
        for known in found:
            self._remember(self._die(known))
        return found[0].number if found else None

    def revive(self, sequence: int) -> None:
        """The call at a sequence number failed: what it was to end lives on."""
        for known in self._ended.pop(sequence, ()):
            if known.key not in self._living:
                self._add(known)
                self._revived.add(known.key)
                self._rows.change(f'UPDATE "{known.key[0]}" SET died = NULL, died_ticks = NULL WHERE id = ?',
                                  known.number)

    def doubt(self) -> None:
        """Records were lost: what is not restated next is gone."""
        self._unconfirmed = set(self._living)

    def settle(self) -> None:
        """All that lives has been restated."""
        for key in self._unconfirmed:
            if key in self._living and not isinstance(key[1], tuple):  # default streams are never announced
                self._die(self._living[key])
        self._unconfirmed = set()

    @property
    def doubtful(self) -> bool:
        return bool(self._unconfirmed)

    def _make(self, key: Key, announced: int, values: tuple[Any, ...], ranges: tuple[tuple[int, int], ...],
              parents: tuple[int, ...]) -> int:
        number = self._rows.number()
        self._rows.add(key[0], number, self._client, announced, self.sequence, self.ticks, None, None, *values)
        self._add(Living(number, key, values, ranges, parents))
        return number

    def _add(self, made: Living) -> None:
        self._living[made.key] = made
        for start, size in made.ranges:
            self.memory.add(start, size, made.number)
        for parent in made.parents:
            self._children[parent][made.key] = None

    def _die(self, known: Living) -> list[Living]:
        """Take it and what belongs to it out; all of them."""
        gone = [known]
        self._revived.discard(known.key)
        del self._living[known.key]
        for start, _ in known.ranges:
            found = self.memory.find(start)
            if found and found[2] == known.number:
                self.memory.remove(found[0])
        for parent in known.parents:
            self._children[parent].pop(known.key, None)
        for key in self._children.pop(known.number, {}):
            if key in self._living:
                gone += self._die(self._living[key])
        self._rows.change(f'UPDATE "{known.key[0]}" SET died = ?, died_ticks = ? WHERE id = ?',
                          self.sequence, self.ticks, known.number)
        return gone

    def _remember(self, gone: list[Living]) -> None:
        self._ended.setdefault(self.sequence, []).extend(gone)
        if len(self._ended) > MOST_ENDS:
            self._ended.popitem(last=False)
