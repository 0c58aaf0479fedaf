"""Launching a kernel: checks, batches of blocks by the schedule, and what comes out."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from softgpu.reference.errors import InterpreterError, KernelTrap, StepLimit
from softgpu.reference.log import AccessLog
from softgpu.reference.memory import Memory
from softgpu.reference.module import LoadedModule
from softgpu.reference.program import Program
from softgpu.reference.schedule import LARGEST_BATCH_ROWS, Schedule
from softgpu.reference.spaces import Storage
from softgpu.reference.team import Team

Dim3 = tuple[int, int, int]

LARGEST_BLOCK = (1024, 1024, 64)
LARGEST_GRID = (2**31 - 1, 65535, 65535)
MOST_THREADS = 1024
MOST_SHARED = 232448
"""Bytes of shared memory a block may have (227 KiB, the most of any device that PTX knows today)."""

BATCH_BYTES = 1 << 26
"""Shared and local memory of a batch at most, when the schedule leaves its size open."""

WORKSPACE_BYTES = 64
DEFAULT_STEP_LIMIT = 20_000_000


class Grid:
    """One launch under way: what all its blocks share."""

    def __init__(self, program: Program, memory: Memory, grid: Dim3, block: Dim3, params: bytes, shared: int,
                 log: AccessLog, workspace: int) -> None:
        self.program = program
        self.memory = memory
        self.grid = grid
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.blocks = grid[0] * grid[1] * grid[2]
        self.dynamic_shared: int = shared
        self.shared_bytes: int = (program.dynamic_base + shared) if shared else program.static_shared
        self.parameters = Storage(1, len(params))
        self.parameters.bytes[:len(params)] = bytearray(params)
        self.log = log
        self.workspace: int = workspace
        self.output = bytearray()
        self.counts = [0] * len(program.code)
        self.clock = 0


@dataclass
class LaunchResult:
    """What a launch left behind beside memory.

    ``log``: its global accesses. ``output``: what printf wrote. ``instructions``: executed instructions by full
    mnemonic, one for each thread whose guard held. ``issues``: instructions issued, each for a group of threads.
    ``workspace``: (address, bytes) of the grid barrier's memory of a cooperative launch, else None; accesses to it
    are in the log.
    """

    log: AccessLog
    output: bytes = b""
    instructions: dict[str, int] = field(default_factory=dict)
    issues: int = 0
    workspace: tuple[int, int] | None = None


def launch(
    loaded: LoadedModule,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    params: bytes,
    *,
    shared: int = 0,
    schedule: Schedule | None = None,
    log: bool = True,
    cooperative: bool = False,
    step_limit: int = DEFAULT_STEP_LIMIT,
) -> LaunchResult:
    """Run a kernel to its end.

    ``grid`` and ``block``: one to three extents; ``params``: the parameter block (see
    :func:`ptxparse.model.parameter_layout`); ``shared``: dynamic shared memory in bytes; ``step_limit``: issues.
    Raises UnsupportedInstruction before anything runs, and while it runs MemoryFault, KernelTrap, DeadlockError,
    UndefinedBehaviour, StepLimit; InterpreterError for a launch that cannot be made.
    """
    function = loaded.module.function(kernel)
    if function is None or not function.is_entry or function.instructions is None:
        raise InterpreterError(f"the module has no kernel {kernel}")
    program = loaded.program(function)
    if program.unsupported:
        raise program.unsupported[0]
    whole_grid, whole_block = _extents(grid, LARGEST_GRID, "grid"), _extents(block, LARGEST_BLOCK, "block")
    _check(program, whole_block, params, shared)
    schedule = schedule or Schedule()
    workspace = loaded.memory.allocate(WORKSPACE_BYTES, name="grid barrier") if cooperative else 0
    state = Grid(program, loaded.memory, whole_grid, whole_block, params, shared, AccessLog(log), workspace)
    try:
        issues = _run(state, schedule, step_limit)
    except KernelTrap as error:
        error.output = bytes(state.output)
        raise
    finally:
        if cooperative:
            loaded.memory.free(workspace)
    counted: Counter[str] = Counter()
    for operation, count in zip(program.code, state.counts, strict=True):
        if count:
            counted[operation.mnemonic] += count
    return LaunchResult(state.log, bytes(state.output), dict(counted), issues,
                        (workspace, WORKSPACE_BYTES) if cooperative else None)


def _extents(given: tuple[int, ...], largest: Dim3, what: str) -> Dim3:
    if not 1 <= len(given) <= 3:
        raise InterpreterError(f"{what} {given}: one to three extents expected")
    extents = tuple(int(n) for n in given) + (1,) * (3 - len(given))
    if any(not 1 <= n <= most for n, most in zip(extents, largest, strict=True)):
        raise InterpreterError(f"{what} {given}: extents must lie between 1 and {largest}")
    return extents[0], extents[1], extents[2]


def _check(program: Program, block: Dim3, params: bytes, shared: int) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > MOST_THREADS:
        raise InterpreterError(f"block {block}: {threads} threads, more than {MOST_THREADS}")
    directives = program.kernel.directives
    required = directives.get("reqntid")
    if required and (tuple(required) + (1, 1, 1))[:3] != block:
        raise InterpreterError(f"block {block}: the kernel requires {required} (.reqntid)")
    most = directives.get("maxntid")
    if most and threads > most[0] * (tuple(most) + (1, 1))[1] * (tuple(most) + (1, 1, 1))[2]:
        raise InterpreterError(f"block {block}: the kernel allows at most {most} threads (.maxntid)")
    size = program.parameter_bytes
    if not size <= len(params) <= -(-size // 8) * 8:
        raise InterpreterError(f"{len(params)} bytes of parameters; {program.kernel.name} takes {size}")
    if shared < 0 or program.dynamic_base + shared > MOST_SHARED:
        raise InterpreterError(f"{program.dynamic_base + shared} bytes of shared memory, more than {MOST_SHARED}")


def _largest_batch(state: Grid) -> int:
    bytes_a_block = state.shared_bytes + state.threads * state.program.functions[0].frame_bytes
    return max(min(LARGEST_BATCH_ROWS // state.threads, BATCH_BYTES // max(bytes_a_block, 1)), 1)


def _run(state: Grid, schedule: Schedule, step_limit: int) -> int:
    """Give the batches turns until all are done; returns the number of issues."""
    waiting = schedule.batches(state.blocks, _largest_batch(state))
    apart = schedule.warps == "apart"
    quantum = schedule.issues(state.program.may_wait)
    choose = random.Random(schedule.seed + 1)
    resident: list[Team] = []
    issues = 0
    more = True
    while True:
        fresh = next(waiting, None) if more else None
        if fresh is not None:
            team = Team(state, fresh, apart)
            resident.append(team)
        elif resident:
            more = False
            team = resident[choose.randrange(len(resident)) if schedule.order == "random" else 0]
        else:
            return issues
        issues += team.advance(min(quantum, step_limit - issues))
        resident.remove(team)
        if team.live_count:
            resident.append(team)
            if issues >= step_limit:
                raise StepLimit(f"{state.program.kernel.name} issued {issues} instructions and is not done; "
                                "it loops, or the step limit is too low")
