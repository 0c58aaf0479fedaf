"""How often the parts of a kernel run at one launch, and what that adds up to."""

from __future__ import annotations

from math import gcd, inf, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ptxparse.evaluation.compiled import Compiled, Launch, LimitForm
from ptxparse.evaluation.contents import Contents
from ptxparse.evaluation.hulls import constraints_of, launch_scope
from ptxparse.evaluation.scope import MOST_POINTS, Constraint, Infeasible, Scope, unbounded
from ptxparse.program import Work


class Amount(NamedTuple):
    """Operations or bytes of a launch: the ``expected`` number with bounds. ``low == high`` when it is exact;
    ``data_dependent`` when memory decides about it (``high`` may then be infinite)."""

    expected: float
    low: float
    high: float
    data_dependent: bool


_MOST = 10**300
_NONE = Amount(0, 0, 0, False)


def counts(compiled: Compiled, values: list[int], launch: Launch) -> dict[str, Amount]:
    """Amounts by class for all threads of a launch."""
    scope = launch_scope(compiled, values, launch, Contents())
    total: dict[str, Amount] = {}
    for work, guards in zip(compiled.program.work, compiled.work_guards, strict=True):
        runs = _executions(scope, work, guards, prod(launch))
        if compiled.program.opaque is not None:
            # What an unknown callee does comes on top.
            runs = runs._replace(high=inf, data_dependent=True)
        for name, each in work.amounts:
            have = total.get(name, _NONE)
            total[name] = Amount(
                have.expected + each * runs.expected, have.low + each * runs.low, have.high + each * runs.high,
                have.data_dependent or runs.data_dependent,
            )
    return total


def _executions(scope: Scope, work: Work, guards: tuple[LimitForm, ...], threads: int) -> Amount:
    """How many times one instruction of the work runs, over all threads."""
    compiled = scope.compiled
    try:
        known = constraints_of(scope, guards)
    except Infeasible:
        return _NONE
    counters = [compiled.program.loops[loop].counter for loop in work.loops]
    boxes = {counter: scope.boxes.get(counter, (0, 0)) for counter in counters}
    left_early = not all(compiled.program.loops[loop].exact for loop in work.loops)
    loaded = any(_is_memory(scope, term) for c in known for term in c.terms)
    endless = [counter for counter, (_, high) in boxes.items() if unbounded(high)]
    full = threads * prod(high + 1 for counter, (_, high) in boxes.items() if counter not in endless)
    if full > _MOST:
        return Amount(inf, 0, inf, False)
    cuts, finished = _without_finished_loops(scope, known, frozenset(counters))
    repeats, steady = _repeats(scope, work, known)
    share, exact = _share(scope, cuts, repeats)
    expected = full * share
    exact = exact and steady and work.whole and not (finished or endless or left_early or work.endless)
    exact = exact and len(known) == len(guards) - _void(scope, guards, known)
    if exact:
        whole = float(round(expected))
        return Amount(whole, whole, whole, False)
    open_ended = bool(endless) or work.endless
    return Amount(expected, 0, inf if open_ended else full, open_ended or left_early or loaded or not work.whole)


def _without_finished_loops(
    scope: Scope, known: list[Constraint], counters: frozenset[int]
) -> tuple[list[Constraint], bool]:
    """Constraints that cut something off, but for those on counters of loops that are over: these have one value
    there, not all. Also whether there were any of them."""
    compiled = scope.compiled
    cuts, finished = [], False
    for constraint in known:
        if constraint.constant + scope.highest(constraint.terms) <= 0:
            continue
        if _holds_other_counters(compiled, constraint, counters):
            finished = True
        else:
            cuts.append(constraint)
    return cuts, finished


def _holds_other_counters(compiled: Compiled, constraint: Constraint, counters: frozenset[int]) -> bool:
    leaves = {leaf for term in constraint.terms for leaf in compiled.term_leaves[term]}
    return any(compiled.nodes[leaf][0] == "loop" and leaf not in counters for leaf in leaves)


def _void(scope: Scope, guards: tuple[LimitForm, ...], known: list[Constraint]) -> int:
    """Guards that are numbers at this launch, and so never become constraints, though all they rest on holds."""
    return sum(
        1 for limit in guards
        if not scope.numbers(limit.form)[0] and all(scope.check(*check, known) for check in limit.checks)
    )


