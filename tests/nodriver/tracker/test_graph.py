"""The graph of a step: what its nodes, edges and inputs say."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
from hypothesis import given

from orchestrator.session.dependencies import Dependencies, Node
from orchestrator.session.graph import Area, Between, Done, Input, Part, Work, node_name, step_graph
from orchestrator.session.intervals import Intervals
from orchestrator.session.operations import Effect, Kernel, Launch, Operation, What
from orchestrator.session.order import Order, Ordering
from orchestrator.session.touched import EVERYTHING
from ptxparse.api import AccessProgram, analyze, parse
from tests.material import ROOT
from tests.nodriver.tracker.work import STREAMS, operation, programs

X, Y, HOST = Area(1, 0, 64, 0), Area(2, 64, 64, 0, "table"), Area(3, 1000, 64, -1, open=True)


@pytest.fixture(scope="module")
def saxpy() -> AccessProgram:
    return analyze(parse((ROOT / "examples" / "kernels.ptx").read_text(encoding="utf-8")))[0]


def done(*operations: Operation) -> list[Done]:
    """Each as it was queued by one thread that waits for nothing."""
    order = Order()

    def area(effect: Effect) -> Area | None:
        return next((a for a in (X, Y, HOST) if a.address <= effect.lo < a.address + a.bytes), None)

    return [Done(op, order.queued(op.stream, 7), tuple([area(effect) for effect in op.effects])) for op in operations]


def between(graph: Any, source: str, target: str) -> Between:
    found = graph.edges[source, target]["between"]
    assert isinstance(found, Between)
    return found


def inputs(graph: Any) -> list[Input]:
    return [data["input"] for _, data in graph.nodes(data=True) if "input" in data]


def test_an_edge_says_why_it_is_there(saxpy: AccessProgram) -> None:
    word_x, word_y = (parameter.offset for parameter in saxpy.parameters if parameter.size == 8)
    launch = Launch(Kernel("saxpy", 0, b"", saxpy), (1, 1, 1), (16, 1, 1), 0, b"")
    step = done(
        operation(1, (Effect("MUSTW", 48, 80),), what=What.COPY),
        operation(2, (Effect("R", 32, 96, word=word_y), Effect("MUSTW", 96, 128, word=word_x)))._replace(launch=launch),
    )
    graph = step_graph(step)
    found = between(graph, "1", "2")
    assert found.ordered is Ordering.STREAM
    (why,) = found.why
    assert (why.kind, why.bytes, why.source_lines) == ("RAW", 32, ())
    assert why.parts == (Part(X, 48, 64), Part(Y, 0, 16))
    reads = {line for a in saxpy.accesses if a.kind == "R" and a.bases[0].word == word_y for line in a.lines}
    assert reads and set(why.target_lines) == reads
    assert graph.nodes["2"]["work"] == Work(step[1].operation, 0, 64, 32)
    assert graph.graph["streams"] == (STREAMS[0],)


def test_ordering_is_told_by_streams() -> None:
    graph = step_graph(done(operation(1, (Effect("MUSTW", 0, 8),)), operation(2, (Effect("R", 0, 8),), STREAMS[1])))
    assert between(graph, "1", "2").ordered is Ordering.NOTHING


def test_inputs_are_what_the_step_has_not_written_itself() -> None:
    step = done(
        operation(1, (Effect("MUSTW", 0, 16), Effect("R", 64, 72), Effect("R", 1000, 1008))),
        operation(2, (Effect("R", 8, 24), Effect("MAYW", 32, 40))),
        operation(3, (Effect("A", 32, 40), Effect("R", 64, 68))),
    )
    graph = step_graph(step, Intervals([(20, 40)]))
    assert [(i.area, i.weights, i.parts) for i in inputs(graph)] == [
        (Y, True, (Part(Y, 0, 8),)),
        (HOST, False, (Part(HOST, 0, 8),)),
        (X, True, (Part(X, 16, 20),)),
        (X, False, (Part(X, 20, 24), Part(X, 32, 40))),
    ]
    assert sorted((graph.nodes[s]["input"].area.number, t) for s, t in graph.edges if "input" in graph.nodes[s]) == [
        (1, "2"), (1, "2"), (1, "3"), (2, "1"), (2, "3"), (3, "1")]
    assert not any(i.weights for i in inputs(step_graph(step)))


def test_nodes_of_a_graph_launch_are_ordered_by_its_edges() -> None:
    def node(number: int, kind: str, after: tuple[int, ...]) -> Operation:
        return Operation(5, number, What.LAUNCH, STREAMS[0], 0, (Effect(kind, 0, 8),) if kind else (), after=after)

    graph = step_graph(done(node(0, "MUSTW", ()), node(1, "", (0,)), node(2, "R", (1,)), node(3, "R", ())))
    assert set(graph) == {"5.0", "5.2", "5.3"}
    assert between(graph, "5.0", "5.2").ordered is Ordering.GRAPH
    assert between(graph, "5.0", "5.3").ordered is Ordering.NOTHING


def test_what_may_touch_anything_has_no_sizes_and_needs_no_input() -> None:
    graph = step_graph(done(operation(1, (Effect("R", 0, 8),)), operation(2, what=What.OTHER),
                            operation(3, what=What.OTHER)), Intervals())
    assert (graph.nodes["2"]["work"].read, graph.nodes["2"]["work"].written) == (None, None)
    assert [why.parts for why in between(graph, "1", "2").why] == [(Part(X, 0, 8),)]
    assert [(why.kind, why.parts) for why in between(graph, "2", "3").why] == [("RAW", ()), ("WAW", ())]
    assert [i.parts for i in inputs(graph)] == [(Part(X, 0, 8),)]


def test_what_is_left_out_is_counted() -> None:
    readers = [operation(n, (Effect("R", 0, 8),), STREAMS[0]._replace(stream=100 + n)) for n in range(20)]
    graph = step_graph(done(*readers, operation(20, (Effect("MUSTW", 0, 8),))))
    assert graph.graph["left_out"] == 1
    assert sorted(int(source) for source in graph.predecessors("20")) == list(range(5, 20))
    assert step_graph(done(*readers[:16], operation(20, (Effect("MUSTW", 0, 8),)))).graph["left_out"] == 0


@given(programs())
def test_edges_are_the_dependencies_and_no_circle(program: list[Operation]) -> None:
    graph = step_graph(done(*program))
    dependencies, wanted = Dependencies(), set()
    for op in program:
        wanted |= {(node_name(edge.source), node_name(edge.target), edge.kind, edge.bytes)
                   for edge in dependencies.take(op)}
    operations = {node_name(Node(op.sequence, op.node)) for op in program}
    found = {(source, target, why.kind, why.bytes) for source, target, data in graph.edges(data=True)
             if source in operations for why in data["between"].why}
    assert found == wanted
    assert networkx.is_directed_acyclic_graph(graph)
    for _, _, data in graph.edges(data=True):
        for why in data["between"].why:
            assert why.bytes == sum(part.hi - part.lo for part in why.parts) < EVERYTHING
