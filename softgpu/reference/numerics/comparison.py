"""Comparisons of ``set``, ``setp`` and ``slct`` on floating-point operands.

Source: PTX ISA, "Comparison and Selection Instructions" and "Half Precision Comparison Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics.formats import (
    FORMATS,
    INTEGERS,
    PACKED,
    Array,
    container,
    flush,
    join2,
    split2,
    to_float64,
)

Bool = npt.NDArray[np.bool_]

_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

COMPARISONS = (*_ORDERED, *(f"{op}u" for op in _ORDERED), "num", "nan")
"""eq ne lt le gt ge: false with a NaN; equ neu ltu leu gtu geu: true with a NaN; num, nan: none, any is NaN."""


def compare(op: str, a: npt.ArrayLike, b: npt.ArrayLike, kind: str, ftz: bool = False) -> Bool:
    """a op b for f16, bf16, f32 or f64 operands; for packed types see :func:`compare2`."""
    if ftz:
        a, b = flush(a, kind), flush(b, kind)
    x, y = to_float64(a, kind), to_float64(b, kind)
    with np.errstate(all="ignore"):
        if op in _ORDERED:
            return np.asarray(_ORDERED[op](x, y))
        unordered = np.isnan(x) | np.isnan(y)
        if op == "nan":
            return np.asarray(unordered)
        if op == "num":
            return np.asarray(~unordered)
        if op not in COMPARISONS:
            raise KeyError(op)
        return np.asarray(_ORDERED[op[:-1]](x, y) | unordered)


def compare2(op: str, a: npt.ArrayLike, b: npt.ArrayLike, kind: str, ftz: bool = False) -> tuple[Bool, Bool]:
    """(low, high) comparison of packed operands: the ``p`` and ``q`` of ``setp...f16x2 p|q, a, b``."""
    element = PACKED[kind][0]
    (a_low, a_high), (b_low, b_high) = split2(a, kind), split2(b, kind)
    return compare(op, a_low, b_low, element, ftz), compare(op, a_high, b_high, element, ftz)


def set_result(true: npt.ArrayLike, kind: str) -> Array:
    """What ``set`` writes: 1.0 or +0.0 for a floating-point destination type, all ones or 0 for an integer one."""
    if kind in FORMATS:
        value = FORMATS[kind].one_bits
    else:
        value = (1 << INTEGERS[kind][0]) - 1
    scalar = container(kind).type
    result: Array = np.where(true, scalar(value), scalar(0))
    return result


def set2_result(low: npt.ArrayLike, high: npt.ArrayLike, kind: str) -> Array:
    """What ``set`` of a packed source type writes: per half 1.0 for a packed destination, 0xffff for u32 and s32."""
    half = PACKED[kind][0] if kind in PACKED else "u16"
    return join2(set_result(low, half), set_result(high, half))


def set_(op: str, a: npt.ArrayLike, b: npt.ArrayLike, to: str, kind: str, ftz: bool = False) -> Array:
    """set.op{.ftz}.to.kind without a boolean operand."""
    if kind in PACKED:
        return set2_result(*compare2(op, a, b, kind, ftz), to)
    return set_result(compare(op, a, b, kind, ftz), to)
