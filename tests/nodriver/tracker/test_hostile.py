"""Records that no program has written: a tracker takes them, or says what is wrong with them, and is soon done."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from orchestrator.session.code import Code
from orchestrator.session.errors import RecordError
from orchestrator.session.jobs import Decision, Rest
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.tracker import Tracker
from shim import tails
from shim.layout import layout, lib
from shim.wire import Kind, NodeKind, WireError, span
from tessera.reasons import Reason
from tests.generated import random_program
from tests.generated.devices import random_devices
from tests.program_records import CONTEXT, MODULE, Program, side

GPUS = (Gpu(1 << 30), Gpu(1 << 20), Gpu(0))
EDGES = (0, 1, 2, 255, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 4096,
         (1 << 64) - 1)
HEAD = layout("wire_head").size
SEEDS = 40
LONG_SEEDS = 2000


def tracker(seed: int = 0, code: Code | None = None) -> Tracker:
    return Tracker(Settings(GPUS), random_devices(seed, len(GPUS)), code or Code())


def spoilt(record: bytes, rng: random.Random) -> bytes:
    """A record with one number behind its head that is another, if that can be read at all."""
    for _ in range(8):
        data = bytearray(record)
        if len(data) <= HEAD:
            return record
        size = rng.choice([1, 4, 8])
        at = rng.randrange(HEAD // size, len(data) // size) * size
        near = int.from_bytes(record[at:at + size], "little") + rng.choice([-1, 1, 8])
        value = rng.choice([*EDGES, rng.getrandbits(64), near])
        data[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        if span(bytes(data)) == len(data):
            return bytes(data)
    return record


def numbered(record: bytes, number: int) -> bytes:
    return record[:8] + struct.pack("<Q", number) + record[16:]


def fed(made: Tracker, records: list[bytes]) -> str | None:
    """What the tracker has to say against them."""
    try:
        for record in records:
            made.take(record)
        made.finish()
    except (RecordError, WireError) as error:
        return str(error)
    return None


def test_spoilt_records_are_taken_or_refused_by_name(long_run: bool) -> None:
    code, said = Code(), []
    for seed in range(LONG_SEEDS if long_run else SEEDS):
        rng = random.Random(seed)
        records = [written.data for written in random_program(seed, 40).records if not written.lost]
        for _ in range(rng.choice([1, 5, 60, 300])):
            place = rng.randrange(len(records))
            records[place] = spoilt(records[place], rng)
        said.append(fed(tracker(seed, code), records))
    assert any(said) and not all(said)
    assert all(one is None or one.startswith("record ") for one in said)


def test_records_of_several_programs_in_disorder(long_run: bool) -> None:
    """Handles of one mean something else in the other, or nothing."""
    code = Code()
    for seed in range(LONG_SEEDS // 4 if long_run else SEEDS // 2):
        rng = random.Random(seed)
        both = [*random_program(seed, 30).records, *random_program(seed + 1000, 30).records]
        mixed = [written.data for written in both if not written.lost]
        rng.shuffle(mixed)
        fed(tracker(seed, code), [numbered(record, number) for number, record in enumerate(mixed)])


def words(decisions: list[Decision]) -> list[str]:
    """Decisions without their kernels, which are each tracker's own."""
    return [repr(one if isinstance(one, Rest) else one._replace(launches=())) for one in decisions]


def program() -> Program:
    made = Program()
    made.begin()
    made.memory(0x10000, 4096)
    return made


def huge_copy(made: Program, **fields: Any) -> None:
    shape = {name: fields.pop(name, 1) for name in ("width", "height", "depth")}
    to = side(0x10000, lib.WIRE_SIDE_DEVICE, **fields)
    made.record(Kind.COPY, to=to, from_=side(0x11000, lib.WIRE_SIDE_DEVICE), **shape)


@pytest.mark.parametrize("fields", [
    {"width": (1 << 64) - 1}, {"height": (1 << 64) - 1, "pitch": 16}, {"depth": (1 << 63), "height": 1 << 40},
    {"width": 1 << 40, "height": 1 << 40, "pitch": 1}, {"x": (1 << 64) - 1, "y": (1 << 64) - 1, "pitch": (1 << 64) - 1},
])
def test_copies_of_any_size_cost_no_more_than_others(fields: dict[str, int]) -> None:
    made = program()
    huge_copy(made, **fields)
    made.record(Kind.SET, address=0x10000, width=(1 << 64) - 1, height=(1 << 64) - 1, pitch=1, element_bytes=4)
    assert fed(tracker(), made.data) is None


@pytest.mark.parametrize(("kind", "fields", "what"), [
    (Kind.MEMORY, {"address": 0, "bytes": 16, "kind": lib.WIRE_ALLOCATED}, "MEMORY"),
    (Kind.MEMORY, {"address": 1 << 63, "bytes": 1 << 63, "kind": lib.WIRE_ALLOCATED}, "MEMORY"),
    (Kind.RESERVATION, {"address": 16, "bytes": (1 << 64) - 1}, "RESERVATION"),
])
def test_memory_that_cannot_be(kind: Kind, fields: dict[str, int], what: str) -> None:
    made = program()
    number = made.record(kind, **fields)
    assert (fed(tracker(), made.data) or "").startswith(f"record {number} ({what.lower()}): ")


