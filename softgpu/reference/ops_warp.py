"""Exchange within a warp: shfl, vote, match, redux, activemask (PTX manual, section 9.7.9 and 9.7.13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import Operand, Register
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.integers import population
from softgpu.reference.issue import Issue
from softgpu.reference.numerics import fabs, fmax, fmin
from softgpu.reference.program import Read, Value, Write
from softgpu.reference.ptx_types import dtype_of
from softgpu.reference.warps import Masks, all_rows, meeting

WARP = 32


def _optional(d: Decoder, operand: Operand | None, kind: str) -> Write | None:
    if operand is None or operand == Register("_"):
        return None
    return d.write(operand, kind)


def _full(value: Value, count: int) -> Value:
    return value if len(value) == count else np.repeat(value, count)


def _shfl(d: Decoder) -> None:
    """A source lane that is not taking part leaves the result undefined: here the thread gets its own value."""
    d.need("sync")
    mode = d.need("up", "down", "bfly", "idx")
    d.need("b32")
    d.done(5)
    first, second = d.pair(0)
    destinations = (_optional(d, first, "b32"), _optional(d, second, "pred"))
    sources = (d.source(1, "b32"), d.source(2, "b32"), d.source(3, "b32"))

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        rows = all_rows(issues)
        team = issues[0].team
        lane = team.lane_of[rows].astype(np.int64)
        own, by, control = values
        clamp, segment = control & np.uint32(31), control >> np.uint32(8) & np.uint32(31)
        shift = (by & np.uint32(31)).astype(np.int64)
        keep = segment.astype(np.int64)
        highest = (lane & keep) | (clamp.astype(np.int64) & ~keep)
        if mode == "up":
            source = lane - shift
            inside = source >= highest
        elif mode == "down":
            source = lane + shift
            inside = source <= highest
        elif mode == "bfly":
            source = lane ^ shift
            inside = source <= highest
        else:
            source = (lane & keep) | (shift & ~keep)
            inside = source <= highest
        source = np.where(inside, source, lane)
        places = (team.warp_of[rows].astype(np.int64) * WARP) + source
        full = _full(own, len(rows))
        if team.whole_warps and len(rows) == team.rows:
            ordered = full if issues[0].index is None else _by_slot(team.slot_of[rows], full, team.rows)
            return [ordered[places], inside]
        slots = team.slot_of[rows]
        present = np.zeros(team.warps * WARP, np.bool_)
        present[slots] = True
        found = _by_slot(slots, full, team.warps * WARP)[places]
        return [np.where(present[places], found, full), inside]

    d.control(meeting(("shfl", mode), d.source(4, "b32"), sources, destinations, exchange), counted=False)


def _by_slot(slots: npt.NDArray[np.intp], values: Value, size: int) -> Value:
    ordered = np.zeros(size, values.dtype)
    ordered[slots] = values
    return ordered


def _groups(issues: list[Issue], masks: Masks) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp], int]:
    """Rows, and for each the number of its (warp, member mask) group; how many groups there are."""
    rows = all_rows(issues)
    warps = issues[0].team.warp_of[rows].astype(np.uint64)
    keys, group = np.unique(warps << np.uint64(32) | masks, return_inverse=True)
    return rows, group, len(keys)


def _ballot(issues: list[Issue], masks: Masks, predicate: Value) -> npt.NDArray[np.uint32]:
    """For each row the lanes of its group whose predicate holds."""
    rows, group, count = _groups(issues, masks)
    bits = issues[0].team.lane_bit[rows] * _full(predicate, len(rows))
    found: npt.NDArray[np.uint32] = np.bincount(group, weights=bits, minlength=count).astype(np.uint32)[group]
    return found


def _vote(d: Decoder) -> None:
    if not d.flag("sync"):
        d.fail("a vote without a member mask, whose result depends on which threads run together")
    mode = d.need("all", "any", "uni", "ballot")
    result = "b32" if mode == "ballot" else "pred"
    d.need(result)
    d.done(3)
    predicate = d.predicate(d.operands[1])

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        true = _ballot(issues, masks, values[0])
        if mode == "ballot":
            return [true]
        if mode == "any":
            return [true != 0]
        everybody = _ballot(issues, masks, np.ones(1, np.bool_))
        return [(true == everybody) if mode == "all" else (true == everybody) | (true == 0)]

    destinations = (_optional(d, d.operands[0], result),)
    d.control(meeting(("vote", mode), d.source(2, "b32"), (predicate,), destinations, exchange), counted=False)


def _match(d: Decoder) -> None:
    mode = d.need("any", "all")
    d.need("sync")
    kind = d.need("b32", "b64")
    d.done(3)
    first, second = d.pair(0)
    if second is not None and mode == "any":
        d.fail("match.any has no predicate result")

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        rows, group, _ = _groups(issues, masks)
        team = issues[0].team
        value = _full(values[0], len(rows))
        _, same = np.unique(value, return_inverse=True)
        _, equal = np.unique(group.astype(np.int64) * len(rows) + same, return_inverse=True)
        lanes = np.bincount(equal, weights=team.lane_bit[rows]).astype(np.uint32)[equal]
        if mode == "any":
            return [lanes, np.zeros(1, np.bool_)]
        everybody = np.bincount(group, weights=team.lane_bit[rows]).astype(np.uint32)[group]
        agreed = lanes == everybody
        return [np.where(agreed, everybody, np.uint32(0)), agreed]

    destinations = (_optional(d, first, "b32"), _optional(d, second, "pred"))
    signature = ("match", mode, kind)
    d.control(meeting(signature, d.source(2, "b32"), (d.source(1, kind),), destinations, exchange), counted=False)


_REDUCTIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "add": (np.add, ("u32", "s32")), "min": (np.minimum, ("u32", "s32")), "max": (np.maximum, ("u32", "s32")),
    "and": (np.bitwise_and, ("b32",)), "or": (np.bitwise_or, ("b32",)), "xor": (np.bitwise_xor, ("b32",)),
}


def _redux(d: Decoder) -> None:
    d.need("sync")
    operation = d.need(*_REDUCTIONS)
    if operation in _EXTREMES and d.modifiers[-1:] == ["f32"]:
        _redux_float(d, operation)
        return
    function, kinds = _REDUCTIONS[operation]
    kind = d.need(*kinds)
    d.done(3)
    view = np.dtype(np.int32) if kind == "s32" else dtype_of(kind)

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        rows, group, _ = _groups(issues, masks)
        value = _full(values[0], len(rows)).view(view)
        order = np.argsort(group, kind="stable")
        ordered = group[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        reduced = function.reduceat(value[order], starts, dtype=view)
        return [reduced[group].view(np.uint32)]

    destinations = (_optional(d, d.operands[0], kind),)
    signature = ("redux", operation, kind)
    d.control(meeting(signature, d.source(2, "b32"), (d.source(1, kind),), destinations, exchange), counted=False)


_EXTREMES: dict[str, Any] = {"min": fmin, "max": fmax}


def _redux_float(d: Decoder, operation: str) -> None:
    """Minimum or maximum of single precision, +0 above -0; NaNs are passed over, or with ``.NaN`` win."""
    magnitudes, nan = d.flag("abs"), d.flag("NaN")
    d.need("f32")
    d.done(3)
    function = _EXTREMES[operation]

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        rows, group, count = _groups(issues, masks)
        value = _full(values[0], len(rows))
        if magnitudes:
            value = fabs(value, "f32")
        # A NaN to begin with is passed over, and the number to begin with under .NaN loses to every other.
        start = 0x7FFFFFFF if not nan else 0x7F800000 if operation == "min" else 0xFF800000
        result = np.full(count, start, np.uint32)
        for turn in range(WARP):
            here = issues[0].team.lane_of[rows] == turn
            result[group[here]] = function(result[group[here]], value[here], "f32", nan=nan)
        return [result[group]]

    destinations = (_optional(d, d.operands[0], "f32"),)
    signature = ("redux", operation, "f32", magnitudes, nan)
    d.control(meeting(signature, d.source(2, "b32"), (d.source(1, "f32"),), destinations, exchange), counted=False)


def _elect(d: Decoder) -> None:
    """The manual leaves open which thread is elected, the same one each time: here the lowest."""
    d.need("sync")
    d.done(2)
    first, second = d.pair(0)
    if second is None:
        d.fail("the predicate result is missing")

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        rows, _, _ = _groups(issues, masks)
        members = _ballot(issues, masks, np.ones(1, np.bool_))
        lowest = members & (~members + np.uint32(1))
        return [population(lowest - np.uint32(1)), lowest == issues[0].team.lane_bit[rows]]

    destinations = (_optional(d, first, "b32"), _optional(d, second, "pred"))
    d.control(meeting(("elect",), d.source(1, "b32"), (), destinations, exchange), counted=False)


def _activemask(d: Decoder) -> None:
    d.need("b32")
    d.done(1)
    write = d.destination(0, "b32")

    def run(x: Issue) -> None:
        rows = x.rows()
        write(x, x.team.lanes_by_warp(rows)[x.team.warp_of[rows]])

    d.plain(run)


def whole_mask() -> Read:
    """The member mask of ``.aligned`` instructions: all threads of the warp."""
    mask = np.array([0xFFFFFFFF], np.uint32)
    return lambda x: mask


TABLE: dict[str, Decode] = {
    "shfl": _shfl, "vote": _vote, "match": _match, "redux": _redux, "elect": _elect,
    "activemask": _activemask,
}
