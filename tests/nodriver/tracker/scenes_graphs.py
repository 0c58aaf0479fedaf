"""Graphs that are taken apart, and gaps in the records."""

from __future__ import annotations

from shim import tails
from shim.wire import Kind, NodeKind, lib, records
from tests.nodriver.tracker.by_hand import node, set_node, words
from tests.nodriver.tracker.scenes import (
    ADD,
    BYTES,
    CONTEXT,
    COUNT,
    GROW,
    ODD,
    ONE,
    SCATTER,
    TWO,
    A,
    B,
    C,
    D,
    Scene,
    scene,
)  # fmt: skip
from tests.program_records import MODULE

FIRST, SECOND, THIRD, CHILD = 0x40, 0x41, 0x42, 0x43
OTHER, TOTAL = 0xC100, 0x10_0001_0000


def _put(p: Scene) -> None:
    p.put(A)
    p.put(B, 300)
    p.put(C, 600)


def _end(p: Scene) -> None:
    for address in (A, B, C):
        p.get(address)


@scene("1 1", 1)
def edges_say_the_order(p: Scene) -> None:
    """The second node of the record comes first."""
    _put(p)
    p.graph([node(FIRST, ADD, C, B, 1), node(SECOND, GROW, B, A, 2)], [(SECOND, FIRST)])
    p.launch_graph()
    _end(p)


@scene("1 . 1", 2)
def a_graph_is_taken_apart(p: Scene) -> None:
    _put(p)
    nodes = [node(FIRST, GROW, B, A, 1), node(SECOND, GROW, C, B, 2), set_node(THIRD, A, 5), node(CHILD, ADD, B, C, 3)]
    p.graph(nodes, [(FIRST, SECOND), (SECOND, THIRD), (THIRD, CHILD)])
    p.launch_graph()
    _end(p)


@scene("1 1", 2)
def a_set_between_two_nodes(p: Scene) -> None:
    """The set is behind the first, and before the second."""
    _put(p)
    p.graph([node(FIRST, GROW, B, A, 1), set_node(SECOND, A, 5), node(THIRD, GROW, B, A, 2)],
            [(FIRST, SECOND), (SECOND, THIRD)])
    p.launch_graph()
    _end(p)


@scene("1 1 1", 2)
def a_node_that_is_switched_off(p: Scene) -> None:
    _put(p)
    p.graph([node(FIRST, ADD, B, A, 1), node(SECOND, GROW, C, B, 2)], [(FIRST, SECOND)])
    p.launch_graph()
    p.set(A, 9)
    p.record(Kind.GRAPH_NODE, exec=0xE0, tail=node(FIRST, ADD, B, A, 1, enabled=0))
    p.launch_graph()
    _end(p)


@scene("1 1", 2)
def a_node_with_other_parameters(p: Scene) -> None:
    _put(p)
    p.graph([node(FIRST, ADD, B, A, 1)], [])
    p.launch_graph()
    p.record(Kind.GRAPH_NODE, exec=0xE0, tail=node(FIRST, GROW, C, A, 5))
    p.launch_graph()
    _end(p)


@scene("1", 1)
def a_node_that_nobody_knows_any_more(p: Scene) -> None:
    """GPU 1 holds A. A node has become something that writes it."""
    _put(p)
    p.graph([set_node(FIRST, C, 1)], [])
    p.record(Kind.GRAPH_NODE, exec=0xE0, tail=set_node(FIRST, A, 1))
    p.instead(p.sequence - 1, Kind.GRAPH_NODE, exec=0xE0, tail=tails.encode_node(NodeKind.OTHER, node=FIRST))
    p.launch_graph()
    p.run(ADD, B, A, 1)
    _end(p)


@scene("1 1", 2)
def a_node_of_an_unknown_kind(p: Scene) -> None:
    _put(p)
    p.run(ADD, B, A, 1)
    p.graph([set_node(FIRST, A, 1)], [])
    p.instead(p.sequence - 1, Kind.GRAPH_EXEC, exec=0xE0, context=CONTEXT, whole=1, nodes=1,
              tail=tails.encode_node(NodeKind.OTHER, node=FIRST))
    p.launch_graph()
    p.run(ADD, B, A, 1)
    _end(p)


def _child(*edges: tuple[int, int]) -> tuple[list[bytes], list[tuple[int, int]]]:
    """The record has a node of the child first, then one beside the child, then the child."""
    return [node(FIRST, GROW, C, B, 1, parent=CHILD), node(SECOND, GROW, B, A, 2),
            tails.encode_node(NodeKind.CHILD, node=CHILD)], [*edges]


@scene("1 1", 1)
def a_child_is_behind_what_is_before_it(p: Scene) -> None:
    _put(p)
    p.graph(*_child((SECOND, CHILD)))
    p.launch_graph()
    _end(p)


@scene("1 1", 2)
def what_is_behind_a_child(p: Scene) -> None:
    """The record has it before the child's node."""
    _put(p)
    p.graph([node(SECOND, GROW, B, C, 2), tails.encode_node(NodeKind.CHILD, node=CHILD),
             node(FIRST, GROW, C, A, 1, parent=CHILD)], [(CHILD, SECOND)])
    p.launch_graph()
    _end(p)


@scene("1 1", 1)
def a_child_that_is_switched_off(p: Scene) -> None:
    _put(p)
    nodes, edges = _child((SECOND, CHILD))
    p.graph([*nodes[:2], tails.encode_node(NodeKind.CHILD, node=CHILD, enabled=0)], edges)
    p.launch_graph()
    _end(p)


@scene("1", 1)
def a_graph_in_the_place_of_another(p: Scene) -> None:
    _put(p)
    p.graph([node(FIRST, ADD, B, A, 1)], [])
    p.ended(Kind.GRAPH_EXEC, 0xE0)
    p.graph([node(FIRST, GROW, C, A, 1)], [])
    p.launch_graph()
    _end(p)


