"""Special registers (PTX manual, section 10), for a grid of clusters of one block each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from softgpu.reference.program import Read, Value

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue
    from softgpu.reference.team import Team

CLOCKS_A_READ = 32
"""What a read of a clock adds to it, beside one for every instruction issued: loops that wait for time must end."""


def _u32(value: int) -> Value:
    return np.array([value & 0xFFFFFFFF], np.uint32)


def _coordinate(linear: Value, dims: tuple[int, int, int], axis: int) -> Value:
    x, y, z = dims
    if (x, y, z)[axis] == 1:
        return _u32(0)
    numbers = linear.astype(np.uint32)
    if axis == 0:
        return numbers % np.uint32(x)
    if axis == 1:
        return numbers // np.uint32(x) % np.uint32(y)
    return numbers // np.uint32(x * y)


def _block(team: Team, axis: int) -> Value:
    linear = team.grid_block_of[:1] if team.blocks == 1 else team.grid_block_of
    return _coordinate(linear, team.grid.grid, axis)


def _lane_mask(team: Team, kind: str) -> Value:
    own = team.lane_bit
    below = own - np.uint32(1)
    return {"eq": own, "lt": below, "le": below | own, "gt": ~(below | own), "ge": ~below}[kind].astype(np.uint32)


_FIXED: dict[str, Callable[[Team], Value]] = {
    "%laneid": lambda team: team.lane_of.astype(np.uint32),
    "%warpid": lambda team: (team.thread_of // 32).astype(np.uint32),
    "%nwarpid": lambda team: _u32(team.warps_per_block),
    "%smid": lambda team: _u32(0),
    "%nsmid": lambda team: _u32(1),
    "%gridid": lambda team: np.ones(1, np.uint64),
    "%dynamic_smem_size": lambda team: _u32(team.grid.dynamic_shared),
    "%total_smem_size": lambda team: _u32(team.grid.shared_bytes),
    "%aggr_smem_size": lambda team: _u32(team.grid.shared_bytes),
    "%is_explicit_cluster": lambda team: np.zeros(1, np.bool_),
    "%cluster_ctarank": lambda team: _u32(0),
    "%cluster_nctarank": lambda team: _u32(1),
    "%envreg1": lambda team: _u32(team.grid.workspace >> 32),
    "%envreg2": lambda team: _u32(team.grid.workspace),
}
for _axis, _name in enumerate("xyz"):
    def _of(axis: int) -> dict[str, Callable[[Team], Value]]:
        return {
            "tid": lambda team: _coordinate(team.thread_of, team.grid.block, axis),
            "ntid": lambda team: _u32(team.grid.block[axis]),
            "ctaid": lambda team: _block(team, axis),
            "nctaid": lambda team: _u32(team.grid.grid[axis]),
            "clusterid": lambda team: _block(team, axis),
            "nclusterid": lambda team: _u32(team.grid.grid[axis]),
            "cluster_ctaid": lambda team: _u32(0),
            "cluster_nctaid": lambda team: _u32(1),
        }
    _FIXED.update({f"%{name}.{_name}": make for name, make in _of(_axis).items()})
for _name in ("tid", "ctaid"):
    # "The fourth element is unused and always returns zero" (PTX manual, %tid).
    _FIXED[f"%{_name}.w"] = lambda team: _u32(0)
for _kind in ("eq", "lt", "le", "gt", "ge"):
    _FIXED[f"%lanemask_{_kind}"] = lambda team, kind=_kind: _lane_mask(team, kind)  # type: ignore[misc]
for _number in range(32):
    _FIXED.setdefault(f"%envreg{_number}", lambda team: _u32(0))

_CLOCKS: dict[str, tuple[str, int]] = {
    "%clock": ("u32", 0), "%clock_hi": ("u32", 32), "%clock64": ("u64", 0),
    "%globaltimer": ("u64", 0), "%globaltimer_lo": ("u32", 0), "%globaltimer_hi": ("u32", 32),
}
_TYPES = {"%gridid": "u64", "%is_explicit_cluster": "pred"}


def special_register(name: str) -> tuple[str, Read] | None:
    """Type and reader of a special register; None if there is none of that name. ``%tid`` alone means ``%tid.x``."""
    clock = _CLOCKS.get(name)
    if clock is not None:
        return clock[0], _clock(clock[1], np.uint32 if clock[0] == "u32" else np.uint64)
    name = f"{name}.x" if f"{name}.x" in _FIXED else name
    make = _FIXED.get(name)
    if make is None:
        return None

    def read(x: Issue) -> Value:
        team = x.team
        value = team.specials.get(name)
        if value is None:
            value = team.specials[name] = make(team)
        return value if x.index is None or len(value) == 1 else value[x.index]

    return _TYPES.get(name, "u32"), read


def _clock(shift: int, kind: type[np.uint32] | type[np.uint64]) -> Read:
    def read(x: Issue) -> Value:
        x.team.grid.clock += CLOCKS_A_READ
        return np.array([x.team.grid.clock >> shift & (0xFFFFFFFF if kind is np.uint32 else (1 << 64) - 1)], kind)

    return read
