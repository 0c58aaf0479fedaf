"""Every supported arithmetic instruction by its full mnemonic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from softgpu.reference.numerics import mnemonics
from softgpu.reference.numerics.mnemonics import Entries
from softgpu.reference.numerics.mnemonics_cvt import cvt


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction: call it with the bit patterns of its sources.

    ``sources``: the type of each source operand. ``result``: the type of the destination; ``pred``: bool array;
    ``pred2``: a pair of bool arrays (low half, high half), what ``setp`` of packed types writes to ``p|q``.
    """

    mnemonic: str
    family: str
    sources: tuple[str, ...]
    result: str
    function: Callable[..., Any]

    def __call__(self, *operands: npt.ArrayLike) -> Any:
        if len(operands) != len(self.sources):
            raise TypeError(f"{self.mnemonic} takes {len(self.sources)} source operands, got {len(operands)}")
        return self.function(*operands)


_GENERATORS: dict[str, Callable[[], Entries]] = {
    "add": mnemonics.add,
    "sub": mnemonics.sub,
    "mul": mnemonics.mul,
    "fma": mnemonics.fma,
    "mad": mnemonics.mad,
    "div": mnemonics.div,
    "rcp": mnemonics.rcp,
    "sqrt": mnemonics.sqrt,
    "rsqrt": mnemonics.rsqrt,
    "sin": mnemonics.sin,
    "cos": mnemonics.cos,
    "lg2": mnemonics.lg2,
    "ex2": mnemonics.ex2,
    "tanh": mnemonics.tanh,
    "abs": mnemonics.abs_,
    "neg": mnemonics.neg,
    "min": mnemonics.min_,
    "max": mnemonics.max_,
    "copysign": mnemonics.copysign,
    "testp": mnemonics.testp,
    "set": mnemonics.set_,
    "setp": mnemonics.setp,
    "cvt": cvt,
}


def _build() -> dict[str, Operation]:
    table: dict[str, Operation] = {}
    for family, generator in _GENERATORS.items():
        for mnemonic, sources, result, function in generator():
            table[mnemonic] = Operation(mnemonic, family, sources, result, function)
    return table


OPERATIONS: Mapping[str, Operation] = MappingProxyType(_build())
"""Full mnemonic -> operation. KeyError means: not supported."""

THREE_INPUTS: Mapping[str, Operation] = MappingProxyType(
    {name: Operation(name, name[:3], sources, result, function)
     for name, sources, result, function in mnemonics.three_inputs()}
)
"""``min`` and ``max`` with three source operands, by full mnemonic."""

FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {family: tuple(name for name, op in OPERATIONS.items() if op.family == family) for family in _GENERATORS}
)
"""Family -> its supported full mnemonics."""
