"""What a step does, noted while it is taken record by record, so that its like can be taken in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.session import events
from orchestrator.session.events import Event, Parts
from orchestrator.session.graphs import Executable
from orchestrator.session.intervals import Intervals
from orchestrator.session.jobs import Job, Refused
from orchestrator.session.operations import Known, Launch
from ptxparse.api import AccessProgram
from shim.tails import Node
from shim.wire import Record

if TYPE_CHECKING:
    from orchestrator.session.launches import Prepared

MOST_EVENTS = 1 << 16


class Journal:
    """Of one step, while it is ``on``. ``place``: of the record that is taken, from 0. ``spoiled``: something was done
    that must not be repeated. ``free``: by place, the parts of a launch's parameters that do not matter."""

    def __init__(self) -> None:
        self._clear()

    def begin(self) -> None:
        """A step begins that is to be noted."""
        self._clear()
        self.on = True

    def end(self) -> None:
        """It is over, or no longer to be noted."""
        self._clear()

    def _clear(self) -> None:
        self.on = self.spoiled = False
        self.place = -1
        self.events: list[Event] = []
        self.free: dict[int, Parts] = {}
        self._exec = 0
        self._nodes: dict[int, int] = {}
        self._node_free: dict[int, Parts] = {}

    def spoil(self) -> None:
        """This step is no model for others."""
        self.spoiled = True

    def note(self, event: Event) -> None:
        if len(self.events) >= MOST_EVENTS:
            self.spoiled = True
        else:
            self.events.append(event)

    def forgot(self, lo: int, hi: int) -> None:
        """Bytes are written."""
        last = self.events[-1] if self.events else None
        if isinstance(last, events.Written):
            last.ranges.add(lo, hi)
            last.place = self.place
        else:
            self.note(events.Written(self.place, Intervals([(lo, hi)])))

    def replaced(self, lo: int, hi: int) -> None:
        """What was known of these bytes need not be forgotten: the copy, which is what was noted last, always puts
        others there."""
        written = self.events[-2] if len(self.events) > 1 else None
        if isinstance(written, events.Written):
            written.ranges.remove(lo, hi)

    def prepared(self, work: Record | Node, free: Parts, found: Prepared) -> None:
        """A launch was looked at; ``free`` of its parameters does not matter."""
        if isinstance(work, Record):
            self.free[self.place] = free
        else:
            self._node_free[self._nodes[id(work)]] = free

    def read(self, program: AccessProgram, parameters: bytes, known: list[Known]) -> None:
        """Its ranges follow from tables, of which this is known."""
        self.note(events.Tables(self.place, program, parameters, known))

    def graph(self, exec_: int, graph: Executable | None) -> None:
        """A graph is launched."""
        nodes = list(graph.nodes) if graph is not None and graph.whole else None
        self._exec, self._node_free = exec_, {}
        self._nodes = {id(node): position for position, node in enumerate(nodes or ())}
        self.note(events.Graphed(self.place, exec_, nodes, self._node_free))

    def launched(self, node: int, launch: Launch) -> None:
        """A launch is in the open segment now."""
        self.note(events.Launched(self.place, node, launch, self._exec if node >= 0 else 0))

    def decided(self, found: Sequence[Job | Refused]) -> None:
        """The segment was closed."""
        self.note(events.Decided(self.place, found))

    def told(self, of_this_step: bool, known: bool, gathered: bool) -> None:
        """Contents of a record are told that has put bytes somewhere (``known``), or not."""
        if not known:
            self.note(events.Untold(self.place, -1))
        elif of_this_step:
            self.note(events.Told(self.place, gathered))
        else:
            self.spoil()
