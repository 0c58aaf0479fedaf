"""``tessera graph --json``: an object described by ``docs/schema/graph.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from tessera.cli.reporters.graph_words import Areas, between, inputs, operations

if TYPE_CHECKING:
    from orchestrator.session.graph import Between, Input, Part, Work
    from orchestrator.traces.step_graph import ChosenStep

SCHEMA, VERSION = "tessera.graph", 1


def write(path: str, chosen: ChosenStep, graph: Any, out: TextIO) -> None:
    """The graph of a step of a trace."""
    json.dump(document(path, chosen, graph), out, indent=1, ensure_ascii=False)
    out.write("\n")


def document(path: str, chosen: ChosenStep, graph: Any) -> dict[str, Any]:
    """The object. Areas, streams and nodes are referred to by their places in ``areas``, ``streams`` and by names."""
    areas = Areas(graph)
    return {
        "schema": SCHEMA, "version": VERSION, "path": path, "step": chosen._asdict(),
        "streams": [stream._asdict() for stream in graph.graph["streams"]],
        "areas": [{"address": area.address, "bytes": area.bytes, "device": area.device, "variable": area.name}
                  for area in areas.places],
        "operations": [_operation(name, work) for name, work in operations(graph)],
        "inputs": [_input(name, found, areas) for name, found in inputs(graph)],
        "edges": [_edge(*edge, areas) for edge in between(graph)], "left_out": graph.graph["left_out"],
    }


def _operation(name: str, work: Work) -> dict[str, Any]:
    operation, launch = work.operation, work.operation.launch
    return {
        "name": name, "sequence": operation.sequence, "node": operation.node if operation.node >= 0 else None,
        "what": operation.what.value,
        "kernel": None if launch is None else launch.kernel.name,
        "grid": None if launch is None else list(launch.grid),
        "block": None if launch is None else list(launch.block),
        "shared": None if launch is None else launch.shared,
        "device": operation.home, "stream": work.stream, "read": work.read, "written": work.written,
        "opaque": operation.opaque,
        "pinned": [] if launch is None else list(launch.pins),
    }


def _input(name: str, found: Input, areas: Areas) -> dict[str, Any]:
    return {"name": name, "weights": found.weights, "bytes": found.bytes, "parts": _parts(found.parts, areas)}


def _edge(source: str, target: str, edge: Between, areas: Areas) -> dict[str, Any]:
    return {
        "source": source, "target": target, "ordered": edge.ordered,
        "why": [{"kind": why.kind, "bytes": why.bytes, "parts": _parts(why.parts, areas),
                 "source_lines": list(why.source_lines), "target_lines": list(why.target_lines)} for why in edge.why],
    }


def _parts(parts: tuple[Part, ...], areas: Areas) -> list[dict[str, Any]]:
    return [{"area": None if part.area is None else areas.places[part.area], "lo": part.lo, "hi": part.hi}
            for part in parts]
