"""Finding the row of an instruction, and the modifiers that it should not carry."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ptxparse.opcodes import (
    atomic,
    comparison,
    control,
    conversion,
    copies,
    fabric,
    floating,
    half,
    integer,
    logic,
    mbarrier,
    memory,
    miscellaneous,
    synchronization,
    tensor,
    tensor_memory,
    texture,
    warp,
    warpgroup,
)

if TYPE_CHECKING:
    from ptxparse.model import Mnemonic
    from ptxparse.opcodes.record import Opcode

CACHED = 1 << 14
"""Mnemonics whose answers are kept: far more than real modules hold, few enough for a module made to fill memory."""

OPCODES: tuple[Opcode, ...] = (
    *integer.ROWS,
    *floating.ROWS,
    *half.ROWS,
    *logic.ROWS,
    *comparison.ROWS,
    *conversion.ROWS,
    *memory.ROWS,
    *atomic.ROWS,
    *control.ROWS,
    *synchronization.ROWS,
    *warp.ROWS,
    *tensor.ROWS,
    *warpgroup.ROWS,
    *tensor_memory.ROWS,
    *copies.ROWS,
    *mbarrier.ROWS,
    *fabric.ROWS,
    *texture.ROWS,
    *miscellaneous.ROWS,
)
"""All rows, in the order in which equally good ones are preferred."""


def _index() -> dict[str, tuple[Opcode, ...]]:
    rows: dict[str, tuple[Opcode, ...]] = {}
    for row in OPCODES:
        rows[row.name] = (*rows.get(row.name, ()), row)
    return rows


_BY_NAME = _index()
_LONGEST = max(name.count(".") for name in _BY_NAME) + 1


@lru_cache(CACHED)
def find(text: str) -> tuple[Opcode | None, tuple[str, ...]]:
    """The row of a full mnemonic, and its modifiers that the row does not know; all of them for an unknown opcode.

    The longest name that the mnemonic begins with decides; among rows of that name, the one with the fewest unknown
    modifiers, and of those the first that knows the last modifier, which is the type.
    """
    parts = text.split(".")
    for length in range(min(_LONGEST, len(parts)), 0, -1):
        rows = _BY_NAME.get(".".join(parts[:length]))
        if rows:
            modifiers = parts[length:]
            found = [(row, tuple(word for word in modifiers if word not in row.modifiers)) for row in rows]
            return min(found, key=lambda pair: (len(pair[1]), bool(pair[1]) and pair[1][-1] == modifiers[-1]))
    return None, tuple(parts[1:])


def lookup(mnemonic: Mnemonic) -> Opcode | None:
    """The row of an instruction; None for an opcode that no table has."""
    return find(mnemonic.text)[0]


def unknown_modifiers(mnemonic: Mnemonic) -> tuple[str, ...]:
    """Modifiers, without their dots, that the instruction's opcode does not carry in any PTX version known here."""
    return find(mnemonic.text)[1]
