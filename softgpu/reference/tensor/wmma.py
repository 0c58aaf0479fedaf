"""wmma.load, wmma.mma and wmma.store with a layout of our own.

PTX leaves the layout of wmma fragments open; programs may only treat all elements alike. Ours: element i of lane l is
number (l * E + i) modulo the size of the matrix in row-major order, with E elements per lane. Where the manual's
register counts hold a matrix more than once (f16 multiplicands), each copy is complete, and gathering takes the last.
The layout does not depend on row or column order in memory, nor on which instruction uses the fragment.

Source: PTX ISA, "Matrix Fragments for WMMA", "Matrix Storage for WMMA" and the three instructions. Left out by name:
the sub-byte and single-bit shapes m8n8k32 and m8n8k128.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
import numpy.typing as npt

from softgpu.reference.tensor.fragments import LANES, WARP, Array, Fragment, Index, element_bits
from softgpu.reference.tensor.mma import MatrixOperation
from softgpu.reference.tensor.products import multiply_add

_SHAPES = {
    "m16n16k16": (16, 16, 16),
    "m8n32k16": (8, 32, 16),
    "m32n8k16": (32, 8, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}
_WIDE = ("m16n16k16", "m8n32k16", "m32n8k16")
_LAYOUTS = ("row", "col")
_F16_MULTIPLICAND_ELEMENTS = 16  # eight .f16x2 registers in every shape


@cache
def fragment(kind: str, matrix: str, shape: str) -> Fragment:
    """The fragment of matrix a, b, c or d of a shape."""
    m, n, k = _SHAPES[shape]
    rows, columns = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    size = rows * columns
    per_lane = _F16_MULTIPLICAND_ELEMENTS if kind == "f16" and matrix in "ab" else size // WARP
    number = (LANES * per_lane + np.arange(per_lane, dtype=np.int64)[:, None]) % size
    return Fragment(kind, (rows, columns), number // columns, number % columns)


@dataclass(frozen=True, eq=False)
class MatrixAccess:
    """wmma.load or wmma.store: which element of memory each element of the fragment is."""

    mnemonic: str
    is_store: bool
    layout: str
    fragment: Fragment

    @property
    def registers(self) -> int:
        return self.fragment.registers

    @property
    def bits(self) -> int:
        return self.fragment.bits

    @property
    def element_bytes(self) -> int:
        return element_bits(self.fragment.kind) // 8

    @property
    def default_stride(self) -> int:
        """Stride, in elements, when the operand is left out: the extent of the leading dimension."""
        rows, columns = self.fragment.shape
        return columns if self.layout == "row" else rows

    def offsets(self, stride: npt.ArrayLike | None = None) -> Index:
        """Byte offsets (registers, elements per register, 32) from the address operand of each lane.

        ``stride`` in elements, one number or one for each lane; default :attr:`default_stride`.
        """
        fragment = self.fragment
        step = np.asarray(self.default_stride if stride is None else stride, dtype=np.int64)
        outer, inner = (fragment.rows, fragment.columns) if self.layout == "row" else (fragment.columns, fragment.rows)
        offsets = (outer * step + inner) * self.element_bytes
        return offsets.reshape(fragment.registers, fragment.per_register, WARP)

    def pack(self, elements: npt.ArrayLike) -> Array:
        """Elements in the order of :meth:`offsets` -> registers (registers, 32)."""
        return self.fragment.pack(elements)

    def unpack(self, registers: npt.ArrayLike) -> Array:
        """Registers -> elements in the order of :meth:`offsets`, as unsigned integers of register width."""
        return self.fragment.unpack(registers)


_MULTIPLICANDS = {
    **dict.fromkeys(_WIDE, ("f16", "bf16", "s8", "u8")),
    "m16n16k8": ("tf32",),
    "m8n8k4": ("f64",),
}
_ACCUMULATORS = {
    **dict.fromkeys(_WIDE, ("f16", "f32", "s32")),
    "m16n16k8": ("f32",),
    "m8n8k4": ("f64",),
}


def accesses() -> Iterator[MatrixAccess]:
    """Every wmma.load and wmma.store, without state space."""
    for shape, layout in product(_SHAPES, _LAYOUTS):
        for matrix, kind in product("ab", _MULTIPLICANDS[shape]):
            name = f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{kind}"
            yield MatrixAccess(name, False, layout, fragment(kind, matrix, shape))
        for kind in _ACCUMULATORS[shape]:
            part = fragment(kind, "c", shape)
            yield MatrixAccess(f"wmma.load.c.sync.aligned.{layout}.{shape}.{kind}", False, layout, part)
            yield MatrixAccess(f"wmma.store.d.sync.aligned.{layout}.{shape}.{kind}", True, layout, part)


def _forms(shape: str) -> Iterator[tuple[str, str, str, str, bool, str]]:
    """(types in the mnemonic, multiplicand, c, d, satfinite, rounding) of wmma.mma in a shape."""
    for kind in _MULTIPLICANDS[shape]:
        if kind == "f16":
            for d, c in product(("f16", "f32"), repeat=2):
                yield f"{d}.{c}", kind, c, d, False, "rn"
        elif kind in ("s8", "u8"):
            yield f"s32.{kind}.{kind}.s32", kind, "s32", "s32", False, "rn"
            yield f"s32.{kind}.{kind}.s32.satfinite", kind, "s32", "s32", True, "rn"
        elif kind == "f64":
            types = "f64.f64.f64.f64"
            yield types, kind, kind, kind, False, "rn"
            for rounding in ("rn", "rz", "rm", "rp"):
                # Behind the shape in the manual; compilers write it last.
                yield f"{rounding}.{types}", kind, kind, kind, False, rounding
                yield f"{types}.{rounding}", kind, kind, kind, False, rounding
        else:
            yield f"f32.{kind}.{kind}.f32", kind, "f32", "f32", False, "rn"


def operations() -> Iterator[MatrixOperation]:
    """Every wmma.mma."""
    for shape in _SHAPES:
        for types, kind, c, d, satfinite, rounding in _forms(shape):
            compute = partial(multiply_add, d_kind=d, rounding=rounding, satfinite=satfinite)
            parts = (fragment(kind, "a", shape), fragment(kind, "b", shape))
            sums = (fragment(c, "c", shape), fragment(d, "d", shape))
            for a, b in product(_LAYOUTS, _LAYOUTS):
                name = f"wmma.mma.sync.aligned.{a}.{b}.{shape}.{types}"
                yield MatrixOperation(name, *parts, *sums, compute)
