"""Memory at the addresses that the trace has: then no pointer has to be changed, wherever a program keeps it.

All device memory that a client ever had is made beforehand, in whole pages (``cuMemAddressReserve`` with the address,
``cuMemCreate``, ``cuMemMap``). Where the driver gives other addresses, memory is made as the program made it, and its
addresses are changed in parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.traces.replay.driver import CallFailed, call, cuda


@dataclass(frozen=True)
class Extent:
    """Pages of one GPU."""

    start: int
    bytes: int
    device: int


def pages(ranges: Iterable[tuple[int, int, int]], granularity: int) -> Iterator[Extent]:
    """Ranges (address, bytes, GPU) as extents of whole pages. Pages that several GPUs would need are left out."""
    merged: list[list[int]] = []
    for address, size, device in sorted(ranges):
        start = address // granularity * granularity
        end = -(-(address + max(size, 1)) // granularity) * granularity
        if merged and start < merged[-1][1]:
            if merged[-1][2] != device:
                merged[-1][2] = -1
            merged[-1][1] = max(merged[-1][1], end)
        elif merged and start == merged[-1][1] and merged[-1][2] == device:
            merged[-1][1] = end
        else:
            merged.append([start, end, device])
    return (Extent(start, end - start, device) for start, end, device in merged if device >= 0)


def properties(device: int) -> Any:
    """Of physical memory on a GPU."""
    made = cuda.CUmemAllocationProp()
    made.type = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    made.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    made.location.id = device
    return made


def granularity(device: int) -> int:
    """Bytes of a page."""
    least = cuda.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return int(call(cuda.cuMemGetAllocationGranularity(properties(device), least), "cuMemGetAllocationGranularity"))


def grant(address: int, size: int, device: int, others: Iterable[int]) -> None:
    """Let a GPU, and those that can be its peers, read and write what is mapped in a range."""
    descriptions = []
    for other in {device, *others}:
        if other == device or int(call(cuda.cuDeviceCanAccessPeer(other, device), "cuDeviceCanAccessPeer")):
            one = cuda.CUmemAccessDesc()
            one.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            one.location.id = other
            one.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            descriptions.append(one)
    call(cuda.cuMemSetAccess(address, size, descriptions, len(descriptions)), "cuMemSetAccess")


def reserve(address: int, size: int) -> int | None:
    """Reserve a range at just this address; None if the driver has none there."""
    try:
        got = int(call(cuda.cuMemAddressReserve(size, 0, address, 0), "cuMemAddressReserve"))
    except CallFailed:
        return None
    if got == address:
        return got
    call(cuda.cuMemAddressFree(got, size), "cuMemAddressFree")
    return None


class Extents:
    """The extents of a client that could be had."""

    def __init__(self, wanted: Iterable[Extent], ordinals: Iterable[int]) -> None:
        self._made: list[tuple[Extent, Any]] = []
        others = list(ordinals)
        for extent in wanted:
            self._make(extent, others)

    def _make(self, extent: Extent, others: list[int]) -> None:
        if reserve(extent.start, extent.bytes) is None:
            return
        memory = None
        try:
            memory = call(cuda.cuMemCreate(extent.bytes, properties(extent.device), 0), "cuMemCreate")
            call(cuda.cuMemMap(extent.start, extent.bytes, 0, memory, 0), "cuMemMap")
            grant(extent.start, extent.bytes, extent.device, others)
        except CallFailed:  # there is not as much memory as the program had one after the other
            if memory is not None:
                cuda.cuMemUnmap(extent.start, extent.bytes)
                cuda.cuMemRelease(memory)
            cuda.cuMemAddressFree(extent.start, extent.bytes)
            return
        self._made.append((extent, memory))

    def hold(self, address: int, size: int, device: int) -> bool:
        """Whether a range of a GPU's memory is in one of them."""
        return any(e.device == device and e.start <= address and address + size <= e.start + e.bytes
                   for e, _ in self._made)

    def end(self) -> None:
        """Give everything back; nothing may be using it."""
        for extent, memory in self._made:
            call(cuda.cuMemUnmap(extent.start, extent.bytes), "cuMemUnmap")
            call(cuda.cuMemRelease(memory), "cuMemRelease")
            call(cuda.cuMemAddressFree(extent.start, extent.bytes), "cuMemAddressFree")
        self._made = []
