"""Conditions of branches as linear constraints."""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxparse.program import Limit
from ptxparse.rewrite import Flattener
from ptxparse.transfer import compare, exclusive
from ptxparse.values import INFINITY, ONE, ZERO, Check, Graph, Sum, add, constant, constant_of

Condition = tuple[Sum, bool]
_DEEPEST = 64


class Constraint(NamedTuple):
    """``value <= 0`` (relation "le") or ``value != 0`` ("ne"), given that all the checks hold; without them it says
    nothing."""

    value: Sum
    relation: str
    checks: frozenset[Check]


class Constraints(NamedTuple):
    """A conjunction. ``equivalent`` says that it and ``rest``, the conditions that gave no constraint, together are
    equivalent to what they came from, not merely implied; ``false`` that the conditions contradict each other."""

    items: tuple[Constraint, ...]
    equivalent: bool
    false: bool
    rest: tuple[Condition, ...]

    @property
    def whole(self) -> bool:
        """Whether the constraints alone are equivalent to the conditions."""
        return self.equivalent and not self.rest


def constraints(graph: Graph, flattener: Flattener, conditions: list[Condition]) -> Constraints:
    """What a conjunction of conditions says about sums."""
    items: dict[Constraint, None] = {}
    rest: list[Condition] = []
    false, equivalent = False, True
    work = [(value, truth, 0) for value, truth in reversed(conditions)]
    while work:
        value, truth, depth = work.pop()
        known = constant_of(value)
        if known is not None:
            false = false or bool(known & 1) != truth
            continue
        if value[0] == ((), 1) and len(value) == 2 and value[1][1] == -1:
            work.append((add(ONE, value, -1), not truth, depth))
            continue
        node = graph.single(value)
        if node is not None and depth < _DEEPEST:
            kind = node[0]
            if (kind == "and" and truth) or (kind == "or" and not truth):
                work.append((node[1], truth, depth + 1))
                work.append((node[2], truth, depth + 1))
                continue
            if kind == "lt" and not truth and not node[2] and (both := _no_sign_bit(graph, node[1])) is not None:
                work.extend((value, False, depth + 1) for value in both)
                continue
            if kind in ("lt", "eq"):
                found = _relation(graph, flattener, kind, node[1], node[2], truth)
                if found:
                    items.update(dict.fromkeys(found))
                    continue
            if kind == "alternatives":
                decided = _alternative(node, truth)
                if decided is not None:
                    equivalent = equivalent and exclusive(node[1])
                    work.extend((v, t, depth + 1) for v, t in decided)
                    continue
        rest.append((value, truth))
    return Constraints(tuple(items), equivalent, false, tuple(rest))


def _no_sign_bit(graph: Graph, value: Sum) -> tuple[Sum, Sum] | None:
    """``a | b`` is not negative exactly when neither a nor b is: compilers test two numbers at once like that. Returns
    what must both be false: a < 0 and b < 0."""
    outer = graph.single(value)
    node = graph.single(outer[1]) if outer is not None and outer[0] == "wrap" and outer[3] else None
    if outer is None or node is None or node[0] != "or":
        return None
    numbers = [graph.wrap(_inner(graph, part, outer[2]), outer[2], True) for part in node[1:]]
    return compare(graph, "lt", numbers[0], ZERO), compare(graph, "lt", numbers[1], ZERO)


def _alternative(node: tuple[Any, ...], truth: bool) -> list[Condition] | None:
    """A predicate that is one of several: when all options but one are constants that cannot be ``truth``, the
    remaining one is it, together with its guards."""
    possible = []
    for value, guards in node[1]:
        known = constant_of(value)
        if known is None or bool(known & 1) == truth:
            possible.append((value, guards))
    if len(possible) != 1:
        return None
    value, guards = possible[0]
    return [(value, truth), *guards]


def _relation(graph: Graph, flattener: Flattener, kind: str, a: Sum, b: Sum, truth: bool) -> list[Constraint]:
    if kind == "eq":
        flat_a, checks_a = flattener.flatten(a)
        flat_b, checks_b = flattener.flatten(b)
        difference = add(flat_a, flat_b, -1)
        checks = checks_a | checks_b
        if not truth:
            return [Constraint(difference, "ne", checks)]
        return [Constraint(difference, "le", checks), Constraint(add((), difference, -1), "le", checks)]
    # a < b, or b <= a, i.e. left + strict <= right.
    left, right, strict = (a, b, 1) if truth else (b, a, 0)
    both = _both_ends(graph, flattener, left, right, strict)
    if both is not None:
        return both
    flat_left, checks_left = flattener.flatten(left)
    flat_right, checks_right = flattener.flatten(right)
    return [Constraint(add(add(flat_left, flat_right, -1), constant(strict)), "le", checks_left | checks_right)]


def _both_ends(
    graph: Graph, flattener: Flattener, left: Sum, right: Sum, strict: int
) -> list[Constraint] | None:
    """left < right where left is x as an unsigned number of b bits: how compilers test 0 <= x < right at once. With x
    in the signed range and right at most 2^(b-1) - 1, a negative x would be a number too large. None for any other
    left."""
    node = graph.single(left)
    if node is None or node[0] != "wrap" or node[3] or graph.is_uniform(left) or _is_leaf(graph, node[1]):
        return None
    half = 1 << (node[2] - 1)
    x, checks = flattener.flatten(node[1])
    flat_right, checks_right = flattener.flatten(right)
    needed = checks | checks_right | {Check(x, -half, half - 1), Check(flat_right, -INFINITY, half - 1)}
    return [
        Constraint(add(add(x, flat_right, -1), constant(strict)), "le", needed),
        Constraint(add((), x, -1), "le", needed),
    ]


def _inner(graph: Graph, value: Sum, bits: int) -> Sum:
    """What a number is modulo 2^bits, without the wrap that says so."""
    node = graph.single(value)
    return node[1] if node is not None and node[0] == "wrap" and node[2] == bits else value


def limits_of(found: Constraints) -> tuple[Limit, ...]:
    """Constraints in the form that programs keep."""
    return tuple(Limit(c.value, c.relation, tuple(sorted(c.checks))) for c in found.items)


def _is_leaf(graph: Graph, value: Sum) -> bool:
    node = graph.single(value)
    return node is not None and node[0] in ("unknown", "load")
