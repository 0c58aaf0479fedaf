"""Forks and joins, segments, mirrored launches, streams."""

from __future__ import annotations

from collections.abc import Callable

from shim import tails
from shim.wire import Kind, NodeKind, lib
from tessera.reasons import Reason
from tests.nodriver.tracker.by_hand import PER_THREAD, node
from tests.nodriver.tracker.scenes import (
    ADD,
    BYTES,
    CONTEXT,
    GROW,
    LEGACY,
    ODD,
    ONE,
    POWER,
    SWAP,
    TWO,
    A,
    B,
    C,
    D,
    Scene,
    scene,
)  # fmt: skip

MANY, ROUNDS = range(1, 13), 6
"""Seeds of delays, and how often a scene is played in which something may come too early."""
EVENT, CAPTURED, OTHER = 0x77, lib.WIRE_CAPTURED, 0xC100


def _two(p: Scene) -> None:
    """Two streams, and numbers for them."""
    p.put(A)
    p.put(B, 300)
    p.stream(ONE)
    p.stream(TWO)


def _end(p: Scene) -> None:
    p.synchronize()
    p.get(B)
    p.get(C)


def rounds(places: str, jobs: int) -> Callable[[Callable[[Scene, int], None]], Callable[[Scene, int], None]]:
    """Adds a scene that is played several times. In each round one stream is at work on every other element of B, and
    a segment on the others."""
    def add(write: Callable[[Scene, int], None]) -> Callable[[Scene, int], None]:
        def play(p: Scene) -> None:
            _two(p)
            for k in range(ROUNDS):
                write(p, 2 * k)
                _end(p)
        play.__name__ = write.__name__
        scene(" ".join([places] * ROUNDS), jobs * ROUNDS, orders=MANY)(play)
        return write
    return add


@rounds(". 1", 1)
def a_stream_has_launched(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k, ONE)
    p.run(ODD, B, A, k + 1, TWO)


@rounds(". 1", 1)
def several_streams_are_at_work(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k, ONE)
    p.set(C, k, LEGACY)
    p.run(ODD, B, A, k + 1, TWO)


def _rows(k: int) -> dict[str, int]:
    return {"address": B, "width": 1, "height": 32, "pitch": 8, "element_bytes": 4, "value": k}


@rounds("1", 1)
def a_stream_has_set(p: Scene, k: int) -> None:
    p.record(Kind.SET, place=(ONE, CONTEXT), **_rows(k))
    p.run(ODD, B, A, k + 1, TWO)


@rounds(". 1", 1)
def a_stream_has_launched_a_graph(p: Scene, k: int) -> None:
    p.graph([node(0x40, ODD, B, A, k)], [])
    p.launch_graph(stream=ONE)
    p.run(ODD, B, A, k + 1, TWO)


@rounds("1", 1)
def a_stream_has_set_in_a_graph(p: Scene, k: int) -> None:
    p.graph([tails.encode_node(NodeKind.SET, node=0x40, **_rows(k))], [])
    p.launch_graph(stream=ONE)
    p.run(ODD, B, A, k + 1, TWO)


@rounds("0+2 1", 2)
def a_stream_has_mirrored(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k, ONE)
    p.run(ODD, B, A, k + 1, TWO)


@rounds(". 1", 1)
def a_destroyed_stream_goes_on(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k, ONE)
    p.ended(Kind.STREAM, ONE)
    p.run(ODD, B, A, k + 1, TWO)
    p.stream(ONE)


@rounds(". . 1", 1)
def one_stream_was_waited_for(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k, ONE)
    p.run(ADD, C, A, k, TWO)
    p.outcome(p.record(Kind.SYNCHRONIZE, place=(TWO, CONTEXT), what=lib.WIRE_WAITED_STREAM))
    p.run(ODD, B, A, k + 1, TWO)


@rounds(". 1", 1)
def another_context_was_waited_for(p: Scene, k: int) -> None:
    p.record(Kind.CONTEXT, handle=OTHER, device=0)
    p.run(ODD, B, A, k, ONE)
    p.outcome(p.record(Kind.SYNCHRONIZE, place=(0, OTHER), what=lib.WIRE_WAITED_CONTEXT))
    p.run(ODD, B, A, k + 1, TWO)


@rounds("1 .", 1)
def others_are_held(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k + 1, TWO)
    p.run(ODD, B, A, k, ONE)


@rounds("1 1", 2)
def segments_of_two_streams(p: Scene, k: int) -> None:
    p.run(ODD, B, A, k + 1, TWO)
    p.run(ODD, B, A, k, ONE)


@rounds("0+1 .", 1)
def an_event_closes(p: Scene, k: int) -> None:
    """Mirrored launches hold nobody: it is by the event that the second stream is behind the first."""
    p.record(Kind.EVENT, handle=EVENT, context=CONTEXT, flags=2)
    p.run(ADD, B, A, k, ONE)
    p.record_event(EVENT, ONE)
    p.wait_event(EVENT, TWO)
    p.run(ADD, C, B, k, TWO)


@scene("1 1", 2)
def segments_of_two_threads(p: Scene) -> None:
    p.put(A)
    for thread in (7, 8):
        p.run(ADD, B if thread == 7 else C, A, thread, PER_THREAD)
        p.by_thread(thread)
    _end(p)


