"""Names and phrases for the graph of a step, the same in its text and its pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.cli.reporters.ptx_words import line_list

if TYPE_CHECKING:
    from orchestrator.session.graph import Area, Between, Input, Part, Why, Work
    from orchestrator.session.operations import Dimensions
    from orchestrator.traces.step_graph import ChosenStep

MOST_PARTS = 3
"""Ranges shown in one place; the JSON output has all."""


class Areas:
    """Short names of the areas of a graph, ``m0`` and so on, in the order in which it names them."""

    def __init__(self, graph: Any) -> None:
        self.places: dict[Area, int] = {}
        for _, data in graph.nodes(data=True):
            if "input" in data and data["input"].area is not None:
                self._add(data["input"].area)
        for _, _, data in graph.edges(data=True):
            for why in data["between"].why:
                for part in why.parts:
                    if part.area is not None:
                        self._add(part.area)

    def _add(self, area: Area) -> None:
        self.places.setdefault(area, len(self.places))

    def name(self, area: Area | None) -> str:
        return "memory" if area is None else f"m{self.places[area]}"

    def parts(self, parts: tuple[Part, ...]) -> str:
        """``m3 bytes 0 to 4,096``, or ``memory of any kind``."""
        if not parts:
            return "memory of any kind"
        shown = [f"{self.name(part.area)} bytes {part.lo:,} to {part.hi:,}" if part.area is not None
                 else f"addresses {part.lo:#x} to {part.hi:#x}" for part in parts[:MOST_PARTS]]
        more = [f"{len(parts) - MOST_PARTS} more"] if len(parts) > MOST_PARTS else []
        return ", ".join([*shown, *more])


def operations(graph: Any) -> list[tuple[str, Work]]:
    """Names and what they are, in the order in which they were queued."""
    return [(name, data["work"]) for name, data in graph.nodes(data=True) if "work" in data]


def inputs(graph: Any) -> list[tuple[str, Input]]:
    """Names and what they are."""
    return [(name, data["input"]) for name, data in graph.nodes(data=True) if "input" in data]


def between(graph: Any) -> list[tuple[str, str, Between]]:
    """Edges, by their ends."""
    return [(source, target, data["between"]) for source, target, data in graph.edges(data=True)]


def what(work: Work) -> str:
    """``saxpy``, or ``copy``."""
    launch = work.operation.launch
    return launch.kernel.name if launch is not None else work.operation.what.value


def shape(work: Work) -> str:
    """``4x1x1 of 32x1x1``: blocks of threads; nothing for what is no kernel."""
    launch = work.operation.launch
    return "" if launch is None else f"{size(launch.grid)} of {size(launch.block)}"


def size(dimensions: Dimensions) -> str:
    """``4x1x1``."""
    return "x".join(map(str, dimensions))


def amount(count: int | None) -> str:
    """A number of bytes; ``any`` for what may touch anything."""
    return "any" if count is None else f"{count:,}"


def input_name(found: Input) -> str:
    return "weights" if found.weights else "state"


def reason(why: Why, areas: Areas) -> str:
    """``RAW of m3 bytes 0 to 64, written at line 7, read at line 9``."""
    first, second = {"RAW": ("written", "read"), "WAR": ("read", "written"), "WAW": ("written", "written")}[why.kind]
    lines = [f"{word} at {line_list(found)}" for word, found in
             ((first, why.source_lines), (second, why.target_lines)) if found]
    return ", ".join([f"{why.kind} of {areas.parts(why.parts)}", *lines])


def title(chosen: ChosenStep) -> str:
    return (f"step {chosen.step} of client {chosen.client}, number {chosen.repeat} of {chosen.times} alike, "
            f"signature {chosen.signature}")
