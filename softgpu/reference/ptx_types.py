"""PTX types as registers hold them: unsigned numpy arrays of the type's width, bool for predicates."""

from __future__ import annotations

import numpy as np

from ptxparse.model import TYPE_BYTES

B128 = np.dtype("V16")
"""A 128-bit register: 16 raw bytes, low ones first."""

_BY_BYTES: dict[int, np.dtype[np.generic]] = {
    1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64), 16: B128,
}
_SIGNED: dict[int, np.dtype[np.signedinteger]] = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}


def size_of(type_name: str) -> int:
    """Bytes of a type."""
    return TYPE_BYTES[type_name]


def dtype_of(type_name: str) -> np.dtype[np.generic]:
    """The register dtype of a type."""
    if type_name == "pred":
        return np.dtype(np.bool_)
    return _BY_BYTES[TYPE_BYTES[type_name]]


def unsigned(size: int) -> np.dtype[np.generic]:
    """The register dtype of a size in bytes."""
    return _BY_BYTES[size]


def signed(size: int) -> np.dtype[np.signedinteger]:
    """The signed integer dtype of a size in bytes."""
    return _SIGNED[size]


def is_signed(type_name: str) -> bool:
    """Whether the type is one of the signed integers."""
    return type_name in ("s8", "s16", "s32", "s64")


def is_float(type_name: str) -> bool:
    """Whether the type is a floating-point type, packed ones included."""
    return type_name[0] in "fe" or type_name in ("bf16", "bf16x2", "tf32")


INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
BITS = ("b16", "b32", "b64")
