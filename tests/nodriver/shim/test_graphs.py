"""Graphs under the preload library: what they do is known, whatever way they came about and were changed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shim import tails
from shim.layout import lib
from shim.wire import Kind, NodeKind, Record
from softgpu.instrument import Fail
from tests.nodriver.clients import place
from tests.nodriver.driver.programs import compile_program
from tests.nodriver.shim.expansion import announced, done
from tests.nodriver.shim.observed import Observed, observe

C = Path(__file__).resolve().parent / "c"
MODES = {"global": "0", "thread local": "1", "relaxed": "2"}
"""enum CUstreamCaptureMode."""
EXCHANGE = "cuThreadExchangeStreamCaptureMode"
QUESTIONS = {"cuFuncGetParamInfo", "cuGraphNodeGetType", "cuGraphKernelNodeGetParams_v2"}
"""Which the program does not ask itself."""
LAUNCHES = 10
TINYGRAD = """
from tinygrad import Tensor, TinyJit
@TinyJit
def step(x, y):
    return ((x @ y).relu() + x.sum(0)).realize(), (x * y).max(1).realize()
total = 0.0
for number in range(6):
    x, y = [(Tensor.arange(256).reshape(16, 16) * scale % 7 + number).contiguous().realize() for scale in (3, 5)]
    total += sum([part.sum().item() for part in step(x, y)])
