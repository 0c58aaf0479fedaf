"""Fragments: how the elements of a matrix lie in the registers of the 32 lanes of a warp.

A fragment is described by two integer arrays of shape (elements per lane, 32): the row and the column of element i of
each lane, elements counted from the low end of the first register. Registers are arrays of shape (..., registers, 32),
uint32, or uint64 for f64; leading axes (several warps at once) pass through everywhere.

Source of the layouts: PTX ISA, "Matrix Fragments for mma.m8n8k4" to "mma.m16n8k256". Their formulas follow one rule,
with groupID = lane / 4, threadID = lane % 4 and n elements in a register: a register of A covers n columns per thread
and 4 n per group, the registers alternate between rows groupID and groupID + 8 and then advance by 4 n columns; a
register of B likewise covers rows; the accumulators hold columns 2 threadID and 2 threadID + 1 of those rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics import FORMATS, INTEGERS, to_float64
from softgpu.reference.numerics.narrow import decode

Array = npt.NDArray[Any]
Index = npt.NDArray[np.int64]

WARP = 32
LANES: Index = np.arange(WARP, dtype=np.int64)
GROUP: Index = LANES >> 2
THREAD: Index = LANES & 3

_PADDED = {"e2m1": 2, "e2m3": 0, "e3m2": 0}
"""Formats that lie in a byte each, with so many bits of padding below them (manual, ``mma`` with ``.kind::f8f6f4``)."""

_NARROW_INTEGERS = {"s4": (4, True), "u4": (4, False), "b1": (1, False)}


def element_bits(kind: str) -> int:
    """Width of an element of a matrix type in its register."""
    if kind in _NARROW_INTEGERS:
        return _NARROW_INTEGERS[kind][0]
    if kind in _PADDED:
        return 8
    if kind in INTEGERS:
        return INTEGERS[kind][0]
    return int(FORMATS[kind].container.itemsize) * 8


def values_of(elements: Array, kind: str) -> Array:
    """Matrix elements as float64 (floating-point types but f64), uint64 bits (f64) or int64 (integer types)."""
    if kind == "f64":
        return elements
    if kind in _PADDED:
        return decode(elements >> elements.dtype.type(_PADDED[kind]), kind)
    if kind in FORMATS:
        return to_float64(elements.astype(FORMATS[kind].container), kind)
    bits, signed = _NARROW_INTEGERS.get(kind) or INTEGERS[kind]
    integers = elements.astype(np.int64)
    return integers - ((integers >> (bits - 1)) << bits) if signed else integers


@dataclass(frozen=True, eq=False)
class Fragment:
    """One operand of a warp-level matrix instruction. ``shape``: rows and columns of the matrix."""

    kind: str
    shape: tuple[int, int]
    rows: Index
    columns: Index

    @property
    def bits(self) -> int:
        """Width of a register: 64 for f64, else 32."""
        return max(32, element_bits(self.kind))

    @property
    def register_type(self) -> np.dtype[Any]:
        return np.dtype(f"uint{self.bits}")

    @property
    def per_register(self) -> int:
        """Elements in a register."""
        return self.bits // element_bits(self.kind)

    @property
    def registers(self) -> int:
        return int(self.rows.shape[0]) // self.per_register

    @cached_property
    def _shifts(self) -> Array:
        return (np.arange(self.per_register) * element_bits(self.kind)).astype(self.register_type)[:, None]

    def unpack(self, registers: npt.ArrayLike) -> Array:
        """(..., registers, 32) -> elements (..., registers, per_register, 32), bit patterns in register width."""
        array = np.asarray(registers)
        if array.shape[-2:] != (self.registers, WARP):
            raise ValueError(f"a .{self.kind} fragment has {self.registers} x {WARP} registers, got {array.shape[-2:]}")
        array = array.astype(self.register_type, copy=False)
        if self.per_register == 1:
            return array[..., None, :]
        mask = self.register_type.type((1 << element_bits(self.kind)) - 1)
        result: Array = (array[..., None, :] >> self._shifts) & mask
        return result

    def pack(self, elements: npt.ArrayLike) -> Array:
        """The inverse of :meth:`unpack`."""
        array = np.asarray(elements).astype(self.register_type, copy=False)
        if self.per_register == 1:
            return array[..., 0, :]
        return np.asarray(np.bitwise_or.reduce(array << self._shifts, axis=-2))

    def gather(self, registers: npt.ArrayLike) -> Array:
        """Registers -> the matrix (..., rows, columns) of element bit patterns."""
        elements = self.unpack(registers)
        matrix = np.zeros((*elements.shape[:-3], *self.shape), self.register_type)
        matrix[..., self.rows, self.columns] = elements.reshape(*elements.shape[:-3], -1, WARP)
        return matrix

    def scatter(self, matrix: Array) -> Array:
        """The matrix of element bit patterns -> registers."""
        elements = matrix[..., self.rows, self.columns]
        return self.pack(elements.reshape(*elements.shape[:-2], self.registers, self.per_register, WARP))

    def values(self, registers: npt.ArrayLike) -> Array:
        """Registers -> the matrix as :func:`values_of` gives it."""
        return values_of(self.gather(registers), self.kind)


def _blocks(kind: str, rows: int, columns: int, transposed: bool) -> tuple[Index, Index]:
    """(across, along) positions of the elements of A, or of B transposed, ``columns`` of which are the k direction."""
    per_register = max(32, element_bits(kind)) // element_bits(kind)
    halves = rows // 8
    count = halves * columns // (4 * per_register)
    element = np.arange(count * per_register, dtype=np.int64)[:, None]
    register, inside = element // per_register, element % per_register
    across = GROUP + 8 * (register % halves) if not transposed else GROUP + 0 * register
    along = THREAD * per_register + inside + 4 * per_register * (register // halves)
    return np.broadcast_to(across, along.shape).copy(), along


def fragment_a(kind: str, m: int, k: int) -> Fragment:
    """Multiplicand A of an mma (row-major), m x k."""
    rows, columns = _blocks(kind, m, k, False)
    return Fragment(kind, (m, k), rows, columns)


def fragment_b(kind: str, k: int, n: int) -> Fragment:
    """Multiplicand B of an mma (column-major), k x n, n = 8."""
    columns, rows = _blocks(kind, n, k, True)
    return Fragment(kind, (k, n), rows, columns)


def fragment_c(kind: str, m: int, n: int) -> Fragment:
    """Accumulators C and D of an mma, m x n, n = 8."""
    element = np.arange(m * n // WARP, dtype=np.int64)[:, None]
    return Fragment(kind, (m, n), GROUP + 8 * (element >> 1), 2 * THREAD + (element & 1))
