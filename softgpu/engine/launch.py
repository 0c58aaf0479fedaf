"""Launching a compiled kernel from Python."""

from __future__ import annotations

import json
import math
import os
import struct
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import Function, parameter_layout
from softgpu.engine import library
from softgpu.engine.errors import (
    DeadlineError,
    DeadlockError,
    KernelTrap,
    LaunchError,
    MemoryFault,
    UndefinedBehaviour,
)
from softgpu.engine.layout import entry_of
from softgpu.engine.memory import Memory
from softgpu.engine.module import Kernel, LoadedModule
from softgpu.engine.options import Options
from softgpu.engine.work import CLASSES, mnemonic_of

Ranges = npt.NDArray[np.uint64]
"""Rows (start, end) of addresses, sorted and disjoint."""

FAULT, TRAP, ASSERT, DEADLOCK, DEADLINE, UNDEFINED = 1, 2, 3, 4, 5, 6
NO_RANGES = np.zeros((0, 2), np.uint64)


@dataclass
class LaunchResult:
    """What a launch left behind beside memory.

    ``output``: what printf wrote. ``work``: executed operations and bytes by class (``counts=True``), ``instructions``
    executed instructions of single threads by full mnemonic. ``read``, ``written``, ``atomic``: global addresses
    accessed (``log=True``). ``workspace``: address of the grid barrier's memory of a cooperative launch, or 0.
    """

    output: bytes = b""
    work: dict[str, int] = field(default_factory=dict)
    instructions: dict[str, int] = field(default_factory=dict)
    read: Ranges = field(default_factory=lambda: NO_RANGES)
    written: Ranges = field(default_factory=lambda: NO_RANGES)
    atomic: Ranges = field(default_factory=lambda: NO_RANGES)
    nanoseconds: int = 0
    workspace: int = 0


class Pool:
    """Worker threads for launches. ``workers`` 0: as many as CPUs are usable, the calling thread included."""

    def __init__(self, workers: int = 0) -> None:
        self._runtime = library.load()
        self._process = os.getpid()
        self._destroy = self._runtime.lib.sg_pool_destroy  # looked up now: at the end of the process it may be too late
        self.handle = self._runtime.lib.sg_pool_create(workers)
        if self.handle == self._runtime.ffi.NULL:
            raise LaunchError("no memory for a pool of workers")

    def __del__(self) -> None:
        if hasattr(self, "handle") and self._process == os.getpid():
            self._destroy(self.handle)


@cache
def _pool_of(process: int) -> Pool:
    return Pool()


_LOCK = threading.Lock()


def default_pool() -> Pool:
    """One pool for this process, made at its first launch."""
    with _LOCK:
        return _pool_of(os.getpid())


def launch(
    loaded: LoadedModule,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: bytes | Sequence[Any],
    *,
    shared: int = 0,
    cooperative: bool = False,
    counts: bool = False,
    log: bool = False,
    rounding: int = 0,
    any_block: bool = False,
    deadline: float = 0.0,
    pool: Pool | None = None,
) -> LaunchResult:
    """Run a kernel to its end.

    ``grid`` and ``block``: one to three extents. ``arguments``: the parameter block as bytes, or a value for each
    parameter: numpy arrays (kernels work on them in place), numpy scalars and bytes of the parameter's size, Python
    integers. ``shared``: dynamic shared memory in bytes. ``any_block``: use code for blocks of any extents.
    ``deadline`` in seconds, 0 for ten minutes. Raises UnsupportedKernel before anything runs, and LaunchError.
    """
    entry = entry_of(loaded.module, kernel)
    if entry is None:
        raise LaunchError(f"the module has no kernel {kernel}")
    extents = [_three(value, what) for value, what in ((grid, "grid"), (block, "block"))]
    _check_directives(entry, extents[1])
    options = Options(None if any_block else extents[1], counts, log, rounding)
    if any(n < 1 for n in extents[1]) or math.prod(extents[1]) > 1024:
        options = Options(None, counts, log, rounding)  # the run-time says what is wrong
    params = bytes(arguments) if isinstance(arguments, bytes | bytearray) else _parameters(loaded, kernel, arguments)
    compiled = loaded.kernel(kernel, options)
    return _run(loaded, compiled, extents, params, shared, cooperative, deadline, pool or default_pool())


def _check_directives(entry: Function, block: tuple[int, int, int]) -> None:
    """Raises LaunchError for a block that ``.reqntid`` or ``.maxntid`` rule out."""
    required, most = [(*entry.directives[name], 1, 1)[:3] if name in entry.directives else None
                      for name in ("reqntid", "maxntid")]
    given = f"kernel {entry.name}: block {block[0]},{block[1]},{block[2]}"
    if required and required != block:
        raise LaunchError(f"{given}: it requires {required[0]},{required[1]},{required[2]}")
    if most and math.prod(block) > math.prod(most):
        raise LaunchError(f"{given}: it allows at most {math.prod(most)} threads")


def _three(value: int | Sequence[int], what: str) -> tuple[int, int, int]:
    given = (value,) if isinstance(value, int | np.integer) else tuple(value)
    if not 1 <= len(given) <= 3:
        raise LaunchError(f"{what} {given}: one to three extents expected")
    numbers = [int(n) for n in given] + [1, 1]
    if any(not 0 <= n < 1 << 32 for n in numbers):
        raise LaunchError(f"{what} {given}: extents must be positive")
    return numbers[0], numbers[1], numbers[2]


