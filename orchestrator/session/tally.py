"""What a tracker has done, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from orchestrator.session.jobs import Decision, Job, Refused
from orchestrator.session.launches import Prepared
from orchestrator.session.operations import Operation
from tessera.reasons import Reason

_Count = TypeVar("_Count", int, Counter[Any])


@dataclass
class Tally:
    """Launches by where they ran, segments by what became of them, bytes moved, and why launches were opaque, pinned or
    refused. ``sent`` and ``mirrored`` count launches of jobs, by GPU."""

    records: int = 0
    gaps: int = 0
    launches: int = 0
    home: int = 0
    jobs: int = 0
    sent: Counter[int] = field(default_factory=Counter)
    mirrored: Counter[int] = field(default_factory=Counter)
    gathered: Counter[int] = field(default_factory=Counter)
    applied: Counter[int] = field(default_factory=Counter)
    opaque: Counter[Reason] = field(default_factory=Counter)
    pinned: Counter[Reason] = field(default_factory=Counter)
    refused: Counter[Reason] = field(default_factory=Counter)

    @property
    def unknown_work(self) -> int:
        """How often something was done that may have written anything."""
        return self.opaque.total() + self.gaps

    def copy(self) -> Tally:
        return Tally(**{one.name: _copy(getattr(self, one.name)) for one in fields(self)})

    def since(self, before: Tally) -> Tally:
        """What was done since this was ``before``."""
        found = self.copy()
        for one in fields(self):
            mine, its = getattr(found, one.name), getattr(before, one.name)
            if isinstance(mine, Counter):
                setattr(found, one.name, Counter({key: more for key, n in mine.items() if (more := n - its[key])}))
            else:
                setattr(found, one.name, mine - its)
        return found

    def add(self, done: Tally) -> None:
        """So much more was done."""
        for one in fields(self):
            mine, its = getattr(self, one.name), getattr(done, one.name)
            if isinstance(mine, Counter):
                if its:
                    mine.update(its)
            elif its:
                setattr(self, one.name, mine + its)

    def launched(self, prepared: Prepared) -> None:
        """A kernel was launched."""
        self.launches += 1
        if prepared.opaque is not None:
            self.opaque[prepared.opaque] += 1
        for reason in prepared.launch.pins:
            self.pinned[reason] += 1

    def worked(self, operation: Operation) -> None:
        """Something else was done."""
        if operation.opaque is not None:
            self.opaque[operation.opaque] += 1

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Segments were decided."""
        for one in decisions:
            if isinstance(one, Job):
                self.jobs += 1
                (self.mirrored if one.mirrored else self.sent)[one.device] += len(one.launches)
                self.gathered[one.device] += sum(span.bytes for span in one.gather)
                self.applied[one.device] += sum(span.bytes for span in one.apply)
            elif isinstance(one, Refused):
                self.refused[one.reason] += 1


def _copy(value: _Count) -> _Count:
    return value if isinstance(value, int) else Counter(value)
