"""Step classes: the steps of a client that are alike, what they launch, and which bytes they only ever read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from orchestrator.session.intervals import Extent, Intervals
from orchestrator.session.steps import LaunchKey, Steps

MOST_CLASSES = 256
MOST_LAUNCHES = 1 << 14
"""Of a step, the nodes of graphs counted one by one. A longer step is of no class, nor one that reads more ranges than
:data:`MOST_RANGES`."""
MOST_RANGES = 1 << 16
STEADY = 3
"""With this repeat of a step the steady state begins."""


@dataclass(eq=False)
class StepClass:
    """Steps that are alike. ``launches``: kernels in the order of the records, those of a graph one by
    one; ``count``: how many such steps there were; ``reads``: what the last of them read."""

    signature: str
    launches: tuple[LaunchKey, ...]
    count: int = 0
    reads: set[Extent] = field(default_factory=set)

    @property
    def steady(self) -> bool:
        """Whether steps of this class are in the steady state."""
        return self.count >= STEADY


class Past(NamedTuple):
    """A step that is over, for :meth:`StepClasses.repeat`. ``launches`` and ``reads`` as in :class:`StepClass`; with
    ``long`` it is of no class."""

    signature: str
    launches: tuple[LaunchKey, ...]
    reads: set[Extent]
    long: bool


class StepClasses:
    """The step classes of a client, and the step that it is in. Of the classes those seen last are known; ``forgotten``
    counts the others as often as they were forgotten, ``long`` the steps that are of no class. ``past``: what
    :meth:`over` was last called for."""

    def __init__(self, most: int = MOST_CLASSES, most_launches: int = MOST_LAUNCHES) -> None:
        self.forgotten = self.long = 0
        self._most, self._most_launches = most, most_launches
        self._known: OrderedDict[str, StepClass] = OrderedDict()
        self._steps = Steps()
        self._written = Intervals()  # since the end of the first step
        self._first_is_over = False
        self.past: Past | None = None
        self._begin()

    def __iter__(self) -> Iterator[StepClass]:
        """Those that are known, the one that was seen last at the end."""
        return iter(self._known.values())

    def get(self, signature: str) -> StepClass | None:
        return self._known.get(signature)

    def launched(self, sequence: int, text: bytes, keys: Sequence[LaunchKey]) -> None:
        """A kernel or a graph was launched, of which :func:`orchestrator.session.steps.launch_text` or ``graph_text``
        says what; ``keys``: the kernel, or those of the graph in the order in which a placement is asked for them."""
        self._steps.launched(sequence, text)
        self._in_step = True
        if not self._too_long:
            self._keys += keys
            self._check_length()

    def reads(self, lo: int, hi: int) -> None:
        """Bytes that the step reads: those of an operation behind what was launched first in it."""
        if self._in_step and not self._too_long:
            self._reads.add((lo, hi))
            self._check_length()

    def written(self, lo: int, hi: int) -> None:
        """Bytes that are written, or whose memory ends, by whatever and in a step or not."""
        if self._first_is_over:
            self._written.add(lo, hi)
            if len(self._written) > MOST_RANGES:
                self._written = _coarser(self._written)

    def over(self) -> StepClass | None:
        """The program has waited, or ended: the class of the step that is over. None if there was no step, or a step
        that is of no class since it is too long."""
        step = self._steps.over()
        if step is None:
            self.past = None
            return None
        keys, reads, too_long = self._keys, self._reads, self._too_long
        self._begin()
        self._first_is_over = True
        known = self._known.get(step.signature)
        if known is not None:
            launches = known.launches
        else:
            once: dict[LaunchKey, LaunchKey] = {}  # layers launch the same again and again
            launches = tuple([once.setdefault(key, key) for key in keys])
        self.past = Past(step.signature, launches, reads, too_long)
        return self._counted(self.past)

    def repeat(self, past: Past | None) -> StepClass | None:
        """A whole step was like one that is over, down to the bytes that it reads and writes; it wrote
        when :attr:`follows` was true. As :meth:`over`."""
        self.past = past
        if past is None:
            return None
        self._steps.skip()
        return self._counted(past)

    @property
    def follows(self) -> bool:
        """Whether the first step is over. What a step behind it has written counts as written for good."""
        return self._first_is_over

    def _counted(self, past: Past) -> StepClass | None:
        if past.long:
            self.long += 1
            return None
        known = self._known.get(past.signature)
        if known is None:
            known = self._known[past.signature] = StepClass(past.signature, past.launches)
        self._known.move_to_end(past.signature)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
            self.forgotten += 1
        known.count += 1
        known.reads = past.reads
        return known

    def weights(self, signature: str) -> Intervals:
        """Bytes that steps of a class read and that nobody has written since the end of the client's first step; none
        for a class that is not known."""
        found = Intervals()
        known = self._known.get(signature)
        for lo, hi in sorted(known.reads) if known else ():
            for part in self._written.missing(lo, hi):
                found.add(*part)
        return found

    def _begin(self) -> None:
        self._keys: list[LaunchKey] = []
        self._reads: set[Extent] = set()
        self._in_step = self._too_long = False

    def _check_length(self) -> None:
        """A step may never end: what is kept of it does."""
        if len(self._keys) > self._most_launches or len(self._reads) > MOST_RANGES:
            self._too_long = True
            self._keys, self._reads = [], set()


def _coarser(ranges: Intervals) -> Intervals:
    """At most about half as many ranges: the narrower half of the gaps counts as written, which only makes weights
    fewer."""
    gaps = [(before[1], after[0]) for before, after in pairwise(ranges)]
    widest = sorted(hi - lo for lo, hi in gaps)[len(gaps) // 2]
    found = ranges.copy()
    for lo, hi in gaps:
        if hi - lo <= widest:
            found.add(lo, hi)
    return found
