"""Read-modify-write, one thread after another in row order, of vectors of places that may coincide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]
Update = Callable[[Bits, list[Bits]], Bits]
"""New contents from old ones and the operands, element by element."""


def apply(memory: Bits, places: npt.NDArray[np.int64], operands: list[Bits], update: Update,
          wrapping_add: bool) -> Bits:
    """Update ``memory[places]`` in the order of the elements; returns what each element found there.

    ``wrapping_add``: ``update`` is integer addition of the first operand, so that prefix sums do.
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    if first.all():
        old = memory[places]
        memory[places] = update(old, operands)
        return old
    starts = np.flatnonzero(first)
    if wrapping_add:
        return _add(memory, ordered, order, starts, operands[0])
    lengths = np.diff(np.append(starts, len(ordered)))
    old = np.empty(len(places), memory.dtype)
    for turn in range(int(lengths.max())):
        chosen = order[starts[lengths > turn] + turn]
        there = places[chosen]
        old[chosen] = found = memory[there]
        memory[there] = update(found, [operand[chosen] for operand in operands])
    return old


def _add(memory: Bits, ordered: npt.NDArray[np.int64], order: npt.NDArray[np.intp], starts: npt.NDArray[np.intp],
         added: Bits) -> Bits:
    sorted_added = added[order]
    total = np.cumsum(sorted_added, dtype=added.dtype)
    before = total - sorted_added
    lengths = np.diff(np.append(starts, len(ordered)))
    found: Bits = before - np.repeat(before[starts], lengths) + memory[ordered]
    old: Bits = np.empty_like(found)
    old[order] = found
    last = starts + lengths - 1
    memory[ordered[last]] = found[last] + sorted_added[last]
    return old
