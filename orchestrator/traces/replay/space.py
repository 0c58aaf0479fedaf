"""Where the memory of a recorded client is in the replay."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.traces.living import LivingRanges


@dataclass(frozen=True)
class Place:
    """Memory of the trace: where it was, how large it is in bytes, where it is now. ``host``: the host's programs may
    change it without a record; ``fixed``: it is a part of an extent at its recorded address; ``alias``: the host's
    place of memory that a GPU has at another address."""

    address: int
    bytes: int
    now: int
    kind: int
    host: bool = False
    fixed: bool = False
    alias: Place | None = None


class Space:
    """The living places, by recorded addresses."""

    def __init__(self) -> None:
        self._places: LivingRanges[Place] = LivingRanges()

    def add(self, place: Place) -> None:
        self._places.add(place.address, place.bytes, place)

    def remove(self, address: int) -> Place | None:
        """The place that begins at a recorded address lives no longer."""
        return self._places.remove(address)

    def find(self, address: int) -> Place | None:
        """The place that holds a recorded address."""
        found = self._places.find(address)
        return found[2] if found else None

    def within(self, start: int, size: int) -> list[Place]:
        """The places that begin in a range."""
        return [place for _, place in self._places.within(start, start + size)]

    def now(self, address: int) -> int:
        """Where a recorded address is; itself where nothing is known of it."""
        place = self.find(address)
        return address if place is None else place.now + address - place.address
