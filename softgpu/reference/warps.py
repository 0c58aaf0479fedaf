"""Warp-synchronous instructions: threads wait until all that their member mask names have come, or have exited.

Threads meet that execute the same operation with the same mask (PTX manual, shfl.sync: "the same qualifiers and the
same membermask value"), wherever it stands in the program; the signature of an operation says what is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softgpu.reference.issue import Issue, Rows
from softgpu.reference.program import Control, Read, Value, Write

if TYPE_CHECKING:
    from softgpu.reference.strand import Strand

FULL_MASK = 0xFFFFFFFF
_PC = (1 << 32) - 1

Masks = npt.NDArray[np.uint32]


class Member(NamedTuple):
    """Threads that came together from one instruction, with that instruction's own operands."""

    x: Issue
    sources: tuple[Read, ...]
    destinations: tuple[Write | None, ...]


class Waiting(NamedTuple):
    """Threads waiting at a warp-synchronous instruction; they go on behind ``key``."""

    key: int
    rows: Rows
    line: int
    member: Member
    masks: Masks


Exchange = Callable[[list[Issue], list[Value], Masks], list[Value]]
"""Results for all rows of some issues, concatenated, from their source operands, concatenated, and their masks."""


def meeting(signature: Hashable, mask: Read, sources: tuple[Read, ...], destinations: tuple[Write | None, ...],
            exchange: Exchange) -> Control:
    """The control operation of a warp-synchronous instruction."""

    def control(strand: Strand, x: Issue, key: int) -> int | None:
        team = x.team
        masks = mask(x).view(np.uint32)
        _check_member(x, masks)
        member = Member(x, sources, destinations)
        waiting = team.waiting.get(signature)
        if waiting is None and _complete(x, masks):
            team.grid.counts[key & _PC] += x.count
            _execute([member], masks, exchange)
            return key + 1
        parts = team.waiting.setdefault(signature, [])
        parts.append(Waiting(key, x.rows(), x.line, member, x.full(masks)))
        ready = _ready(x, parts)
        if not ready.any():
            return None
        going, staying = _split(parts, ready)
        if staying:
            team.waiting[signature] = staying
        else:
            del team.waiting[signature]
        for part in going:
            team.grid.counts[part.key & _PC] += len(part.rows)
        _execute([part.member for part in going], np.concatenate([part.masks for part in going]), exchange)
        for part in going:
            team.push(part.key + 1, None if len(part.rows) == team.rows else part.rows)
        return None

    return control


def _check_member(x: Issue, masks: Masks) -> None:
    if len(masks) == 1 and masks[0] == FULL_MASK:
        return
    outside = (masks & x.team.lane_bit[x.rows()]) == 0
    if outside.any():
        raise x.undefined("the executing thread is not in its member mask", int(np.flatnonzero(outside)[0]))


def _complete(x: Issue, masks: Masks) -> bool:
    """Whether every live thread that the masks name is among the active rows."""
    team = x.team
    if x.count == team.live_count:
        return True
    rows = x.rows()
    missing = team.live_lanes & ~team.lanes_by_warp(rows)
    return not (masks & missing[team.warp_of[rows]]).any()


def _ready(x: Issue, parts: list[Waiting]) -> npt.NDArray[np.bool_]:
    """For each row of all parts, whether everybody its mask names is there with the same mask."""
    team = x.team
    rows = np.concatenate([part.rows for part in parts])
    masks = np.concatenate([part.masks for part in parts])
    warps = team.warp_of[rows]
    meeting_point = warps.astype(np.uint64) << np.uint64(32) | masks
    _, group = np.unique(meeting_point, return_inverse=True)
    arrived = np.bincount(group, weights=team.lane_bit[rows]).astype(np.uint32)[group]
    ready: npt.NDArray[np.bool_] = (masks & team.live_lanes[warps] & ~arrived) == 0
    return ready


def _split(parts: list[Waiting], ready: npt.NDArray[np.bool_]) -> tuple[list[Waiting], list[Waiting]]:
    going: list[Waiting] = []
    staying: list[Waiting] = []
    start = 0
    for part in parts:
        mine = ready[start:start + len(part.rows)]
        start += len(part.rows)
        for chosen, into in ((mine, going), (~mine, staying)):
            keep = np.flatnonzero(chosen)
            if len(keep) == len(part.rows):
                into.append(part)
            elif len(keep):
                member = part.member._replace(x=part.member.x.only(keep))
                into.append(part._replace(rows=part.rows[keep], masks=part.masks[keep], member=member))
    return going, staying


def _execute(members: list[Member], masks: Masks, exchange: Exchange) -> None:
    issues = [member.x for member in members]
    if len(members) == 1:
        x, sources, destinations = members[0]
        for write, value in zip(destinations, exchange(issues, [read(x) for read in sources], masks), strict=True):
            if write is not None:
                write(x, value)
        return
    values = [np.concatenate([member.x.full(member.sources[i](member.x)) for member in members])
              for i in range(len(members[0].sources))]
    results = exchange(issues, values, masks)
    total = sum(x.count for x in issues)
    start = 0
    for x, _, destinations in members:
        for write, value in zip(destinations, results, strict=True):
            if write is not None:
                write(x, np.repeat(value, total)[:x.count] if len(value) == 1 else value[start:start + x.count].copy())
        start += x.count


def all_rows(issues: list[Issue]) -> Rows:
    """The rows of some issues, concatenated."""
    return issues[0].rows() if len(issues) == 1 else np.concatenate([x.rows() for x in issues])
