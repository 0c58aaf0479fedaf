"""From the walk to the accesses of a program: bases, offsets, guards; what cannot be said makes the kernel opaque."""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxparse.conditions import Condition, Constraints, constraints, limits_of
from ptxparse.inline import OF_MODULE
from ptxparse.loops import Loops
from ptxparse.model import TYPE_BYTES, Register
from ptxparse.opcodes import Effect, accessed_bytes, fragment, lookup
from ptxparse.program import Access, Base, Limit
from ptxparse.recombine import recombine
from ptxparse.rewrite import Flattener
from ptxparse.transfer import compare, exclusive
from ptxparse.values import (
    ZERO,
    Check,
    Sum,
    add,
    constant,
    constant_of,
    constant_term,
    without_constant,
)
from ptxparse.walk import RawAccess, Walk
from tessera.reasons import Reason

MOST_VARIANTS = 8
_KINDS = {
    Effect.LOAD: "R", Effect.STORE: "W", Effect.ATOMIC: "A", Effect.COPY: "R", Effect.MATRIX_LOAD: "R",
    Effect.MATRIX_STORE: "W", Effect.DISCARD: "W",
}
_PRIVATE = ("shared", "local", "param", "reg")


class Problem(NamedTuple):
    """Why an access has no base."""

    reason: Reason
    line: int


class _Key(NamedTuple):
    kind: str
    bases: tuple[Base, ...]
    offset: Sum
    guards: tuple[Limit, ...]
    uniform: tuple[Condition, ...]
    checks: tuple[Check, ...]
    certain: bool
    loops: tuple[int, ...]


_Placed = tuple[_Key, int] | Problem | None


