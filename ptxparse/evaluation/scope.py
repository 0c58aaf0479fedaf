"""Bounds of forms: interval arithmetic, exact tables over small index spaces, and constraints.

A *scope* holds the boxes of the varying leaves at one launch. Terms of a form that share leaves are bounded together
by a *table* of all their values when the leaves can be enumerated; otherwise each by intervals. A constraint
``c <= 0`` tightens the bound of an objective o through ``o <= o - t c`` for every t >= 0 (weak duality); the useful t
are those that cancel a term.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxparse.evaluation import intervals, tables
from ptxparse.evaluation.compiled import Compiled, Form, LimitForm
from ptxparse.evaluation.contents import Contents
from ptxparse.values import INFINITY

Terms = dict[int, int]
Box = tuple[int, int]
MOST_POINTS = 1 << 16
_SAFE = 1 << 62


class Constraint(NamedTuple):
    """``constant + sum of coefficient * term <= 0``."""

    terms: Terms
    constant: int


class Infeasible(Exception):
    """The constraints contradict each other: what they guard does not happen."""


class Scope:
    """Boxes of leaves, and the bounds of everything that depends on them."""

    def __init__(
        self, compiled: Compiled, values: list[int], boxes: dict[int, Box], contents: Contents,
        budget: tables.Budget | None = None,
    ) -> None:
        self.compiled = compiled
        self.values = values
        self.boxes = boxes
        self.contents = contents
        self.masks: list[tuple[frozenset[int], npt.NDArray[np.bool_]]] = []
        self.absorbed: list[Constraint] = []
        self.masked: frozenset[int] = frozenset()
        self._atoms: dict[int, Box] = {}
        self._terms: dict[int, Box] = {}
        self._tables: dict[int, npt.NDArray[np.int64] | None] = {}
        self.enumerated = tables.Enumeration(compiled, values, boxes, contents, budget)

    def copy(self) -> Scope:
        """A scope of its own for the same launch, for masks that hold in one place only."""
        return Scope(self.compiled, self.values, self.boxes, self.contents, self.enumerated.budget)

    def narrowed(self, boxes: dict[int, Box]) -> Scope:
        """The same launch with some leaves bounded more tightly."""
        if not boxes:
            return self
        return Scope(self.compiled, self.values, {**self.boxes, **boxes}, self.contents, self.enumerated.budget)

    def numbers(self, form: Form) -> tuple[Terms, int]:
        """The form's coefficients and constant as numbers, zero terms left out, terms of known value folded in."""
        values = self.values
        constant = values[form.constant]
        terms: Terms = {}
        for coefficient, term in form.terms:
            factor = values[coefficient]
            if factor:
                low, high = self.term(term)
                if low == high:
                    constant += factor * low
                else:
                    terms[term] = terms.get(term, 0) + factor
        return terms, constant

    def term(self, term: int) -> Box:
        """Bounds of one term on its own."""
        found = self._terms.get(term)
        if found is None:
            product = self.compiled.terms[term]
            found = self.atom(product[0])
            for atom in product[1:]:
                found = intervals.multiply(found, self.atom(atom))
            self._terms[term] = found
        return found

    def atom(self, atom: int) -> Box:
        """Bounds of one varying atom."""
        found = self._atoms.get(atom)
        if found is None:
            found = self._compute(atom)
            low, high = self.compiled.program.low[atom], self.compiled.program.high[atom]
            found = (max(found[0], low), min(found[1], high))
            if found[0] > found[1]:
                found = (low, high)
            self._atoms[atom] = found
        return found

    def _compute(self, atom: int) -> Box:
        if atom in self.boxes:
            return self.boxes[atom]
        compiled = self.compiled
        node: tuple[Any, ...] = compiled.nodes[atom]
        if self.contents and self.enumerated.can(compiled.leaves[atom], MOST_POINTS) and node[0] != "alternatives":
            table = self.enumerated.atom(atom)
            if table is not None:
                return int(table.min()), int(table.max())
        if node[0] == "load":
            return compiled.program.low[atom], compiled.program.high[atom]
        if node[0] == "alternatives":
            boxes = [self.hull(form) for form in self._options(atom, node)]
            if not boxes:
                return compiled.program.low[atom], compiled.program.high[atom]
            return min(low for low, _ in boxes), max(high for _, high in boxes)
        return intervals.apply(node, [self.hull(form) for form in compiled.arguments[atom]])

    def _options(self, atom: int, node: tuple[Any, ...]) -> list[Form]:
        """The forms of an alternative's values, without those whose guards are known to fail."""
        arguments = iter(self.compiled.arguments[atom])
        forms = []
        for _, guards in node[1]:
            value = next(arguments)
            conditions = [(self.hull(next(arguments)), truth) for _, truth in guards]
            if not any(low == high and bool(low & 1) != truth for (low, high), truth in conditions):
                forms.append(value)
        return forms

    def hull(self, form: Form) -> Box:
        """Bounds of a form by its terms' own bounds and tables, without constraints."""
        terms, constant = self.numbers(form)
        return constant - self.highest({t: -c for t, c in terms.items()}), constant + self.highest(terms)

    def highest(self, terms: Terms) -> int:
        """Upper bound of a sum of terms."""
        plain = self.compiled.plain
        total = 0
        rest: list[int] = []
        for term, coefficient in terms.items():
            if coefficient:
                if plain[term] and (not self.masked or self.compiled.terms[term][0] not in self.masked):
                    low, high = self.term(term)
                    total += coefficient * (high if coefficient > 0 else low)
                else:
                    rest.append(term)
        return total if not rest else self._highest_grouped(terms, rest)

    def _highest_grouped(self, terms: Terms, rest: list[int]) -> int:
        total = 0
        for group in self.groups([t for t, c in terms.items() if c]):
            part = {t: terms[t] for t in group}
            table = None if self._simple(group) else self.table(part)
            if table is not None:
                total += int(table.max())
            else:
                for term, coefficient in part.items():
                    low, high = self.term(term)
                    total += coefficient * (high if coefficient > 0 else low)
        return total

    def _simple(self, group: list[int]) -> bool:
        return len(group) == 1 and self.is_free(group[0])

    def is_free(self, term: int) -> bool:
        """Whether a term is an index by itself, of which no mask takes values away."""
        return self.compiled.plain[term] and self.compiled.terms[term][0] not in self.masked

    def groups(self, terms: Iterable[int]) -> list[list[int]]:
        """Terms put together that share a leaf."""
        groups: list[tuple[set[int], list[int]]] = []
        for term in terms:
            leaves = set(self.compiled.term_leaves[term])
            members = [term]
            separate = []
            for other_leaves, other in groups:
                if leaves & other_leaves:
                    leaves |= other_leaves
                    members = other + members
                else:
                    separate.append((other_leaves, other))
            groups = [*separate, (leaves, members)]
        return [members for _, members in groups]

    def is_known(self, leaf: int) -> bool:
        """Whether a leaf is an index, or a load whose bytes are known."""
        kind = self.compiled.nodes[leaf][0]
        if kind == "load":
            listed = bool(self.contents) and self.enumerated.can(self.compiled.leaves[leaf], MOST_POINTS)
            return listed and self.enumerated.atom(leaf) is not None
        return kind not in ("unknown", "symbol")

    def table(self, terms: Terms) -> npt.NDArray[np.int64] | None:
        """All values of a sum of terms over the leaves they depend on; None when those cannot be enumerated."""
        leaves = frozenset().union(*(self.compiled.term_leaves[t] for t in terms))
        if not self.enumerated.can(leaves, MOST_POINTS):
            return None
        total = self._whole_table(terms)
        for below, mask in self.masks if total is not None else ():
            if below <= leaves and total is not None:
                total, mask = np.broadcast_arrays(total, mask)
                total = total[mask]
                # One mask is enough: after it the points have lost their axes. The others only widen the bound.
                break
        if total is not None and not total.size:
            raise Infeasible
        return total

    def admit(self, terms: Terms, constraints: list[Constraint]) -> None:
        """Leave out of the tables that ``terms`` need the points that break a constraint on the same leaves."""
        for group in self.groups([t for t, c in terms.items() if c]):
            leaves = frozenset().union(*(self.compiled.term_leaves[t] for t in group))
            if not self.enumerated.can(leaves, MOST_POINTS):
                continue
            inside = [c for c in constraints if all(self.compiled.term_leaves[t] <= leaves for t in c.terms)]
            if all(map(self.is_free, [*group, *(t for c in inside for t in c.terms)])):
                # Nothing but indices by themselves: corners and constraints say all there is to say.
                continue
            joint = self._mask(inside)
            if joint is not None:
                self.masks.append((leaves, joint))
                self.masked |= leaves
                self.absorbed += inside

    def possible(self, constraints: list[Constraint]) -> bool:
        """Whether some point satisfies all the constraints; no when their points cannot be listed."""
        leaves = frozenset().union(*(self.compiled.term_leaves[t] for c in constraints for t in c.terms))
        if not self.enumerated.can(leaves, MOST_POINTS):
            return False
        mask = self._mask(constraints)
        return mask is not None and bool(mask.any())

    def _mask(self, constraints: list[Constraint]) -> npt.NDArray[np.bool_] | None:
        """Where all the constraints hold; None when one of them has no table, or there are none."""
        joint: npt.NDArray[np.bool_] | None = None
        for constraint in constraints:
            holds = self.holds(constraint)
            if holds is None:
                return None
            joint = holds if joint is None else joint & holds
        return joint

    def holds(self, constraint: Constraint) -> npt.NDArray[np.bool_] | None:
        """Where a constraint holds, over the leaves it depends on; None when they cannot be listed."""
        leaves = frozenset().union(*(self.compiled.term_leaves[t] for t in constraint.terms))
        if abs(constraint.constant) >= _SAFE or not self.enumerated.can(leaves, MOST_POINTS):
            return None
        table = self._whole_table(constraint.terms)
        return None if table is None else table <= -constraint.constant

    def _whole_table(self, terms: Terms) -> npt.NDArray[np.int64] | None:
        total: npt.NDArray[np.int64] | None = None
        size = 0
        for term, coefficient in terms.items():
            part = self._table_of(term)
            if part is None:
                return None
            low, high = self.term(term)
            size += abs(coefficient) * max(abs(low), abs(high), 1)
            if size >= _SAFE:
                return None
            total = part * coefficient if total is None else total + part * coefficient
        return total

    def _table_of(self, term: int) -> npt.NDArray[np.int64] | None:
        if term not in self._tables:
            total: npt.NDArray[np.int64] | None = None
            largest = 1
            for atom in self.compiled.terms[term]:
                part = self.enumerated.atom(atom)
                largest *= 0 if part is None else int(max(part.max(), -part.min()))
                if part is None or largest >= _SAFE:
                    total = None
                    break
                total = part if total is None else total * part
            self._tables[term] = total
        return self._tables[term]

    def upper(self, terms: Terms, constant: int, constraints: list[Constraint]) -> int:
        """Upper bound of ``constant + terms`` where the constraints hold."""
        scale, current, offset = 1, terms, constant
        best = offset + self.highest(current)
        for constraint in constraints:
            chosen = None
            ratios = set()
            for term, divisor in constraint.terms.items():
                coefficient = current.get(term, 0)
                if coefficient and (coefficient > 0) == (divisor > 0):
                    common = gcd(coefficient, divisor)
                    ratios.add((abs(coefficient) // common, abs(divisor) // common))
            for multiplier, divisor in ratios:
                trial = {t: c * divisor for t, c in current.items()}
                for term, c in constraint.terms.items():
                    left = trial.get(term, 0) - multiplier * c
                    if left:
                        trial[term] = left
                    else:
                        trial.pop(term, None)
                trial_offset = offset * divisor - multiplier * constraint.constant
                bound = (trial_offset + self.highest(trial)) // (scale * divisor)
                if bound < best:
                    best, chosen = bound, (scale * divisor, trial, trial_offset)
            if chosen is not None:
                scale, current, offset = chosen
        return best

    def lower(self, terms: Terms, constant: int, constraints: list[Constraint]) -> int:
        return -self.upper({t: -c for t, c in terms.items()}, -constant, constraints)

    def check(self, form: Form, low: int, high: int, constraints: list[Constraint]) -> bool:
        """Whether a form lies in [low, high] for sure."""
        terms, constant = self.numbers(form)
        if not terms:
            return low <= constant <= high
        reversed_terms = {t: -c for t, c in terms.items()}
        if constant + self.highest(terms) > high and self.upper(terms, constant, constraints) > high:
            return False
        return constant - self.highest(reversed_terms) >= low or self.lower(terms, constant, constraints) >= low

    def constraint(self, limit: LimitForm, known: list[Constraint]) -> Constraint | None:
        """A limit as a constraint in numbers; None when it says nothing here. Raises :class:`Infeasible`."""
        for form, low, high in limit.checks:
            if not self.check(form, low, high, known):
                return None
        terms, constant = self.numbers(limit.form)
        if limit.relation == "le":
            if not terms:
                if constant > 0:
                    raise Infeasible
                return None
            # The sum moves in steps of the coefficients' common divisor.
            step = gcd(*terms.values())
            return Constraint(terms, -(-constant // step) * step)
        if not terms:
            if not constant:
                raise Infeasible
            return None
        # Not zero, and bounded by zero on one side: beyond it by one at least.
        negative = {t: -c for t, c in terms.items()}
        if constant + self.highest(terms) == 0:
            return Constraint(terms, constant + 1)
        if -constant + self.highest(negative) == 0:
            return Constraint(negative, 1 - constant)
        return None


def unbounded(bound: int) -> bool:
    """Whether a bound is none at all."""
    return abs(bound) >= INFINITY >> 8
