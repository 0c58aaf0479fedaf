"""What a report counts."""

from __future__ import annotations

import json

import jsonschema

from orchestrator.session.messages import Session
from orchestrator.summary import Summary
from shim import tails
from shim.layout import layout, lib
from shim.listen import Client
from shim.wire import Head, Kind, NodeKind, encode
from tessera.cli.reporters import run_json
from tessera.cli.under_shim import Done, Wanted
from tests.material import ROOT

ONE, OTHER = Client(1, 10, "one"), Client(2, 20, "other")
SIDE = layout("wire_side").zero()


def function(handle: int, name: str) -> bytes:
    return encode(Kind.FUNCTION, handle=handle, name_bytes=len(name), tail=tails.function_tail([], name))


def launch(handle: int, flags: int = 0) -> bytes:
    return encode(Kind.LAUNCH, head=Head(flags), function=handle)


def copy(to: int, source: int, width: int, height: int = 1) -> bytes:
    return encode(Kind.COPY, width=width, height=height, depth=1, to=SIDE._replace(kind=to),
                  from_=SIDE._replace(kind=source))


def node(number: int, handle: int, enabled: int = 1) -> bytes:
    return tails.encode_node(NodeKind.LAUNCH, node=number, enabled=enabled, function=handle)


def graph(*nodes: bytes) -> bytes:
    return encode(Kind.GRAPH_EXEC, exec=5, whole=1, nodes=len(nodes), tail=b"".join(nodes))


def summary(*data: bytes) -> Summary:
    found = Summary()
    found.begin(ONE)
    found.batch(ONE, None, memoryview(b"".join(data)))
    return found


def test_launches_go_by_the_names_of_their_own_program() -> None:
    found = summary(function(1, "add"), function(2, "scale"), launch(1), launch(1), launch(2), launch(3))
    found.begin(OTHER)
    found.batch(OTHER, None, memoryview(launch(1) + function(1, "other") + launch(1)))
    assert found.launches == {"add": 2, "scale": 1, "other": 1, "?": 2}
    found.end(OTHER, None)
    found.begin(OTHER._replace(number=3))


def test_a_handle_means_what_was_said_last() -> None:
    assert summary(function(1, "add"), launch(1), function(1, "scale"), launch(1)).launches == {"add": 1, "scale": 1}


def test_captured_work_counts_when_its_graph_runs() -> None:
    run = encode(Kind.GRAPH_LAUNCH, exec=5)
    start = (function(1, "add"), function(2, "scale"), launch(1, lib.WIRE_CAPTURED))
    nodes = (node(1, 1), node(2, 1), node(3, 2, enabled=0), tails.encode_node(NodeKind.EMPTY, node=4))
    found = summary(*start, graph(*nodes), run, run)
    assert (found.launches, found.graph_launches) == ({"add": 4}, 2)
    changed = encode(Kind.GRAPH_NODE, exec=5, tail=node(2, 2))
    assert summary(*start, graph(*nodes), changed, run).launches == {"add": 1, "scale": 1}
    assert summary(*start, graph(*nodes), graph(node(1, 2)), run).launches == {"scale": 1}
    ended = encode(Kind.END, handle=5, kind=Kind.GRAPH_EXEC)
    assert summary(*start, graph(*nodes), ended, run).launches == {}


def test_the_report_is_as_its_schema_says() -> None:
    host, device = lib.WIRE_SIDE_HOST, lib.WIRE_SIDE_DEVICE
    found = summary(copy(device, host, 100), copy(device, host, 10, 3), copy(host, device, 7), copy(99, device, 1),
                    encode(Kind.SET, width=10, height=2, element_bytes=4), encode(Kind.OUTCOME, result=1),
                    encode(Kind.OUTCOME))
    done = Done(Wanted(("program", "x")), 143, [Session(ONE)], [10], (("it is of another user", 2),))
    said = json.loads(json.dumps(run_json.document(done, found)))
    schema = json.loads((ROOT / "docs" / "schema" / "run.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(said)
    assert said["copies"] == [
        {"from": "device", "to": "?", "count": 1, "bytes": 1}, {"from": "device", "to": "host", "count": 1, "bytes": 7},
        {"from": "host", "to": "device", "count": 2, "bytes": 130}]
    assert (said["fills"], said["failed_calls"]) == ({"count": 1, "bytes": 80}, 1)
    assert said["refused"] == {"it is of another user": 2} and said["clients"][0]["lives"]
