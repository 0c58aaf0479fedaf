"""Exact values of atoms over all points of a small index space, as numpy arrays with one axis per leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.evaluation.compiled import Compiled, Form
from ptxparse.evaluation.contents import Contents
from ptxparse.transfer import exclusive

Table = npt.NDArray[np.int64]
Box = tuple[int, int]
_ENUMERABLE = frozenset({"tid", "ctaid", "loop", "each"})
_SAFE = 1 << 62


MOST_NUMBERS = 1 << 22


class Budget:
    """How many numbers the tables of one evaluation may still hold together."""

    def __init__(self) -> None:
        self.left = MOST_NUMBERS


class Enumeration:
    """Tables of atoms for given boxes of the leaves; each leaf gets an axis of its own, so tables broadcast."""

    def __init__(
        self, compiled: Compiled, values: list[int], boxes: dict[int, Box], contents: Contents,
        budget: Budget | None = None,
    ) -> None:
        self.budget = Budget() if budget is None else budget
        self.compiled = compiled
        self.values = values
        self.boxes = boxes
        self.contents = contents
        self._axes: dict[int, int] = {}
        self._tables: dict[int, Table | None] = {}

    def can(self, leaves: frozenset[int], most: int) -> bool:
        """Whether all combinations of the leaves can be listed in at most ``most`` points. Loads count as the leaves
        of their address when their bytes may be known."""
        points = 1
        most = min(most, self.budget.left)
        for leaf in leaves:
            kind = self.compiled.nodes[leaf][0]
            if kind == "load":
                if not self.contents:
                    return False
                continue
            box = self.boxes.get(leaf)
            if kind not in _ENUMERABLE or box is None:
                return False
            points *= box[1] - box[0] + 1
            if points > most:
                return False
        return True

    def _axis(self, leaf: int) -> Table:
        axis = self._axes.setdefault(leaf, len(self._axes))
        low, high = self.boxes[leaf]
        # The first leaf gets the last axis; later ones are put before it, so earlier tables stay valid.
        return np.arange(low, high + 1, dtype=np.int64).reshape((-1,) + (1,) * axis)

    def atom(self, atom: int) -> Table | None:
        """All values of an atom; None when some operation has no exact table."""
        if atom not in self._tables:
            table = self._tables[atom] = self._compute(atom)
            self.budget.left -= 0 if table is None else table.size
        return self._tables[atom]

    def form(self, form: Form) -> Table | None:
        """All values of a form."""
        total: Table | None = None
        size = abs(self.values[form.constant])
        for coefficient, term in form.terms:
            factor = self.values[coefficient]
            if not factor:
                continue
            part: Table | None = None
            largest = abs(factor)
            if largest >= _SAFE:
                return None
            for atom in self.compiled.terms[term]:
                table = self.atom(atom)
                if table is None:
                    return None
                largest *= int(max(table.max(), -table.min()))
                if largest >= _SAFE:
                    return None
                part = table if part is None else part * table
            assert part is not None
            size += largest
            if size >= _SAFE:
                return None
            part = part * factor
            total = part if total is None else total + part
        if size >= _SAFE:
            return None
        constant = np.int64(self.values[form.constant])
        return np.array([constant]) if total is None else total + constant

    def _compute(self, atom: int) -> Table | None:
        node: tuple[Any, ...] = self.compiled.nodes[atom]
        if node[0] in _ENUMERABLE:
            return self._axis(atom)
        if node[0] in ("unknown", "symbol"):
            return None
        operands: list[Table] = []
        for form in self.compiled.arguments[atom]:
            table = self.form(form)
            if table is None:
                return None
            operands.append(table)
        if node[0] == "load":
            bases = [self.values[index] for index in self.compiled.load_bases[atom]]
            return self.contents.gather(operands[0], node[3], node[4], bases)
        result: Table | None = _apply(node, operands)
        return result


def _apply(node: tuple[Any, ...], a: list[Any]) -> Any:
    kind = node[0]
    if kind == "wrap":
        bits, signed = node[2], node[3]
        if bits >= 63:
            return a[0] if signed or not (a[0] < 0).any() else None
        half = 1 << (bits - 1)
        return ((a[0] + half) & ((1 << bits) - 1)) - half if signed else a[0] & ((1 << bits) - 1)
    if kind == "shift_right":
        return a[0] >> min(node[2], 63)
    if kind == "low_bits":
        return a[0] & ((1 << node[2]) - 1) if node[2] < 63 else None
    if kind in ("divide", "remainder"):
        if (a[1] == 0).any():
            return None
        quotient = np.abs(a[0]) // np.abs(a[1])
        quotient = np.where((a[0] < 0) == (a[1] < 0), quotient, -quotient)
        return quotient if kind == "divide" else a[0] - quotient * a[1]
    if kind == "minimum":
        return np.minimum(a[0], a[1])
    if kind == "multiply":
        largest = float(np.abs(a[0]).max()) * float(np.abs(a[1]).max())
        return a[0] * a[1] if largest < _SAFE else None
    if kind == "and":
        return a[0] & a[1]
    if kind == "or":
        return a[0] | a[1]
    if kind == "xor":
        return a[0] ^ a[1]
    if kind == "lt":
        return (a[0] < a[1]).astype(np.int64)
    if kind == "eq":
        return (a[0] == a[1]).astype(np.int64)
    if kind == "alternatives":
        return _alternatives(node, a)
    if kind == "shift":
        return a[0] >> np.clip(a[1], 0, 63)
    if kind == "power":
        return np.int64(1) << np.clip(a[0], 0, 61) if int(a[0].max()) < 62 else None
    return None


def _alternatives(node: tuple[Any, ...], a: list[Any]) -> Any:
    rest = iter(a)
    options = []
    for _, guards in node[1]:
        value = next(rest)
        chosen: Any = np.bool_(True)
        for _, truth in guards:
            chosen = chosen & ((next(rest) & 1) == int(truth))
        options.append((chosen, value))
    if not exclusive(node[1]):
        return None
    # One of the options is taken wherever the value is used, so the last needs no test.
    result = options[-1][1]
    for chosen, value in reversed(options[:-1]):
        result = np.where(chosen, value, result)
    return np.asarray(result, dtype=np.int64)