class AccessBuilder:
    """Collects the accesses of one kernel. ``accesses`` and ``problems`` hold the result."""

    def __init__(self, walk: Walk, loops: Loops) -> None:
        self.walk = walk
        self.loops = loops
        self.graph = walk.graph
        self.flow = walk.flow
        self.flattener = Flattener(self.graph)
        self.problems: list[Problem] = []
        self.private: set[int] = set()
        self.mixed: set[int] = set()
        self.selects: dict[int, bool] = {}
        self.placed: dict[tuple[str, Sum, int, Condition | None], list[_Placed]] = {}
        self.copies: dict[int, tuple[list[Condition], bool]] = {}
        self.groups: dict[_Key, tuple[dict[tuple[int, int], None], dict[int, None], list[int]]] = {}
        self.at_block: dict[int, list[Condition]] = {}
        self.certain_at: dict[int, bool] = {}
        self.conjunctions: dict[tuple[Condition, ...], Constraints] = {}
        for raw in walk.accesses:
            self._access(raw)

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(
            Access(key.kind, key.bases, key.offset, _merged(spans), key.guards, key.uniform, key.checks, key.certain,
                   key.loops, tuple(lines), sum(count))
            for key, (spans, lines, count) in self.groups.items()
        )

    def _access(self, raw: RawAccess) -> None:
        row = lookup(raw.instruction.op)
        kind = _KINDS.get(row.effect) if row is not None else None
        if kind is None or raw.space == "param":
            return
        plain = raw.instruction.op.opcode in ("ld", "st", "atom", "red")
        placed: list[_Placed] | None = None
        # Unrolled code makes the same access many times over at other constants; all else about them is the same.
        again = (kind, without_constant(raw.address), raw.block, raw.guard)
        if plain:
            placed = self.placed.get(again)
        if placed is None:
            placed = self._place(raw, kind)
            if plain:
                self.placed[again] = placed
        size = self._size(raw)
        line = raw.instruction.line
        if None in placed:
            (self.private if all(place is None for place in placed) else self.mixed).add(raw.index)
        for place in placed:
            if isinstance(place, Problem):
                self.problems.append(Problem(place.reason, line))
            elif place is not None:
                key, first = place
                spans, lines, count = self.groups.setdefault(key, ({}, {}, []))
                first += constant_term(raw.address)
                spans[first, first + size] = None
                lines[line] = None
                count.append(1)

    def _place(self, raw: RawAccess, kind: str) -> list[_Placed]:
        """Where an access goes, but for the constant of its address: for each pointer that it may go through, its key
        and constant, None when that is private memory, or a problem."""
        row = lookup(raw.instruction.op)
        address = self.loops.resolve(without_constant(raw.address), raw.block)
        conditions = list(self.block_conditions(raw.block))
        certain = self.is_certain(raw.block)
        if raw.guard is not None:
            conditions.append((self.loops.resolve(raw.guard[0], raw.block), raw.guard[1]))
        if row is not None and row.effect is Effect.COPY:
            found = self._source_bytes(raw)
            certain = certain and found is None
            conditions += found or []
            self.copies[raw.index] = (found or [], found is None)
        matrix = fragment(raw.instruction.op)
        if matrix is not None:
            each = self.graph.leaf(("each", len(self.graph.nodes), matrix.lines), 0, matrix.lines - 1)
            stride = self._stride(raw, matrix.length)
            address = add(address, self.graph.multiply(each, stride), matrix.bits // 8)
        placed: list[_Placed] = []
        for variant, more, known in self._variants(address):
            placed += self._variant(raw, kind, variant, conditions + more, certain and known)
        return placed

    def block_conditions(self, block: int) -> list[Condition]:
        """Conditions that hold whenever the block runs, with loop variables resolved as seen from it."""
        found = self.at_block.get(block)
        if found is None:
            raw, complete = self.walk.conditions_at(block)
            if not complete:
                self.certain_at[block] = False
            found = self.at_block[block] = [(self.loops.resolve(value, block), truth) for value, truth in raw]
        return found

    def is_certain(self, block: int) -> bool:
        """Whether the conditions that dominate the block are all that decides whether it runs."""
        known = self.certain_at.get(block)
        if known is None:
            above = self.flow.dominator[block]
            if above == -1:
                known = True
            else:
                entered = any(e.target == block for e in self.flow.blocks[above].successors)
                self.block_conditions(block)
                direct = entered and bool(self.walk.conditions[block])
                known = (direct or self.flow.post_dominates(block, above)) and self._certain_above(above)
                known = known and self.certain_at.get(block, True) and block not in self.flow.tangled
            self.certain_at[block] = known
        return known

    def _certain_above(self, block: int) -> bool:
        chain = []
        while block != -1 and block not in self.certain_at:
            chain.append(block)
            block = self.flow.dominator[block]
        for above in reversed(chain):
            self.is_certain(above)
        return self.certain_at[chain[0]] if chain else self.certain_at.get(block, True)

    def _size(self, raw: RawAccess) -> int:
        instruction = raw.instruction
        matrix = fragment(instruction.op)
        if matrix is not None:
            return matrix.line_bytes
        size = accessed_bytes(instruction.op)
        if not size and instruction.op.opcode in ("cp", "discard"):
            position = 2 if instruction.op.opcode == "cp" else 1
            known = constant_of(self._operand(raw, position))
            size = known if known is not None and 0 < known <= 128 else 16 if instruction.op.opcode == "cp" else 128
        return size or TYPE_BYTES["b64"]

    def _operand(self, raw: RawAccess, position: int) -> Sum:
        operands = raw.instruction.operands
        if position >= len(operands):
            return ZERO
        operand = operands[position]
        if isinstance(operand, Register):
            return self.loops.resolve(raw.environment.get(operand.name, ()), raw.block)
        return self.walk._read(operand)

    def _source_bytes(self, raw: RawAccess) -> list[Condition] | None:
        """``cp.async`` with a source size reads that many bytes, none for 0: the condition for reading any. None when
        the instruction has no such operand."""
        operands = raw.instruction.operands
        if any("cache_hint" in modifier for modifier in raw.instruction.op.modifiers):
            # The last operand is the cache policy.
            operands = operands[:-1]
        if len(operands) < 4 or not isinstance(operands[3], Register) or operands[3].name not in raw.environment:
            return None if len(operands) < 4 else []
        size = self._operand(raw, 3)
        if self.walk.body.register_type(operands[3].name) == "pred":
            return [(size, False)]
        node = self.graph.single(size)
        if node is not None and node[0] == "alternatives":
            nonzero = [guards for value, guards in node[1] if constant_of(value) != 0]
            if len(nonzero) == 1:
                return list(nonzero[0])
        return [(compare(self.graph, "lt", ZERO, self.graph.wrap(size, 32, False)), True)]

    def _stride(self, raw: RawAccess, length: int) -> Sum:
        """Elements between the lines of a matrix: the last operand of ``wmma.load`` and ``wmma.store``, if there."""
        operands = raw.instruction.operands
        position = 2 if len(operands) > 2 else -1
        return self._operand(raw, position) if position > 0 else constant(length)

    def _variants(self, address: Sum) -> list[tuple[Sum, list[Condition], bool]]:
        """An address that is one of several pointers, taken apart; numbers that are one of several stay together. Each
        comes with its conditions, and whether those decide that it is the one."""
        done: list[tuple[Sum, list[Condition], bool]] = []
        work: list[tuple[Sum, list[Condition], bool]] = [(address, [], True)]
        while work:
            value, conditions, known = work.pop()
            chosen = next((p for p, c in value if len(p) == 1 and c == 1 and self._selects_pointer(p[0])), None)
            if chosen is None or len(done) + len(work) > MOST_VARIANTS:
                done.append((value, conditions, known))
                continue
            rest = add(value, ((chosen, 1),), -1)
            node: tuple[Any, ...] = self.graph.nodes[chosen[0]]
            known = known and exclusive(node[1])
            for option, guards in reversed(node[1]):
                work.append((add(rest, option), conditions + list(guards), known))
        return done

    def _selects_pointer(self, atom: int) -> bool:
        """Whether an atom is one of several values, some of them pointers."""
        found = self.selects.get(atom)
        if found is None:
            node: tuple[Any, ...] = self.graph.nodes[atom]
            found = node[0] == "alternatives" and any(
                self._may_be_pointer(a) or self._selects_pointer(a)
                for value, _ in node[1] for p, c in value if len(p) == 1 and c == 1 for a in p
            )
            self.selects[atom] = found
        return found

    def _may_be_pointer(self, atom: int) -> bool:
        node: tuple[Any, ...] = self.graph.nodes[atom]
        return bool(node[0] == "symbol" or (node[0] == "param" and node[2] == 8))

    def _variant(
        self, raw: RawAccess, kind: str, address: Sum, conditions: list[Condition], certain: bool
    ) -> list[_Placed]:
        flat, checks = self.flattener.flatten(address)
        flat = recombine(self.graph, flat)
        bases, offset = self._split_base(flat)
        line = raw.instruction.line
        if any(self._space(base) in _PRIVATE for base in bases):
            return [None]
        if not bases and self._is_workspace(flat):
            return []
        if not bases:
            return [Problem(self._no_base(flat), line)]
        if sum(1 for base in bases if base.name) > 1:
            return [Problem(Reason.TWO_BASES, line)]
        bases = tuple(base._replace(name=base.name.removesuffix(OF_MODULE)) for base in bases)
        found = self.conjunction(tuple(conditions))
        if found.false:
            return []
        known = [(value, truth) for value, needed, truth in self._flat(found.rest) if not needed]
        uniform = tuple(condition for condition in known if self.graph.is_uniform(condition[0]))
        key = _Key(
            kind, bases, without_constant(offset), limits_of(found), uniform, tuple(sorted(checks)),
            certain and found.equivalent and len(uniform) == len(found.rest) and raw.instruction.op.opcode != "discard",
            tuple(self.flow.loops_around(raw.block)),
        )
        return [(key, constant_term(offset))]

    def _flat(self, conditions: tuple[Condition, ...]) -> list[tuple[Sum, frozenset[Check], bool]]:
        return [(*self.flattener.flatten(value), truth) for value, truth in conditions]

    def conjunction(self, conditions: tuple[Condition, ...]) -> Constraints:
        """What conditions that hold together say, as constraints."""
        found = self.conjunctions.get(conditions)
        if found is None:
            found = self.conjunctions[conditions] = constraints(self.graph, self.flattener, list(conditions))
        return found

    def _split_base(self, value: Sum) -> tuple[tuple[Base, ...], Sum]:
        bases = []
        offset = value
        for product, coefficient in value:
            if coefficient != 1 or len(product) != 1:
                continue
            node: tuple[Any, ...] = self.graph.nodes[product[0]]
            if node[0] == "param" and node[2] == 8:
                bases.append(Base(node[1]))
            elif node[0] == "symbol":
                bases.append(Base(-1, node[1]))
        if any(base.name for base in bases):
            # A module variable is the base; 64-bit words beside it can only be numbers.
            bases = [base for base in bases if base.name]
            for base in bases[:1]:
                offset = add(offset, self.graph.leaf(("symbol", base.name), 0, (1 << 63) - 1), -1)
        return tuple(bases), offset

    def _space(self, base: Base) -> str:
        if not base.name:
            return "global"
        variable = self.walk.body.variables.get(base.name)
        return variable.space if variable is not None else "global"

    def _is_workspace(self, value: Sum) -> bool:
        """An address the driver keeps in its environment registers: the workspace of grid-wide synchronisation, which
        is no memory of the program's."""
        varying = [self.graph.nodes[atom] for product, _ in value for atom in product]
        return bool(varying) and all(node[0] == "unknown" and node[-1] == "environment" for node in varying)

    def _no_base(self, value: Sum) -> Reason:
        for product, _ in value:
            for atom in product:
                node: tuple[Any, ...] = self.graph.nodes[atom]
                if node[0] == "load" or (node[0] == "unknown" and node[-1] == "memory"):
                    return Reason.POINTER_FROM_MEMORY
        return Reason.NO_BASE


def _merged(spans: dict[tuple[int, int], None]) -> tuple[tuple[int, int], ...]:
    """Byte spans sorted and joined where they touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)
