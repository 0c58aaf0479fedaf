"""Warp-level matrix instructions: fragment layouts and arithmetic.

Registers of a fragment are an array of shape (registers, 32), one column per lane: uint32, or uint64 for f64. Leading
axes are allowed (several warps at once). Tables map full mnemonics to operations; KeyError: not supported.

mma::

    operation = MMA["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    operation.a_registers, .b_registers, .c_registers, .d_registers           # lengths of the operand vectors
    operation.bits                                                            # width of the registers, 32 or 64
    d = operation(a, b, c)                                                    # (n, 32) arrays -> (d_registers, 32)

wmma (the layout is ours, the same in load, mma and store)::

    operation = WMMA["wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"]       # called like those of MMA
    access = WMMA_ACCESS["wmma.load.a.sync.aligned.row.m16n16k16.f16"]        # mnemonic without its state space
    access.is_store, .registers, .bits, .element_bytes, .default_stride
    access.offsets(stride)             -> int64 (registers, elements per register, 32): bytes from the matrix address
    access.pack(elements)              -> registers (registers, 32); elements in the order of offsets
    access.unpack(registers)           -> elements (registers, elements per register, 32)

ldmatrix, stmatrix::

    move = LDMATRIX["ldmatrix.sync.aligned.m8n8.x4.trans.b16"]                # mnemonic without its state space
    move.matrices, .trans
    move.row_lanes                     -> (matrices, 8): the lane whose address is that of the row (ROW_BYTES each)
    move.load(rows)                    -> uint16 (matrices, 8, 8) to registers uint32 (matrices, 32)
    STMATRIX[...].store(registers)     -> registers to rows
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

from softgpu.reference.tensor import ldmatrix, mma, mma_quad, wmma
from softgpu.reference.tensor.fragments import Fragment
from softgpu.reference.tensor.ldmatrix import ROW_BYTES, MatrixMove
from softgpu.reference.tensor.mma import MatrixOperation
from softgpu.reference.tensor.wmma import MatrixAccess

MMA: Mapping[str, MatrixOperation] = MappingProxyType(
    {operation.mnemonic: operation for operation in chain(mma.operations(), mma_quad.operations())}
)
WMMA: Mapping[str, MatrixOperation] = MappingProxyType(
    {operation.mnemonic: operation for operation in wmma.operations()}
)
WMMA_ACCESS: Mapping[str, MatrixAccess] = MappingProxyType({access.mnemonic: access for access in wmma.accesses()})
LDMATRIX: Mapping[str, MatrixMove] = MappingProxyType({move.mnemonic: move for move in ldmatrix.moves("ldmatrix")})
STMATRIX: Mapping[str, MatrixMove] = MappingProxyType({move.mnemonic: move for move in ldmatrix.moves("stmatrix")})

FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mma": tuple(MMA),
        "wmma.mma": tuple(WMMA),
        "wmma.load": tuple(name for name, access in WMMA_ACCESS.items() if not access.is_store),
        "wmma.store": tuple(name for name, access in WMMA_ACCESS.items() if access.is_store),
        "ldmatrix": tuple(LDMATRIX),
        "stmatrix": tuple(STMATRIX),
    }
)
"""Family -> its supported full mnemonics (without state space)."""

__all__ = [
    "FAMILIES",
    "LDMATRIX",
    "MMA",
    "ROW_BYTES",
    "STMATRIX",
    "WMMA",
    "WMMA_ACCESS",
    "Fragment",
    "MatrixAccess",
    "MatrixMove",
    "MatrixOperation",
]
