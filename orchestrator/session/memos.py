"""The steps that are known, as many as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from orchestrator.session.memo import Memo, State

MOST_MEMOS, MOST_BYTES = 256, 64 << 20


class Memos:
    """By the states in which they begin. Those met last are kept."""

    def __init__(self, most: int = MOST_MEMOS, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._all: OrderedDict[Memo, None] = OrderedDict()
        self._starting: dict[tuple[State, Hashable], list[Memo]] = {}
        self._states: dict[State, State] = {}
        self.bytes = 0
        """Of memory, roughly."""

    def __len__(self) -> int:
        return len(self._all)

    def starting(self, state: State, token: Hashable) -> Sequence[Memo]:
        """Those that begin so, the one that was met last first."""
        return self._starting.get((state, token), ())

    def state(self, state: State) -> State:
        """The one that is equal to it and known already, if there is one: it is found faster."""
        return self._states.get(state, state)

    def add(self, memo: Memo) -> None:
        """One more. Its states have to be those of :meth:`state`."""
        self._all[memo] = None
        for state in (memo.before, memo.after):
            self._states[state] = state
        self._starting.setdefault((memo.before, memo.token), []).insert(0, memo)
        self.bytes += memo.bytes
        if len(self._all) > self._most or self.bytes > self._most_bytes:
            self._drop()

    def met(self, memo: Memo) -> None:
        """It has come once more."""
        self._all.move_to_end(memo)
        starting = self._starting[memo.before, memo.token]
        if starting[0] is not memo:
            starting.remove(memo)
            starting.insert(0, memo)

    def clear(self) -> None:
        self._all.clear()
        self._starting.clear()
        self._states.clear()
        self.bytes = 0

    def _drop(self) -> None:
        """Those met longest ago."""
        while len(self._all) > self._most or self.bytes > self._most_bytes:
            memo, _ = self._all.popitem(last=False)
            self.bytes -= memo.bytes
            starting = self._starting[memo.before, memo.token]
            starting.remove(memo)
            if not starting:
                del self._starting[memo.before, memo.token]
        self._states = {state: state for memo in self._all for state in (memo.before, memo.after)}
