"""What stays at home, by its memory and otherwise; memory with several addresses."""

from __future__ import annotations

from shim import tails
from shim.wire import Kind, lib
from tessera.reasons import Reason
from tests.nodriver.tracker.by_hand import parameters, side
from tests.nodriver.tracker.scenes import (
    ADD,
    BYTES,
    CONTEXT,
    GROW,
    PICK,
    SCATTER,
    TELL,
    A,
    B,
    C,
    D,
    Scene,
    scene,
)  # fmt: skip

PAGE = 4096
V, W = 0x20_0000_0000, 0x20_0000_8000
"""Reservations of two pages each."""
SECOND = 0xC200


# What stays.


@scene("1 1", 0, [Reason.POINTER_ESCAPES] * 2)
def a_pointer_that_escapes(p: Scene) -> None:
    """What it stores is the program's address."""
    p.run(TELL, B, A, block=1)
    p.get(B)
    p.run(TELL, B, A, block=1)
    p.get(B)


def _host_writes(p: Scene, kind: int) -> None:
    """Somebody writes memory without a word between two launches that read it."""
    p.memory(D, BYTES, kind)
    p.hide(p.set(D, 1))
    p.run(ADD, B, D, 1)
    p.synchronize()
    p.hide(p.set(D, 2))
    p.run(ADD, C, D, 1)
    p.get(B)
    p.get(C)


@scene("1 1", 0, [Reason.MANAGED_MEMORY] * 2)
def managed_memory(p: Scene) -> None:
    _host_writes(p, lib.WIRE_MANAGED)


@scene("1 1", 0, [Reason.HOST_MEMORY] * 2)
def host_memory(p: Scene) -> None:
    _host_writes(p, lib.WIRE_HOST)


@scene("1 1", 0, [Reason.HOST_MEMORY] * 2)
def registered_memory(p: Scene) -> None:
    _host_writes(p, lib.WIRE_REGISTERED)


@scene("1 1", 0, [Reason.SHARED_MEMORY] * 2)
def imported_memory(p: Scene) -> None:
    _host_writes(p, lib.WIRE_IMPORTED)