def _repeats(scope: Scope, work: Work, known: list[Constraint]) -> tuple[list[tuple[int, Constraint]], bool]:
    """Limits of the loops around that differ between threads: (counter, constraint that holds at k >= 1); and whether
    all limits hold what they say and speak of these loops only."""
    compiled = scope.compiled
    counters = frozenset(compiled.program.loops[loop].counter for loop in work.loops)
    found = []
    steady = True
    for loop in work.loops:
        bound = compiled.program.loops[loop]
        for limit in compiled.loop_limits[loop]:
            terms, constant = scope.numbers(limit.form)
            steady = steady and all(scope.check(*check, known) for check in limit.checks)
            constraint = Constraint(terms, constant)
            if _holds_other_counters(compiled, constraint, counters):
                steady = False
            elif terms.get(compiled.term_of(bound.counter), 0) < 0 and len(terms) > 1:
                # A test that may fail at first and hold later: what comes later does not happen.
                steady = False
            elif set(terms) - {compiled.term_of(bound.counter)}:
                found.append((bound.counter, constraint))
    return found, steady


def _share(scope: Scope, cuts: list[Constraint], repeats: list[tuple[int, Constraint]]) -> tuple[float, bool]:
    """The share of all index combinations that the constraints admit, and whether it is exact."""
    compiled = scope.compiled
    pending = [(None, c) for c in cuts] + [(counter, c) for counter, c in repeats]
    share, exact = 1.0, True
    while pending:
        leaves: set[int] = set()
        together: list[tuple[int | None, Constraint]] = []
        grown = True
        while grown:
            grown = False
            for item in list(pending):
                own = {leaf for term in item[1].terms for leaf in compiled.term_leaves[term]}
                if item[0] is not None:
                    own.add(item[0])
                if not together or own & leaves:
                    leaves |= own
                    together.append(item)
                    pending.remove(item)
                    grown = True
        part, sure = _joint_share(scope, together, frozenset(leaves))
        share *= part
        exact = exact and sure
    return share, exact


def _joint_share(
    scope: Scope, together: list[tuple[int | None, Constraint]], leaves: frozenset[int]
) -> tuple[float, bool]:
    if scope.enumerated.can(leaves, MOST_POINTS):
        mask: npt.NDArray[np.bool_] | None = None
        for counter, constraint in together:
            admitted = scope.holds(constraint)
            if admitted is None:
                break
            if counter is not None:
                first = scope.enumerated.atom(counter)
                assert first is not None
                admitted = admitted | (first == 0)
            mask = admitted if mask is None else mask & admitted
        else:
            assert mask is not None
            axes = [scope.boxes[leaf] for leaf in leaves if leaf in scope.boxes]
            present = prod(high - low + 1 for low, high in axes)
            # Leaves that no table depends on were not broadcast; they leave the share as it is.
            return float(mask.mean()) if present else 0.0, True
    if len(together) == 1:
        counter, constraint = together[0]
        share, sure = _single_share(scope, constraint)
        return share, sure and (counter is None or _holds_at_first(scope, counter, constraint))
    share = 1.0
    for _, constraint in together:
        share *= _single_share(scope, constraint)[0]
    return share, False


def _holds_at_first(scope: Scope, counter: int, constraint: Constraint) -> bool:
    """Whether a loop's limit holds at k = 0 too, where it need not."""
    own = scope.compiled.term_of(counter)
    return own in constraint.terms and constraint.constant + scope.highest(
        {t: c for t, c in constraint.terms.items() if t != own}) <= 0


def _single_share(scope: Scope, constraint: Constraint) -> tuple[float, bool]:
    """Share of the values of one sum at or below a bound; exact when the sum counts through its values one by one."""
    low = -scope.highest({t: -c for t, c in constraint.terms.items()})
    high = scope.highest(constraint.terms)
    bound = -constraint.constant
    if unbounded(low) or unbounded(high):
        return 0.5, False
    unit = gcd(*constraint.terms.values())
    share = min(max(((bound - low) // unit + 1) / ((high - low) // unit + 1), 0.0), 1.0)
    step, even = unit, all(_is_index(scope, t) for t in constraint.terms)
    for term, coefficient in sorted(constraint.terms.items(), key=lambda item: abs(item[1])):
        even = even and abs(coefficient) == step
        first, last = scope.term(term)
        step *= last - first + 1
    return share, even


def _is_index(scope: Scope, term: int) -> bool:
    """Whether a term is a thread, block or loop index by itself."""
    compiled = scope.compiled
    return compiled.plain[term] and compiled.nodes[compiled.terms[term][0]][0] in ("tid", "ctaid", "loop")


def _is_memory(scope: Scope, term: int) -> bool:
    """Whether a term depends on what memory holds."""
    compiled = scope.compiled
    return any(compiled.nodes[leaf][0] in ("unknown", "load", "symbol") for leaf in compiled.term_leaves[term])