print(total)
"""


def run(folder: Path, name: str, *arguments: str, calls: bool = False, rules: Sequence[Fail] = ()) -> Observed:
    """A C program, which must end well."""
    program = compile_program(folder / name, [C / f"{name}.c"], "")
    seen = observe([program, *arguments], calls=calls, rules=rules)
    assert seen.status == 0, seen.errors
    return seen


def of_kind(found: list[Record], *kinds: Kind) -> list[Record]:
    return [record for record in found if record.kind in kinds]


def lines(seen: Observed) -> list[Any]:
    return [json.loads(line) for line in seen.output.splitlines()]


def test_a_captured_graph_is_known_node_by_node(tmp_path: Path) -> None:
    """Three kernels of two streams, launched ten times: thirty executions."""
    seen = run(tmp_path, "graph_nodes", "captured")
    work = announced(seen.records)
    assert work == done(seen.log)
    assert [(piece.graph, piece.what[:3]) for piece in work] == [
        (True, ("mix", 0, grid)) for grid in (2, 3, 4)] * LAUNCHES
    captured = of_kind(seen.records, Kind.LAUNCH, Kind.EVENT_RECORD, Kind.EVENT_WAIT)
    joins = captured[2]  # the second stream, which is not captured before
    assert joins.kind is Kind.EVENT_WAIT and not joins.flags
    assert [record.flags for record in captured if record is not joins] == [lib.WIRE_CAPTURED] * 6
    begin, end, graph = of_kind(seen.records, Kind.CAPTURE_BEGIN, Kind.CAPTURE_END, Kind.GRAPH_EXEC)
    assert begin.place == end.place and end.body.graph == graph.body.graph
    (edges,) = lines(seen)
    assert sorted([[edge.from_, edge.to] for edge in tails.edges(graph)]) == sorted(edges)


def test_every_kind_of_node(tmp_path: Path) -> None:
    """Also graphs in graphs, which are what they were when they were put in."""
    seen = run(tmp_path, "graph_nodes", "all")
    assert Counter(announced(seen.records)) == Counter(done(seen.log))
    allocation, edges, (function, event) = lines(seen)
    (graph,) = of_kind(seen.records, Kind.GRAPH_EXEC)
    assert (graph.body.whole, graph.body.flags) == (1, 1)  # CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
    nodes = list(tails.nodes(graph))
    kinds = Counter([node.kind for node in nodes])
    assert kinds == {
        NodeKind.LAUNCH: 8, NodeKind.COPY: 2, NodeKind.SET: 2, NodeKind.HOST_FUNCTION: 1, NodeKind.EVENT_RECORD: 1,
        NodeKind.EVENT_WAIT: 1, NodeKind.ALLOCATE: 1, NodeKind.FREE: 1, NodeKind.MEMORY_OPERATIONS: 1,
        NodeKind.CHILD: 2, NodeKind.EMPTY: 1,
    }
    bodies = {node.kind: node.body for node in nodes}
    assert [bodies[NodeKind.ALLOCATE].address, bodies[NodeKind.ALLOCATE].bytes] == allocation
    assert bodies[NodeKind.ALLOCATE].device == 0 and bodies[NodeKind.FREE].address == allocation[0]
    assert bodies[NodeKind.HOST_FUNCTION].function == function
    assert bodies[NodeKind.EVENT_RECORD].event == bodies[NodeKind.EVENT_WAIT].event == event
    parents = {node.node: node.parent for node in nodes}
    outer = [[edge.from_, edge.to] for edge in tails.edges(graph) if not parents[edge.to]]
    assert sorted(outer) == sorted(edges)
    assert not [edge for edge in tails.edges(graph) if parents[edge.from_] != parents[edge.to]]
    within = [0]  # a child graph's nodes come right behind it
    for node in nodes:
        while node.parent != within[-1]:
            within.pop()
        if node.kind is NodeKind.CHILD:
            within.append(node.node)


def test_a_graph_that_is_too_large_is_not_whole(tmp_path: Path) -> None:
    (graph,) = of_kind(run(tmp_path, "graph_nodes", "large").records, Kind.GRAPH_EXEC)
    assert (graph.body.whole, graph.body.nodes, graph.body.edges, len(graph.tail)) == (0, 0, 0, 0)


def test_what_is_changed_in_an_executable_graph_is_known(tmp_path: Path) -> None:
    """Every function that does so; also nodes that are off, and nodes named after another graph has come in."""
    seen = run(tmp_path, "graph_updates", "chain")
    assert announced(seen.records) == done(seen.log)
    changed = of_kind(seen.records, Kind.GRAPH_NODE)
    events = {next(tails.nodes(record)).kind for record in changed}
    assert {NodeKind.EVENT_RECORD, NodeKind.EVENT_WAIT, NodeKind.LAUNCH, NodeKind.SET, NodeKind.COPY} <= events


def test_a_graph_whose_end_fails_is_as_before(tmp_path: Path) -> None:
    """The one before is that of a handle that is none."""
    seen = run(tmp_path, "graph_updates", "chain", rules=[Fail("cuGraphExecDestroy", call=2)])
    assert announced(seen.records) == done(seen.log)
    assert len(of_kind(seen.records, Kind.END)) == 3


def test_nodes_of_another_graph_are_paired_as_the_driver_does_it(tmp_path: Path) -> None:
    seen = run(tmp_path, "graph_updates", "paired")
    assert Counter(announced(seen.records)) == Counter(done(seen.log))


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_questions_of_the_library_spoil_no_capture(tmp_path: Path, mode: str) -> None:
    seen = run(tmp_path, "capture_asks", mode, calls=True)
    assert Counter(announced(seen.records)) == Counter(done(seen.log))
    (begin,) = of_kind(seen.records, Kind.CAPTURE_BEGIN)
    assert begin.body.mode == int(mode)
    captured = [record.kind for record in seen.records if record.flags & lib.WIRE_CAPTURED]
    # By the first wait for an event a stream joins.
    assert Counter(captured) == {Kind.LAUNCH: 2, Kind.EVENT_RECORD: 2, Kind.EVENT_WAIT: 1, Kind.GRAPH_LAUNCH: 1,
                                 Kind.SET: 1, Kind.COPY: 3, Kind.MEMORY_OPERATIONS: 1}


    calls = [(line["call"], line["system_thread"]) for line in seen.log if "call" in line]
    names = [name for name, _ in calls]
    asked: set[str] = set()
    relaxed: Counter[int] = Counter()
    for name, thread in calls[names.index("cuStreamBeginCapture_v2"):names.index("cuStreamEndCapture")]:
        relaxed[thread] += name == EXCHANGE
        if name in QUESTIONS:
            asked.add(name)
            assert relaxed[thread] % 2, f"{name} is asked in the mode of the thread"
    assert asked == QUESTIONS


@pytest.mark.parametrize("how", ["ends", "spoiled", "destroyed"])
def test_nobody_is_asked_when_nothing_is_captured(tmp_path: Path, how: str) -> None:
    """However the captures ended; and work is known to be captured as long as they go on."""
    seen = run(tmp_path, "capture_asks", how, calls=True)
    assert Counter(announced(seen.records)) == Counter(done(seen.log))
    calls = [line["call"] for line in seen.log if "call" in line]
    over = calls.index("cuDeviceGetCount")
    assert "cuStreamIsCapturing" in calls[:over]
    assert "cuStreamIsCapturing" not in calls[over:] and EXCHANGE not in calls[over:]
    assert calls[over:].count("cuLaunchKernel") == 2


def test_graphs_of_tinygrad() -> None:
    """What it launches by graphs, whose parameters it changes, and all else it does."""
    environment = place.environment(DEV="CUDA", JIT="1")
    seen = observe([sys.executable, "-c", TINYGRAD], devices=place.MACHINE, base=environment, seconds=place.SECONDS)
    assert seen.status == 0, seen.errors
    assert of_kind(seen.records, Kind.GRAPH_LAUNCH) and of_kind(seen.records, Kind.GRAPH_NODE)
    kernels = Counter([piece for piece in announced(seen.records) if piece[0] == "kernel"])
    assert kernels == Counter([piece for piece in done(seen.log) if piece[0] == "kernel"]) and kernels.total() > 20
