"""The record of one pure instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

TYPES: dict[str, str] = {
    "pred": "i1", "cc": "i1",
    "b8": "i8", "u8": "i8", "s8": "i8", "e4m3": "i8", "e5m2": "i8",
    "b16": "i16", "u16": "i16", "s16": "i16", "f16": "i16", "bf16": "i16", "e4m3x2": "i16", "e5m2x2": "i16",
    "b32": "i32", "u32": "i32", "s32": "i32", "f16x2": "i32", "bf16x2": "i32", "tf32": "i32",
    "u16x2": "i32", "s16x2": "i32",
    "b64": "i64", "u64": "i64", "s64": "i64", "f32x2": "i64",
    "f32": "float", "f64": "double", "b128": "i128",
}
"""LLVM element type in which an operand of each PTX type is handed over: bits as integers, f32 and f64 as numbers."""


@dataclass(frozen=True)
class Operation:
    """One full mnemonic.

    ``sources`` and ``results`` are PTX types by operand; ``imm`` among the sources is an operand that must be a
    constant and is handed over as a Python int; ``cc`` is the carry flag, which stands last and is not written in PTX.
    ``emit(builder, *sources)`` returns the result, or a tuple where there are several. All register operands have the
    same number of lanes, 0 (scalar: the same in the whole warp) or 32; the results have it too.

    ``warp``: the lanes exchange data, so operands are always vectors of 32 (matrix instructions). Vector operands
    ``{a, b, c}`` are handed over one by one.
    ``canonical``: a NaN among the results is already PTX's canonical NaN or one that the manual asks to keep. When
    False, any NaN may come out; the engine replaces it by the canonical one where bits are observed (stores, moves to
    integers), which is cheaper than after every step of a sum.
    """

    mnemonic: str
    sources: tuple[str, ...]
    results: tuple[str, ...]
    emit: Callable[..., Any]
    warp: bool = False
    canonical: bool = True


def collect(*families: Iterable[Operation]) -> dict[str, Operation]:
    """Tables of one or several files as one; a mnemonic may stand in one of them only."""
    table: dict[str, Operation] = {}
    for family in families:
        for operation in family:
            assert operation.mnemonic not in table, operation.mnemonic
            table[operation.mnemonic] = operation
    return table
