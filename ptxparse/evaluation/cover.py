"""Whether every byte between two bounds is written: sums of digits that leave no gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.evaluation.scope import Constraint, Infeasible, Scope, Terms, unbounded

Digit = tuple[int, int]
"""(step, count): the values 0, step, ..., step * (count - 1)."""

Spans = tuple[tuple[int, int], ...]
_MEMORY = ("unknown", "load", "symbol")


def covered(scope: Scope, terms: Terms, spans: Spans, constraints: list[Constraint]) -> int:
    """Length of the run that the bytes of ``spans`` around all values of ``terms`` form; 0 when it has gaps or cannot
    be told.

    A constraint is accounted for if it holds everywhere, if the tables leave out what breaks it, if it is about
    indices that the objective does not depend on (then it must be possible to satisfy), or if the sum it bounds is a
    part of the objective by itself: that part then is one digit, cut off at the bound. Any other makes the answer 0.
    """
    remaining = dict(terms)
    active = [c for c in constraints if c not in scope.absorbed and c.constant + scope.highest(c.terms) > 0]
    parts = _Parts(scope, [terms, *(c.terms for c in active)], [c.terms for c in scope.absorbed])
    used = parts.of(remaining)
    foreign = [c for c in active if not parts.of(c.terms) & used]
    if not _satisfiable(scope, parts, foreign):
        return 0
    cuts: dict[tuple[tuple[int, int], ...], list[Constraint]] = {}
    for constraint in active:
        if constraint not in foreign:
            cuts.setdefault(_direction(constraint.terms), []).append(constraint)
    digits: list[Digit] = []
    parted: frozenset[object] = frozenset()
    for cut in cuts.values():
        below = parts.of(cut[0].terms)
        digit = None if below & parted else _cut_digit(scope, parts, remaining, cut)
        if digit is None:
            return 0
        parted |= below
        digits.append(digit)
    found = None if parts.of(remaining) & parted else _digits(scope, parts, remaining)
    return 0 if found is None else run_length(digits + found, spans)


class _Parts:
    """What terms depend on, in independent parts: indices; and of an index whose range is whole multiples of 2^n and
    that occurs only as ``x >> n`` and as x modulo 2^n, these two. ``ties`` are sums that a mask over the tables bounds:
    what they depend on is not independent of each other."""

    def __init__(self, scope: Scope, sums: list[Terms], ties: list[Terms]) -> None:
        self.scope = scope
        self.split: dict[int, int] = {}
        counts: dict[int, set[int]] = {}
        for term in {term for terms in [*sums, *ties] for term in terms}:
            halves = self._halves(term)
            for leaf in scope.compiled.term_leaves[term]:
                counts.setdefault(leaf, set()).add(halves[1] if halves is not None else 0)
        for leaf, bits in counts.items():
            low, high = scope.boxes.get(leaf, (0, -1))
            count = next(iter(bits))
            whole = low % (1 << count) == 0 and (high + 1) % (1 << count) == 0
            if len(bits) == 1 and count and whole:
                self.split[leaf] = count
        self.ties = [self._direct(terms) for terms in ties]

    def _halves(self, term: int) -> tuple[str, int, int] | None:
        """(kind, n, leaf) of a term that is ``leaf >> n`` or leaf modulo 2^n."""
        compiled = self.scope.compiled
        product = compiled.terms[term]
        node: tuple[Any, ...] = compiled.nodes[product[0]]
        if len(product) != 1 or node[0] not in ("shift_right", "low_bits"):
            return None
        inner = node[1]
        if len(inner) != 1 or inner[0][1] != 1 or len(inner[0][0]) != 1:
            return None
        leaf = inner[0][0][0]
        return (node[0], node[2], leaf) if compiled.leaves.get(leaf) == frozenset({leaf}) else None

    def of(self, terms: Terms) -> frozenset[object]:
        """The parts that a sum depends on, those tied to them included."""
        found = self._direct(terms)
        grown = True
        while grown:
            grown = False
            for tie in self.ties:
                if tie & found and not tie <= found:
                    found |= tie
                    grown = True
        return found

    def _direct(self, terms: Terms) -> frozenset[object]:
        found: set[object] = set()
        for term in terms:
            halves = self._halves(term)
            for leaf in self.scope.compiled.term_leaves[term]:
                found.add((halves[0], leaf) if halves is not None and leaf in self.split else leaf)
        return frozenset(found)

    def groups(self, terms: Terms) -> list[Terms]:
        """The sum taken apart into sums that depend on different parts."""
        groups: list[tuple[frozenset[object], Terms]] = []
        for term, coefficient in terms.items():
            below, members = self.of({term: coefficient}), {term: coefficient}
            separate = []
            for other_below, other in groups:
                if below & other_below:
                    below, members = below | other_below, {**other, **members}
                else:
                    separate.append((other_below, other))
            groups = [*separate, (below, members)]
        return [members for _, members in groups]


def _satisfiable(scope: Scope, parts: _Parts, constraints: list[Constraint]) -> bool:
    """Whether some choice of indices satisfies all the constraints; no when that cannot be told."""
    together: dict[int, int] = {}
    for constraint in constraints:
        together = {**together, **constraint.terms}
    for group in parts.groups(together):
        below = parts.of(group)
        own = [c for c in constraints if parts.of(c.terms) <= below]
        if any(scope.compiled.nodes[leaf][0] in _MEMORY for t in group for leaf in scope.compiled.term_leaves[t]):
            return False
        if all(len(c.terms) == 1 for c in own) and len(group) == 1:
            low, high = scope.term(next(iter(group)))
            for constraint in own:
                slope = next(iter(constraint.terms.values()))
                if slope > 0:
                    high = min(high, -constraint.constant // slope)
                else:
                    low = max(low, -(constraint.constant // slope))
            if low > high or not all(scope.compiled.plain[t] for t in group):
                return False
        elif not scope.possible(own):
            return False
    return True


def _direction(terms: Terms) -> tuple[tuple[int, int], ...]:
    """Terms up to their common sign, so that both ends of one range meet."""
    items = sorted(terms.items())
    sign = 1 if items[0][1] > 0 else -1
    return tuple((t, c * sign) for t, c in items)


def _cut_digit(scope: Scope, parts: _Parts, remaining: Terms, cut: list[Constraint]) -> Digit | None:
    """The part of the objective that the constraints bound, as one digit; removed from ``remaining``."""
    part = dict(_direction(cut[0].terms))
    factors = set()
    for term, coefficient in part.items():
        have = remaining.get(term, 0)
        if have % coefficient:
            return None
        factors.add(have // coefficient)
    if len(factors) != 1 or 0 in factors:
        return None
    factor = factors.pop()
    low, high = -scope.highest({t: -c for t, c in part.items()}), scope.highest(part)
    for constraint in cut:
        first = next(iter(part))
        if constraint.terms[first] * part[first] > 0:
            high = min(high, -constraint.constant)
        else:
            low = max(low, constraint.constant)
    digits = _digits(scope, parts, part)
    if digits is None or not run_length(digits, ((0, 1),)):
        return None
    for term in part:
        del remaining[term]
    return (abs(factor), max(high - low + 1, 0))


def _digits(scope: Scope, parts: _Parts, terms: Terms) -> list[Digit] | None:
    """The sum's values as digits, each group of dependent terms by itself; None when some have no such form."""
    digits: list[Digit] = []
    for group in parts.groups(terms):
        found = _group_digits(scope, group)
        if found is None:
            return None
        digits += found
    return digits


