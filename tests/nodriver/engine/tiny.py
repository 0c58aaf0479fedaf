"""Tiny kernels launched in the engine alone, or in the engine and in the interpreter on the same memory."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import Module
from ptxparse.parser import parse
from softgpu import engine
from softgpu.reference import LoadedModule, Memory
from tests.engine_compare import Outcome, run_both
from tests.small_kernels import text_of

Array = npt.NDArray[Any]
Extents = int | tuple[int, ...]

__all__ = ["both", "parsed", "run", "same", "text_of"]


@cache
def parsed(text: str) -> Module:
    return parse(text)


def run(text: str, grid: Extents, block: Extents, *arguments: Any, kernel: str = "k",
        **options: Any) -> engine.LaunchResult:
    """One launch in a memory of its own; arrays are worked on in place."""
    module = engine.LoadedModule(text, engine.Memory())
    return engine.launch(module, kernel, grid, block, list(arguments), **options)


def both(text: str, grid: Extents, block: Extents, *arguments: Array | int, kernel: str = "k", constant: int = -1,
         **options: Any) -> Outcome:
    """One launch in both. Arrays become buffers whose addresses are passed, numbers are passed as 64 bits; the buffer
    of argument number ``constant`` cannot be written. What the interpreter leaves goes back into the arrays."""
    memory = Memory()
    loaded = LoadedModule(parsed(text), memory)
    values, buffers = [], []
    for number, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            address = memory.allocate(argument.nbytes, constant=number == constant)
            memory.write(address, argument)
            buffers.append((address, argument))
            argument = address
        values.append(argument & (1 << 64) - 1)
    outcome = run_both(memory, loaded, text, kernel, _extents(grid), _extents(block),
                       struct.pack(f"<{len(values)}Q", *values), **options)
    for address, array in buffers:
        array.view(np.uint8).reshape(-1)[:] = np.frombuffer(memory.read(address, array.nbytes), np.uint8)
    return outcome


def same(text: str, grid: Extents, block: Extents, *arguments: Array | int, **options: Any) -> Outcome:
    """:func:`both` of a launch that must succeed in both and leave the same bytes and the same output."""
    outcome = both(text, grid, block, *arguments, **options)
    assert outcome.expected_error is None, outcome.expected_error
    assert outcome.error is None, outcome.error
    assert not outcome.differing, [(hex(a), b[:64], c[:64]) for a, b, c in outcome.differing]
    assert outcome.expected is not None and outcome.result is not None
    assert outcome.result.output == outcome.expected.output
    return outcome


def _extents(given: Extents | Sequence[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)