@scene("1 1", 2)
def a_stream_with_the_handle_of_another(p: Scene) -> None:
    p.put(A)
    p.stream(ONE)
    p.run(ADD, B, A, 5, ONE)
    p.synchronize()
    p.hide(p.ended(Kind.STREAM, ONE))
    p.stream(ONE)
    p.run(ADD, C, A, 5, ONE)
    _end(p)


@scene("1 2", 2)
def segments_for_two_gpus(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 5)
    p.run(GROW, B, A, 6)
    _end(p)


@scene("1 0+1", 2)
def sent_then_mirrored(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 5)
    p.run(GROW, B, A, 6)
    _end(p)


@scene("1 .", 1)
def a_launch_at_home_closes(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 5)
    p.run(GROW, B, B, 6)
    _end(p)


@scene("1 1", 2)
def a_wait_for_an_event_closes(p: Scene) -> None:
    """The second launch is behind the other stream's set, the first before it."""
    _two(p)
    p.record(Kind.EVENT, handle=EVENT, context=CONTEXT, flags=2)
    p.put(C, 900)
    p.set(C, 7, TWO)
    p.record_event(EVENT, TWO)
    p.run(ADD, B, A, 5, ONE)
    p.wait_event(EVENT, ONE)
    p.run(ADD, B, C, 6, ONE)
    _end(p)


@scene("1 1 1", 1)
def a_launch_that_failed(p: Scene) -> None:
    p.put(A)
    p.put(B, 300)
    p.run(ADD, B, A, 5)
    p.outcome(p.run(GROW, B, B, 6), result=1)
    p.run(GROW, B, A, 7)
    _end(p)


@scene("1 1", 1)
def a_captured_launch(p: Scene) -> None:
    """It was not done, and asks nobody."""
    p.put(A)
    p.stream(ONE)
    p.run(ADD, B, A, 5)
    p.launch(bytes(20), ADD, place=(ONE, CONTEXT), marks=CAPTURED)
    p.run(GROW, B, A, 5)
    _end(p)


@scene("2 . 0 1", 2, home=1)
def home_is_gpu_1(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 5)
    p.set(C, 1)
    p.run(GROW, C, A, 5)
    p.run(GROW, B, A, 5)
    p.run(GROW, B, B, 5)
    _end(p)


# Mirrored.


@scene("0+1 1", 2)
def mirrored_launches_gather(p: Scene) -> None:
    p.put(A)
    p.put(B, 300)
    p.run(GROW, B, A, 5)
    p.run(ADD, C, B, 6)
    _end(p)


@scene("0+1+2 1 2", 4)
def mirrored_on_two(p: Scene) -> None:
    """What is gathered for the second is what was there before it ran at home."""
    p.put(A)
    p.put(B, 300)
    p.run(GROW, B, A, 5)
    p.run(ADD, C, B, 6)
    p.run(GROW, C, B, 6)
    _end(p)


@scene("0+1", 0, [Reason.NOT_DETERMINISTIC])
def mirrored_and_not_deterministic(p: Scene) -> None:
    p.run(SWAP, B, A, 5)
    _end(p)


@scene("0+1", 0, [Reason.DEVICE_VARIANT])
def mirrored_and_device_variant(p: Scene) -> None:
    p.put(A)
    p.run(POWER, B, A, 5)
    _end(p)


# Room.


@scene("1 1 1 1", 4, rooms=[0, 2 * BYTES, 0])
def two_replicas_have_room(p: Scene) -> None:
    """A gives way to C, and B to A."""
    p.put(A)
    p.run(ADD, B, A, 1)
    p.set(C, 3)
    p.run(GROW, B, C, 2)
    p.set(C, 4)
    p.run(GROW, C, A, 3)
    p.get(C)
    p.run(GROW, B, A, 4)
    _end(p)


@scene("1 1", 2, rooms=[0, 2 * BYTES, 0])
def what_is_wanted_does_not_give_way(p: Scene) -> None:
    """A was there first, and B gives way."""
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.memory(D, BYTES)
    p.run(ADD, D, A, 1)
    p.get(D)


@scene("1 1", 1, [Reason.FULL_DEVICE], rooms=[0, 2 * BYTES, 0])
def no_room(p: Scene) -> None:
    p.memory(D, 2 * BYTES)
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.run(ADD, D, A, 1)
    p.get(D)


@scene("1 1 1", 3, rooms=[0, 2 * BYTES, 0])
def freed_memory_gives_its_room_back(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.free(A)
    p.free(B)
    for address in (A, D):
        p.memory(address, BYTES)
        p.put(address, 600)
    p.run(ADD, D, A, 1)
    p.get(D)
    p.free(D)
    p.run(ADD, C, A, 1)
    p.get(C)


@scene("7", 0, [Reason.UNKNOWN_DEVICE])
def no_such_gpu(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
    _end(p)


@scene("1", 0, [Reason.NO_IMAGE], capability=60)
def no_image(p: Scene) -> None:
    """The PTX is for 7.0."""
    p.put(A)
    p.run(ADD, B, A, 1)
    _end(p)


@scene("1", 1)
def the_last_launch(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
