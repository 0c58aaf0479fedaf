"""The record of one hand-derived test vector.

The expected bits come from the text of the PTX ISA manual (and IEEE 754 where it refers to that), worked out by hand:
they must never be regenerated from an implementation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Lanes = tuple[int, ...]

NAN = -1
"""As an expected value: any NaN of the result's type (the manual leaves its payload open)."""


@dataclass(frozen=True)
class Vector:
    """One instruction with its operands and the result that the manual asks for.

    ``sources`` and ``results`` are PTX types; ``operands`` and ``expected`` bit patterns, one for each type: a number
    for instructions of one thread, 32 numbers (lane 0 first) for those of a warp. Predicates are 0 and 1.
    ``body``: the PTX text, with ``%i0, %i1, ...`` for the sources and ``%o0, ...`` for the results. ``section`` names
    the chapter of the manual, ``why`` the rule that the case is about.
    """

    mnemonic: str
    sources: tuple[str, ...]
    results: tuple[str, ...]
    operands: tuple[int | Lanes, ...]
    expected: tuple[int | Lanes, ...]
    section: str
    why: str
    body: str

    @property
    def of_warp(self) -> bool:
        """Whether operands or results differ between the 32 lanes."""
        return any(isinstance(value, tuple) for value in self.operands + self.expected)

    @property
    def name(self) -> str:
        """What identifies it in messages."""
        if self.of_warp:
            return f"{self.mnemonic}: {self.why}"
        shown = " ".join(f"{int(value):x}" for value in self.operands if isinstance(value, int))
        return f"{self.mnemonic} {shown}"


def vectors(signature: str, section: str, rows: Iterable[tuple[str, list[Any], Any, str]],
            body: str = "") -> list[Vector]:
    """Vectors of one signature (``"f32 f32 -> f32"``) and chapter, from rows of mnemonic, operands, expected result (a
    list of them for several) and reason.

    In ``body`` the text ``{m}`` stands for the mnemonic; by default it is mnemonic, results, sources.
    """
    left, right = signature.split("->")
    sources, results = tuple(left.split()), tuple(right.split())
    if not body:
        named = [f"%o{i}" for i in range(len(results))] + [f"%i{i}" for i in range(len(sources))]
        body = f"{{m}} {', '.join(named)};"
    made = []
    for mnemonic, operands, expected, why in rows:
        wanted = expected if isinstance(expected, list) else [expected]
        assert len(operands) == len(sources) and len(wanted) == len(results), (mnemonic, operands, expected)
        made.append(Vector(mnemonic, sources, results, tuple(operands), tuple(wanted), section, why,
                           body.replace("{m}", mnemonic)))
    return made
