"""mma.sync.m8n8k4 with f16 multiplicands: four independent products, one per quad pair.

Source: PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type". Computation q belongs to lanes 4q to
4q+3 and 4q+16 to 4q+19. Here its rows (of A, C, D) and columns (of B) are numbered 8q to 8q+7, so that one fragment
describes all four: A is 32 x 4, B 4 x 32, and of A * B only the four diagonal 8 x 8 blocks are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from softgpu.reference.tensor.fragments import LANES, Fragment, Index
from softgpu.reference.tensor.mma import Array, MatrixOperation
from softgpu.reference.tensor.products import multiply_add

_QUADS = 4
_BASE: Index = 8 * ((LANES % 16) // 4)  # first row of the lane's computation
_HIGH: Index = 4 * (LANES // 16)  # the upper lanes hold the second four rows or columns
_IN_QUAD: Index = LANES % 4


def _element(count: int) -> Index:
    return np.arange(count, dtype=np.int64)[:, None]


def _multiplicand(kind: str, along_k: bool) -> tuple[Index, Index]:
    """(k position, position across) of the four elements of a lane."""
    element = _element(4)
    if along_k:
        return element + 0 * LANES, _BASE + _HIGH + _IN_QUAD + 0 * element
    return _IN_QUAD + 0 * element, _BASE + _HIGH + element


def _a(layout: str) -> Fragment:
    k, row = _multiplicand("f16", layout == "row")
    return Fragment("f16", (8 * _QUADS, 4), row, k)


def _b(layout: str) -> Fragment:
    k, column = _multiplicand("f16", layout == "col")
    return Fragment("f16", (4, 8 * _QUADS), k, column)


def _accumulator(kind: str) -> Fragment:
    element = _element(8)
    if kind == "f16":
        row, column = _IN_QUAD + 0 * element, element + 0 * LANES
    else:
        row = (LANES & 1) + (element & 2)
        column = (element & 4) + (LANES & 2) + (element & 1)
    return Fragment(kind, (8 * _QUADS, 8), _BASE + _HIGH + row, column)


def _four_products(a: Array, b: Array, c: Array, d_kind: str) -> Array:
    def by_quad(matrix: Array) -> Array:
        return matrix.reshape(*matrix.shape[:-2], _QUADS, 8, matrix.shape[-1])

    b_quads = np.swapaxes(by_quad(np.swapaxes(b, -1, -2)), -1, -2)
    result = multiply_add(by_quad(a), b_quads, by_quad(c), d_kind)
    return result.reshape(*result.shape[:-3], 8 * _QUADS, 8)


def operations() -> Iterator[MatrixOperation]:
    """All layouts; when C is f32, D is too."""
    for a, b, (d, c) in product(("row", "col"), ("row", "col"), (("f16", "f16"), ("f32", "f16"), ("f32", "f32"))):
        name = f"mma.sync.aligned.m8n8k4.{a}.{b}.{d}.f16.f16.{c}"
        compute = partial(_four_products, d_kind=d)
        yield MatrixOperation(name, _a(a), _b(b), _accumulator(c), _accumulator(d), compute)
