"""Rebuilding sums with some atoms replaced: substitution, and ``flatten``, which trades wraps for checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ptxparse.transfer import alternatives, compare, exclusive
from ptxparse.values import INFINITY, ZERO, Check, Graph, Sum, add, constant

LEAVES = frozenset(
    {"tid", "ctaid", "ntid", "nctaid", "param", "symbol", "shared_size", "loop", "unknown", "phi", "each"}
)


def arguments(node: tuple[Any, ...]) -> Iterator[Sum]:
    """The sums that a node is made of."""
    kind = node[0]
    if kind in LEAVES:
        return
    if kind == "alternatives":
        for value, guards in node[1]:
            yield value
            for condition, _ in guards:
                yield condition
    elif kind == "provided":
        yield node[1]
        for check in node[2]:
            yield check.value
    elif kind == "load":
        yield node[2]
    elif kind in ("wrap", "shift_right", "low_bits"):
        yield node[1]
    else:
        yield from node[1:]


def provided(graph: Graph, value: Sum, checks: tuple[Check, ...]) -> Sum:
    """``value``, which holds only if all the checks do. Nothing is derived from it statically, or a check could be
    lost with it."""
    if not checks:
        return value
    return graph.derived(("provided", value, checks), -INFINITY, INFINITY, value)


class Rewriter:
    """Replaces atoms by sums all through other sums. Results are remembered, so one rewriter means one mapping."""

    def __init__(self, graph: Graph, mapping: Mapping[int, Sum] | None = None) -> None:
        self.graph = graph
        self.mapping = {} if mapping is None else mapping
        self.image: dict[int, Sum] = {}

    def __call__(self, value: Sum) -> Sum:
        """The rewritten sum."""
        self._prepare(value)
        return self._combine(value)

    def _children(self, atom: int) -> list[int]:
        replaced = self.mapping.get(atom)
        sums = [replaced] if replaced is not None else list(arguments(self.graph.nodes[atom]))
        return [a for value in sums for product, _ in value for a in product]

    def _prepare(self, value: Sum) -> None:
        """Rewrite all atoms beneath, deepest first, without recursion."""
        image = self.image
        stack = [atom for product, _ in value for atom in product if atom not in image]
        active: set[int] = set()
        while stack:
            atom = stack[-1]
            if atom in image:
                stack.pop()
                continue
            missing = [] if atom in active else [c for c in self._children(atom) if c not in image and c not in active]
            if missing:
                active.add(atom)
                stack.extend(missing)
                continue
            stack.pop()
            active.discard(atom)
            replaced = self.mapping.get(atom)
            image[atom] = self._combine(replaced) if replaced is not None else self._rebuild(atom)

    def _combine(self, value: Sum) -> Sum:
        image, graph = self.image, self.graph
        if all(image.get(a) == (((a,), 1),) for product, _ in value for a in product):
            return value
        total: Sum = ZERO
        for product, coefficient in value:
            part = constant(coefficient)
            for atom in product:
                part = graph.multiply(part, image.get(atom, (((atom,), 1),)))
            total = add(total, part)
        return total

    def _rebuild(self, atom: int) -> Sum:
        graph = self.graph
        node: tuple[Any, ...] = graph.nodes[atom]
        same: Sum = (((atom,), 1),)
        kind = node[0]
        if kind in LEAVES:
            return same
        old = list(arguments(node))
        new = [self._combine(value) for value in old]
        if new == old:
            return same
        return self.construct(node, new)

    def construct(self, node: tuple[Any, ...], new: list[Sum]) -> Sum:
        """The node's operation applied to other arguments (in the order of :func:`arguments`)."""
        graph = self.graph
        kind = node[0]
        if kind == "wrap":
            return graph.wrap(new[0], node[2], node[3])
        if kind == "shift_right":
            return graph.shift_right(new[0], node[2])
        if kind == "low_bits":
            return graph.low_bits(new[0], node[2])
        if kind == "divide":
            return graph.divide(new[0], new[1])
        if kind == "remainder":
            return graph.remainder(new[0], new[1])
        if kind == "minimum":
            return graph.minimum(new[0], new[1])
        if kind == "multiply":
            return graph.multiply(new[0], new[1])
        if kind in ("and", "or", "xor"):
            if all(graph.bounds(value)[0] >= 0 and graph.bounds(value)[1] <= 1 for value in new):
                return graph.bitwise(kind, new[0], new[1], 1)
            return graph.wrap(graph.bitwise(kind, new[0], new[1], 64), 64, False)
        if kind in ("lt", "eq"):
            return compare(graph, kind, new[0], new[1])
        if kind == "alternatives":
            rest = iter(new)
            options = tuple((next(rest), tuple((next(rest), truth) for _, truth in guards)) for _, guards in node[1])
            return alternatives(graph, options)
        if kind == "provided":
            checks = tuple(Check(v, c.low, c.high) for v, c in zip(new[1:], node[2], strict=True))
            return provided(graph, new[0], checks)
        if kind == "load":
            low, high = graph.low[graph.index[node]], graph.high[graph.index[node]]
            return graph.load(node[1], new[0], node[3], node[4], low, high)
        low, high = _bounds(graph, kind, new)
        return graph.derived((kind, *new), low, high, *new)


