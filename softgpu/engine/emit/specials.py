"""Special registers as values, set when a warp starts; clocks when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softgpu.engine.ir import WARP, Value, lanes
from softgpu.engine.special import special_shape

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

CLOCK, TIMER = 7, 8
_LANES = range(WARP)


def read_clock(lower: Lower, name: str) -> Value:
    """%clock.. and %globaltimer..: one reading for the whole warp."""
    b = lower.builder
    value = lower.helper(TIMER if name.startswith("%globaltimer") else CLOCK, "i64")
    if name.endswith("hi"):
        return b.trunc(b.lshr(value, b.constant(32, "i64")), "i32")
    return value if name in ("%clock64", "%globaltimer") else b.trunc(value, "i32")


def set_specials(lower: Lower, names: set[str], warp: Value, ctaid: dict[str, Value]) -> None:
    """Compute the special registers that the kernel reads, at the present place of the function."""
    for name in sorted(names):
        lower.specials[name] = _special(lower, name, warp, ctaid)


def _special(lower: Lower, name: str, warp: Value, ctaid: dict[str, Value]) -> Value:
    b = lower.builder
    shape = special_shape(name, lower.options)
    if shape.constant is not None:
        return b.constant(shape.constant, "i32")
    stem, _, axis = name[1:].partition(".")
    if stem == "tid":
        return _thread_index(lower, axis, warp)
    if stem in ("ctaid", "clusterid"):
        return ctaid[axis]
    if stem in ("nctaid", "nclusterid"):
        return lower.env(f"grid.{axis}")
    if stem == "ntid":
        return lower.env(f"block.{axis}")
    if stem == "laneid":
        return Value("0", "i32")
    if stem.startswith("lanemask_"):
        return _lane_mask(lower, stem[9:])
    if stem == "warpid":
        return warp
    if stem == "nwarpid":
        return lower.env("warps")
    if stem == "gridid":
        return lower.env("grid_id")
    if stem == "is_explicit_cluster":
        return Value("false", "i1")
    if stem == "dynamic_smem_size":
        return lower.env("dynamic_shared")
    if stem in ("total_smem_size", "aggr_smem_size"):
        return lower.env("shared_bytes")
    if stem == "envreg1":
        return b.trunc(b.lshr(lower.env("workspace"), b.constant(32, "i64")), "i32")
    if stem == "envreg2":
        return b.trunc(lower.env("workspace"), "i32")
    return Value("0", "i32")


def _lane_mask(lower: Lower, kind: str) -> Value:
    masks = {
        "eq": [1 << lane for lane in _LANES], "lt": [(1 << lane) - 1 for lane in _LANES],
        "le": [(2 << lane) - 1 for lane in _LANES], "gt": [-1 << (lane + 1) for lane in _LANES],
        "ge": [-1 << lane for lane in _LANES],
    }
    return lower.builder.vector(masks[kind], "i32")


def _thread_index(lower: Lower, axis: str, warp: Value) -> Value:
    """Thread index along an axis: lane 0's where the shape is scalar, else from the run-time's table or by division."""
    b = lower.builder
    block = lower.options.block
    shape = special_shape(f"%tid.{axis}", lower.options)
    if block is None:
        table = lower.env("thread_ids")
        padded = b.mul(lower.env("warps"), Value("32", "i32"))
        start = b.mul(warp, Value("32", "i32"))
        number = "xyz".index(axis)
        index = b.add(start, b.mul(padded, Value(str(number), "i32"))) if number else start
        offset = b.zext(b.mul(index, Value("4", "i32")), "i64")
        return lower.load(f"<{WARP} x i32>", lower.at(table, offset), 4)
    thread = b.mul(warp, Value("32", "i32"))
    if not shape.scalar:
        thread = b.add(b.splat(thread), b.vector(list(_LANES), "i32"))
    bx, by, _ = block
    count = lanes(thread.type)

    def number_of(value: int) -> Value:
        return b.constant(value, "i32", count)

    if axis == "x":
        if by * block[2] == 1:
            return thread
        return b.binary("urem", thread, number_of(bx))
    if axis == "y":
        row = b.binary("udiv", thread, number_of(bx))
        return row if block[2] == 1 else b.binary("urem", row, number_of(by))
    return b.binary("udiv", thread, number_of(bx * by))