def _group_digits(scope: Scope, terms: Terms) -> list[Digit] | None:
    compiled = scope.compiled
    if any(compiled.nodes[leaf][0] in _MEMORY for term in terms for leaf in compiled.term_leaves[term]):
        return None
    if len(terms) == 1 and scope.is_free(next(iter(terms))):
        ((term, coefficient),) = terms.items()
        low, high = scope.term(term)
        return None if unbounded(high) else [(abs(coefficient), high - low + 1)]
    try:
        table = scope.table(terms)
    except Infeasible:
        return None
    return None if table is None else _digits_of(np.unique(table))


def _digits_of(values: npt.NDArray[np.int64]) -> list[Digit] | None:
    """Sorted distinct values as a sum of digits, smallest step first."""
    digits: list[Digit] = []
    while len(values) > 1:
        steps = np.diff(values)
        step = int(steps[0])
        breaks = np.flatnonzero(steps != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(values)
        if len(values) % run:
            return None
        rows = values.reshape(-1, run)
        if not (np.diff(rows, axis=1) == step).all():
            return None
        digits.append((step, run))
        values = rows[:, 0]
    return digits


def run_length(digits: list[Digit], spans: Spans) -> int:
    """Bytes covered by all sums of one value per digit, each with the bytes of ``spans``; 0 when there are gaps."""
    width = spans[0][1] - spans[0][0]
    if len(spans) > 1:
        if any(last - first != width for first, last in spans):
            return 0
        found = _digits_of(np.array([first for first, _ in spans], dtype=np.int64))
        if found is None:
            return 0
        digits = digits + found
    if any(count <= 0 for _, count in digits):
        return 0
    for step, count in sorted(digits):
        if count > 1:
            if step > width:
                return 0
            width += step * (count - 1)
    return width
