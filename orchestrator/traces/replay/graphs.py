"""Executable graphs: a launch of one is its nodes, one after the other, in an order that its edges allow."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

from orchestrator.traces.errors import ReplayError
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.driver import call, cuda
from orchestrator.traces.replay.machine import Machine
from orchestrator.traces.replay.report import Report
from orchestrator.traces.rows import unsigned
from shim.wire import NodeKind

Work = Callable[[int, int, Any, int | None, int | None], None]
"""Does the work of a node: its kind, its number, a stream, that stream's number and context."""


class Graphs:
    """Of one client. ``work`` does what a node does."""

    def __init__(self, trace: Trace, machine: Machine, report: Report, work: Work) -> None:
        self._trace, self._machine, self._report, self._work = trace, machine, report, work
        self._nodes: dict[int, dict[int, sqlite3.Row]] = {}
        self._orders: dict[int, list[int]] = {}

    def make(self, row: sqlite3.Row) -> None:
        """A row of ``graph``."""
        if not row["whole"]:
            self._report.notes["graphs that could not be read, and whose launches are skipped"] += 1
            return
        nodes = list(self._trace.rows("SELECT * FROM node WHERE graph = ? AND born = ?", row["id"], row["born"]))
        edges = [(edge["origin"], edge["target"]) for edge in self._trace.rows(
            "SELECT origin, target FROM edge WHERE graph = ?", row["id"])]
        self._nodes[row["id"]] = {node["position"]: node for node in nodes}
        self._orders[row["id"]] = [node["position"] for node in ordered(nodes, edges)]

    def change(self, node: sqlite3.Row) -> None:
        """A row of ``node`` that changes one that is there."""
        if node["graph"] in self._nodes:
            self._nodes[node["graph"]][node["position"]] = node

    def run(self, graph: int, stream: Any, number: int | None, context: int | None) -> None:
        """A launch in a stream, which has a number and a context in the trace."""
        if graph not in self._nodes:
            self._report.skip("launches of graphs that could not be read")
            return
        self._report.graph_launches += 1
        for position in self._orders[graph]:
            node = self._nodes[graph][position]
            if not node["enabled"]:
                continue
            elsewhere = node["context"] is not None and node["context"] != context and context is not None
            if elsewhere:
                self._elsewhere(node, stream, number, context)
            else:
                self._work(node["kind"], node["id"], stream, number, context)

    def _elsewhere(self, node: sqlite3.Row, stream: Any, number: int | None, context: int | None) -> None:
        """A node in another context than the stream's: on a stream there, between two events."""
        before = self._machine.mark(stream)
        other = self._machine.own(node["context"])
        call(cuda.cuStreamWaitEvent(other, before, 0), "cuStreamWaitEvent")
        self._work(node["kind"], node["id"], other, None, node["context"])
        self._machine.use(node["context"])
        after = self._machine.mark(other)
        self._machine.stream(number, context)
        call(cuda.cuStreamWaitEvent(stream, after, 0), "cuStreamWaitEvent")
        for event in (before, after):
            call(cuda.cuEventDestroy(event), "cuEventDestroy")


def ordered(nodes: list[sqlite3.Row], edges: list[tuple[int, int]]) -> list[sqlite3.Row]:
    """The nodes in an order that the edges allow; the nodes of a child graph where the child stands, which is left out.
    Raises ReplayError for edges in a circle, as no driver has them."""
    levels: dict[int, list[sqlite3.Row]] = defaultdict(list)
    for node in nodes:
        levels[unsigned(node["parent"])].append(node)
    before: dict[int, list[int]] = defaultdict(list)
    for origin, target in edges:
        before[target].append(origin)
    try:
        return list(_level(0, levels, before, frozenset()))
    except CycleError as error:
        raise ReplayError(f"the edges of a graph of the trace are a circle: {error.args[1]}") from error


def _level(parent: int, levels: dict[int, list[sqlite3.Row]], before: dict[int, list[int]], above: frozenset[int]
           ) -> Iterator[sqlite3.Row]:
    here = {node["id"]: node for node in levels[parent]}
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for number in here:
        sorter.add(number, *[other for other in before[number] if other in here])
    for number in sorter.static_order():
        node = here[number]
        handle = unsigned(node["handle"])
        if node["kind"] != NodeKind.CHILD:
            yield node
        elif handle not in above:
            yield from _level(handle, levels, before, above | {handle})
