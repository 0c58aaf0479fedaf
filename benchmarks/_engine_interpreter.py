"""The reference interpreter on a few small launches: how slow a careful one is."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from _common import Row
from _engine_kernels import Kernels, check, floats, text
from _engine_timing import interleaved, milliseconds

from ptxparse.model import parameter_layout
from ptxparse.parser import parse
from softgpu.reference import LoadedModule, Memory, launch


def rows() -> list[Row]:
    x, y = floats(1 << 16), floats(1 << 16, seed=2)
    m = floats(32, 1000)
    a, b = floats(64, 64), floats(64, 64, seed=2)
    found = _case("saxpy, 65536", "elementwise", "saxpy", (256,), (256,), [y, x, np.float32(2), 1 << 16])
    found += _case("softmax by warps, 32 x 1000", "softmax", "softmax_warp", (4,), (256,),
                   [np.zeros_like(m), m, 32, 1000])
    found += _case("sum, 65536", "movement", "sum", (16,), (256,), [np.zeros(16, np.float32), x, 1 << 16])
    found += _case("product tiled 16 x 16, 64^3", "matmul", "matmul_tiled", (4, 4), (16, 16),
                   [np.zeros_like(a), a, b, 64, 64, 64])
    return found


def _case(what: str, stem: str, kernel: str, grid: tuple[int, ...], block: tuple[int, ...],
          arguments: Sequence[Any]) -> list[Row]:
    """The result is the first argument. It need not be the same to the bit, as both have their own ex2.approx."""
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    expected, slow = _interpreted(stem, kernel, grid, block, given)
    kernels = Kernels(stem)
    kernels.launch(kernel, grid, block, given)
    check(what, given[0], expected, 1e-6, 0)
    times = interleaved({"": lambda: kernels.launch(kernel, grid, block, given)})[""]
    return [Row(f"{what}: interpreter, once", slow * 1e3, "ms"), milliseconds(f"{what}: engine", times),
            Row(f"{what}: interpreter : engine, time", slow / times.median, "x")]


def _interpreted(stem: str, kernel: str, grid: tuple[int, ...], block: tuple[int, ...],
                 arguments: Sequence[Any]) -> tuple[np.ndarray, float]:
    """What the first argument holds afterwards, and seconds of the launch."""
    module = parse(text(stem))
    memory = Memory()
    loaded = LoadedModule(module, memory)
    entry = module.function(kernel)
    assert entry is not None
    slots, size = parameter_layout(entry)
    parameters = bytearray(size)
    addresses = []
    for slot, value in zip(slots, arguments, strict=True):
        if isinstance(value, np.ndarray):
            addresses.append(memory.allocate(value.nbytes))
            memory.write(addresses[-1], value)
            data = struct.pack("<Q", addresses[-1])
        else:
            data = value.tobytes() if isinstance(value, np.generic) else value.to_bytes(slot.size, "little")
        parameters[slot.offset:slot.offset + slot.size] = data
    began = time.process_time()
    launch(loaded, kernel, grid, block, bytes(parameters), log=False, step_limit=1 << 40)
    took = time.process_time() - began
    first = arguments[0]
    return np.frombuffer(memory.read(addresses[0], first.nbytes), first.dtype).reshape(first.shape), took
