"""Queues of work, and in which order it is done: any that the queues and their entries' own conditions allow."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable

from tests.shadow.errors import Fault

Act = Callable[[], None]


class Entry:
    """Work in a queue: behind all before it there, behind ``after``, and not before ``ready`` says so."""

    __slots__ = ("_act", "_after", "_ready", "done", "label", "number")

    def __init__(self, number: int, label: str, act: Act | None, after: list[Entry],
                 ready: Callable[[], bool] | None) -> None:
        self.number, self.label, self.done = number, label, False
        self._act, self._after, self._ready = act, after, ready

    def runnable(self) -> bool:
        while self._after:
            if not self._after[-1].done:
                return False
            self._after.pop()
        return self._ready is None or self._ready()

    def run(self) -> None:
        if self._act is not None:
            self._act()
        self.done = True


class Queue:
    """``last``: what was put into it last, also if it is done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: deque[Entry] = deque()
        self.last: Entry | None = None
        self.rank = 0.0


class Schedule:
    """Without a seed, entries are done in the order in which they came, as soon as they can be. With one, now this
    queue and now that one runs ahead of all others, and the host of all of them, for a while."""

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else random.Random(seed)
        self._busy: set[Queue] = set()
        self._order: list[Queue] = []
        self._count = 0
        self._change = self._eager = 0.0

    def put(self, queue: Queue, label: str, act: Act | None, after: Iterable[Entry | None] = (),
            ready: Callable[[], bool] | None = None) -> Entry:
        """A new entry at the end of a queue."""
        self._count += 1
        entry = Entry(self._count, label, act, [e for e in after if e is not None and not e.done], ready)
        queue.entries.append(entry)
        queue.last = entry
        if queue not in self._busy:
            self._busy.add(queue)
            self._order.append(queue)
            queue.rank = self._random.random() if self._random else 0.0
        return entry

    def step(self) -> bool:
        """Do one entry; False if none can be done."""
        found = [queue for queue in self._order if queue.entries[0].runnable()]
        if not found:
            return False
        if self._random is None:
            queue = min(found, key=lambda queue: queue.entries[0].number)
        else:
            if self._random.random() < self._change:
                for queue in self._order:
                    queue.rank = self._random.random()
            queue = max(found, key=lambda queue: queue.rank)
        entry = queue.entries[0]
        try:
            entry.run()
        except Fault as fault:
            raise Fault(f"{entry.label}: {fault}") from fault
        queue.entries.popleft()
        if not queue.entries:
            self._busy.remove(queue)
            self._order.remove(queue)
        return True

    def between(self) -> None:
        """The host does something else for a while."""
        if self._random is None:
            while self.step():
                pass
            return
        if self._random.random() < 0.15:
            self._eager = self._random.choice((0.0, 0.0, 0.3, 0.7, 0.95))
            self._change = self._random.choice((0.02, 0.1, 0.5))
        while self._random.random() < self._eager and self.step():
            pass

    def drain(self, entries: Iterable[Entry | None]) -> None:
        """Go on until these are done, in whatever order."""
        for entry in entries:
            while entry is not None and not entry.done:
                if not self.step():
                    raise Fault(f"waiting for {entry.label}: nothing can go on, at {', '.join(self._heads())}")

    def drain_all(self) -> None:
        self.drain([queue.last for queue in list(self._order)])

    def choose(self, count: int) -> int:
        """A number below ``count``; 0 without a seed."""
        return self._random.randrange(count) if self._random else 0

    def _heads(self) -> list[str]:
        return [f"{queue.name}: {queue.entries[0].label}" for queue in self._order]