@scene("1 1", 1)
def a_node_of_another_gpu(p: Scene) -> None:
    """It stays: its stream is this GPU's."""
    _put(p)
    p.record(Kind.DEVICE, ordinal=1, capability=80, memory=1 << 30, name_bytes=3, tail=b"GPU")
    p.record(Kind.CONTEXT, handle=OTHER, device=2)
    p.graph([node(FIRST, GROW, B, A, 1), node(SECOND, ADD, C, B, 5, context=OTHER)], [(FIRST, SECOND)])
    p.launch_graph()
    _end(p)


@scene("1 1", 1)
def memory_of_a_graph(p: Scene) -> None:
    _put(p)
    nodes = [tails.encode_node(NodeKind.ALLOCATE, node=FIRST, address=D, bytes=BYTES, device=0),
             node(SECOND, ADD, D, A, 1), node(THIRD, ADD, B, D, 1),
             tails.encode_node(NodeKind.FREE, node=CHILD, address=D)]
    p.graph(nodes, [(FIRST, SECOND), (SECOND, THIRD), (THIRD, CHILD)])
    p.launch_graph()
    _end(p)


# Gaps.


SAID_AGAIN = {Kind.DRIVER, Kind.DEVICE, Kind.CONTEXT, Kind.MODULE, Kind.FUNCTION, Kind.STREAM, Kind.MEMORY}


def _again(p: Scene, *ended: int) -> None:
    """Records were lost: what there is is said again, but not what has ended."""
    before = list(records(b"".join(p.data)))
    p.record(Kind.EPOCH, epoch=1, lost=1)
    for record, data in zip(before, p.data, strict=False):
        if record.kind not in SAID_AGAIN or (record.kind is Kind.MEMORY and record.body.address in ended):
            continue
        if record.flags & lib.WIRE_RESTATED:
            continue
        again = bytearray(data)
        again[6:8] = lib.WIRE_RESTATED.to_bytes(2, "little")
        again[8:16] = p.sequence.to_bytes(8, "little")
        p.data.append(bytes(again))
        p.sequence += 1


def _lose(p: Scene, number: int) -> None:
    p.lost.add(number)


@scene("1 1", 2)
def what_a_lost_record_wrote(p: Scene) -> None:
    _put(p)
    p.run(ADD, B, A, 1)
    p.synchronize()
    _lose(p, p.set(A, 9))
    _again(p)
    p.synchronize()
    p.run(GROW, B, A, 1)
    _end(p)


@scene("1 1", 2)
def a_record_is_missing_and_nobody_says_so(p: Scene) -> None:
    _put(p)
    p.run(ADD, B, A, 1)
    p.synchronize()
    _lose(p, p.set(A, 9))
    p.synchronize()
    p.run(GROW, B, A, 1)
    _end(p)


@scene("1 1 . 1 1", 2)
def a_table_that_a_lost_record_wrote(p: Scene) -> None:
    p.memory(D, 2 * BYTES)
    p.put(D)
    p.put(D + BYTES)
    p.to_device(C, words(range(64)))
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    p.synchronize()
    _lose(p, p.set(C, 100))
    p.synchronize()
    p.run(SCATTER, D, C, 7)
    p.synchronize()
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    _end(p)


@scene("1 1 1", 2)
def a_launch_before_the_next_step(p: Scene) -> None:
    _put(p)
    p.run(ADD, B, A, 1)
    p.synchronize()
    _lose(p, p.set(A, 9))
    _again(p)
    p.run(GROW, B, A, 1)
    p.synchronize()
    p.run(GROW, B, A, 1)
    _end(p)


@scene("1 1 1", 2)
def a_copy_to_the_host_ends_a_step(p: Scene) -> None:
    _put(p)
    p.run(ADD, B, A, 1)
    p.synchronize()
    _lose(p, p.set(A, 9))
    _again(p)
    p.run(GROW, B, A, 1)
    p.get(B)
    p.run(GROW, B, A, 1)
    _end(p)


@scene("1", 1)
def a_variable_that_a_lost_launch_wrote(p: Scene) -> None:
    _put(p)
    _lose(p, p.run(COUNT, B, A, 3, block=1))
    _again(p)
    p.synchronize()
    p.memory(TOTAL, 4, lib.WIRE_VARIABLE, owner=MODULE, name_bytes=5, tail=b"total")
    p.run(COUNT, B, A, 3, block=1)
    _end(p)


@scene(". 1 " * 4, 4, orders=range(21, 46))
def a_stream_that_was_lost_at_work(p: Scene) -> None:
    """It has much to do, four times."""
    _put(p)
    p.stream(ONE)
    p.stream(TWO)
    for times in range(4):
        for k in range(20):
            _lose(p, p.run(ODD, B, A, 40 * times + 2 * k, ONE))
        _again(p)
        p.outcome(p.record(Kind.SYNCHRONIZE, place=(TWO, CONTEXT), what=lib.WIRE_WAITED_STREAM))
        p.run(ADD, C, A, 1, TWO)
        p.run(ODD, B, A, 2 * times + 1, TWO)
        p.synchronize()
        _end(p)


@scene("1 1", 2)
def memory_that_ended_in_a_gap(p: Scene) -> None:
    """Its place is another's, of another size, and nobody has seen where the first has ended."""
    p.memory(D, BYTES)
    p.put(D)
    p.run(ADD, B, D, 1)
    p.synchronize()
    _lose(p, p.free(D))
    _again(p, D)
    p.memory(D - 128, BYTES)
    p.put(D - 128, 5)
    p.synchronize()
    p.run(ADD, B, D - 128, 1)
    p.get(B)


