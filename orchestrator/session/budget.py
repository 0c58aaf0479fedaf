"""What may be held is bounded in bytes: of more than that, what was not used for the longest time goes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Budget(Generic[K]):
    """At most ``limit`` bytes, and the one that was used last, whatever its size. ``drop`` is told what goes."""

    def __init__(self, limit: int, drop: Callable[[K], None]) -> None:
        self._limit, self._drop = limit, drop
        self._held: OrderedDict[K, int] = OrderedDict()
        self.bytes = 0

    def use(self, key: K, size: int) -> None:
        """Something is held that has ``size`` bytes now."""
        self.forget(key)
        self._held[key] = size
        self.bytes += size
        while self.bytes > self._limit and len(self._held) > 1:
            oldest, freed = self._held.popitem(last=False)
            self.bytes -= freed
            self._drop(oldest)

    def forget(self, key: K) -> None:
        """It is not held any more."""
        self.bytes -= self._held.pop(key, 0)
