"""A placement by step classes, followed while it is not yet known of which class the step is.

A class can be followed when it has been seen whole once. While a step runs, the classes come into question that begin
as the step has begun, those without a placement too: where these do not all want the same for a launch, or none comes
into question, the launch stays at home. So no launch goes where only another class's would have gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from orchestrator.session.placement import named
from orchestrator.session.placements.file import Mixed, Mixtures
from orchestrator.session.step_classes import MOST_CLASSES, StepClass
from orchestrator.session.steps import LaunchKey

Launches = tuple[LaunchKey, ...]


class _Placed:
    """A class with a placement, seen whole."""

    def __init__(self, launches: Launches, mixture: tuple[Mixed, ...]) -> None:
        self.launches, self._mixture = launches, mixture
        self._taken = [0] * len(mixture)
        self._alike: dict[str, int] = {}
        self.alike = 0
        """So many first launches are those of some class without a placement."""
        self._choose()

    def meet(self, signature: str, other: Launches) -> None:
        """There is a class without a placement."""
        pairs = enumerate(zip(self.launches, other, strict=False))
        shorter = min(len(self.launches), len(other))
        self._alike[signature] = next((index for index, (mine, its) in pairs if mine != its), shorter)
        self.alike = max(self._alike.values())

    def part(self, signature: str) -> None:
        """It is forgotten."""
        self._alike.pop(signature, None)
        self.alike = max(self._alike.values(), default=0)

    def gpus(self, index: int) -> tuple[int, ...]:
        """What it wants for a launch of the step that comes next, or is going on."""
        placing = self._now.get(index)
        return placing.gpus if placing else ()

    def over(self) -> None:
        """A step was of this class."""
        self._taken[self.chosen] += 1
        self._choose()

    def _choose(self) -> None:
        """The placement that has fallen behind its share most. So none is ever a whole step ahead of it, and the
        choice is the same in every run."""
        steps = sum(self._taken) + 1
        behind = [mixed.share * steps - taken for mixed, taken in zip(self._mixture, self._taken, strict=True)]
        self.chosen = behind.index(max(behind))
        self._now = self._mixture[self.chosen].launches


class FilePlacement:
    """``ambiguous`` counts the launches that stayed at home since the classes that came into question want different
    things; ``faults`` says, by signature, which classes are not followed since their launches are not those that the
    placement was made for."""

    def __init__(self, mixtures: Mixtures) -> None:
        self.ambiguous = 0
        self.faults: dict[str, str] = {}
        self._mixtures = mixtures
        self._placed: dict[str, _Placed] = {}
        self._others: OrderedDict[str, Launches] = OrderedDict()
        self._candidates: list[_Placed] = []
        self._index = self._version = 0

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        if not self._candidates:
            return ()
        index = self._index
        self._index += 1
        self._candidates = [placed for placed in self._candidates
                            if index < len(placed.launches) and placed.launches[index] == launch]
        wanted = {named(placed.gpus(index), home) for placed in self._candidates}
        if any(index < placed.alike for placed in self._candidates):
            wanted.add(())
        if len(wanted) > 1:
            self.ambiguous += 1
        return wanted.pop() if len(wanted) == 1 else ()

    def token(self) -> Hashable:
        """Which classes have been seen, as far as it matters, and what each of those with a placement wants next."""
        return self._version, tuple([placed.chosen for placed in self._placed.values()])

    def step_over(self, step: StepClass | None) -> None:
        if step is not None:
            placed = self._placed.get(step.signature)
            if placed is not None:
                placed.over()
            else:
                self._learn(step.signature, step.launches)
        self._index = 0
        self._candidates = list(self._placed.values())

    def _learn(self, signature: str, launches: Launches) -> None:
        mixture = self._mixtures.get(signature)
        if mixture is not None and signature not in self.faults:
            fault = _fault(signature, launches, mixture)
            if fault is None:
                self._placed[signature] = made = _Placed(launches, mixture)
                for other, its in self._others.items():
                    made.meet(other, its)
                return
            self.faults[signature] = fault
        if signature not in self._others:
            self._version += 1
            self._others[signature] = launches
            for placed in self._placed.values():
                placed.meet(signature, launches)
        self._others.move_to_end(signature)
        if len(self._others) > MOST_CLASSES:
            gone, _ = self._others.popitem(last=False)
            for placed in self._placed.values():
                placed.part(gone)


def _fault(signature: str, launches: Launches, mixture: tuple[Mixed, ...]) -> str | None:
    """What of a placement does not fit the launches of its class."""
    for number, mixed in enumerate(mixture):
        for index, placing in mixed.launches.items():
            kernel = launches[index].kernel if index < len(launches) else None
            if kernel != placing.kernel:
                there = f"it launches {kernel!r} there" if kernel is not None else f"it has {len(launches)} launches"
                return (f"placement of step class {signature}, mixture {number}, launch {index}: {placing.kernel!r} "
                        f"is to be placed, and {there}; the class stays at home")
    return None
