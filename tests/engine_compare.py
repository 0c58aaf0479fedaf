"""One launch in the engine and in the interpreter, and what differs.

Both work on the same addresses, so that pointers in memory are equal too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxparse.model import Module
from softgpu import engine
from softgpu.reference import InterpreterError
from softgpu.reference import LaunchResult as ReferenceResult
from softgpu.reference import LoadedModule as ReferenceModule
from softgpu.reference import Memory as ReferenceMemory
from softgpu.reference import launch as reference_launch


class _AtPlaces(engine.Memory):
    """A memory whose next allocations lie at given addresses."""

    def __init__(self, places: list[int]) -> None:
        super().__init__()
        self.places = iter(places)

    def allocate(self, size: int, align: int = 256, *, constant: bool = False, address: int | None = None) -> int:
        return super().allocate(size, align, constant=constant, address=next(self.places, address))


@dataclass
class Mirror:
    """The engine's copy of an interpreter's memory, made before a launch."""

    memory: engine.Memory
    module: engine.LoadedModule


@contextmanager
def mirror(memory: ReferenceMemory, loaded: ReferenceModule,
           source: str | bytes | Module | None = None) -> Iterator[Mirror]:
    """A copy of all buffers at the same addresses, which are free again behind the block."""
    copy = _AtPlaces([address for address, _ in loaded.globals.values()])
    module = engine.LoadedModule(source if source is not None else loaded.module, copy)
    variables = {address for address, _ in loaded.globals.values()}
    for buffer in memory._buffers:
        if buffer.start not in variables:
            copy.allocate(buffer.size, address=buffer.start, constant=buffer.constant)
        copy.write(buffer.start, buffer.data[:buffer.size])
    try:
        yield Mirror(copy, module)
    finally:
        for allocation in copy.allocations():
            allocation.owner.close()


def differences(memory: ReferenceMemory, copy: engine.Memory) -> list[tuple[int, Any, Any]]:
    """Buffers whose bytes differ: address, the interpreter's bytes, the engine's."""
    found = []
    for buffer in memory._buffers:
        mine = np.frombuffer(copy.read(buffer.start, buffer.size), np.uint8)
        theirs = buffer.data[:buffer.size]
        if not np.array_equal(mine, theirs):
            found.append((buffer.start, theirs.copy(), mine))
    return found


@dataclass
class Outcome:
    """What a launch gave in the interpreter and in the engine: results, or the errors that ended them; ``differing``
    are the buffers that differ afterwards, as :func:`differences` has them."""

    expected: ReferenceResult | None
    expected_error: InterpreterError | None
    result: engine.LaunchResult | None
    error: engine.LaunchError | None
    differing: list[tuple[int, Any, Any]]


def run_both(memory: ReferenceMemory, loaded: ReferenceModule, source: str | bytes | Module | None, kernel: str,
             grid: tuple[int, ...], block: tuple[int, ...], parameters: bytes, *, shared: int = 0,
             cooperative: bool = False, **options: Any) -> Outcome:
    """One launch in the engine on a copy of ``memory``, then in the interpreter on ``memory`` itself. ``options`` are
    those of :func:`softgpu.engine.launch` alone."""
    expected = expected_error = result = error = None
    with mirror(memory, loaded, source) as copy:
        try:
            result = engine.launch(copy.module, kernel, grid, block, parameters, shared=shared,
                                   cooperative=cooperative, **options)
        except engine.LaunchError as failure:
            error = failure
        try:
            expected = reference_launch(loaded, kernel, grid, block, parameters, shared=shared,
                                        cooperative=cooperative)
        except InterpreterError as failure:
            expected_error = failure
        found = differences(memory, copy.memory)
    return Outcome(expected, expected_error, result, error, found)
