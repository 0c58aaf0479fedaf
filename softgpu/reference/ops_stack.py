"""alloca, stacksave, stackrestore (PTX manual, "Stack Manipulation Instructions").

A thread's stack pointer here is the first local address behind its active frame and what it has allocated there. The
manual's stack grows down, ours up: what programs may rely on is that restoring a saved pointer frees what came after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.program import Value
from softgpu.reference.ptx_types import dtype_of

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue

GUARANTEED_ALIGNMENT = 8
LARGEST_ALIGNMENT = 1 << 23


def _alloca(d: Decoder) -> None:
    kind = d.need("u32", "u64")
    d.done(2, 3)
    align = d.immediate(2) if len(d.operands) == 3 else GUARANTEED_ALIGNMENT
    if align <= 0 or align & (align - 1) or align > LARGEST_ALIGNMENT:
        d.fail(f"alignment {align}")
    align = max(align, GUARANTEED_ALIGNMENT)
    write, size, dtype = d.destination(0, kind), d.source(1, kind), dtype_of(kind)

    def run(x: Issue) -> None:
        start = -(-x.team.stack_top(x) // align) * align
        x.team.move_stack(x, start.astype(np.uint64) + size(x).astype(np.uint64))
        write(x, start.astype(dtype))

    d.plain(run)


def _stacksave(d: Decoder) -> None:
    kind = d.need("u32", "u64")
    d.done(1)
    write, dtype = d.destination(0, kind), dtype_of(kind)
    d.plain(lambda x: write(x, x.team.stack_top(x).astype(dtype)))


def _stackrestore(d: Decoder) -> None:
    kind = d.need("u32", "u64")
    d.done(1)
    read = d.source(0, kind)

    def run(x: Issue) -> None:
        saved: Value = read(x).astype(np.uint64)
        if (saved < x.team.frame_end(x).view(np.uint64)).any():
            raise x.undefined("stackrestore of a pointer that this function did not save")
        x.team.move_stack(x, saved)

    d.plain(run)


TABLE: dict[str, Decode] = {"alloca": _alloca, "stacksave": _stacksave, "stackrestore": _stackrestore}
