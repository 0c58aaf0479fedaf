"""Byte hulls of a program's accesses at one launch, relative to their bases."""

from __future__ import annotations

from typing import NamedTuple

from ptxparse.evaluation.compiled import Compiled, Launch, LimitForm
from ptxparse.evaluation.contents import Contents
from ptxparse.evaluation.cover import Factor, factors, loose_factors, may_have_gaps, pieces_of
from ptxparse.evaluation.pieces import MOST_PIECES, Interval, Spans
from ptxparse.evaluation.scope import Box, Constraint, Infeasible, Scope, Terms, unbounded
from ptxparse.program import Access, Base
from ptxparse.values import INFINITY
from tessera.reasons import Reason

_NOWHERE = Base(-1)
_MOST_HULLS = 256
"""For one launch; when pieces make them more, every access is one hull again."""


class Hull(NamedTuple):
    """Bytes [lo, hi) from ``base``. Not ``bounded``: anywhere in the allocation. ``reason``: no base was found."""

    kind: str
    base: Base
    lo: int
    hi: int
    bounded: bool
    exact: bool
    reason: Reason | None = None


class _Store(NamedTuple):
    """A store that surely happens where its constraints hold: ``constant + terms + spans``, not yet relative to what
    other stores of the same shape write."""

    scope: Scope
    terms: Terms
    constant: int
    spans: Spans
    known: list[Constraint]

    def shape(self, base: Base) -> object:
        """Stores of equal shape differ by their constant only."""
        constraints = {(tuple(sorted(c.terms.items())), c.constant) for c in self.known}
        return base, tuple(sorted(self.terms.items())), frozenset(constraints), tuple(self.scope.boxes.items())


def hulls(
    compiled: Compiled, values: list[int] | None, launch: Launch, bases: list[list[Base]], contents: Contents
) -> tuple[Hull, ...]:
    """Hulls of all accesses that can happen, joined where they touch; of an access with few large gaps, one for each
    piece. ``bases`` are those of each access that are pointers at this launch; ``values`` None means that launch values
    could not be computed."""
    found = _hulls(compiled, values, launch, bases, contents, MOST_PIECES)
    return found if len(found) <= _MOST_HULLS else _hulls(compiled, values, launch, bases, contents, 1)


def _hulls(
    compiled: Compiled, values: list[int] | None, launch: Launch, bases: list[list[Base]], contents: Contents, most: int
) -> tuple[Hull, ...]:
    scope = None if values is None else launch_scope(compiled, values, launch, contents)
    found: list[Hull] = []
    stores: dict[object, list[_Store]] = {}
    for number, access in enumerate(compiled.program.accesses):
        kind = {"W": "MAYW"}.get(access.kind, access.kind)
        store: _Store | None = None
        if scope is None:
            hull = [Hull(kind, _NOWHERE, 0, 0, False, False)]
        else:
            hull, store = _access(scope, number, access, kind, most)
        if hull and len(bases[number]) != 1:
            reason = Reason.UNKNOWN_BASE if not bases[number] else Reason.TWO_BASES
            return (Hull("R", _NOWHERE, 0, 0, False, False, reason),)
        found += [Hull(one.kind, bases[number][0], *one[2:]) for one in hull]
        if store is not None:
            stores.setdefault((store.shape(bases[number][0]), bases[number][0]), []).append(store)
    for key, together in stores.items():
        if len(together) > 1:
            assert isinstance(key, tuple)
            found += _together(together, key[1], most)
    return _joined(found)


def _together(stores: list[_Store], base: Base, most: int) -> list[Hull]:
    """What stores that differ by a constant surely write between them: rows, say, of one tile."""
    scope, terms, _, _, known = stores[0]
    spans = sorted({(low + s.constant, high + s.constant) for s in stores for low, high in s.spans})
    taken = factors(scope, terms, known)
    extent = scope.upper(terms, 0, known) - scope.lower(terms, 0, known)
    if taken is None or _extent(taken) != extent:
        return []
    found = []
    for group in _spans(tuple(spans), extent):
        made = pieces_of(taken, 0, group, most)
        found += [Hull("MUSTW", base, lo, hi, True, True) for lo, hi in made.intervals if made.full]
    return found


