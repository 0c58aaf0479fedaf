"""Which values a sum takes: independent factors, each with its values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptxparse.evaluation.pieces import MOST_PIECES, Digit, Listed, Pieces, Spans, digits_of, pieces
from ptxparse.evaluation.scope import Constraint, Infeasible, Scope, Terms, unbounded

_MEMORY = ("unknown", "load", "symbol")


class Factor(NamedTuple):
    """An independent part of a sum, of which it takes both ends, ``low`` and ``low + extent``. Its values are ``low``
    plus the sums of ``digits``, or plus the ``listed`` ones when they are no sum of arithmetic sequences."""

    low: int
    extent: int
    digits: list[Digit]
    listed: Listed | None = None


def factors(scope: Scope, terms: Terms, constraints: list[Constraint]) -> list[Factor] | None:
    """The sum taken apart into independent factors; None when the constraints do not allow to say so.

    A constraint is accounted for if it holds everywhere, if the tables leave out what breaks it, if it is about
    indices that the objective does not depend on (then it must be possible to satisfy), or if the sum it bounds is a
    part of the objective by itself: that part then is one factor, cut off at the bound. With any other, nothing is
    said.
    """
    remaining = dict(terms)
    active = [c for c in constraints if c not in scope.absorbed and c.constant + scope.highest(c.terms) > 0]
    parts = _Parts(scope, [terms, *(c.terms for c in active)], [c.terms for c in scope.absorbed])
    used = parts.of(remaining)
    foreign = [c for c in active if not parts.of(c.terms) & used]
    if not _satisfiable(scope, parts, foreign):
        return None
    cuts: dict[tuple[tuple[int, int], ...], list[Constraint]] = {}
    for constraint in active:
        if constraint not in foreign:
            cuts.setdefault(_direction(constraint.terms), []).append(constraint)
    found: list[Factor] = []
    parted: frozenset[object] = frozenset()
    for cut in cuts.values():
        below = parts.of(cut[0].terms)
        factor = None if below & parted else _cut_factor(scope, parts, remaining, cut)
        if factor is None:
            return None
        parted |= below
        found.append(factor)
    rest = None if parts.of(remaining) & parted else _factors(scope, parts, remaining)
    return None if rest is None else found + rest


def loose_factors(scope: Scope, terms: Terms) -> list[Factor]:
    """The same without constraints, for a sum that takes no other values, but maybe not all of these."""
    found: list[Factor] = []
    parts = _Parts(scope, [terms], [c.terms for c in scope.absorbed])
    for group in parts.groups(terms):
        factor = _factor(scope, group)
        if factor is not None:
            found.append(factor)
            continue
        for term, coefficient in group.items():
            low, high = scope.term(term)
            found.append(_sequence(coefficient, low, high))
    return found


def pieces_of(found: list[Factor], constant: int, spans: Spans, most: int = MOST_PIECES) -> Pieces:
    """The bytes of ``spans`` around all values of ``constant`` and the sum of the factors."""
    low = constant
    digits: list[Digit] = []
    lists: list[Listed] = []
    for factor in found:
        low += factor.low
        digits += factor.digits
        if factor.listed is not None:
            lists.append(factor.listed)
    return pieces([(low + first, low + last) for first, last in spans], digits, lists, most)


def may_have_gaps(scope: Scope, terms: Terms, spans: Spans) -> bool:
    """Whether it is worth the time to look for pieces: as if all terms were independent, some step is larger than what
    the smaller ones reach, and has few enough values; or memory decides, and what it holds is known."""
    width = min(last - first for first, last in spans)
    bounds = {term: scope.term(term) for term in terms}
    for step, count in sorted((abs(c), bounds[t][1] - bounds[t][0] + 1) for t, c in terms.items()):
        if step > width and count <= MOST_PIECES:
            return True
        width += step * (count - 1)
    if not scope.contents:
        return False
    leaves = {leaf for term in terms for leaf in scope.compiled.term_leaves[term]}
    return any(scope.compiled.nodes[leaf][0] == "load" for leaf in leaves)


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
    pending = list(constraints)
    while pending:
        together = [pending.pop()]
        below = parts.of(together[0].terms)
        grown = True
        while grown:
            joined = [c for c in pending if parts.of(c.terms) & below]
            grown = bool(joined)
            for constraint in joined:
                pending.remove(constraint)
                together.append(constraint)
                below |= parts.of(constraint.terms)
        if not _possible(scope, together):
            return False
    return True


def _possible(scope: Scope, together: list[Constraint]) -> bool:
    terms = {term for constraint in together for term in constraint.terms}
    term = next(iter(terms))
    if len(terms) > 1 or not scope.is_free(term):
        return scope.possible(together)
    if scope.compiled.nodes[scope.compiled.terms[term][0]][0] in _MEMORY:
        return False
    low, high = scope.term(term)
    for constraint in together:
        slope = constraint.terms[term]
        if slope > 0:
            high = min(high, -constraint.constant // slope)
        else:
            low = max(low, -(constraint.constant // slope))
    return low <= high


def _direction(terms: Terms) -> tuple[tuple[int, int], ...]:
    """Terms up to their common sign, so that both ends of one range meet."""
    items = sorted(terms.items())
    sign = 1 if items[0][1] > 0 else -1
    return tuple((t, c * sign) for t, c in items)


def _cut_factor(scope: Scope, parts: _Parts, remaining: Terms, cut: list[Constraint]) -> Factor | None:
    """The part of the objective that the constraints bound, as one factor; removed from ``remaining``."""
    part = dict(_direction(cut[0].terms))
    scales = set()
    for term, coefficient in part.items():
        have = remaining.get(term, 0)
        if have % coefficient:
            return None
        scales.add(have // coefficient)
    if len(scales) != 1 or 0 in scales:
        return None
    scale = scales.pop()
    inner = _factors(scope, parts, part)
    if inner is None:
        return None
    # Only of a part that takes every value is it known what remains when it is cut off.
    every = pieces_of(inner, 0, ((0, 1),), 1)
    if not every.full:
        return None
    low, high = every.intervals[0][0], every.intervals[0][1] - 1
    for constraint in cut:
        first = next(iter(part))
        if constraint.terms[first] * part[first] > 0:
            high = min(high, -constraint.constant)
        else:
            low = max(low, constraint.constant)
    if low > high:
        return None
    for term in part:
        del remaining[term]
    return _sequence(scale, low, high)


def _factors(scope: Scope, parts: _Parts, terms: Terms) -> list[Factor] | None:
    """Each group of dependent terms by itself; None when the values of one are not known."""
    found: list[Factor] = []
    for group in parts.groups(terms):
        factor = _factor(scope, group)
        if factor is None:
            return None
        found.append(factor)
    return found


def _factor(scope: Scope, terms: Terms) -> Factor | None:
    compiled = scope.compiled
    if not all(scope.is_known(leaf) for term in terms for leaf in compiled.term_leaves[term]):
        return None
    if len(terms) == 1 and scope.is_free(next(iter(terms))):
        ((term, coefficient),) = terms.items()
        low, high = scope.term(term)
        return None if unbounded(high) else _sequence(coefficient, low, high)
    try:
        table = scope.table(terms)
    except Infeasible:
        return None
    if table is None:
        return None
    values = np.unique(table)
    low = int(values[0])
    digits = digits_of(values)
    listed = None if digits is not None else values - low
    return Factor(low, int(values[-1]) - low, digits or [], listed)


def _sequence(coefficient: int, low: int, high: int) -> Factor:
    """All multiples from ``coefficient * low`` to ``coefficient * high``."""
    step = abs(coefficient)
    return Factor(min(coefficient * low, coefficient * high), step * (high - low), [(step, high - low + 1)])
