"""Whether every byte between two bounds is written: sums of digits that leave no gap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ptxparse.evaluation.scope import Constraint, Scope, Terms, unbounded

Digit = tuple[int, int]
"""(step, count): the values 0, step, ..., step * (count - 1)."""


def covered(scope: Scope, terms: Terms, spans: tuple[tuple[int, int], ...], constraints: list[Constraint]) -> int:
    """Length of the run that the bytes of ``spans`` around all values of ``terms`` form; 0 when it has gaps or cannot
    be told.

    A constraint counts if it holds everywhere, or if the sum it bounds is a part of the objective by itself: that part
    then is one digit, cut off at the bound. Any other constraint makes the answer 0.
    """
    remaining = dict(terms)
    parted: set[int] = set()
    digits: list[Digit] = []
    cuts: dict[tuple[tuple[int, int], ...], list[Constraint]] = {}
    for constraint in constraints:
        if constraint.constant + scope.highest(constraint.terms) <= 0:
            continue
        cuts.setdefault(_direction(constraint.terms), []).append(constraint)
    for cut in cuts.values():
        leaves = {leaf for term in cut[0].terms for leaf in scope.compiled.term_leaves[term]}
        digit = None if leaves & parted else _cut_digit(scope, remaining, cut)
        if digit is None:
            return 0
        parted |= leaves
        digits.append(digit)
    for group in scope.groups(list(remaining)):
        # Digits are independent of each other: nothing that a cut bounds may move another digit too.
        shared = any(leaf in parted for term in group for leaf in scope.compiled.term_leaves[term])
        found = None if shared else _group_digits(scope, {t: remaining[t] for t in group})
        if found is None:
            return 0
        digits += found
    return run_length(digits, spans)


def _direction(terms: Terms) -> tuple[tuple[int, int], ...]:
    """Terms up to their common sign, so that both ends of one range meet."""
    items = sorted(terms.items())
    sign = 1 if items[0][1] > 0 else -1
    return tuple((t, c * sign) for t, c in items)


def _cut_digit(scope: Scope, remaining: Terms, cut: list[Constraint]) -> Digit | None:
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
    digits: list[Digit] = []
    for group in scope.groups(list(part)):
        found = _group_digits(scope, {t: part[t] for t in group})
        if found is None:
            return None
        digits += found
    if not run_length(digits, ((0, 1),)):
        return None
    for term in part:
        del remaining[term]
    return (abs(factor), max(high - low + 1, 0))


def _group_digits(scope: Scope, terms: Terms) -> list[Digit] | None:
    """Digits of terms that share leaves, or None when they have no such form."""
    plain = scope.compiled.plain
    if all(plain[t] for t in terms):
        digits = []
        for term, coefficient in terms.items():
            low, high = scope.term(term)
            node = scope.compiled.nodes[scope.compiled.terms[term][0]]
            if unbounded(high) or node[0] in ("unknown", "load", "symbol"):
                return None
            digits.append((abs(coefficient), high - low + 1))
        return digits
    if any(scope.compiled.nodes[leaf][0] in ("unknown", "load", "symbol")
           for term in terms for leaf in scope.compiled.term_leaves[term]):
        return None
    table = scope.table(terms)
    return None if table is None else _digits_of(np.unique(table))


def _digits_of(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[Digit] | None:
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


def run_length(digits: list[Digit], spans: tuple[tuple[int, int], ...]) -> int:
    """Bytes covered by all sums of one value per digit, each with the bytes of ``spans``; 0 when there are gaps."""
    width = spans[0][1] - spans[0][0]
    if len(spans) > 1:
        step = spans[1][0] - spans[0][0]
        for (a, b), (c, d) in pairwise(spans):
            if c - a != step or b - a != width or d - c != width:
                return 0
        digits = [*digits, (step, len(spans))]
    if any(count <= 0 for _, count in digits):
        return 0
    for step, count in sorted(digits):
        if count > 1:
            if step > width:
                return 0
            width += step * (count - 1)
    return width
