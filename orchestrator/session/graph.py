"""The graph of one step: its operations, what makes one come after another, and what they need from before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.session.dependencies import EARLIER, Dependencies, Dependency, Edge, Node, touches_anything
from orchestrator.session.errors import GraphMissing
from orchestrator.session.intervals import Extent, Intervals
from orchestrator.session.operations import Effect, Operation, StreamKey
from orchestrator.session.order import Ordering, Stamp, ordered

try:
    import networkx
except ImportError as error:
    raise GraphMissing("graphs need the package networkx (the extra 'orchestrator'): "
                       "pip install 'tessera-gpu[orchestrator]'") from error

_ACCESSES = {"R": "R", "A": "A", "MAYW": "W", "MUSTW": "W"}
"""From the kind of a range to that of the accesses in an access program that it is made of."""
MOST_PIECES = 1 << 20
"""Ranges of bytes that are told apart in a step."""


class Area(NamedTuple):
    """An allocation: ``name`` is that of a module variable, else empty; ``number`` tells apart what has lain at one
    address; ``device``: the ordinal of its GPU, or -1. ``open``: others than the GPUs of the program may write it."""

    number: int
    address: int
    bytes: int
    device: int
    name: str = ""
    open: bool = False


class Done(NamedTuple):
    """An operation of a step, with what was known when it was queued: its stamp, and for each of its effects the
    area in which it lies, if one does."""

    operation: Operation
    stamp: Stamp | None
    areas: tuple[Area | None, ...]


class Part(NamedTuple):
    """Bytes [lo, hi) of an area; of addresses, if it is None."""

    area: Area | None
    lo: int
    hi: int


class Why(NamedTuple):
    """One reason for an edge: ``bytes`` of ``parts``, and the lines of PTX by which both sides reach them. ``parts`` is
    empty if both may touch anything."""

    kind: Dependency
    parts: tuple[Part, ...]
    bytes: int
    source_lines: tuple[int, ...]
    target_lines: tuple[int, ...]


@dataclass(frozen=True)
class Between:
    """What an edge of the graph holds; for one from an input ``ordered`` is None."""

    why: tuple[Why, ...]
    ordered: Ordering | None


@dataclass(frozen=True)
class Work:
    """What the node of an operation holds. ``stream``: the place of its stream in the graph's ``streams``; ``read``
    and ``written``: bytes, each counted once, or None for what may touch anything."""

    operation: Operation
    stream: int
    read: int | None
    written: int | None


@dataclass(frozen=True)
class Input:
    """What the node of bytes from before the step holds: those of ``area`` that the step reads before it has surely
    written them. ``weights``: nobody has written them since the program's first step, or can have unseen."""

    area: Area | None
    weights: bool
    parts: tuple[Part, ...]
    bytes: int


def node_name(node: Node) -> str:
    """``12``, or ``12.3`` for a node of the graph that record 12 launched."""
    return str(node.sequence) if node.node < 0 else f"{node.sequence}.{node.node}"


def step_graph(step: Sequence[Done], changed: Intervals | None = None) -> Any:
    """The ``networkx.DiGraph`` of a step whose operations come in the order of their records. ``changed``: the bytes
    written since the end of the program's first step; None if this is that step, so that there are no weights yet.

    Nodes are operations, named by :func:`node_name`, with ``work``, a :class:`Work`; and inputs with ``input``, an
    :class:`Input`. Edges have ``between``, a :class:`Between`. ``graph.graph["streams"]`` are its streams, and
    ``"left_out"`` how many operations come after others that are not named, as too many have touched the same bytes.
    What touches no memory is no node.
    """
    graph = networkx.DiGraph()
    streams: dict[StreamKey, int] = {}
    by_node: dict[Node, Done] = {}
    dependencies, orders, inputs = Dependencies(most_pieces=MOST_PIECES), _Orders(), _Inputs(changed)
    left_out = 0
    for done in step:
        operation = done.operation
        node = Node(operation.sequence, operation.node)
        by_node[node] = done
        orders.add(done)
        if not operation.effects:
            continue
        stream = streams.setdefault(operation.stream, len(streams))
        graph.add_node(node_name(node), work=Work(operation, stream, *_sizes(operation)))
        inputs.add(done)
        edges: dict[Node, list[Edge]] = {}
        for edge in dependencies.take(operation):
            edges.setdefault(edge.source, []).append(edge)
        left_out += edges.pop(EARLIER, None) is not None
        for source, found in edges.items():
            before = by_node[source]
            why = tuple([_why(edge, before, done) for edge in found])
            graph.add_edge(node_name(source), node_name(node), between=Between(why, orders.between(before, done)))
    inputs.write(graph)
    graph.graph.update(streams=tuple(streams), left_out=left_out)
    return graph


def layers(graph: Any) -> list[list[str]]:
    """The operations of a step's graph by how many stand before them on the longest way that leads to them. There are
    as many layers as the longest chain of dependencies has operations."""
    operations = [name for name, data in graph.nodes(data=True) if "work" in data]
    return [list(layer) for layer in networkx.topological_generations(graph.subgraph(operations))]


