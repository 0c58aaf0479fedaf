"""What home or another GPU writes is stale where it was valid; what is sent needs what it reads."""

from __future__ import annotations

from shim import tails
from shim.wire import Kind
from tessera.reasons import Reason
from tests.nodriver.tracker.by_hand import node, set_node, side
from tests.nodriver.tracker.scenes import (
    ADD,
    BUMP,
    BYTES,
    COUNT,
    FOLLOW,
    GROW,
    ODD,
    SWAP,
    TELL,
    A,
    B,
    C,
    D,
    Scene,
    scene,
)  # fmt: skip

HALF = 32
OTHER = 0x40


def _begin(p: Scene) -> None:
    """GPU 1 holds A."""
    p.put(A)
    p.run(ADD, B, A, 1)


def _end(p: Scene) -> None:
    """GPU 1 reads A."""
    p.run(ADD, C, A, 2)
    p.get(C)


@scene("1 1", 2)
def copy_at_home(p: Scene) -> None:
    _begin(p)
    p.put(A, 500)
    _end(p)


@scene("1 1", 2)
def copy_on_the_device(p: Scene) -> None:
    p.put(C, 500)
    _begin(p)
    p.record(Kind.COPY, place=(1, 0xC000), width=BYTES, height=1, depth=1, to=side(A), from_=side(C))
    _end(p)


@scene("1 1", 2)
def rows_copied(p: Scene) -> None:
    """16 rows of 4 bytes, 16 bytes apart: the last is at the end."""
    p.put(C, 500)
    _begin(p)
    p.record(Kind.COPY, place=(1, 0xC000), width=4, height=16, depth=1, to=side(A, pitch=16), from_=side(C, pitch=8))
    _end(p)


@scene("1 1", 2)
def set_at_home(p: Scene) -> None:
    _begin(p)
    p.set(A, 77)
    _end(p)


@scene("1 1", 2)
def rows_set(p: Scene) -> None:
    _begin(p)
    p.record(Kind.SET, place=(1, 0xC000), address=A, width=1, height=HALF, pitch=8, element_bytes=4, value=9)
    _end(p)


@scene("1 1", 2)
def memory_operation(p: Scene) -> None:
    _begin(p)
    p.record(Kind.MEMORY_OPERATIONS, place=(1, 0xC000), count=1, tail=tails.memory_operations_tail([(2, 0, A + 8, 99)]))
    _end(p)


@scene("1 1", 2)
def unknown_memory_operation(p: Scene) -> None:
    _begin(p)
    number = p.set(A, 77)
    p.instead(number, Kind.MEMORY_OPERATIONS, count=1, tail=tails.memory_operations_tail([(99, 0, 0, 0)]))
    _end(p)


@scene("1 1", 2)
def unknown_work(p: Scene) -> None:
    _begin(p)
    p.instead(p.set(A, 77), Kind.OTHER_WORK)
    _end(p)


@scene("1 . 1", 2)
def launch_at_home(p: Scene) -> None:
    _begin(p)
    p.run(ADD, A, B, 5)
    _end(p)


@scene("1 . 1", 2)
def launch_that_may_write(p: Scene) -> None:
    _begin(p)
    p.run(ODD, A, B, 5)
    _end(p)


@scene("1 . 1", 2)
def launch_that_adds(p: Scene) -> None:
    _begin(p)
    p.run(BUMP, A, B, 5)
    _end(p)


def _pointer(p: Scene, address: int) -> None:
    p.memory(D, BYTES)
    p.to_device(D, address.to_bytes(8, "little"))


@scene("1 . 1", 2)
def opaque_launch(p: Scene) -> None:
    _pointer(p, A)
    _begin(p)
    p.run(FOLLOW, D, B, 5)
    _end(p)


@scene("1 . 1", 2, promised=True)
def opaque_launch_with_a_promise(p: Scene) -> None:
    _pointer(p, A)
    _begin(p)
    p.run(FOLLOW, D, A, 5)
    _end(p)


@scene("1 . 1", 2, promised=True)
def opaque_launch_with_a_pointer_to_an_end(p: Scene) -> None:
    """It finds its way back from there."""
    _pointer(p, A)
    _begin(p)
    p.run(FOLLOW, D, A + BYTES, 5)
    _end(p)


@scene("1 1", 1, [Reason.POINTER_FROM_MEMORY], promised=True)
def opaque_launch_sent(p: Scene) -> None:
    """With a promise there are ranges, but its pointers cannot be changed."""
    _pointer(p, A)
    _begin(p)
    p.set(C, 1)
    p.run(FOLLOW, D, A, 5)
    p.get(A)


