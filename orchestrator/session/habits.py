"""Which steps come again and again, and which of them are worth keeping."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from orchestrator.session.memo import StepKey

MOST_SEEN = 1024
MOST_WAIT = 1 << 16
"""At most so many steps of a key go by before one of them is kept again."""
_OFTEN = 2


@dataclass(eq=False)
class Seen:
    """Steps of one key: ``count`` of them there were, with number ``due`` one may be kept, and behind that ``wait``
    must go by. ``after``: what came behind the last of them."""

    count: int = 0
    due: int = _OFTEN
    wait: int = 1
    after: StepKey | None = None

    def put_off(self) -> None:
        """One is kept now, or could not be. If it never comes as it was kept, others are kept ever more rarely."""
        self.wait = min(2 * self.wait, MOST_WAIT)
        self.due = self.count + self.wait

    def met(self) -> None:
        """One came as it was kept."""
        self.due, self.wait = _OFTEN, 1


class Habits:
    """Of one program; the keys that were seen last are known."""

    def __init__(self) -> None:
        self._seen: OrderedDict[StepKey, Seen] = OrderedDict()
        self._last: StepKey | None = None

    def count(self, key: StepKey) -> Seen:
        """A step is over."""
        if self._last is not None and self._last in self._seen:
            self._seen[self._last].after = key
        self._last = key
        seen = self._seen.setdefault(key, Seen())
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        seen.count += 1
        return seen

    def due(self) -> Seen | None:
        """What comes next, if all is as it was, and if one of these may be kept."""
        last = self._seen.get(self._last) if self._last else None
        seen = self._seen.get(last.after) if last and last.after else None
        return seen if seen and seen.count >= seen.due else None