def _parameters(loaded: LoadedModule, kernel: str, arguments: Sequence[Any]) -> bytes:
    entry = entry_of(loaded.module, kernel)
    assert entry is not None
    slots, size = parameter_layout(entry)
    if len(slots) != len(arguments):
        raise LaunchError(f"{kernel} takes {len(slots)} parameters, not {len(arguments)}")
    block = bytearray(size)
    for slot, argument in zip(slots, arguments, strict=True):
        if isinstance(argument, np.ndarray):
            data = struct.pack("<Q", loaded.memory.adopt(argument))
        elif isinstance(argument, np.generic):
            data = argument.tobytes()
        elif isinstance(argument, int):
            data = (argument & ((1 << 8 * slot.size) - 1)).to_bytes(slot.size, "little")
        else:
            data = bytes(argument)
        if len(data) != slot.size:
            raise LaunchError(f"{kernel}: {len(data)} bytes for parameter {slot.name} of {slot.size}")
        block[slot.offset:slot.offset + slot.size] = data
    return bytes(block)


def _table(memory: Memory) -> Any:
    """The run-time's table of a memory's allocations, made anew when they change."""
    found = getattr(memory, "_table", None)
    if found is None or found[0] != memory.version:
        ffi = library.load().ffi
        allocations = memory.allocations()
        table = ffi.new("struct sg_allocation[]", max(len(allocations), 1))
        for row, allocation in zip(table, allocations, strict=False):
            row.start, row.size, row.flags = allocation.start, allocation.size, int(allocation.constant)
        found = (memory.version, table, len(allocations))
        memory._table = found  # type: ignore[attr-defined]
    return found


def _run(loaded: LoadedModule, compiled: Kernel, extents: list[tuple[int, int, int]], params: bytes, shared: int,
         cooperative: bool, deadline: float, pool: Pool) -> LaunchResult:
    ffi, lib = library.load()
    _, table, count = _table(loaded.memory)
    missing = [name for name in compiled.globals if name not in loaded.globals]
    if missing:
        raise LaunchError(f"{missing[0]} is not defined in this module")
    addresses = ffi.new("uint64_t[]", [loaded.globals[name][0] for name in compiled.globals] or [0])
    block = ffi.new("uint8_t[]", params or b"\0")
    launch_ = ffi.new("struct sg_launch *")
    launch_.kernel = compiled.handle
    launch_.grid, launch_.block = extents
    launch_.dynamic_shared = _checked_shared(shared)
    launch_.cooperative = int(cooperative)
    launch_.params, launch_.params_size = block, len(params)
    launch_.allocations, launch_.allocation_count = table, count
    launch_.globals, launch_.global_count = addresses, len(compiled.globals)
    launch_.grid_id = 1
    launch_.deadline_ms = int(deadline * 1000)
    result = ffi.gc(ffi.new("struct sg_result *"), lib.sg_result_free)
    status = lib.sg_launch_run(pool.handle, launch_, result)
    if status:
        raise _error(ffi, status, result)
    return _result(ffi, compiled, result)


def _checked_shared(shared: int) -> int:
    if not 0 <= shared < 1 << 31:
        raise LaunchError(f"{shared} bytes of dynamic shared memory")
    return shared


def _error(ffi: Any, status: int, result: Any) -> LaunchError:
    message = ffi.string(result.message).decode(errors="replace")
    output = bytes(ffi.buffer(result.output, result.output_size)) if result.output_size else b""
    if status == FAULT:
        fault = MemoryFault(message, result.line, result.address, result.width)
        fault.output = output
        return fault
    kinds: dict[int, type[LaunchError]] = {
        TRAP: KernelTrap, ASSERT: KernelTrap, DEADLOCK: DeadlockError, DEADLINE: DeadlineError,
        UNDEFINED: UndefinedBehaviour,
    }
    return kinds.get(status, LaunchError)(message, result.line, output)


def _ranges(ffi: Any, ranges: Any) -> Ranges:
    if not ranges.count:
        return NO_RANGES
    return np.frombuffer(bytes(ffi.buffer(ranges.items, 16 * ranges.count)), np.uint64).reshape(-1, 2)


def _result(ffi: Any, compiled: Kernel, result: Any) -> LaunchResult:
    output = bytes(ffi.buffer(result.output, result.output_size)) if result.output_size else b""
    instructions: Counter[str] = Counter()
    work: dict[str, int] = {}
    if result.counter_count:
        for threads, counter in zip(ffi.unpack(result.counters, result.counter_count),
                                    json.loads(compiled.about)["counters"], strict=True):
            for name, times in counter.items():
                instructions[mnemonic_of(name)] += threads * times
        work = dict(zip(CLASSES, ffi.unpack(result.counts, len(CLASSES)), strict=True))
    return LaunchResult(output, work, {m: n for m, n in instructions.items() if n}, _ranges(ffi, result.read),
                        _ranges(ffi, result.written), _ranges(ffi, result.atomic), result.nanoseconds,
                        result.workspace)