def _bounds(graph: Graph, kind: str, new: list[Sum]) -> tuple[int, int]:
    bounds = [graph.bounds(value) for value in new]
    if kind == "power":
        low, high = bounds[0]
        return 1 << max(min(low, 64), 0), 1 << max(min(high, 64), 0)
    if kind == "shift":
        return min(bounds[0][0], 0), max(bounds[0][1], 0)
    raise ValueError(f"no such operation: {kind}")


class PhiRewriter(Rewriter):
    """Replaces phis by their definitions, which come in one after another: what still depends on an undefined phi is
    rewritten anew every time."""

    def __init__(self, graph: Graph, definitions: dict[int, Sum], phis: set[int]) -> None:
        super().__init__(graph, definitions)
        self.undefined = set(phis)

    def define(self, atom: int, value: Sum) -> None:
        assert isinstance(self.mapping, dict)
        self.mapping[atom] = value
        self.undefined.discard(atom)

    def __call__(self, value: Sum) -> Sum:
        known = len(self.image)
        result = super().__call__(value)
        if self.undefined and len(self.image) > known:
            self._forget(known)
        return result

    def _forget(self, known: int) -> None:
        """Drop the new images that depend on an undefined phi; they stand deepest first."""
        stale: set[int] = set()
        for atom in list(self.image)[known:]:
            if atom in self.undefined or not stale.isdisjoint(self._children(atom)):
                stale.add(atom)
        for atom in stale:
            del self.image[atom]


class Flattener(Rewriter):
    """Replaces ``wrap`` and ``provided`` by what they hold, collecting the checks that make that right.

    A wrap stays where nothing is gained: around a single unknown (it then is a leaf bounded by its type) and around
    sums that are known at launch (they are wrapped exactly then).
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.checks: dict[int, frozenset[Check]] = {}

    def flatten(self, value: Sum) -> tuple[Sum, frozenset[Check]]:
        """The sum without wraps, and what must be checked for it to be the same number."""
        flat = self(value)
        return flat, self._checks_in(value)

    def _checks_in(self, value: Sum) -> frozenset[Check]:
        found: frozenset[Check] = frozenset()
        for product, _ in value:
            for atom in product:
                found |= self.checks.get(atom, frozenset())
        return found

    def _rebuild(self, atom: int) -> Sum:
        graph = self.graph
        node: tuple[Any, ...] = graph.nodes[atom]
        if node[0] == "alternatives":
            return self._options(atom, node)
        found: frozenset[Check] = frozenset()
        for value in arguments(node):
            found |= self._checks_in(value)
        result = super()._rebuild(atom)
        if node[0] == "wrap":
            result, check = self._unwrap(result)
            if check is not None:
                found |= {check}
        elif node[0] == "provided":
            result = self._combine(node[1])
            found |= {Check(self._combine(c.value), c.low, c.high) for c in node[2]}
        if found:
            self.checks[atom] = found
        return result

    def _options(self, atom: int, node: tuple[Any, ...]) -> Sum:
        """Alternatives with flat values. Conditions that would need checks are left out as long as the others still
        tell the options apart. What an option needs is checked only where it is the one: elsewhere the check sees a
        number that passes."""
        flat = tuple(
            (self._combine(value), tuple((self._combine(c), truth, self._checks_in(c)) for c, truth in guards))
            for value, guards in node[1]
        )
        whole = tuple((value, tuple((c, truth) for c, truth, _ in guards)) for value, guards in flat)
        options = tuple(
            (value, tuple((c, truth) for c, truth, checks in guards if not checks)) for value, guards in flat
        )
        found: frozenset[Check] = frozenset()
        if exclusive(whole) and not exclusive(options):
            options = whole
            found = found.union(*(checks for _, guards in flat for _, _, checks in guards))
        for chosen, (value, _) in enumerate(node[1]):
            for check in self._checks_in(value):
                passing = constant(min(max(0, check.low), check.high))
                tested = tuple(
                    (check.value if chosen == position else passing, guards)
                    for position, (_, guards) in enumerate(options)
                )
                found |= {Check(alternatives(self.graph, tested), check.low, check.high)}
        if found:
            self.checks[atom] = found
        return alternatives(self.graph, options)

    def _unwrap(self, value: Sum) -> tuple[Sum, Check | None]:
        graph = self.graph
        if len(value) != 1 or value[0][1] != 1 or len(value[0][0]) != 1:
            return value, None
        atom = value[0][0][0]
        node: tuple[Any, ...] = graph.nodes[atom]
        if node[0] != "wrap" or graph.uniform[atom]:
            return value, None
        inner: Sum = node[1]
        single = graph.single(inner)
        if single is not None and single[0] in ("unknown", "load"):
            return value, None
        low, high = graph.low[atom], graph.high[atom]
        return inner, Check(inner, low, high)
