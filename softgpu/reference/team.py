"""A batch of blocks that advances in lock-step: one row per thread, in schedule order, and all their memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from softgpu.reference.barriers import Barriers
from softgpu.reference.copies import PendingCopies
from softgpu.reference.errors import DeadlockError, InterpreterError, MemoryFault
from softgpu.reference.issue import Frame, Issue, Rows
from softgpu.reference.memory import Addresses, Fault, Piece, check_alignment
from softgpu.reference.program import FunctionCode, Program, Value
from softgpu.reference.spaces import LOCAL_LIMIT, Storage
from softgpu.reference.strand import Strand
from softgpu.reference.warps import Waiting

if TYPE_CHECKING:
    from softgpu.reference.launch import Grid

WARP = 32

Ids = npt.NDArray[np.int32]


class Team:
    """Blocks ``blocks`` (linear indices in schedule order) of ``grid``; rows are block-major.

    ``warp_of`` and ``block_of`` are positions within the team, ``grid_block_of`` the linear block index. ``slot_of``
    numbers 32 places for each warp, also where the last warp of a block is not full.
    """

    def __init__(self, grid: Grid, blocks: list[int], warps_apart: bool) -> None:
        self.grid: Grid = grid
        self.program: Program = grid.program
        threads = grid.threads
        self.blocks = len(blocks)
        self.rows = rows = self.blocks * threads
        self.all_rows: Rows = np.arange(rows)
        self.thread_of: Ids = np.tile(np.arange(threads, dtype=np.int32), self.blocks)
        self.block_of = np.repeat(np.arange(self.blocks, dtype=np.int32), threads)
        self.grid_block_of = np.repeat(np.array(blocks, np.int32), threads)
        self.warps_per_block: int = -(-threads // WARP)
        self.warps = self.blocks * self.warps_per_block
        self.warp_of = self.block_of * self.warps_per_block + self.thread_of // WARP
        self.lane_of: Ids = self.thread_of % WARP
        self.slot_of: Rows = (self.warp_of * WARP + self.lane_of).astype(np.intp)
        self.lane_bit = (np.uint32(1) << self.lane_of.astype(np.uint32))
        self.whole_warps = threads % WARP == 0

        self.live = np.ones(rows, np.bool_)
        self.live_count = rows
        self.live_in_block = np.full(self.blocks, threads, np.int64)
        self.live_lanes = self.lanes_by_warp(self.all_rows)

        self.shared = Storage(self.blocks, grid.shared_bytes)
        self.local = Storage(rows, grid.program.functions[0].frame_bytes)
        self.specials: dict[str, Value] = {}
        self.barriers = Barriers(self)
        self.waiting: dict[Hashable, list[Waiting]] = {}
        self.copies = PendingCopies(self)

        self.frames: dict[tuple[int, int], Frame] = {}
        self.bases: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
        self.returns: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
        self.called: list[npt.NDArray[np.int32]] = [np.zeros(1, np.int32)]
        self.allocated: dict[int, npt.NDArray[np.int64]] = {}

        self.strands = self._strands(warps_apart)

    def _strands(self, warps_apart: bool) -> list[Strand]:
        start = self.program.functions[0].first
        if not warps_apart or self.warps == 1:
            return [Strand(self, start, None)]
        return [Strand(self, start, np.flatnonzero(self.warp_of == warp)) for warp in range(self.warps)]

    # Progress.

    def advance(self, budget: int) -> int:
        """Issue at most about ``budget`` instructions; returns how many. Raises DeadlockError when stuck."""
        used = 0
        share = budget if len(self.strands) == 1 else max(budget // len(self.strands), 1)
        while self.live_count and used < budget:
            before = used
            for strand in self.strands:
                if strand.groups:
                    used += strand.advance(min(share, budget - used))
                    if used >= budget:
                        break
            if used == before and self.live_count:
                self._deadlock()
        return used

    def push(self, key: int, rows: Rows | None) -> None:
        """Queue rows to go on at ``key`` in the strands they belong to."""
        if len(self.strands) == 1:
            self.strands[0].push(key, rows)
            return
        rows = self.all_rows if rows is None else rows
        warps = self.warp_of[rows]
        for warp in np.unique(warps):
            self.strands[warp].push(key, rows[warps == warp])

    def exit(self, x: Issue) -> None:
        """End the active threads; whoever waited for them is looked at again."""
        rows = x.rows()
        self.live[rows] = False
        self.live_count -= len(rows)
        if self.live_count == 0:
            self.live_in_block[:] = 0
            self.live_lanes[:] = 0
        else:
            self.live_in_block -= np.bincount(self.block_of[rows], minlength=self.blocks)
            self.live_lanes &= ~self.lanes_by_warp(rows)
        if self.waiting:
            waiting, self.waiting = self.waiting, {}
            for parts in waiting.values():
                for part in parts:
                    self.push(part.key, part.rows)
        self.barriers.threads_left()

    def _deadlock(self) -> NoReturn:
        lines: list[str] = []
        for parts in self.waiting.values():
            for part in parts:
                lines.append(f"{self.thread_name(int(part.rows[0]))} and {len(part.rows) - 1} more at line {part.line}")
        lines.extend(self.barriers.describe())
        raise DeadlockError("no thread can go on; waiting: " + "; ".join(lines))

    def thread_name(self, row: int) -> str:
        """Block and thread of a row, for messages."""
        return f"block {self.grid_block_of[row]} thread {self.thread_of[row]}"

    def lanes_by_warp(self, rows: Rows) -> npt.NDArray[np.uint32]:
        """For each warp of the team the mask of those of its lanes that are among ``rows``."""
        counts = np.bincount(self.warp_of[rows], weights=self.lane_bit[rows], minlength=self.warps)
        return counts.astype(np.uint32)

    # Frames.

    def frame(self, depth: int, code: FunctionCode) -> Frame:
        """The registers of a function at a depth, made at first use."""
        found = self.frames.get((depth, code.number))
        if found is None:
            found = self.frames[depth, code.number] = Frame(code)
        return found

    def enter(self, x: Issue, callee: FunctionCode, return_key: int) -> Issue:
        """A new activation of ``callee`` for the active rows, called from ``x``, returning to ``return_key``."""
        depth = x.depth + 1
        if depth == len(self.bases):
            self.bases.append(np.zeros(self.rows, np.int64))
            self.returns.append(np.zeros(self.rows, np.int64))
            self.called.append(np.zeros(self.rows, np.int32))
        rows = x.rows()
        base = -(-self.stack_top(x) // 16) * 16
        deepest = int(base.max()) + callee.frame_bytes
        if deepest > LOCAL_LIMIT or depth > LOCAL_LIMIT // 16:
            position = int(base.argmax())
            raise MemoryFault(deepest, callee.frame_bytes, x.line, x.thread(position),
                              f"call stack larger than {LOCAL_LIMIT} bytes", "local")
        self.local.grow(deepest)
        self.bases[depth][rows] = base
        self.returns[depth][rows] = return_key
        self.called[depth][rows] = callee.number
        if depth in self.allocated:
            self.allocated[depth][rows] = 0
        return Issue(self, self.frame(depth, callee), depth, x.index, x.line)

    def base(self, x: Issue) -> npt.NDArray[np.int64]:
        """Local address at which the frame of the active function begins, per active row or one for all."""
        bases = self.bases[x.depth]
        return bases if len(bases) == 1 or x.index is None else bases[x.index]

    def frame_end(self, x: Issue) -> npt.NDArray[np.int64]:
        """First local address behind the frame of the active function."""
        return self.base(x) + x.frame.code.frame_bytes

    def stack_top(self, x: Issue) -> npt.NDArray[np.int64]:
        """First local address behind the frame and what ``alloca`` has added to it."""
        added = self.allocated.get(x.depth)
        if added is None:
            return self.frame_end(x)
        return self.frame_end(x) + (added if x.index is None else added[x.index])

    def move_stack(self, x: Issue, top: Addresses) -> None:
        """Let the active frame end at ``top``, which is not below its variables."""
        highest = int(top.max())
        if highest > LOCAL_LIMIT:
            raise MemoryFault(highest, 0, x.line, x.thread(int(top.argmax()) if len(top) > 1 else 0),
                              f"call stack larger than {LOCAL_LIMIT} bytes", "local")
        self.local.grow(highest)
        added = self.allocated.setdefault(x.depth, np.zeros(self.rows, np.int64))
        added[x.rows()] = top.view(np.int64) - self.frame_end(x)

    # Memory.

    def locate(self, x: Issue, space: str, addresses: Addresses, width: int, align: int = 0,
               writing: bool = False) -> list[Piece]:
        """Storage of an access of ``width`` bytes, aligned to ``align`` (0: to its width), in one space (not generic)
        at that space's own addresses."""
        align = align or width

        def fault(position: int, reason: str) -> NoReturn:
            address = int(addresses[position if len(addresses) > 1 else 0])
            raise MemoryFault(address, width, x.line, x.thread(position), reason, space)

        if space in ("global", "const"):
            return self.grid.memory.locate(addresses, width, align, fault, writing=writing)
        check_alignment(addresses, align, fault)
        if space == "param":
            if writing:
                fault(0, "kernel parameters cannot be written")
            parameters = self.grid.parameters
            return [Piece(None, parameters.views, _inside(addresses, width, parameters.size, fault))]
        if space == "shared":
            offsets = _inside(addresses, width, self.shared.size, fault)
            if self.blocks > 1:
                offsets = self.block_of[x.rows()] * np.int64(self.shared.stride) + offsets
            return [Piece(None, self.shared.views, offsets)]
        if space == "local":
            offsets = _inside(addresses, width, self.local.size, fault)
            if self.rows > 1:
                offsets = x.rows() * np.int64(self.local.stride) + offsets
            return [Piece(None, self.local.views, offsets)]
        raise InterpreterError(f"line {x.line}: state space {space} holds no memory")


def _inside(addresses: Addresses, width: int, size: int, fault: Fault) -> npt.NDArray[np.int64]:
    """The addresses as offsets into a space of ``size`` bytes that begins at 0."""
    if int(addresses.max()) + width > size:
        outside = addresses > np.uint64(max(size - width, 0)) if size >= width else addresses == addresses
        fault(int(np.flatnonzero(outside)[0]), f"outside the {size} bytes of this space")
    return addresses.view(np.int64)
