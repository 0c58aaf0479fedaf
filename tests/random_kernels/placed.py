"""A launch in memory, wherever its kernel comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softgpu.reference import LoadedModule, Memory

Dimensions = tuple[int, int, int]


@dataclass(eq=False)
class Placed:
    """A launch ready to run. ``places`` are the allocations (id, address, bytes) that pointers point into the middle
    of; ``known`` what they hold around their middles before the launch, as (id, offset, bytes), ``constant`` the ids of
    those that the kernel does not write. ``again(spacing)`` places it afresh, other addresses where ``spacing`` > 0."""

    memory: Memory
    loaded: LoadedModule
    grid: Dimensions
    block: Dimensions
    parameters: bytes
    places: list[tuple[object, int, int]]
    known: list[tuple[object, int, bytes]]
    constant: frozenset[object]
    label: str
    again: Callable[[int], Placed]
    shared: int = 0
    cooperative: bool = False
