"""ldmatrix and stmatrix of 8 x 8 matrices of 16-bit elements.

Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix" and "store instruction: stmatrix". Left out by name:
the 8-bit and narrower shapes m16n16, m8n16 and m16n8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgpu.reference.tensor.fragments import GROUP, LANES, THREAD, Array, Index

ROW_BYTES = 16
"""Bytes of a matrix row: eight 16-bit elements, contiguous at the address of the row."""


@dataclass(frozen=True, slots=True)
class MatrixMove:
    """ldmatrix or stmatrix of 1, 2 or 4 matrices; register j of every lane belongs to matrix j.

    Lane 8 j + i gives the address of row i of matrix j. A lane holds, in the low and the high half of its register,
    elements 2 (lane % 4) and 2 (lane % 4) + 1 of row lane / 4; with ``trans`` of column lane / 4.
    """

    mnemonic: str
    is_store: bool
    matrices: int
    trans: bool

    @property
    def row_lanes(self) -> Index:
        """(matrices, 8): the lane whose address operand is that of the row."""
        return LANES[: 8 * self.matrices].reshape(self.matrices, 8)

    def load(self, rows: npt.ArrayLike) -> Array:
        """Matrix rows, uint16 (matrices, 8, 8), to registers, uint32 (matrices, 32)."""
        matrices = np.asarray(rows).astype(np.uint32)
        if self.trans:
            matrices = matrices.swapaxes(-1, -2)
        low, high = matrices[..., GROUP, 2 * THREAD], matrices[..., GROUP, 2 * THREAD + 1]
        return np.asarray(low | (high << np.uint32(16)))

    def store(self, registers: npt.ArrayLike) -> Array:
        """Registers, uint32 (matrices, 32), to matrix rows, uint16 (matrices, 8, 8)."""
        array = np.asarray(registers).astype(np.uint32, copy=False)
        rows = np.empty((*array.shape[:-1], 8, 8), np.uint16)
        rows[..., GROUP, 2 * THREAD] = array.astype(np.uint16)
        rows[..., GROUP, 2 * THREAD + 1] = (array >> np.uint32(16)).astype(np.uint16)
        return rows.swapaxes(-1, -2) if self.trans else rows


def moves(name: str) -> Iterator[MatrixMove]:
    """Every form of ``name`` (ldmatrix, stmatrix), without state space."""
    for matrices in (1, 2, 4):
        for trans in (False, True):
            mnemonic = f"{name}.sync.aligned.m8n8.x{matrices}{'.trans' if trans else ''}.b16"
            yield MatrixMove(mnemonic, name == "stmatrix", matrices, trans)
