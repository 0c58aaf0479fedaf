"""A program's sums compiled: one generated function computes everything that is known at launch.

What remains of a sum is a *form*: a constant and terms ``coefficient * product of atoms that vary between threads``.
Coefficients are functions of the launch alone; the generated function returns all of them in one list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ptxparse.program import AccessProgram, Limit
from ptxparse.rewrite import arguments
from ptxparse.values import Check, Sum

Launch = tuple[int, int, int, int, int, int]
Uniforms = Callable[[bytes, Launch, int], list[int]]


class Form(NamedTuple):
    """``values[constant] + sum of values[coefficient] * term``; ``terms`` are (coefficient, term) indices."""

    constant: int
    terms: tuple[tuple[int, int], ...]


class LimitForm(NamedTuple):
    """A limit with its sum and checks compiled."""

    form: Form
    relation: str
    checks: tuple[tuple[Form, int, int], ...]


class DivisionByZero(ArithmeticError):
    """A launch value divides by zero; PTX leaves the result open, so nothing that depends on it is known."""


def divide(a: int, b: int) -> int:
    """Quotient truncated toward zero."""
    if not b:
        raise DivisionByZero
    return a // b if (a >= 0) == (b > 0) else -(-a // b) if b > 0 else -(a // -b)


def remainder(a: int, b: int) -> int:
    """Remainder with the sign of the dividend."""
    if not b:
        raise DivisionByZero
    return a - b * divide(a, b)


def _as_check(check: Check) -> Check:
    return Check(*check)


class Compiled:
    """A program ready to be evaluated.

    ``terms`` are the products of varying atoms that occur; ``arguments`` the forms of each varying atom's operands;
    ``leaves`` the varying leaf atoms each one depends on; ``load_bases`` the values that may be a load's base.
    ``uniforms(params, (grid, block), shared)`` gives the launch values.
    """

    def __init__(self, program: AccessProgram) -> None:
        self.program = program
        self.nodes = program.nodes
        self.terms: list[tuple[int, ...]] = []
        self._term_index: dict[tuple[int, ...], int] = {}
        self._value_index: dict[Sum, int] = {}
        self._values: list[Sum] = []
        self._checks: dict[Check, tuple[Form, int, int]] = {}
        self.arguments: dict[int, tuple[Form, ...]] = {}
        self.leaves: dict[int, frozenset[int]] = {}
        self.load_bases: dict[int, list[int]] = {}
        for atom in range(len(self.nodes)):
            if not program.uniform[atom]:
                self._compile_atom(atom)
        self.offsets = [self.form(access.offset) for access in program.accesses]
        self.guards = [tuple(map(self.limit, access.guards)) for access in program.accesses]
        self.access_checks = [tuple(map(self.check, access.checks)) for access in program.accesses]
        self.conditions = [
            tuple((self.value(value), truth) for value, truth in access.uniform) for access in program.accesses
        ]
        self.loop_limits = [tuple(map(self.limit, loop.limits)) for loop in program.loops]
        self.loop_guards = [tuple(map(self.limit, loop.guards)) for loop in program.loops]
        self.work_guards = [tuple(map(self.limit, work.guards)) for work in program.work]
        self.term_leaves = [
            frozenset().union(*(self.leaves[atom] for atom in product)) for product in self.terms
        ]
        self.plain = [len(p) == 1 and self.leaves[p[0]] == {p[0]} and not self.arguments[p[0]] for p in self.terms]
        self.uniforms = self._generate()

    def _compile_atom(self, atom: int) -> None:
        sums = list(arguments(self.nodes[atom]))
        self.arguments[atom] = tuple(self.form(value) for value in sums)
        below: frozenset[int] = frozenset()
        for value in sums:
            for product, _ in value:
                for child in product:
                    below |= self.leaves.get(child, frozenset())
        if self.nodes[atom][0] == "load":
            self.load_bases[atom] = [
                self.value(((product, 1),)) for product, coefficient in sums[0]
                if coefficient == 1 and len(product) == 1 and self._is_word(product[0])
            ]
        # A load is a leaf as long as the bytes it reads are unknown, and depends on its address when they are known.
        own = {atom} if not sums or self.nodes[atom][0] == "load" else set()
        self.leaves[atom] = below | own

    def _is_word(self, atom: int) -> bool:
        node = self.nodes[atom]
        return bool(node[0] == "param" and node[2] == 8)

    def value(self, uniform: Sum) -> int:
        """Index of a launch value in the list that ``uniforms`` returns."""
        found = self._value_index.get(uniform)
        if found is None:
            found = self._value_index[uniform] = len(self._values)
            self._values.append(uniform)
        return found

    def term_of(self, atom: int) -> int:
        """The term that is one atom by itself; -1 when it occurs nowhere so."""
        return self._term_index.get((atom,), -1)

    def other_sums(self) -> list[Sum]:
        """All sums of the program but the offsets of its accesses."""
        program = self.program
        found = [value for node in self.nodes for value in arguments(node)]
        for access in program.accesses:
            found += [value for value, _ in access.uniform]
            found += [check.value for check in map(_as_check, access.checks)]
        limits = [limit for access in program.accesses for limit in access.guards]
        limits += [limit for loop in program.loops for limit in (*loop.limits, *loop.guards)]
        for limit in limits:
            found.append(limit.value)
            found += [check.value for check in map(_as_check, limit.checks)]
        return found

    def form(self, total: Sum) -> Form:
        uniform = self.program.uniform
        parts: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
        for product, coefficient in total:
            varying = tuple([a for a in product if not uniform[a]])
            parts.setdefault(varying, []).append((tuple([a for a in product if uniform[a]]), coefficient))
        constant = self.value(tuple(sorted(parts.pop((), []))))
        terms = tuple((self.value(tuple(sorted(part))), self.term(product)) for product, part in parts.items())
        return Form(constant, terms)

    def term(self, product: tuple[int, ...]) -> int:
        found = self._term_index.get(product)
        if found is None:
            found = self._term_index[product] = len(self.terms)
            self.terms.append(product)
        return found

    def check(self, check: Check) -> tuple[Form, int, int]:
        check = Check(*check)
        found = self._checks.get(check)
        if found is None:
            found = self._checks[check] = (self.form(check.value), check.low, check.high)
        return found

    def limit(self, limit: Limit) -> LimitForm:
        return LimitForm(self.form(limit.value), limit.relation, tuple(map(self.check, limit.checks)))

    def _generate(self) -> Uniforms:
        lines = ["def uniforms(params, launch, shared):"]
        used = self._uniform_atoms()
        for atom in used:
            lines.append(f"    v{atom} = {self._expression(self.nodes[atom])}")
        lines.append(f"    return [{', '.join(map(self._sum, self._values))}]")
        scope: dict[str, Any] = {"divide": divide, "remainder": remainder, "integer": int.from_bytes}
        exec(compile("\n".join(lines), f"<launch values of {self.program.kernel}>", "exec"), scope)
        made: Uniforms = scope["uniforms"]
        return made

    def _uniform_atoms(self) -> list[int]:
        needed = {atom for value in self._values for product, _ in value for atom in product}
        for atom in range(len(self.nodes) - 1, -1, -1):
            if atom in needed:
                needed.update(a for value in arguments(self.nodes[atom]) for product, _ in value for a in product)
        return sorted(needed)

    def _sum(self, value: Sum) -> str:
        parts = []
        for product, coefficient in value:
            factors = [f"v{atom}" for atom in product]
            if coefficient != 1 or not factors:
                factors.insert(0, str(coefficient) if coefficient >= 0 else f"({coefficient})")
            parts.append("*".join(factors))
        return " + ".join(parts) or "0"

    def _expression(self, node: tuple[Any, ...]) -> str:
        kind = node[0]
        if kind == "param":
            return f"integer(params[{node[1]}:{node[1] + node[2]}], 'little', signed={node[3]})"
        if kind == "nctaid":
            return f"launch[{'xyz'.index(node[1])}]"
        if kind == "ntid":
            return f"launch[{3 + 'xyz'.index(node[1])}]"
        if kind == "shared_size":
            return "shared"
        a, *rest = [f"({self._sum(value)})" for value in arguments(node)]
        if kind == "wrap":
            mask, half = (1 << node[2]) - 1, 1 << (node[2] - 1)
            return f"(({a} + {half}) & {mask}) - {half}" if node[3] else f"{a} & {mask}"
        if kind == "shift_right":
            return f"{a} >> {node[2]}"
        if kind == "low_bits":
            return f"{a} & {(1 << node[2]) - 1}"
        if kind in ("divide", "remainder"):
            return f"{kind}({a}, {rest[0]})"
        if kind == "minimum":
            return f"min({a}, {rest[0]})"
        if kind in ("multiply", "and", "or", "xor"):
            return f"{a} {({'multiply': '*', 'and': '&', 'or': '|', 'xor': '^'})[kind]} {rest[0]}"
        if kind in ("lt", "eq"):
            return f"int({a} {'<' if kind == 'lt' else '=='} {rest[0]})"
        if kind == "power":
            return f"1 << max(min({a}, 64), 0)"
        if kind == "shift":
            return f"{a} >> max(min({rest[0]}, 64), 0)"
        if kind == "alternatives":
            return self._alternatives(node)
        raise ValueError(f"no launch value can be computed for {kind}")

    def _alternatives(self, node: tuple[Any, ...]) -> str:
        text = ""
        for value, guards in node[1][:-1]:
            test = " and ".join(f"({self._sum(c)}) & 1 == {int(truth)}" for c, truth in guards) or "True"
            text += f"({self._sum(value)}) if {test} else "
        return text + f"({self._sum(node[1][-1][0])})"
