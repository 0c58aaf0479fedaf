"""Loop headers resolved: induction variables as ``start + step * k``, how often a loop can run, values after it.

``k`` counts the iterations of a loop from 0. A loop's *limits* are constraints that hold at iteration k when k >= 1,
because the loop stayed at k - 1; its *last* is the k at which it is left, where that can be said exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ptxparse.conditions import Constraint, constraints
from ptxparse.rewrite import Flattener, PhiRewriter, Rewriter, arguments, provided
from ptxparse.transfer import Alternative, alternatives
from ptxparse.values import INFINITY, ONE, ZERO, Check, Sum, add, constant, constant_of, scale
from ptxparse.walk import MOST_ADDENDS, MOST_ALTERNATIVES, Condition, Phi, Walk

_MOST_ROUNDS = 4


@dataclass(slots=True)
class LoopFacts:
    """``counter`` is the atom k. ``exact`` says that the loop is left at one place only, by ``limits``."""

    counter: int
    limits: list[Constraint] = field(default_factory=list)
    last: Sum | None = None
    exact: bool = False


class Loops:
    """Resolves all phis of a walk, inner loops first. ``resolve`` rewrites a sum in their terms."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.graph = walk.graph
        self.flow = walk.flow
        self.definitions: dict[int, Sum] = {}
        self.facts = [
            LoopFacts(self.graph.atom(("loop", number), 0, INFINITY, False)) for number in range(len(self.flow.loops))
        ]
        self.leaf_sets: dict[int, frozenset[int]] = {}
        self.by_block: dict[int, list[Phi]] = {}
        for phi in walk.phis:
            self.by_block.setdefault(phi.block, []).append(phi)
        self._rewriter = PhiRewriter(self.graph, self.definitions, {phi.atom for phi in walk.phis})
        self._substitutions: dict[tuple[tuple[int, Sum], ...], Rewriter] = {}
        for number in reversed(range(len(self.flow.loops))):
            self._resolve_loop(number)
        for phi in walk.phis:
            if phi.atom not in self.definitions:
                self._define(phi, self._unknown(phi, self.flow.loop_of[phi.block]))

    def resolve(self, value: Sum, block: int) -> Sum:
        """The sum with phis replaced; counters of loops that ``block`` lies outside of get their last value."""
        for _ in range(_MOST_ROUNDS):
            # The last value of a counter may have been written before some phi in it was defined.
            seen = value
            value = self._after(self._rewrite(value), block)
            if value == seen:
                break
        return value

    def _rewrite(self, value: Sum) -> Sum:
        return self._rewriter(value)

    def _define(self, phi: Phi, value: Sum) -> None:
        if len(value) > MOST_ADDENDS:
            value = self._unknown(phi, self.flow.loop_of[phi.block])
        self._rewriter.define(phi.atom, value)

    def leaves(self, value: Sum) -> frozenset[int]:
        """All leaf atoms that a sum depends on, those inside its other atoms included."""
        found: frozenset[int] = frozenset()
        for product, _ in value:
            for atom in product:
                found |= self._leaves_of(atom)
        return found

    def _leaves_of(self, atom: int) -> frozenset[int]:
        stack = [atom]
        known = self.leaf_sets
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            children = [a for value in arguments(self.graph.nodes[top]) for product, _ in value for a in product]
            missing = [c for c in children if c not in known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            own = {top} if not children or self.graph.nodes[top][0] == "load" else set()
            known[top] = frozenset(own).union(*(known[c] for c in children))
        return known[atom]

    def _after(self, value: Sum, block: int) -> Sum:
        """Counters of loops that do not hold ``block`` replaced by their last value, where it is known."""
        for _ in range(len(self.facts) + 1):
            mapping = {}
            for leaf in self.leaves(value):
                node = self.graph.nodes[leaf]
                if node[0] == "loop" and isinstance(node[1], int):
                    last = self.facts[node[1]].last
                    if block not in self.flow.loops[node[1]].blocks and last is not None:
                        mapping[leaf] = last
            if not mapping:
                return value
            value = self._substitute(mapping)(value)
        return value

    def _substitute(self, mapping: dict[int, Sum]) -> Rewriter:
        """A rewriter for the mapping; the same one for the same mapping, since it remembers what it rewrote."""
        key = tuple(sorted(mapping.items()))
        found = self._substitutions.get(key)
        if found is None:
            found = self._substitutions[key] = Rewriter(self.graph, mapping)
        return found

    def varies(self, value: Sum, loop: int) -> bool:
        """Whether a sum may change from one iteration of the loop to the next."""
        inside = self.flow.loops[loop].blocks
        for leaf in self.leaves(value):
            node: tuple[Any, ...] = self.graph.nodes[leaf]
            if node[0] == "loop" and self.flow.loops[node[1]].header in inside:
                return True
            if node[0] == "phi" and node[1] in inside:
                return True
            if node[0] in ("unknown", "load"):
                made_in = self.walk.loop_of_atom.get(node[1])
                # Made while rewriting, for lack of anything better: nobody knows where it belongs.
                if made_in is None:
                    return True
                if made_in != -1 and self.flow.loops[made_in].header in inside:
                    return True
        return False

    def _resolve_loop(self, number: int) -> None:
        loop = self.flow.loops[number]
        phis = self.by_block.get(loop.header, [])
        pending: list[tuple[Phi, Sum, list[Sum]]] = []
        for phi in phis:
            entries = [(edge, value) for edge, value in phi.entry if edge.source not in loop.blocks]
            backs = [value for edge, value in phi.entry if edge.source in loop.blocks]
            if not entries or not backs:
                continue
            start = self.walk.join(loop.header, entries)
            if start is not None:
                pending.append((phi, start, backs))
        for _ in range(_MOST_ROUNDS):
            before = len(pending)
            pending = [item for item in pending if not self._induction(number, *item)]
            if not pending or len(pending) == before:
                break
        pending = [item for item in pending if not self._lagging(number, *item)]
        pending = self._exchanged(number, pending)
        for phi, start, backs in pending:
            self._define(phi, self._bounded(number, phi, start, backs))
        for phi in phis:
            if phi.atom not in self.definitions:
                self._define(phi, self._unknown(phi, number))
        self._limits(number)

    def _induction(self, number: int, phi: Phi, start: Sum, backs: list[Sum]) -> bool:
        header = self.flow.loops[number].header
        itself: Sum = (((phi.atom,), 1),)
        steps = set()
        checks: set[Check] = set()
        for back in backs:
            value = self._after_inner(self._rewrite(back), number)
            value, wrapped = self._strip(value, phi.atom)
            checks |= wrapped
            step = add(value, itself, -1)
            if phi.atom in self.leaves(step) or self.varies(step, number):
                return False
            steps.add(step)
        if len(steps) != 1:
            return False
        step = steps.pop()
        start = self._after(self._rewrite(start), header)
        value = add(start, self.graph.multiply(step, (((self.facts[number].counter,), 1),)))
        at_k = self._substitute({phi.atom: value})
        needed = {Check(at_k(check.value), check.low, check.high) for check in checks}
        self._define(phi, provided(self.graph, value, tuple(sorted(needed))))
        return True

    def _after_inner(self, value: Sum, number: int) -> Sum:
        """A value at the end of an iteration: the loops inside have run to their end."""
        return self._after(value, self.flow.loops[number].header) if self.leaves(value) else value

    def _strip(self, value: Sum, atom: int) -> tuple[Sum, set[Check]]:
        """Replace wraps around the phi by what they wrap, whose range then has to be checked."""
        bounds = set()
        for _ in range(3):
            for product, coefficient in value:
                node: tuple[Any, ...] = self.graph.nodes[product[0]] if len(product) == 1 else ("",)
                if node[0] == "wrap" and any(p == (atom,) for p, _ in node[1]):
                    value = add(add(value, ((product, coefficient),), -1), node[1], coefficient)
                    bounds.add(Check(node[1], self.graph.low[product[0]], self.graph.high[product[0]]))
                    break
            else:
                break
        return value, bounds

    def _lagging(self, number: int, phi: Phi, start: Sum, backs: list[Sum]) -> bool:
        """A value taken over from the iteration before: ``start`` at first, then what it was at k - 1."""
        loop = self.flow.loops[number]
        values = {self._after_inner(self._rewrite(back), number) for back in backs}
        if len(values) != 1:
            return False
        value = values.pop()
        for leaf in self.leaves(value):
            node: tuple[Any, ...] = self.graph.nodes[leaf]
            if node[0] == "phi" and node[1] in loop.blocks:
                return False
            if node[0] == "loop" and node[1] != number and self.flow.loops[node[1]].header in loop.blocks:
                return False
            if node[0] in ("unknown", "load") and self.varies((((leaf,), 1),), number):
                return False
        counter: Sum = (((self.facts[number].counter,), 1),)
        before = self._substitute({self.facts[number].counter: add(counter, ONE, -1)})(value)
        start = self._after(self._rewrite(start), loop.header)
        first = self.graph.derived(("lt", counter, ONE), 0, 1, counter)
        options: tuple[Alternative, ...] = ((start, ((first, True),)), (before, ((first, False),)))
        self._define(phi, start if start == before else alternatives(self.graph, options))
        return True

    def _exchanged(
        self, number: int, pending: list[tuple[Phi, Sum, list[Sum]]]
    ) -> list[tuple[Phi, Sum, list[Sum]]]:
        """Values that are handed around among themselves (two buffers swapped every time): each is one of those that
        any of them started with. Returns what is left."""
        by_atom = {item[0].atom: item for item in pending}
        starts: dict[int, list[Sum]] = {}
        for atom in by_atom:
            reached, work = {atom}, [atom]
            values: dict[Sum, None] = {}
            closed = True
            while work and closed:
                _, start, backs = by_atom[work.pop()]
                values[self._after(self._rewrite(start), self.flow.loops[number].header)] = None
                for back in map(self._rewrite, backs):
                    other = back[0][0][0] if len(back) == 1 and back[0][1] == 1 and len(back[0][0]) == 1 else -1
                    if other in by_atom:
                        if other not in reached:
                            reached.add(other)
                            work.append(other)
                    elif self.varies(back, number):
                        closed = False
                    else:
                        values[back] = None
            if closed and len(values) <= MOST_ALTERNATIVES:
                starts[atom] = list(values)
        for atom, options in starts.items():
            self._define(by_atom[atom][0], alternatives(self.graph, tuple((value, ()) for value in options)))
        return [item for item in pending if item[0].atom not in starts]

    def _bounded(self, number: int, phi: Phi, start: Sum, backs: list[Sum]) -> Sum:
        """Values that only shrink towards zero (halving) stay between it and their start."""
        start = self._after(self._rewrite(start), self.flow.loops[number].header)
        for back in backs:
            value = self._rewrite(back)
            if len(value) != 1 or value[0][1] != 1 or len(value[0][0]) != 1:
                return self._unknown(phi, number)
            node: tuple[Any, ...] = self.graph.nodes[value[0][0][0]]
            inner: Any = node[1] if node[0] == "shift_right" else None
            if inner is not None and len(inner) == 1 and len(inner[0][0]) == 1:
                wrapped: tuple[Any, ...] = self.graph.nodes[inner[0][0][0]]
                if wrapped[0] == "wrap":
                    inner = wrapped[1]
                    if self.graph.bounds(start)[1] > self.graph.high[self.graph.index[wrapped]]:
                        return self._unknown(phi, number)
            if inner != (((phi.atom,), 1),):
                return self._unknown(phi, number)
        low, high = self.graph.bounds(start)
        if low < 0:
            return self._unknown(phi, number)
        fresh = self.graph.leaf(("unknown", phi.atom, 0, high, "halving"), 0, high)
        self.walk.loop_of_atom[phi.atom] = number
        return self.graph.derived(("minimum", *sorted((fresh, start))), 0, high, fresh, start)

    def _unknown(self, phi: Phi, number: int) -> Sum:
        high = (1 << phi.width) - 1
        self.walk.loop_of_atom[phi.atom] = number
        loaded = any(
            node[0] == "load" or node[-1] == "memory"
            for _, value in phi.entry for node in (self.graph.nodes[leaf] for leaf in self.leaves(value))
        )
        return self.graph.leaf(("unknown", phi.atom, 0, high, "memory" if loaded else "loop"), 0, high)

    def _limits(self, number: int) -> None:
        loop = self.flow.loops[number]
        facts = self.facts[number]
        flattener = Flattener(self.graph)
        single = len(loop.exits) == 1
        for edge in loop.exits:
            if edge.guard is None or not all(self.flow.dominates(edge.source, latch) for latch in loop.latches):
                continue
            if edge.source not in self.walk.guards:
                continue
            guard = self._after_inner(self._rewrite(self.walk.guards[edge.source]), number)
            condition: Condition = (guard, not edge.taken)
            stay = constraints(self.graph, flattener, [condition])
            found = [limit for c in stay.items if (limit := self._limit(number, c)) is not None]
            # A limit speaks of iteration k - 1; of what else changes in the loop, only the latest value has a name.
            steady = [limit for limit in found if self._steady(number, limit)]
            facts.limits += [self._earlier(number, limit) for limit in steady]
            if single:
                facts.exact = stay.whole and len(steady) == len(found) == len(stay.items)
                if facts.exact and len(found) == 1:
                    facts.last = self._last(number, found[0])

    def _limit(self, number: int, constraint: Constraint) -> Constraint | None:
        """A constraint on staying, as ``value <= 0`` that grows with k. ``!=`` becomes ``<`` when the step divides."""
        if constraint.relation == "le":
            return constraint
        counter = self.facts[number].counter
        step = sum(c for p, c in constraint.value if p == (counter,))
        if not step or any(counter in p and p != (counter,) for p, _ in constraint.value):
            return None
        value = constraint.value if step > 0 else scale(constraint.value, -1)
        step = abs(step)
        # value = v0 + step k is never 0 before the end: it starts at or below -step, a multiple of step below zero.
        start = add(value, (((counter,), step),), -1)
        checks = {Check(start, -INFINITY, 0)}
        if step > 1:
            size = step.bit_length() - 1
            power = step == 1 << size
            rest = self.graph.low_bits(start, size) if power else self.graph.remainder(start, constant(step))
            if constant_of(rest) != 0:
                checks.add(Check(rest, 0, 0))
        return Constraint(add(value, ONE), "le", constraint.checks | checks)

    def _steady(self, number: int, limit: Constraint) -> bool:
        """Whether the loop's own counter is all that changes in it from iteration to iteration."""
        fixed = self._substitute({self.facts[number].counter: ZERO})
        return not any(self.varies(fixed(v), number) for v in (limit.value, *(c.value for c in limit.checks)))

    def _earlier(self, number: int, constraint: Constraint) -> Constraint:
        counter: Sum = (((self.facts[number].counter,), 1),)
        shift = self._substitute({self.facts[number].counter: add(counter, ONE, -1)})
        checks = frozenset(Check(shift(c.value), c.low, c.high) for c in constraint.checks)
        return Constraint(shift(constraint.value), constraint.relation, checks)

    def _is_linear(self, value: Sum, counter: int) -> bool:
        """Whether a counter occurs in a sum only as a factor of its own, once in a product."""
        for product, _ in value:
            if product.count(counter) > 1:
                return False
            others = tuple(atom for atom in product if atom != counter)
            if counter in self.leaves(((others, 1),)):
                return False
        return True

    def _last(self, number: int, stay: Constraint) -> Sum | None:
        """First k >= 0 at which ``a k + r <= 0`` fails: max(0, floor(-r / a) + 1), for a constant a > 0."""
        counter = self.facts[number].counter
        slope = sum(c for p, c in stay.value if p == (counter,))
        if slope <= 0:
            return None
        rest = add(stay.value, (((counter,), slope),), -1)
        if counter in self.leaves(rest) or self.varies(rest, number):
            return None
        negative = scale(rest, -1)
        if slope == 1:
            quotient = negative
        elif slope & (slope - 1) == 0:
            quotient = self.graph.shift_right(negative, slope.bit_length() - 1)
        elif self.graph.bounds(negative)[0] >= 0:
            quotient = self.graph.divide(negative, constant(slope))
        else:
            return None
        last = self.graph.maximum(add(quotient, ONE), ZERO)
        if not all(self._is_linear(check.value, counter) for check in stay.checks):
            return None
        # What is checked of the tests is linear in k, so its first and last values bound it.
        checks = {
            Check(self._substitute({counter: end})(check.value), check.low, check.high)
            for check in stay.checks for end in (ZERO, last)
        }
        return provided(self.graph, last, tuple(sorted(checks)))
