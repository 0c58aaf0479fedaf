"""How many bytes an instruction reads or writes at its address."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ptxparse.model import TYPE_BYTES
from ptxparse.opcodes.counting import _matrix_shape
from ptxparse.opcodes.lookup import CACHED, find
from ptxparse.opcodes.record import Effect

if TYPE_CHECKING:
    from ptxparse.model import Mnemonic

_BYTES = {
    **TYPE_BYTES,
    "e5m2x4": 4, "e4m3x4": 4,
}  # fmt: skip
_PER_THREAD = (Effect.LOAD, Effect.STORE, Effect.ATOMIC, Effect.MULTIMEM)
_SIZE_OPERANDS = {
    "cp.async": 2,
    "cp.async.bulk": 2,
    "cp.reduce.async.bulk": 2,
    "cp.async.bulk.prefetch": 1,
    "multimem.cp.async.bulk": 2,
    "multimem.cp.reduce.async.bulk": 2,
    "tensormap.cp_fenceproxy": 2,
    "st.bulk": 1,
    "discard": 1,
    "applypriority": 1,
    "applypriority.async.bulk": 1,
}
_VECTOR = re.compile(r"v([248])\Z")
_MATRIX_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32}
_MATRIX_BITS |= {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


class Fragment(NamedTuple):
    """The matrix that a ``wmma.load`` or ``wmma.store`` moves: ``lines`` runs of ``length`` elements of ``bits`` bits,
    the runs ``stride`` elements apart (rows of a row-major matrix, columns of a column-major one)."""

    lines: int
    length: int
    bits: int

    @property
    def line_bytes(self) -> int:
        """Bytes of one run."""
        return self.length * self.bits // 8


def accessed_bytes(mnemonic: Mnemonic) -> int:
    """Bytes that one thread's ``ld``, ``ldu``, ``st``, ``atom``, ``red`` or ``multimem`` instruction accesses.

    0 for instructions that access no memory, for those whose size an operand gives (:func:`size_operand`), and for
    those of a whole warp (``wmma`` and matrix moves: :func:`fragment`). ``cp.async.cg`` always copies 16 bytes.
    """
    return _accessed_bytes(mnemonic.text)


@lru_cache(CACHED)
def _accessed_bytes(text: str) -> int:
    row, _ = find(text)
    if row is None:
        return 0
    modifiers = text.split(".")[1:]
    if row.name == "cp.async":
        return 16 if "cg" in modifiers else 0
    if row.effect not in _PER_THREAD or row.name in _SIZE_OPERANDS:
        return 0
    size = next((_BYTES[word] for word in reversed(modifiers) if word in _BYTES), 0)
    vector = next((match for match in map(_VECTOR.match, modifiers) if match), None)
    return size * (int(vector.group(1)) if vector else 1)


def size_operand(mnemonic: Mnemonic) -> int | None:
    """Index of the operand that holds the number of bytes accessed; None where the mnemonic itself says it."""
    row, _ = find(mnemonic.text)
    return None if row is None else _SIZE_OPERANDS.get(row.name)


def fragment(mnemonic: Mnemonic) -> Fragment | None:
    """The matrix of a ``wmma.load`` or ``wmma.store``; None for every other instruction."""
    return _fragment(mnemonic.text)


@lru_cache(CACHED)
def _fragment(text: str) -> Fragment | None:
    row, _ = find(text)
    shape = _matrix_shape(text)
    if row is None or shape is None or row.effect not in (Effect.MATRIX_LOAD, Effect.MATRIX_STORE):
        return None
    modifiers = text.split(".")[1:]
    bits = next((_MATRIX_BITS[word] for word in reversed(modifiers) if word in _MATRIX_BITS), 0)
    matrix = row.name[-1]
    rows, columns = {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(matrix, (shape.m, shape.n))
    if "col" in modifiers:
        rows, columns = columns, rows
    return Fragment(rows, columns, bits)
