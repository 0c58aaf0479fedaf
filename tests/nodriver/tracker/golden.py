"""Golden texts of the tracker: what it says of the kept traces, without addresses.

Run as ``python -m tests.nodriver.tracker.golden`` from the repository this writes all of them anew; read the difference
before it is kept. Of each trace there is one with its operations, their bytes and what depends on what, and for each of
its placements one with the decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator.session.code import Code
from orchestrator.session.dependencies import EARLIER, Dependencies, Edge, Node
from orchestrator.session.jobs import Decision
from orchestrator.session.memory import Memory
from orchestrator.session.operations import Effect, Operation, StreamKey
from orchestrator.session.placement import Home, Placement
from orchestrator.session.placements.text import parse_placement
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.touched import EVERYTHING
from orchestrator.session.tracker import Tracker
from orchestrator.session.words import decision_text, record_text
from orchestrator.traces.reader import Trace
from orchestrator.traces.records import records
from tests.material import ROOT

TRACES = ROOT / "tests" / "fixtures" / "traces"
TEXTS = ROOT / "tests" / "fixtures" / "tracker"
PLACEMENTS = ROOT / "tests" / "fixtures" / "placements"
GPUS = (Gpu(1 << 30, 80), Gpu(1 << 30, 89), Gpu(1 << 30, 80))
BY_RULES = {
    "numba_streams": "*scale*=1",
    "tinygrad_steps": "r_*n1=2,r_4_32*=0+1,r_*=1",
    "two_devices": "saxpy@4,1,1=2",
}
"""One placement of each trace; the other is a file of its name."""


def stems() -> list[str]:
    """The traces."""
    return sorted(path.stem for path in TRACES.glob("*.trace"))


def texts() -> dict[Path, str]:
    """What is said now, by where it is kept."""
    found = {}
    for stem in stems():
        found[TEXTS / f"{stem}.txt"] = operations(stem)
        found[TEXTS / f"{stem}.rules.txt"] = decisions(stem, BY_RULES[stem])
        found[TEXTS / f"{stem}.file.txt"] = decisions(stem, str(PLACEMENTS / f"{stem}.json"))
    return found


def operations(stem: str) -> str:
    """Each operation with its effects, and below it on what it depends and by which bytes."""
    lines: list[str] = []
    streams, dependencies = Streams(), Dependencies()

    def note(operation: Operation) -> None:
        lines.extend(_operation(operation, tracker.memory, streams))
        lines.extend(_edge(edge, tracker.memory) for edge in dependencies.take(operation))

    tracker = Tracker(Settings(GPUS), Home(), Code(), note)
    with Trace(TRACES / f"{stem}.trace") as trace:
        for batch in records(trace, 1):
            tracker.take(batch)
    tracker.finish()
    return "".join([f"{line}\n" for line in lines])


def decisions(stem: str, placement: str) -> str:
    """Each decision; a line above says for which placement."""
    streams = Streams()
    found = [f"placement {placement.removeprefix(f'{ROOT}/')}"]
    found += [decision_text(one, streams) for one in decided(TRACES / f"{stem}.trace", parse_placement(placement, 3))]
    return "".join([f"{line}\n" for line in found])


def decided(path: Path, placement: Placement) -> Iterator[Decision]:
    tracker = Tracker(Settings(GPUS), placement, Code())
    with Trace(path) as trace:
        for batch in records(trace, 1):
            yield from tracker.take(batch)
    yield from tracker.finish()


class Streams:
    """Streams by the order in which they were first used."""

    def __init__(self) -> None:
        self._known: dict[StreamKey, int] = {}

    def __call__(self, key: StreamKey) -> str:
        return f"s{self._known.setdefault(key, len(self._known))}"


def _operation(operation: Operation, memory: Memory, streams: Streams) -> Iterator[str]:
    launch = operation.launch
    said = f"{record_text(operation.sequence, operation.node)} {operation.what.value} on {streams(operation.stream)} " \
           f"of GPU {operation.home}"
    if launch is not None:
        said += f": {launch.kernel.name} {launch.grid} {launch.block}"
        said += "".join([f", pinned: {reason.value}" for reason in launch.pins])
        said += ", unbounded" if launch.unbounded else ""
    if operation.opaque is not None:
        said += f", opaque: {operation.opaque.value}"
    if operation.after:
        said += f", after nodes {' '.join([str(node) for node in operation.after])}"
    yield said
    for effect in operation.effects:
        yield f"  {_effect(effect, memory)}"


def _effect(effect: Effect, memory: Memory) -> str:
    by = f" by word {effect.word}" if effect.word >= 0 else ""
    by += f" by variable {effect.variable}" if effect.variable else ""
    return f"{effect.kind} {'' if effect.exact else 'within '}{_range(effect.lo, effect.hi, memory)}{by}"


def _edge(edge: Edge, memory: Memory) -> str:
    ranges = " ".join([_range(lo, hi, memory) for lo, hi in edge.ranges])
    return f"  {edge.kind.value} of {_node(edge.source)}: {edge.bytes} bytes{': ' if ranges else ''}{ranges}"


def _node(node: Node) -> str:
    return "earlier ones" if node == EARLIER else record_text(*node)


def _range(lo: int, hi: int, memory: Memory) -> str:
    if hi >= EVERYTHING:
        return "anything"
    held = memory.find(lo)
    return f"a{held.number}[{lo - held.address}:{hi - held.address}]" if held is not None else f"{hi - lo} elsewhere"


def main() -> None:
    """Writes every golden text that differs; names those."""
    for path, text in texts().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
