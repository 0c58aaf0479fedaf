"""What a replay found."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_MISMATCHES = 100


@dataclass(frozen=True)
class Mismatch:
    """Bytes that came to the host and are not those of the trace. ``kernel``: the last one before on the stream."""

    client: int
    sequence: int
    stream: int | None
    kernel: str | None
    bytes: int
    expected: str
    found: str


@dataclass
class Report:
    """Counts of what was done. ``skipped``: what was not, by reason; ``doubts``: what makes bytes differ without
    anybody's fault, by reason; while there are some, results that differ are ``unverifiable`` and no mismatches.
    ``rebased``: words of parameters that were addresses, found by analysis of the kernel or guessed from their value;
    ``allocations``: those at their recorded addresses, and those elsewhere."""

    clients: int = 0
    launches: int = 0
    graph_launches: int = 0
    copies: int = 0
    copied_bytes: int = 0
    memsets: int = 0
    verified: int = 0
    mismatched: int = 0
    unverifiable: int = 0
    unchecked: int = 0
    seconds: float = 0.0
    mismatches: list[Mismatch] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    doubts: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    rebased: dict[str, int] = field(default_factory=lambda: {"analysed": 0, "guessed": 0})
    allocations: dict[str, int] = field(default_factory=lambda: {"recorded": 0, "elsewhere": 0})

    def skip(self, reason: str) -> None:
        """Something is not done, so that later bytes may differ."""
        self.skipped[reason] += 1
        self.doubts[reason] += 1

    @property
    def all_agree(self) -> bool:
        """Whether everything was done, and every result that was compared is that of the trace."""
        return not (self.mismatched or self.unverifiable or self.skipped)

    def mismatch(self, found: Mismatch) -> None:
        self.mismatched += 1
        if len(self.mismatches) < MOST_MISMATCHES:
            self.mismatches.append(found)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        counters = {name: dict(getattr(self, name)) for name in ("skipped", "doubts", "notes")}
        return vars(self) | counters | {"mismatches": [asdict(one) for one in self.mismatches]}


def report_of(plain: dict[str, Any]) -> Report:
    """The opposite of :meth:`Report.plain`."""
    found = Report(**plain)
    found.mismatches = [Mismatch(**one) for one in plain["mismatches"]]
    for name in ("skipped", "doubts", "notes"):
        setattr(found, name, Counter(plain[name]))
    return found