@scene("1 2 1", 3)
def another_gpu_writes(p: Scene) -> None:
    _begin(p)
    p.set(C, 1)
    p.run(ADD, A, B, 5)
    _end(p)


@scene("1 0+2 1", 3)
def a_mirrored_launch_writes(p: Scene) -> None:
    _begin(p)
    p.set(C, 1)
    p.run(ADD, A, B, 5)
    _end(p)


@scene("1 2 1", 2, [Reason.POINTER_ESCAPES])
def a_refused_launch_writes(p: Scene) -> None:
    _begin(p)
    p.run(TELL, A, B, block=1)
    _end(p)


@scene("1 0+1+2 1", 3, [Reason.FULL_DEVICE], rooms=[0, 3 * BYTES, 0])
def a_launch_that_is_mirrored_on_one_gpu_of_two(p: Scene) -> None:
    p.run(ADD, B, A, 1)
    p.put(A)
    p.run(GROW, A, B, 5)
    _end(p)


@scene("2 0+1+2 2", 3, [Reason.FULL_DEVICE], rooms=[0, 0, 3 * BYTES])
def a_launch_that_is_mirrored_on_the_other_gpu(p: Scene) -> None:
    a_launch_that_is_mirrored_on_one_gpu_of_two(p)


@scene("1 0+1+2 1", 2, [Reason.FULL_DEVICE] * 2, rooms=[0, 2 * BYTES, 0])
def a_launch_that_is_mirrored_nowhere(p: Scene) -> None:
    """GPU 1 still holds A as it was; it has room for two."""
    p.put(A)
    p.run(ADD, B, A, 1)
    p.record(Kind.SYNCHRONIZE, what=1)
    p.memory(D, 2 * BYTES)
    p.set(D, 3)
    p.run(GROW, A, D, 5)
    p.run(ADD, B, A, 2)
    p.get(B)


@scene("1", 1)
def gathers_what_is_read(p: Scene) -> None:
    _begin(p)
    p.get(B)


@scene("1", 1)
def gathers_and_applies_what_may_be_written(p: Scene) -> None:
    p.put(A)
    p.put(B, 300)
    p.run(ODD, B, A)
    p.get(B)


@scene("1", 1)
def gathers_and_applies_what_is_added_to(p: Scene) -> None:
    p.put(A)
    p.run(BUMP, A, B, 5)
    p.get(A)


@scene("1", 1)
def what_is_read_before_it_is_written(p: Scene) -> None:
    p.put(A)
    p.put(B, 300)
    p.run(GROW, B, A, 5)
    p.get(B)


@scene("1 1", 1)
def half_is_made_in_the_segment(p: Scene) -> None:
    p.put(A)
    p.put(C, 300)
    p.run(ADD, C, A, 5, block=HALF)
    p.run(ADD, B, C, 5)
    p.get(B)


@scene("1 1", 2)
def several_pieces_are_stale(p: Scene) -> None:
    _begin(p)
    for word in (3, 9, 21):
        p.to_device(A + 4 * word, b"\xee" * 8)
    _end(p)


@scene("1 1", 2)
def what_is_valid_ends_where_it_ends(p: Scene) -> None:
    """Half of A is gathered, and half of B written."""
    p.put(A)
    p.put(B, 300)
    p.run(ADD, B, A, 1, block=HALF)
    p.set(C, 0)
    p.run(GROW, B, A, 2)
    p.get(B)


@scene("1 . 1", 2)
def a_variable_written_at_home(p: Scene) -> None:
    p.memory(0x10_0001_0000, 4, kind=9, owner=0xA000, name_bytes=5, tail=b"total")
    for _ in range(3):
        p.run(COUNT, B, A, 3, block=1)
    p.get(B)


def _nodes(p: Scene, *nodes: bytes, edges: tuple[tuple[int, int], ...] = ()) -> None:
    p.graph(nodes, edges)


@scene("1 1", 2)
def set_in_a_graph(p: Scene) -> None:
    _nodes(p, set_node(OTHER, A, 5))
    _begin(p)
    p.launch_graph()
    _end(p)


@scene("1 . 1", 2)
def launch_in_a_graph(p: Scene) -> None:
    _nodes(p, node(OTHER, ADD, A, B, 5))
    _begin(p)
    p.launch_graph()
    _end(p)


@scene("1 1", 2)
def unknown_graph(p: Scene) -> None:
    _nodes(p, node(OTHER, ADD, A, B, 5))
    p.instead(p.sequence - 1, Kind.GRAPH_EXEC, exec=0xE0, context=0xC000, whole=0)
    _begin(p)
    p.launch_graph()
    _end(p)


@scene("1 . 1", 2)
def exchange_at_home(p: Scene) -> None:
    _begin(p)
    p.run(SWAP, A, B, 5)
    _end(p)
