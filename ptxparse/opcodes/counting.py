"""How many arithmetic operations one thread's instruction counts as, for the roofline of a kernel."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ptxparse.opcodes.lookup import CACHED, find
from ptxparse.opcodes.record import Kind

if TYPE_CHECKING:
    from ptxparse.model import Mnemonic

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)\Z")
_PACKED = re.compile(r"[a-z0-9]x([24])\Z")
_CLASSES = {"f32": "fp32", "f32x2": "fp32", "f64": "fp64", "f16": "fp16", "f16x2": "fp16"}
_CLASSES |= {"bf16": "fp16", "bf16x2": "fp16"}
_CLASSES |= {f"{name}x4": "fp16" for name in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e2m1p4", "ue8m0")}


class MatrixShape(NamedTuple):
    """D (m x n) = A (m x k) * B (k x n) + C; ``threads`` execute it together."""

    m: int
    n: int
    k: int
    threads: int


def matrix_shape(mnemonic: Mnemonic) -> MatrixShape | None:
    """Shape of an ``mma``, ``wmma`` or ``wgmma`` instruction; None where the mnemonic does not say (tcgen05)."""
    return _matrix_shape(mnemonic.text)


@lru_cache(CACHED)
def _matrix_shape(text: str) -> MatrixShape | None:
    opcode, *modifiers = text.split(".")
    for word in modifiers:
        match = _SHAPE.match(word)
        if match:
            m, n, k = (int(size) for size in match.groups())
            return MatrixShape(m, n, k, 128 if opcode == "wgmma" else 32)
    return None


def operation_count(mnemonic: Mnemonic) -> tuple[str, float]:
    """What one thread's share of the instruction counts as: (class, operations).

    Classes: ``fp32``, ``fp64``, ``fp16`` (also bf16 and narrower), ``integer``, ``special`` (division, roots,
    transcendental functions), ``tensor``, ``conversion``, ``none``. A fused multiply-add is two operations, packed
    forms count each element. Matrix arithmetic is 2*m*n*k, shared out over the threads that execute it, also where
    one operand is sparse (as the peak rates of the data sheets count). For ``tcgen05.mma`` the shape stands in a
    descriptor, so the count is 0.
    """
    return _operation_count(mnemonic.text)


@lru_cache(CACHED)
def _operation_count(text: str) -> tuple[str, float]:
    row, _ = find(text)
    if row is None or row.kind is Kind.NONE:
        return "none", 0.0
    if row.kind is Kind.TENSOR:
        shape = _matrix_shape(text)
        count = 0.0 if shape is None else row.operations * shape.m * shape.n * shape.k / shape.threads
        return "tensor", count
    words = [word for word in text.split(".")[1:] if word in row.modifiers]
    if row.name in ("set", "setp"):
        words.reverse()  # the type that is compared is named last
    type_ = next((word for word in words if word in _CLASSES or _PACKED.search(word)), "")
    packed = [int(match.group(1)) for match in map(_PACKED.search, words) if match]
    count = row.operations * max(packed, default=1)
    if row.kind is Kind.FLOAT:
        return _CLASSES.get(type_, "integer"), count
    return row.kind.value, count


_MULTIPLICANDS = frozenset({
    "f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s4", "u4", "b1", "s32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1",
})


def multiplicand(mnemonic: Mnemonic) -> str:
    """Type of the elements that an ``mma``, ``wmma.mma`` or ``wgmma`` multiplies, without its dot.

    The types are written D, A, B and C, or D, A and B; ``wmma.mma`` on f16 writes only D and C (PTX manual 9.7.15).
    """
    types = [word for word in mnemonic.modifiers if word in _MULTIPLICANDS]
    return types[1] if len(types) > 2 else "f16"