def launch_scope(compiled: Compiled, values: list[int], launch: Launch, contents: Contents) -> Scope:
    """The scope of a whole launch: boxes of thread and block indices, then of loop counters, outer loops first."""
    boxes: dict[int, Box] = {}
    program = compiled.program
    for atom, node in enumerate(program.nodes):
        if node[0] == "ctaid":
            boxes[atom] = (0, launch["xyz".index(node[1])] - 1)
        elif node[0] == "tid":
            boxes[atom] = (0, launch[3 + "xyz".index(node[1])] - 1)
        elif node[0] in ("unknown", "each", "symbol"):
            boxes[atom] = (program.low[atom], program.high[atom])
        elif node[0] == "loop":
            boxes[atom] = (0, INFINITY)
    scope = Scope(compiled, values, boxes, contents)
    for number, loop in enumerate(program.loops):
        if loop.counter in boxes:
            scope = _bound_loop(scope, number, loop.counter)
    return scope


def _bound_loop(scope: Scope, number: int, counter: int) -> Scope:
    """The scope with the loop's counter bounded by its limits, whose checks must hold for the counter so bounded."""
    compiled = scope.compiled
    try:
        known = constraints_of(scope, compiled.loop_guards[number])
    except Infeasible:
        return scope.narrowed({counter: (0, 0)})
    usable = list(compiled.loop_limits[number])
    while usable:
        bounds = [_most_iterations(scope, limit, counter, known) for limit in usable]
        most = min((bound for bound in bounds if bound is not None), default=None)
        if most is None:
            return scope
        # A limit at k speaks of the test at k - 1; the last test is that of the last iteration.
        trial = scope.narrowed({counter: (1, most + 1)})
        failed = [limit for limit, bound in zip(usable, bounds, strict=True)
                  if bound is not None and not all(trial.check(*check, known) for check in limit.checks)]
        if not failed:
            return scope.narrowed({counter: (0, most)})
        usable = [limit for limit in usable if limit not in failed]
    return scope