def graph(made: Program, nodes: list[bytes], edges: list[tuple[int, int]]) -> int:
    return made.record(Kind.GRAPH_EXEC, exec=0xE000, context=CONTEXT, nodes=len(nodes), edges=len(edges), whole=1,
                       tail=b"".join(nodes) + tails.edges_tail(edges))


def test_a_graph_that_goes_in_a_circle() -> None:
    made = program()
    nodes = [tails.encode_node(NodeKind.EMPTY, node=number) for number in (1, 2, 3)]
    number = graph(made, nodes, [(1, 2), (2, 3), (3, 1)])
    assert fed(tracker(), made.data) == f"record {number} (graph_exec): its edges go round in a circle"


def test_a_node_without_a_handle_is_in_no_child_graph() -> None:
    made = program()
    graph(made, [tails.encode_node(NodeKind.EMPTY, node=number) for number in (0, 1)], [])
    made.record(Kind.GRAPH_LAUNCH, exec=0xE000)
    assert fed(tracker(), made.data) is None


def test_child_graphs_inside_each_other_without_an_end() -> None:
    made = program()
    nodes = [tails.encode_node(NodeKind.CHILD, node=number, parent=number % 3 + 1) for number in (1, 2, 3)]
    number = graph(made, nodes, [])
    assert (fed(tracker(), made.data) or "").startswith(f"record {number} (graph_exec): its child graphs")


def test_a_child_graph_with_too_many_edges_is_refused_soon() -> None:
    made = program()
    first = [tails.encode_node(NodeKind.EMPTY, node=number) for number in range(1, 3001)]
    child = tails.encode_node(NodeKind.CHILD, node=5000)
    members = [tails.encode_node(NodeKind.EMPTY, node=number, parent=5000) for number in range(6000, 9000)]
    number = graph(made, [*first, child, *members], [(other, 5000) for other in range(1, 3001)])
    assert (fed(tracker(), made.data) or "").startswith(f"record {number} (graph_exec): its child graphs have")


def test_numbers_that_go_back() -> None:
    made = program()
    assert fed(tracker(), [*made.data, made.data[1]]) == "record 1 (device): comes behind record 3"


def test_what_is_no_record() -> None:
    made = program()
    assert "at byte" in (fed(tracker(), [made.data[0] + b"\1" * 64]) or "")


def test_one_client_does_not_harm_another() -> None:
    code, good = Code(), [written.data for written in random_program(3, 60).records if not written.lost]
    first, second = tracker(3, code), tracker(3, code)
    bad = program()
    bad.record(Kind.MEMORY, address=0, bytes=16, kind=lib.WIRE_ALLOCATED)
    decisions = [first.take(record) for record in good[: len(good) // 2]]
    assert fed(second, bad.data) is not None
    decisions += [first.take(record) for record in good[len(good) // 2 :]]
    third = tracker(3, code)
    expected = [third.take(record) for record in good]
    assert [words(taken) for taken in decisions] == [words(taken) for taken in expected]
    assert any(decisions)


def test_nodes_of_graphs_that_are_not_there_are_forgotten() -> None:
    made, start = tracker(), program()
    for _ in range(100):
        start.record(Kind.GRAPH_NODE, exec=start.sequence, tail=tails.encode_node(NodeKind.EMPTY, node=1))
    before = start.record(Kind.GRAPH_LAUNCH, exec=start.sequence - 1)
    assert fed(made, start.data) is None
    assert made.tally.opaque == {Reason.UNKNOWN_GRAPH: 1} and before


def test_more_things_than_a_program_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.session.memory.MOST_ALLOCATIONS", 4)
    made = program()
    for number in range(8):
        made.memory(0x100000 * (number + 1), 256)
    assert "more than 4 allocations" in (fed(tracker(), made.data) or "")
    monkeypatch.setattr("orchestrator.session.streams.MOST_STREAMS", 4)
    made = program()
    for number in range(8):
        made.record(Kind.STREAM, handle=0x9000 + number, context=CONTEXT)
    assert "more than 4 streams" in (fed(tracker(), made.data) or "")
    monkeypatch.setattr("orchestrator.session.graphs.MOST_NODES", 4)
    made = program()
    graph(made, [tails.encode_node(NodeKind.EMPTY, node=number) for number in range(1, 8)], [])
    assert "4 nodes" in (fed(tracker(), made.data) or "")


def test_a_variable_that_has_another_size_after_a_gap_is_the_new_one() -> None:
    made = Tracker(Settings(GPUS), random_devices(0, len(GPUS)), Code())
    start = program()
    start.module(b".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 state[64];\n\0")
    for size in (256, 2):
        start.memory(0x50000, size, lib.WIRE_VARIABLE, owner=MODULE, name_bytes=5, tail=b"state")
    assert fed(made, start.data) is None
    found = made.memory.find(0x50000)
    assert found is not None and (found.bytes, found.variable) == (2, "state")
    assert made.memory.regions.find(0x50001) is not None
