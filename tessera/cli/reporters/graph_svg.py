"""``tessera graph --svg``: a picture of a step that needs no other program. Every node stands one layer below the
lowest that it depends on; inputs stand right above their first reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TextIO
from xml.sax.saxutils import escape

from orchestrator.session.graph import layers
from tessera.cli.reporters import graph_words
from tessera.cli.reporters.graph_words import Areas, amount, between, inputs, operations, reason

if TYPE_CHECKING:
    from orchestrator.traces.step_graph import ChosenStep

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN, BULGE = 190, 38, 24, 46, 16, 120
"""Pixels: of a box, between boxes, around everything, and how far an edge goes to the right of its boxes."""
LONGEST = 26
"""Characters that fit into a box."""
STYLE = """text { font: 12px sans-serif } .small { fill: #666; font-size: 10px }
rect { fill: #eef4fb; stroke: #35618f } .weights { fill: #eaf5e6; stroke: #4d8a3c }
.state { fill: #fdf3dd; stroke: #a97b16 } .opaque { fill: #f9e2e2; stroke: #b03030 }
path { fill: none; stroke: #35618f } .WAR { stroke: #888; stroke-dasharray: 6 3 }
.WAW { stroke: #888; stroke-dasharray: 2 3 } .nothing { stroke: #d01818; stroke-width: 2 }"""


class Box(NamedTuple):
    """A node: what stands in it, its class, and where its left upper corner is."""

    first: str
    second: str
    style: str
    x: float
    y: float


def write(chosen: ChosenStep, graph: Any, out: TextIO) -> None:
    """The whole picture. What does not fit into a box, and what an edge is, is told by pointing at it."""
    areas, places = Areas(graph), positions(graph)
    boxes = {name: Box(f"{name} {graph_words.what(work)}", f"{amount(work.read)} read, {amount(work.written)} written",
                       "opaque" if work.operation.opaque is not None else "", *places[name])
             for name, work in operations(graph)}
    boxes |= {name: Box(graph_words.input_name(found), f"{found.bytes:,} of {areas.name(found.area)}",
                        graph_words.input_name(found), *places[name]) for name, found in inputs(graph)}
    width = max([box.x + WIDTH for box in boxes.values()], default=0) + MARGIN + BULGE
    height = max([box.y + HEIGHT for box in boxes.values()], default=0) + MARGIN
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}">\n'
              f"<title>{plain(graph_words.title(chosen))}</title>\n<style>{STYLE}</style>\n")
    for source, target, edge in between(graph):
        kind = min([why.kind.value for why in edge.why])  # bytes that flow count most
        ordered = " nothing" if edge.ordered == "nothing" else ""
        said = "\n".join([f"{source} → {target}", *[reason(why, areas) for why in edge.why]])
        out.write(f'<path class="{kind}{ordered}" d="{curve(boxes[source], boxes[target])}">'
                  f"<title>{plain(said)}</title></path>\n")
    for box in boxes.values():
        out.write(f'<g transform="translate({box.x:g} {box.y:g})"><title>{plain(box.first)}</title>'
                  f'<rect class="{box.style}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
                  f'<text x="8" y="16">{plain(cut(box.first))}</text>'
                  f'<text class="small" x="8" y="31">{plain(box.second)}</text></g>\n')
    out.write("</svg>\n")


def positions(graph: Any) -> dict[str, tuple[float, float]]:
    """Left upper corners, in pixels. In its layer a node stands about below the middle of what it depends on."""
    rows = dict(enumerate(layers(graph), 1))
    row_of = {name: row for row, names in rows.items() for name in names}
    for name, _ in inputs(graph):
        rows.setdefault(min(row_of[reader] for reader in graph.successors(name)) - 1, []).append(name)
    places: dict[str, tuple[float, float]] = {}
    for row, names in sorted(rows.items()):
        wished = {name: wish(name, graph, places) for name in names}
        for column, name in enumerate(sorted(names, key=lambda name: wished[name])):
            places[name] = (MARGIN + column * (WIDTH + ACROSS), MARGIN + row * (HEIGHT + DOWN))
    return places


def wish(name: str, graph: Any, places: dict[str, tuple[float, float]]) -> float:
    above = [places[source][0] for source in graph.predecessors(name) if source in places]
    return sum(above) / len(above) if above else float("inf")


def curve(source: Box, target: Box) -> str:
    """From the lower side of one box to the upper side of the one below; around what lies between, on the right."""
    rows = round((target.y - source.y) / (HEIGHT + DOWN))
    if rows == 1:
        x, y, to_x, to_y = source.x + WIDTH / 2, source.y + HEIGHT, target.x + WIDTH / 2, target.y
        return f"M{x:g} {y:g}C{x:g} {y + DOWN / 2:g} {to_x:g} {to_y - DOWN / 2:g} {to_x:g} {to_y:g}"
    x, y, to_x, to_y = source.x + WIDTH, source.y + HEIGHT / 2, target.x + WIDTH, target.y + HEIGHT / 2
    bend = max(x, to_x) + min(12 * rows, BULGE)
    return f"M{x:g} {y:g}C{bend:g} {y:g} {bend:g} {to_y:g} {to_x:g} {to_y:g}"


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST - 1]}…"


def plain(text: str) -> str:
    """Text between tags; what XML cannot hold is replaced."""
    return escape("".join([c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text]))
