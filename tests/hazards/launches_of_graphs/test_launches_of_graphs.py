"""P51: launches that are nodes of a graph go past the functions that launch, and are missing in what is recorded.

A graph that is made executable is recorded with its kernels and their sizes, whichever way it was made, and each
launch of it too. What is captured is marked so, as nothing was done."""

from __future__ import annotations

from shim.layout import lib
from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import driver


def test_graphs_and_their_launches(build: Build) -> None:
    program = build("program.c")
    done = run([program], library=driver.LIBRARY)
    assert (done.status, done.errors, done.output) == (0, "", f"{10 * (1 + 4 + 9) + 100}\n")
    (client,) = done.clients
    captured = client.kinds(Kind.LAUNCH)
    assert [record.flags for record in captured] == 3 * [lib.WIRE_CAPTURED]
    assert [record.body.grid[0] for record in captured] == [1, 2, 3]
    graphs = client.kinds(Kind.GRAPH_EXEC)
    assert [(g.body.nodes, g.body.edges, g.body.whole) for g in graphs] == [(3, 2, 1), (1, 0, 1)]
    launches = [record.body.exec for record in client.kinds(Kind.GRAPH_LAUNCH)]
    assert launches == 10 * [graphs[0].body.exec] + [graphs[1].body.exec]