def _most_iterations(scope: Scope, limit: LimitForm, counter: int, known: list[Constraint]) -> int | None:
    """Largest k that ``slope * k + rest <= 0`` admits for any thread; None when it admits all."""
    if limit.relation != "le":
        return None
    terms, constant = scope.numbers(limit.form)
    compiled = scope.compiled
    slope = 0
    rest = {}
    for term, coefficient in terms.items():
        if compiled.terms[term] == (counter,):
            slope = coefficient
        elif counter in compiled.term_leaves[term]:
            return None
        else:
            rest[term] = -coefficient
    if slope <= 0:
        # A test that holds more and more: if it fails at first, it fails for all.
        return 0 if not rest and slope + constant > 0 else None
    highest = scope.upper(rest, -constant, known)
    return None if unbounded(highest) else max(highest // slope, 0)


def constraints_of(scope: Scope, limits: tuple[LimitForm, ...]) -> list[Constraint]:
    """Limits as constraints in numbers, those left out that say nothing. Raises :class:`Infeasible`."""
    known: list[Constraint] = []
    again: list[LimitForm] = []
    for limit in limits:
        found = scope.constraint(limit, known)
        if found is not None:
            known.append(found)
        elif limit.checks or limit.relation == "ne":
            again.append(limit)
    # A limit whose check needs another one, written later, gets a second chance.
    for limit in again if known else ():
        found = scope.constraint(limit, known)
        if found is not None and found not in known:
            known.append(found)
    return known


def _access(scope: Scope, number: int, access: Access, kind: str, most: int) -> tuple[list[Hull], _Store | None]:
    """Hulls of one access, and the access itself when it is a store that surely happens."""
    compiled = scope.compiled
    values = scope.values
    for index, truth in compiled.conditions[number]:
        if bool(values[index] & 1) != truth:
            return [], None
    try:
        known = constraints_of(scope, compiled.guards[number])
        known += _loop_constraints(scope, number, access, known)
        certain = access.certain and _always(scope, number, access, known)
        scope, known = _narrow(scope, compiled.offsets[number].terms, known)
        if any(scope.lower(c.terms, c.constant, known) > 0 for c in known):
            return [], None
        sound = all(scope.check(*check, known) for check in compiled.access_checks[number])
        terms, constant = scope.numbers(compiled.offsets[number])
        if not all(compiled.plain[t] for t in {*terms, *(t for c in known for t in c.terms)}) and known:
            scope = scope.copy()
            scope.admit(terms, known)
        high = scope.upper(terms, constant, known)
        low = scope.lower(terms, constant, known)
        if low > high:
            return [], None
        if not sound or unbounded(low) or unbounded(high):
            return [Hull(kind, _NOWHERE, 0, 0, False, False)], None
        taken, exact = _taken(scope, terms, access.spans, known, certain, high - low)
    except Infeasible:
        return [], None
    found = []
    for piece, full in _pieces(taken, constant, access.spans, (low, high), most):
        kind_here = "MUSTW" if access.kind == "W" and exact and full else kind
        found.append(Hull(kind_here, _NOWHERE, *piece, True, exact))
    partly = certain and access.kind == "W" and any(hull.kind != "MUSTW" for hull in found)
    return found, _Store(scope, terms, constant, access.spans, known) if partly else None


def _taken(
    scope: Scope, terms: Terms, spans: Spans, known: list[Constraint], certain: bool, extent: int
) -> tuple[list[Factor] | None, bool]:
    """Factors of the sum if they are worth to be looked at, and whether it takes all of their values for sure.
    ``extent`` is between its bounds."""
    taken = factors(scope, terms, known) if certain else None
    if taken is not None and _extent(taken) == extent:
        return taken, True
    if not may_have_gaps(scope, terms, spans):
        return None, False
    if not certain:
        taken = factors(scope, terms, known)
    return loose_factors(scope, terms) if taken is None else taken, False


def _extent(taken: list[Factor]) -> int:
    extent = 0
    for factor in taken:
        extent += factor.extent
    return extent


def _pieces(
    taken: list[Factor] | None, constant: int, spans: Spans, bounds: tuple[int, int], most: int
) -> list[tuple[Interval, bool]]:
    """Pieces of the bytes of ``spans`` around a sum between ``bounds``, each with whether it has no gaps. Those that
    are too many are one for each group of spans."""
    low, high = bounds
    found: list[tuple[Interval, bool]] = []
    groups = _spans(spans, high - low)
    for group in groups:
        first, last = low + group[0][0], high + group[-1][1]
        if taken is None:
            found.append(((first, last), False))
            continue
        made = pieces_of(taken, constant, group, most)
        # Of values that are maybe not taken, those beyond the bounds are not.
        found += [((max(lo, first), min(hi, last)), made.full) for lo, hi in made.intervals if lo < last and hi > first]
    return found if len(found) <= max(most, len(groups)) else _pieces(taken, constant, spans, bounds, 1)


def _always(scope: Scope, number: int, access: Access, known: list[Constraint]) -> bool:
    """Whether all that decides about the access is known: its guards became constraints, its loops end by limits."""
    compiled = scope.compiled
    counters = {compiled.program.loops[loop].counter for loop in access.loops}
    terms = {term for _, term in compiled.offsets[number].terms}.union(*(c.terms for c in known))
    for leaf in {leaf for term in terms for leaf in compiled.term_leaves[term]}:
        # After its loop, a counter has one value only; which one was not found out.
        if compiled.nodes[leaf][0] == "loop" and leaf not in counters:
            return False
        # Which value of an unknown number occurs, if any, memory decides.
        if not scope.is_known(leaf):
            return False
    for limit in compiled.guards[number]:
        decided = limit.relation == "le" or not scope.numbers(limit.form)[0]
        if not decided or not all(scope.check(*check, known) for check in limit.checks):
            return False
    return all(_runs_to_its_limits(scope, loop, known) for loop in access.loops)


def _runs_to_its_limits(scope: Scope, loop: int, known: list[Constraint]) -> bool:
    """Whether an iteration happens for every thread and counter that the boxes and constraints admit."""
    compiled = scope.compiled
    bound = compiled.program.loops[loop]
    counter = compiled.term_of(bound.counter)
    if not bound.exact:
        return False
    for limit in compiled.loop_limits[loop]:
        if not all(scope.check(*check, known) for check in limit.checks):
            return False
        terms, constant = scope.numbers(limit.form)
        if set(terms) <= {counter}:
            continue
        # Either the limit holds from k = 0 on and is among the constraints, or the test at k itself is (a loop
        # tested at its top).
        slope = terms.get(counter, 0)
        if not any(Constraint(terms, constant + more) in known for more in (0, slope)):
            return False
    return True


def _loop_constraints(scope: Scope, number: int, access: Access, known: list[Constraint]) -> list[Constraint]:
    """Limits of loops that hold from the first iteration on, because they hold at k = 0 too."""
    compiled = scope.compiled
    leaves = {leaf for _, term in compiled.offsets[number].terms for leaf in compiled.term_leaves[term]}
    found = []
    for loop, bound in enumerate(compiled.program.loops):
        if bound.counter not in leaves and loop not in access.loops:
            continue
        for limit in compiled.loop_limits[loop]:
            constraint = _later_limit(scope, limit, known)
            if constraint is None or len(constraint.terms) < 2:
                continue
            counter = compiled.term_of(bound.counter)
            if any(bound.counter in compiled.term_leaves[t] and t != counter for t in constraint.terms):
                continue
            at_start = {t: c for t, c in constraint.terms.items() if t != counter}
            if scope.upper(at_start, constraint.constant, known) <= 0:
                found.append(constraint)
    return found


def _later_limit(scope: Scope, limit: LimitForm, known: list[Constraint]) -> Constraint | None:
    """A loop's limit as a constraint; nothing where the first iteration, which needs no limit, contradicts it."""
    try:
        return scope.constraint(limit, known)
    except Infeasible:
        return None


def _narrow(
    scope: Scope, objective: tuple[tuple[int, int], ...], known: list[Constraint]
) -> tuple[Scope, list[Constraint]]:
    """Constraints on a single index narrow its box, where a table over that index gains from it."""
    compiled = scope.compiled
    tabled = {leaf for _, t in objective if not compiled.plain[t] for leaf in compiled.term_leaves[t]}
    boxes: dict[int, Box] = {}
    rest = []
    for constraint in known:
        term = next(iter(constraint.terms))
        atom = compiled.terms[term][0]
        if len(constraint.terms) > 1 or not compiled.plain[term] or atom not in tabled:
            rest.append(constraint)
            continue
        slope = constraint.terms[term]
        low, high = boxes.get(atom) or scope.boxes.get(atom) or scope.atom(atom)
        if slope > 0:
            high = min(high, -constraint.constant // slope)
        else:
            low = max(low, -(-constraint.constant // -slope) if slope else low)
        if low > high:
            raise Infeasible
        boxes[atom] = (low, high)
    return scope.narrowed(boxes), rest


def _spans(spans: Spans, extent: int) -> list[Spans]:
    """Spans put together whose gaps the extent of the offset closes."""
    groups = [[spans[0]]]
    reached = spans[0][1]
    for span in spans[1:]:
        if span[0] - extent <= reached:
            groups[-1].append(span)
        else:
            groups.append([span])
        reached = max(reached, span[1])
    return [tuple(group) for group in groups]


def _joined(found: list[Hull]) -> tuple[Hull, ...]:
    """Hulls of the same kind and base joined where they touch; what is surely written is not listed as maybe."""
    groups: dict[tuple[Base, str], list[Hull]] = {}
    for hull in found:
        groups.setdefault((hull.base, hull.kind), []).append(hull)
    result: list[Hull] = []
    for (base, kind), members in groups.items():
        if any(not m.bounded for m in members):
            result.append(Hull(kind, base, 0, 0, False, False))
            continue
        members.sort(key=lambda m: (m.lo, m.hi))
        merged = [members[0]]
        for hull in members[1:]:
            last = merged[-1]
            if hull.lo <= last.hi:
                merged[-1] = Hull(kind, base, last.lo, max(last.hi, hull.hi), True, last.exact and hull.exact)
            else:
                merged.append(hull)
        if kind == "MAYW":
            sure = [h for h in found if h.base == base and h.kind == "MUSTW"]
            merged = [h for h in merged if not any(s.lo <= h.lo and h.hi <= s.hi for s in sure)]
        result += merged
    return tuple(result)
