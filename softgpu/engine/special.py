"""Special registers: their types and shapes, given what the kernel is compiled for."""

from __future__ import annotations

from softgpu.engine.options import Options
from softgpu.engine.shapes import DIVERGENT, LARGEST_ALIGN, UNIFORM, WARP, Shape, constant, known

_MASKS = {f"%lanemask_{kind}" for kind in ("eq", "lt", "le", "gt", "ge")}
CLOCKS = {"%clock": "u32", "%clock_hi": "u32", "%clock64": "u64", "%globaltimer": "u64", "%globaltimer_lo": "u32",
          "%globaltimer_hi": "u32"}
_ZERO = {"%smid", "%cluster_ctarank", *(f"%cluster_ctaid.{a}" for a in "xyz"), "%tid.w", "%ctaid.w"}
_ONE = {"%nsmid", "%cluster_nctarank", *(f"%cluster_nctaid.{a}" for a in "xyz")}
_UNIFORM32 = {
    "%warpid", "%nwarpid", "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size",
    *(f"%{n}.{a}" for n in ("ntid", "ctaid", "nctaid", "clusterid", "nclusterid") for a in "xyz"),
    *(f"%envreg{n}" for n in range(32)),
}
_LANES = range(WARP)


def canonical(name: str) -> str:
    """``%tid`` alone means ``%tid.x``."""
    return f"{name}.x" if name in ("%tid", "%ntid", "%ctaid", "%nctaid") else name


def special_type(name: str) -> str | None:
    """PTX type of a special register; None if there is none of that name."""
    name = canonical(name)
    if name in CLOCKS:
        return CLOCKS[name]
    if name == "%gridid":
        return "u64"
    if name == "%is_explicit_cluster":
        return "pred"
    if name in _MASKS or name in _ZERO or name in _ONE or name in _UNIFORM32 or name == "%laneid" or (
            name in ("%tid.x", "%tid.y", "%tid.z")):
        return "u32"
    return None


def special_shape(name: str, options: Options) -> Shape:
    """Shape of a special register."""
    name = canonical(name)
    if name == "%laneid":
        return known(_LANES, LARGEST_ALIGN, 0, WARP - 1)
    if name in _MASKS:
        return DIVERGENT
    if name in _ZERO:
        return constant(0, 32)
    if name in _ONE:
        return constant(1, 32)
    if name.startswith("%tid."):
        return _thread_index(name[-1], options)
    if name.startswith("%ntid.") and options.block is not None:
        return constant(options.block["xyz".index(name[-1])], 32)
    if name.startswith(("%ctaid.", "%clusterid.")):
        return Shape(WARP, low=0, high=2**31 - 2)
    return UNIFORM


def _thread_index(axis: str, options: Options) -> Shape:
    """Thread t of a block has x = t % bx, y = t // bx % by, z = t // (bx by); a warp is 32 threads in a row."""
    if options.block is None:
        return Shape(1, low=0, high=1023)
    bx, by, bz = options.block
    extent = options.block["xyz".index(axis)]
    if extent == 1:
        return constant(0, 32)
    if options.threads <= WARP:
        values = [(t % bx, t // bx % by, t // (bx * by) % bz)["xyz".index(axis)] for t in _LANES]
        return known(values, LARGEST_ALIGN, 0, max(values))
    # Lanes behind the last thread of a block go on counting.
    top = extent - 1 if options.threads % WARP == 0 else max(extent - 1, options.threads + WARP)
    if axis == "x":
        if bx % WARP == 0 or by * bz == 1:
            return known(_LANES, WARP, 0, top)
        if WARP % bx == 0:
            return known([t % bx for t in _LANES], LARGEST_ALIGN, 0, bx - 1)
    elif axis == "y":
        if bx % WARP == 0:
            return Shape(WARP, low=0, high=top)
        rows = WARP // bx if WARP % bx == 0 else 0
        if rows and (by % rows == 0 or bz == 1):
            return known([t // bx for t in _LANES], rows, 0, top)
    else:
        plane = bx * by
        if plane % WARP == 0:
            return Shape(WARP, low=0, high=top)
        if WARP % plane == 0:
            return known([t // plane for t in _LANES], WARP // plane, 0, top)
    return Shape(1, low=0, high=top)