class _Orders:
    """What puts operations of the step in order. Nodes of one graph launch: by the edges of the graph."""

    def __init__(self) -> None:
        self._before: dict[Node, int] = {}  # sets of nodes of the same launch, as bits

    def add(self, done: Done) -> None:
        operation = done.operation
        before = 0
        for node in operation.after:
            before |= 1 << node | self._before.get(Node(operation.sequence, node), 0)
        if operation.node >= 0:
            self._before[Node(operation.sequence, operation.node)] = before

    def between(self, first: Done, second: Done) -> Ordering:
        one, other = first.operation, second.operation
        if one.sequence == other.sequence:
            before = self._before.get(Node(other.sequence, other.node), 0)
            return Ordering.GRAPH if before >> one.node & 1 else Ordering.NOTHING
        if first.stamp is None or second.stamp is None:
            return Ordering.NOTHING
        return ordered(first.stamp, second.stamp)


class _Inputs:
    """What the step reads of what was there before it."""

    def __init__(self, changed: Intervals | None) -> None:
        self._changed = changed
        self._made = Intervals()
        self._readers: dict[tuple[Area | None, bool], dict[Node, list[tuple[Extent, tuple[int, ...]]]]] = {}

    def add(self, done: Done) -> None:
        operation = done.operation
        if touches_anything(operation):
            return
        for place, effect in enumerate(operation.effects):
            if effect.kind in ("R", "A"):
                for lo, hi in self._made.missing(effect.lo, effect.hi):
                    self._add(done, place, lo, hi)
        for effect in operation.effects:
            if effect.kind == "MUSTW":
                self._made.add(effect.lo, effect.hi)

    def _add(self, done: Done, place: int, lo: int, hi: int) -> None:
        operation = done.operation
        lines, area, changed = lines_of(operation, (place,)), done.areas[place], self._changed
        if changed is None or area is None or area.open:
            changed = Intervals([(lo, hi)])
        for weights, parts in ((True, changed.missing(lo, hi)), (False, changed.overlap(lo, hi))):
            for part in parts:
                readers = self._readers.setdefault((area, weights), {})
                readers.setdefault(Node(operation.sequence, operation.node), []).append((part, lines))

    def write(self, graph: Any) -> None:
        """Their nodes and edges."""
        for number, ((area, weights), readers) in enumerate(self._readers.items()):
            whole = Intervals(extent for read in readers.values() for extent, _ in read)
            parts = tuple([_part(area, *extent) for extent in whole])
            name = f"input {number}"
            graph.add_node(name, input=Input(area, weights, parts, whole.total()))
            for node, read in readers.items():
                extents = Intervals(extent for extent, _ in read)
                lines = tuple(sorted({line for _, lines in read for line in lines}))
                why = Why(Dependency.RAW, tuple([_part(area, *e) for e in extents]), extents.total(), (), lines)
                graph.add_edge(name, node_name(node), between=Between((why,), None))


def lines_of(operation: Operation, places: Iterable[int]) -> tuple[int, ...]:
    """Lines of the kernel's PTX by which it makes those of its effects; none for what is no kernel with a program."""
    program = operation.launch.kernel.program if operation.launch is not None else None
    if program is None:
        return ()
    effects = [operation.effects[place] for place in places]
    return tuple(sorted({
        line for access in program.accesses for effect in effects
        if access.kind == _ACCESSES[effect.kind] and any(_is_base(effect, b.word, b.name) for b in access.bases)
        for line in access.lines
    }))


def _is_base(effect: Effect, word: int, name: str) -> bool:
    return (word >= 0 and word == effect.word) or (bool(name) and name == effect.variable)


def _why(edge: Edge, source: Done, target: Done) -> Why:
    areas = {area for done in (source, target) for area in done.areas if area is not None}
    parts = tuple([part for lo, hi in edge.ranges for part in _parts(areas, lo, hi)])
    return Why(edge.kind, parts, edge.bytes, lines_of(source.operation, edge.source_effects),
               lines_of(target.operation, edge.target_effects))


def _parts(areas: Iterable[Area], lo: int, hi: int) -> list[Part]:
    """A range of addresses by areas."""
    rest, found = Intervals([(lo, hi)]), []
    for area in areas:
        for start, end in rest.overlap(area.address, area.address + area.bytes):
            found.append((start, _part(area, start, end)))
            rest.remove(start, end)
    found += [(start, Part(None, start, end)) for start, end in rest]
    return [part for _, part in sorted(found, key=lambda one: one[0])]


def _part(area: Area | None, lo: int, hi: int) -> Part:
    return Part(area, lo, hi) if area is None else Part(area, lo - area.address, hi - area.address)


def _sizes(operation: Operation) -> tuple[int | None, int | None]:
    """Bytes read, and written."""
    if touches_anything(operation):
        return None, None
    read = Intervals((e.lo, e.hi) for e in operation.effects if e.kind in ("R", "A"))
    written = Intervals((e.lo, e.hi) for e in operation.effects if e.kind != "R")
    return read.total(), written.total()