@scene("1 1", 1, [Reason.SHARED_MEMORY])
def exported_memory(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
    p.record(Kind.EXPORT, address=A, kind=int(Kind.MEMORY))
    p.synchronize()
    p.hide(p.set(A, 2))
    p.run(ADD, C, A, 1)
    p.get(C)


def _page(p: Scene, address: int, physical: int, fresh: bool = True) -> None:
    if fresh:
        p.record(Kind.PHYSICAL, handle=physical, bytes=PAGE, type=1, location_type=1)
    p.record(Kind.MEMORY, address=address, bytes=PAGE, kind=lib.WIRE_MAPPED, owner=physical)


def _reserve(p: Scene) -> None:
    for address in (V, W):
        p.record(Kind.RESERVATION, address=address, bytes=2 * PAGE)


def _unmap(p: Scene, address: int) -> None:
    p.synchronize()
    p.ended(Kind.MEMORY, address, memory=lib.WIRE_MAPPED, bytes=PAGE)


@scene("1 1", 1, [Reason.SHARED_MEMORY])
def exported_physical_memory(p: Scene) -> None:
    _reserve(p)
    _page(p, V, 0x70)
    p.put(V)
    p.run(ADD, B, V, 1)
    p.record(Kind.EXPORT, address=0x70, kind=int(Kind.PHYSICAL))
    p.synchronize()
    p.hide(p.set(V, 2))
    p.run(ADD, C, V, 1)
    p.get(C)


@scene("1", 0, [Reason.SHARED_MEMORY])
def physical_memory_exported_before(p: Scene) -> None:
    _reserve(p)
    p.record(Kind.PHYSICAL, handle=0x70, bytes=PAGE, type=1, location_type=1)
    p.record(Kind.EXPORT, address=0x70, kind=int(Kind.PHYSICAL))
    _page(p, V, 0x70, fresh=False)
    p.put(V)
    p.run(ADD, B, V, 1)
    p.get(B)


@scene("1", 0, [Reason.PEER_MEMORY])
def memory_of_another_gpu(p: Scene) -> None:
    p.record(Kind.DEVICE, ordinal=1, capability=80, memory=1 << 30, name_bytes=3, tail=b"GPU")
    p.record(Kind.CONTEXT, handle=SECOND, device=1, primary=1)
    p.record(Kind.MEMORY, address=D, bytes=BYTES, context=SECOND, kind=lib.WIRE_ALLOCATED, device=1)
    p.put(D)
    p.run(ADD, B, D, 1)
    p.get(B)


@scene("1 1", 1, [Reason.COOPERATIVE_LAUNCH])
def a_cooperative_launch(p: Scene) -> None:
    p.put(A)
    p.run(ADD, B, A, 1)
    p.get(B)
    p.launch(parameters(C, A, 1), ADD, flags=lib.WIRE_COOPERATIVE)
    p.get(C)


def _attribute(p: Scene, number: int, value: bytes) -> None:
    given = parameters(C, A, 1)
    p.put(A)
    p.record(Kind.LAUNCH, function=ADD, grid=(1, 1, 1), block=(64, 1, 1), parameter_bytes=len(given), attributes=1,
             tail=tails.launch_tail(given, [(number, value)]))
    p.get(C)


@scene("1", 0, [Reason.COOPERATIVE_LAUNCH])
def a_launch_that_an_attribute_makes_cooperative(p: Scene) -> None:
    _attribute(p, 2, (1).to_bytes(64, "little"))


@scene("1", 0, [Reason.CLUSTER])
def a_launch_in_clusters(p: Scene) -> None:
    _attribute(p, 4, b"".join([n.to_bytes(4, "little") for n in (2, 1, 1)]).ljust(64, b"\0"))


@scene("1", 0, [Reason.LAUNCH_ATTRIBUTE])
def a_launch_with_an_attribute(p: Scene) -> None:
    _attribute(p, 6, (1).to_bytes(64, "little"))


@scene(". 1", 0, [Reason.UNBOUNDED_WRITE])
def a_write_to_anywhere(p: Scene) -> None:
    p.put(A)
    p.run(ADD, C, A)
    p.run(SCATTER, B, C, 1)
    p.get(B)


@scene(". 0+1", 0, [Reason.POINTER_ESCAPES])
def a_pointer_between_two_allocations(p: Scene) -> None:
    """C begins where B ends: what is read through the pointer may be in either."""
    p.put(C, 600)
    p.put(B, 300)
    p.memory(D, BYTES)
    p.set(A, 0)
    p.run(ADD, D, A, 3)
    p.run(PICK, D, C, 7)
    p.get(D)


@scene("1", 0, [Reason.UNKNOWN_BASE])
def memory_that_nobody_has_announced(p: Scene) -> None:
    p.hide(p.sequence)
    p.memory(D, BYTES)
    p.put(D, 5)
    p.run(ADD, B, D, 3)
    p.get(B)


@scene("1", 0, [Reason.UNKNOWN_PARAMETERS])
def parameters_that_nobody_knows(p: Scene) -> None:
    p.put(A)
    number = p.run(ADD, B, A, 3)
    p.instead(number, Kind.LAUNCH, function=ADD, grid=(1, 1, 1), block=(64, 1, 1), flags=lib.WIRE_PARAMETERS_UNKNOWN)
    p.get(B)


# Several addresses.


@scene("1 1", 0, [Reason.ALIASED_MEMORY])
def two_addresses_in_a_segment(p: Scene) -> None:
    _reserve(p)
    _page(p, V, 0x70)
    _page(p, W, 0x70, fresh=False)
    p.put(V)
    p.run(ADD, V, B, 5)
    p.run(ADD, C, W, 5)
    p.get(C)


def _by_its_other_address(p: Scene, how: str) -> None:
    """A table that is known has another address, by which it is written. What a launch at home does by it is what GPU
    1 must not take for valid."""
    _reserve(p)
    _page(p, V, 0x70)
    p.memory(D, 2 * BYTES)
    p.set(D, 1)
    p.set(D + BYTES, 2)
    p.put(C, 64)
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    p.get(A)
    p.put(V)
    _page(p, W, 0x70, fresh=False)
    if how == "copy":
        p.record(Kind.COPY, place=(1, CONTEXT), width=BYTES, height=1, depth=1, to=side(W), from_=side(C))
    elif how == "set":
        p.set(W, 100)
    elif how == "operation":
        p.record(Kind.MEMORY_OPERATIONS, place=(1, CONTEXT), count=1,
                 tail=tails.memory_operations_tail([(2, 0, W + 8, 99)]))
    else:
        p.run(ADD, W, C)
    p.run(SCATTER, D, V, 7)
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    p.get(A)
    p.get(B)


@scene("1 1 . 1 1", 2)
def copied_by_its_other_address(p: Scene) -> None:
    _by_its_other_address(p, "copy")


@scene("1 1 . 1 1", 2)
def set_by_its_other_address(p: Scene) -> None:
    _by_its_other_address(p, "set")


@scene("1 1 . 1 1", 2)
def memory_operation_by_its_other_address(p: Scene) -> None:
    _by_its_other_address(p, "operation")


@scene("1 1 . . 1 1", 2)
def launched_by_its_other_address(p: Scene) -> None:
    _by_its_other_address(p, "launch")


@scene("1 1", 2)
def other_memory_at_its_address(p: Scene) -> None:
    """What is mapped there now was written elsewhere."""
    _reserve(p)
    _page(p, V, 0x70)
    _page(p, W, 0x71)
    p.put(V)
    p.put(W, 500)
    p.run(ADD, B, V, 1)
    _unmap(p, W)
    _unmap(p, V)
    p.hide(p.sequence - 1)
    _page(p, V, 0x71, fresh=False)
    p.run(ADD, B, V, 2)
    p.get(B)


@scene("1", 1)
def two_mappings_in_one_piece(p: Scene) -> None:
    _reserve(p)
    _page(p, V, 0x70)
    _page(p, V + PAGE, 0x71)
    p.put(V + PAGE - 128)
    p.run(ADD, B, V + PAGE - 128, 1)
    p.get(B)


@scene("1", 1)
def the_second_page_alone(p: Scene) -> None:
    _reserve(p)
    _page(p, V + PAGE, 0x71)
    p.put(V + PAGE)
    p.run(GROW, V + PAGE, V + PAGE, 1)
    p.get(V + PAGE)
