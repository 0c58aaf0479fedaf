"""The bytes that copies, memsets and memory operations touch."""

from __future__ import annotations

from typing import Any

from orchestrator.session.memory import NOWHERE, Memory
from orchestrator.session.operations import Effect
from shim import tails
from shim.layout import lib
from shim.tails import Node
from shim.wire import Record

EVERYTHING = 1 << 80
MOST_ROWS = 4096
"""Rows that are told apart; more are taken as one range with gaps."""
_WAITS = {1: 4, 4: 8}
_WRITES = {2: 4, 5: 8}
_NO_MEMORY = frozenset({3, 6})
"""``CUstreamBatchMemOpType``: waits and writes with their bytes, a flush, a barrier."""

ANYTHING = (Effect("R", 0, EVERYTHING, False), Effect("MAYW", 0, EVERYTHING, False))
"""The effects of work that may touch any memory."""


def copied(work: Record | Node, memory: Memory) -> tuple[Effect, ...]:
    """A copy: what it reads, what it writes."""
    body = work.body
    return memory.spread((*_side(body.from_, body, memory, "R", "R"), *_side(body.to, body, memory, "MUSTW", "MAYW")))


def destination(body: Any) -> int | None:
    """The address to which a copy puts all its bytes in one piece; None if it does not."""
    side = body.to
    if side.kind == lib.WIRE_SIDE_ARRAY or body.height > 1 or body.depth > 1:
        return None
    return int(side.address + side.x + side.y * side.pitch + side.z * side.pitch * side.height)


def _side(side: Any, body: Any, memory: Memory, whole: str, part: str) -> list[Effect]:
    width, height, depth = body.width, max(body.height, 1), max(body.depth, 1)
    if not width:
        return []
    if side.kind == lib.WIRE_SIDE_ARRAY:
        name = memory.array(side.address)
        return [Effect(part, name, name + 1, False)]
    first = side.address + side.x + side.y * side.pitch + side.z * side.pitch * side.height
    if side.kind == lib.WIRE_SIDE_HOST and memory.find(first) is None:
        return []  # memory of the program's that no GPU sees
    if first >= NOWHERE:
        return list(ANYTHING)
    return _rows(first, width, height, depth, side.pitch or width, side.height or height, whole, part)


def _rows(first: int, width: int, height: int, depth: int, pitch: int, slice_rows: int, whole: str, part: str
          ) -> list[Effect]:
    if (pitch == width or height == 1) and (depth == 1 or (slice_rows == height and pitch == width)):
        return [Effect(whole, first, first + width * height * depth)]
    last = first + (depth - 1) * pitch * slice_rows + (height - 1) * pitch + width
    if height * depth > MOST_ROWS or pitch < width:
        return [Effect(part, first, last)]
    return [Effect(whole, at, at + width) for z in range(depth) for y in range(height)
            for at in (first + z * pitch * slice_rows + y * pitch,)]


def filled(body: Any) -> tuple[Effect, ...]:
    """A memset."""
    width = body.width * body.element_bytes
    if not width or not body.height:
        return ()
    if body.address >= NOWHERE or width >= NOWHERE:
        return ANYTHING
    return tuple(_rows(body.address, width, body.height, 1, body.pitch or width, body.height, "MUSTW", "MAYW"))


def operated(work: Record | Node) -> tuple[Effect, ...] | None:
    """Memory operations of streams; None if one is of an unknown kind."""
    found = []
    for one in tails.memory_operations(work):
        if one.type in _NO_MEMORY:
            continue
        size = _WAITS.get(one.type) or _WRITES.get(one.type)
        if size is None:
            return None
        found.append(Effect("R" if one.type in _WAITS else "MUSTW", one.address, one.address + size))
    return tuple(found)
