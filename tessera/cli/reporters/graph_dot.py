"""``tessera graph --dot``: the graph of a step in the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from tessera.cli.reporters import graph_words
from tessera.cli.reporters.graph_words import Areas, amount, between, inputs, operations, reason

if TYPE_CHECKING:
    from orchestrator.traces.step_graph import ChosenStep

STYLES = {"RAW": "solid", "WAR": "dashed", "WAW": "dotted"}


def write(chosen: ChosenStep, graph: Any, out: TextIO) -> None:
    """One box an operation, one ellipse an input. An edge is solid for bytes that flow, else dashed or dotted, and red
    if nothing orders its ends."""
    areas = Areas(graph)
    out.write(f"digraph step {{\n label={quoted(graph_words.title(chosen))}\n node [shape=box]\n")
    for name, work in operations(graph):
        text = f"{name} {graph_words.what(work)}\n{amount(work.read)} bytes read, {amount(work.written)} written"
        colour = "" if work.operation.opaque is None else ", color=orange"
        out.write(f" {quoted(name)} [label={quoted(text)}{colour}]\n")
    for name, found in inputs(graph):
        text = f"{graph_words.input_name(found)}, {found.bytes:,} bytes of {areas.name(found.area)}"
        out.write(f" {quoted(name)} [label={quoted(text)}, shape=ellipse]\n")
    for source, target, edge in between(graph):
        for why in edge.why:
            colour = ", color=red" if edge.ordered == "nothing" else ""
            out.write(f" {quoted(source)} -> {quoted(target)} [label={quoted(f'{why.kind} {why.bytes:,}')}, "
                      f"tooltip={quoted(reason(why, areas))}, style={STYLES[why.kind]}{colour}]\n")
    out.write("}\n")


def quoted(text: str) -> str:
    """A string of the language that shows as the text. Backslashes there begin escapes of labels."""
    kept = "".join([c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text])
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
