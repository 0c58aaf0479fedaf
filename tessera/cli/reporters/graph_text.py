"""``tessera graph`` for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import ConsoleRenderable
from rich.table import Table
from rich.text import Text

from orchestrator.session.graph import layers
from tessera.cli.reporters import graph_words, output
from tessera.cli.reporters.graph_words import Areas, amount, between, inputs, operations, reason

if TYPE_CHECKING:
    from orchestrator.session.graph import Between
    from orchestrator.traces.step_graph import ChosenStep

MOST_EDGES = 6
"""Edges shown for one operation; the JSON output has all."""


def write(chosen: ChosenStep, graph: Any) -> None:
    """Everything to standard output."""
    output.show(parts(chosen, graph))


def parts(chosen: ChosenStep, graph: Any) -> list[ConsoleRenderable]:
    """What the step is, its operations with what they come after, the memory that is named, and what stands out."""
    areas = Areas(graph)
    before: dict[str, list[tuple[str, Between]]] = {}
    for source, target, edge in between(graph):
        before.setdefault(target, []).append((source, edge))
    return [Text(line) for line in [graph_words.title(chosen), *_totals(graph)]] + [
        Text(), _operations(graph, before, areas), Text(), _memory(areas), *[Text(line) for line in _notes(graph)]]


def _totals(graph: Any) -> list[str]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    needed: Counter[str] = Counter()
    for _, _, edge in between(graph):
        for why in edge.why if edge.ordered is not None else ():
            counts[why.kind] += 1
            sizes[why.kind] += why.bytes
    kinds = [f"{counts[kind]} {kind} of {sizes[kind]:,} bytes" for kind in sorted(counts)]
    for _, found in inputs(graph):
        needed[graph_words.input_name(found)] += found.bytes
    inputs_said = [f"{size:,} bytes of {name}" for name, size in sorted(needed.items())]
    return [
        f"{len(operations(graph))} operations, streams: {len(graph.graph['streams'])}, longest chain: "
        f"{len(layers(graph))}, dependencies: {', '.join(kinds) or 'none'}",
        f"needed from before: {', '.join(inputs_said) or 'nothing'}",
    ]


def _operations(graph: Any, before: dict[str, list[tuple[str, Between]]], areas: Areas) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("operation", "what", "blocks", "stream", "read", "written", "after"):
        table.add_column(column, overflow="fold", justify="right" if column in ("read", "written") else "left")
    for name, work in operations(graph):
        edges = [line for source, edge in before.get(name, []) for line in _edge(source, edge, graph, areas)]
        more = [f"{len(edges) - MOST_EDGES} more"] if len(edges) > MOST_EDGES else []
        table.add_row(*[Text(cell) for cell in (
            name, graph_words.what(work), graph_words.shape(work), str(work.stream), amount(work.read),
            amount(work.written), "\n".join([*edges[:MOST_EDGES], *more]))])
    return table


def _edge(source: str, edge: Between, graph: Any, areas: Areas) -> list[str]:
    if edge.ordered is None:
        found = graph.nodes[source]["input"]
        return [f"{graph_words.input_name(found)}: {reason(why, areas)}" for why in edge.why]
    return [f"{source} ({edge.ordered}): {reason(why, areas)}" for why in edge.why]


def _memory(areas: Areas) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("memory", "address", "bytes", "GPU", "variable"):
        table.add_column(column, justify="right" if column == "bytes" else "left")
    for area in areas.places:
        table.add_row(*[Text(cell) for cell in (areas.name(area), f"{area.address:#x}", f"{area.bytes:,}",
                                                "host" if area.device < 0 else str(area.device), area.name)])
    return table


def _notes(graph: Any) -> list[str]:
    """What is left out, what nothing orders, and why operations are opaque or have to stay."""
    left_out = graph.graph["left_out"]
    lines = [f"{left_out} operations come after more than is shown: too many touch the same bytes"] if left_out else []
    lines += [f"nothing orders {source} before {target}: a race, if they touch all of their ranges"
             for source, target, edge in between(graph) if edge.ordered == "nothing"]
    for name, work in operations(graph):
        operation = work.operation
        reasons = [operation.opaque] if operation.opaque is not None else []
        pins = operation.launch.pins if operation.launch is not None else ()
        lines += [f"{name} is {found.kind} ({found.value}): {found.meaning}" for found in (*reasons, *pins)]
    return lines
