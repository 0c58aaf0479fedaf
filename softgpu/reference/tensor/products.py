"""D = A * B + C: what the elements of a matrix instruction are computed from, independent of the layout.

The manual leaves order, rounding and subnormals of floating-point accumulation open ("at least single precision").
This reference computes, for every element of D: products exactly, then the sum c + a[0] b[0] + a[1] b[1] + ... from
left to right in float64, then one rounding (nearest even) to the type of D. Subnormals are kept, NaN is canonical.
f64 is a chain of fused multiply-adds in the same order, as the manual demands. Integers are exact, then wrap, or
clamp with ``.satfinite``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics import FORMATS, fma, from_float64

Array = npt.NDArray[Any]


def multiply_add(a: Array, b: Array, c: Array, d_kind: str, rounding: str = "rn", satfinite: bool = False) -> Array:
    """Bit patterns of A (..., m, k) times B (..., k, n) plus C (..., m, n).

    Operands as :func:`softgpu.reference.tensor.fragments.values_of` gives them; ``d_kind``: f16, f32, f64 or s32.
    """
    if d_kind == "f64":
        for k in range(a.shape[-1]):
            c = fma(a[..., :, k, None], b[..., None, k, :], c, "f64", rounding)
        return c
    if d_kind in FORMATS:
        with np.errstate(all="ignore"):
            products = a[..., :, :, None] * b[..., None, :, :]
            total = np.broadcast_to(c, products[..., :, 0, :].shape).copy()
            for k in range(a.shape[-1]):
                total += products[..., :, k, :]
        return from_float64(total, d_kind)
    return to_s32(np.matmul(a, b) + c, satfinite)


def to_s32(exact: Array, satfinite: bool) -> Array:
    """int64 sums as 32-bit two's complement, wrapped or clamped."""
    if satfinite:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    return exact.astype(np.uint32)


def bit_products(a: Array, b: Array, c: Array, operation: str) -> Array:
    """Single-bit mma: population count of ``a[i] operation b[j]`` (and, xor) over k, plus C, wrapped."""
    both = np.matmul(a, b)
    if operation == "xor":
        both = a.sum(axis=-1)[..., :, None] + b.sum(axis=-2)[..., None, :] - 2 * both
    return to_s32(both + c, False)
