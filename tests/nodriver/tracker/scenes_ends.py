"""Memory that ends, pointers into it, and module variables."""

from __future__ import annotations

from shim.wire import Kind, lib
from tessera.content import content
from tessera.reasons import Reason
from tests.nodriver.tracker.scenes import (
    ADD,
    BYTES,
    CONTEXT,
    COUNT,
    GROW,
    STIR,
    TEXT,
    A,
    B,
    C,
    D,
    Scene,
    scene,
)  # fmt: skip
from tests.program_records import MODULE

SECOND, TOTAL = 0xC200, 0x10_0001_0000


# Ends.


@scene("1 1", 2)
def memory_in_the_place_of_other_memory(p: Scene) -> None:
    """Other sizes have other replicas."""
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.free(A)
    p.memory(A, 2 * BYTES)
    p.set(A + BYTES, 4)
    p.put(A)
    p.run(ADD, B, A + 128, 1)
    p.get(B)


@scene("1 1", 2)
def memory_in_the_place_of_memory_that_ended_unseen(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.hide(p.free(A))
    p.memory(A, 2 * BYTES)
    p.put(A)
    p.put(A + BYTES, 7)
    p.run(ADD, B, A + BYTES, 1)
    p.get(B)


@scene("1 1", 2)
def memory_that_overlaps_memory_that_ended_unseen(p: Scene) -> None:
    p.memory(D, BYTES)
    p.put(D)
    p.run(ADD, B, D, 1)
    p.get(B)
    p.hide(p.free(D))
    p.memory(D - 128, 2 * BYTES)
    p.put(D - 128)
    p.put(D + 128, 7)
    p.run(ADD, B, D + 64, 1)
    p.get(B)


@scene("1 1", 2)
def the_same_launch_on_other_memory(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.free(A)
    p.memory(A, 2 * BYTES)
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)


@scene("1 1", 2)
def memory_ends_with_its_context(p: Scene) -> None:
    p.record(Kind.CONTEXT, handle=SECOND, device=0)
    p.record(Kind.MEMORY, address=D, bytes=BYTES, context=SECOND, kind=lib.WIRE_ALLOCATED)
    p.put(D)
    p.run(ADD, B, D, 1)
    p.get(B)
    p.ended(Kind.CONTEXT, SECOND)
    p.memory(D + 128, BYTES)
    p.put(D + 128, 9)
    p.run(ADD, B, D + 128, 1)
    p.get(B)


# Pointers.


@scene("1 1 1", 3)
def the_same_kernel_with_other_parameters(p: Scene) -> None:
    p.put(A)
    p.put(B, 300)
    p.run(ADD, C, A, 1)
    p.get(C)
    p.run(ADD, C, B, 1)
    p.get(C)
    p.run(ADD, C, A, 1, block=32)
    p.get(C)


@scene("1 1", 1)
def pointers_into_the_middle(p: Scene) -> None:
    p.memory(D, 3 * BYTES)
    p.set(D, 8)
    p.put(D + BYTES)
    p.put(D + 2 * BYTES, 7)
    p.run(GROW, D + 2 * BYTES, D + BYTES, 3)
    p.run(ADD, D + BYTES, D + 2 * BYTES, 3)
    p.get(D + BYTES)


# Module variables.


def _find(p: Scene) -> None:
    p.memory(TOTAL, 4, lib.WIRE_VARIABLE, owner=MODULE, name_bytes=5, tail=b"total")


def _end(p: Scene) -> None:
    p.get(B)
    _find(p)
    p.to_host(TOTAL, bytes(4))


@scene("1 1", 0, [Reason.UNKNOWN_ADDRESS] * 2)
def a_variable_without_an_address_is_written(p: Scene) -> None:
    p.run(COUNT, B, A, 3, block=1)
    p.get(B)
    p.run(COUNT, B, A, 3, block=1)
    _end(p)


@scene(". 0+1", 0, [Reason.UNKNOWN_ADDRESS])
def a_variable_without_an_address_is_gathered(p: Scene) -> None:
    p.run(COUNT, B, A, 3, block=1)
    p.run(COUNT, B, A, 3, block=1)
    _end(p)


@scene("0+1 1", 2)
def a_variable_as_its_module_says(p: Scene) -> None:
    p.run(COUNT, B, A, 3, block=1)
    p.get(B)
    p.run(ADD, C, B, 3, block=1)
    p.get(C)


@scene(". 1", 1)
def a_variable_is_found_when_it_was_written(p: Scene) -> None:
    p.run(COUNT, B, A, 3, block=1)
    _find(p)
    p.run(COUNT, B, A, 3, block=1)
    _end(p)


@scene(". 1", 1)
def something_unknown_has_written_a_variable(p: Scene) -> None:
    """A kernel that no record has named."""
    number = p.run(COUNT, B, A, 3, block=1)
    p.instead(number, Kind.LAUNCH, function=0xDEAD, grid=(1, 1, 1), block=(1, 1, 1))
    _find(p)
    p.run(COUNT, B, A, 3, block=1)
    _end(p)


@scene("1 . 1", 2, promised=True)
def something_opaque_has_written_a_known_variable(p: Scene) -> None:
    p.memory(D, BYTES)
    p.to_device(D, A.to_bytes(8, "little"))
    p.put(A)
    _find(p)
    p.run(COUNT, B, A, 3, block=1)
    p.get(B)
    p.run(STIR, D, A, 3, block=1)
    p.run(COUNT, B, A, 3, block=1)
    _end(p)


@scene(". 1", 1)
def a_module_in_the_place_of_another(p: Scene) -> None:
    p.run(COUNT, B, A, 3, block=1)
    p.synchronize()
    p.ended(Kind.MODULE, MODULE)
    p.record(Kind.MODULE, handle=MODULE, context=CONTEXT, image=lib.WIRE_IMAGE_PTX, bytes=len(TEXT),
             content=content(TEXT.encode()))
    p.function("count", [(0, 8), (8, 8), (16, 4)], COUNT)
    _find(p)
    p.run(COUNT, B, A, 3, block=1)
    _end(p)
