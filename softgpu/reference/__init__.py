"""The reference interpreter: runs a kernel from its PTX, clear rather than fast, and logs every global access.

What it does where the PTX manual leaves the result open, so that results are reproducible:

- Integer division by zero gives all ones, the remainder is the dividend. Registers never written hold zero.
- ``shfl`` from a lane that takes no part gives the thread its own value.
- Threads that store to one place in one instruction: the last in row order wins. Rows are threads of the blocks of a
  batch, in schedule order; atomics act in the same order.
- Memory is sequentially consistent; ``cp.async`` reads its source at issue and writes its destination at the wait.
- ``elect.sync`` elects the lowest lane of its mask; the stack that ``alloca`` adds to grows up.
- ``%smid`` is 0 of 1; clocks count issued instructions and advance with every read; clusters have one block.
- The result of approximate functions, of matrix products and the layout of ``wmma`` fragments: see ``numerics`` and
  ``tensor``.

A thread that leaves its member mask out, an index past ``brx.idx``'s list, a matrix instruction in part of a warp and
the like raise :class:`UndefinedBehaviour` instead.
"""

from softgpu.reference.errors import (
    DeadlockError,
    InterpreterError,
    KernelTrap,
    MemoryFault,
    StepLimit,
    UndefinedBehaviour,
    UnsupportedInstruction,
)
from softgpu.reference.launch import LaunchResult, launch
from softgpu.reference.log import AccessLog
from softgpu.reference.memory import Memory
from softgpu.reference.module import LoadedModule, unsupported
from softgpu.reference.schedule import Schedule

__all__ = [
    "AccessLog",
    "DeadlockError",
    "InterpreterError",
    "KernelTrap",
    "LaunchResult",
    "LoadedModule",
    "Memory",
    "MemoryFault",
    "Schedule",
    "StepLimit",
    "UndefinedBehaviour",
    "UnsupportedInstruction",
    "launch",
    "unsupported",
]
