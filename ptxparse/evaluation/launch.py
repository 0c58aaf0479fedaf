"""Evaluating an access program for one launch: byte ranges per allocation.

Results are remembered twice: for equal arguments as a whole, and without the pointers, relative to what they point to,
for everything else that the result depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, prod
from typing import NamedTuple

from ptxparse.evaluation.allocations import Allocation, Allocations
from ptxparse.evaluation.compiled import Compiled, DivisionByZero, Launch
from ptxparse.evaluation.contents import Contents, Piece
from ptxparse.evaluation.counting import Amount, counts
from ptxparse.evaluation.hulls import Hull, hulls
from ptxparse.program import AccessProgram, Base
from tessera.errors import UsageError
from tessera.reasons import Reason

Dimensions = tuple[int, int, int]
Known = tuple[object, int, bytes]
_MOST_REMEMBERED = 4096
_TOP = 1 << 64


class Range(NamedTuple):
    """Bytes [lo, hi) of an allocation. ``kind`` is R, MAYW, MUSTW (every byte is written) or A (atomic). ``exact``
    says that the first and the last byte are touched for sure."""

    kind: str
    allocation: object
    lo: int
    hi: int
    exact: bool


class Evaluation(NamedTuple):
    """What one launch may touch. ``opaque`` says why nothing is known (``ranges`` is then empty); ``pinned`` why it
    must run at home; ``pointers`` are the parameter words that are addresses and may be rebased for a replica.
    ``bases`` are what each of the ranges is reached by: parameter words, or names of module variables."""

    ranges: tuple[Range, ...]
    opaque: Reason | None = None
    pinned: tuple[Reason, ...] = ()
    pointers: tuple[int, ...] = ()
    bases: tuple[tuple[Base, ...], ...] = ()


class Evaluator:
    """One program, compiled; remembers what it evaluated."""

    def __init__(self, program: AccessProgram) -> None:
        self.program = program
        self.compiled = Compiled(program)
        self.words = sorted({b.word for access in program.accesses for b in access.bases if b.word >= 0}
                            | {word for word, _ in program.escapes})
        self.movable = self._movable()
        self._slices: dict[frozenset[int], tuple[slice, ...]] = {}
        self.escaping = frozenset(word for word, _ in program.escapes)
        self._whole: dict[object, Evaluation] = {}
        self._relative: dict[object, tuple[Hull, ...]] = {}

    def _movable(self) -> frozenset[int]:
        """Words that occur in sums only as the base of an access: the result moves with them."""
        program = self.program
        atoms = {node[1]: i for i, node in enumerate(program.nodes) if node[0] == "param" and node[2] == 8}
        used: set[int] = set()
        for sums in self.compiled.other_sums():
            used.update(atom for product, _ in sums for atom in product)
        for access in program.accesses:
            for product, coefficient in access.offset:
                if coefficient != 1 or len(product) != 1:
                    used.update(product)
        parts = [(node[1], node[1] + node[2]) for node in program.nodes if node[0] == "param" and node[2] < 8]
        return frozenset(
            word for word in self.words
            if atoms.get(word) not in used and not any(a < word + 8 and word < b for a, b in parts)
        )

    def relevant_bytes(self) -> tuple[tuple[int, int], ...]:
        """Parts [first, last) of the parameter block, in order: launches of the same grid, block and shared memory
        whose parameters are equal there touch the same bytes."""
        words = {(word, word + 8) for word in self.words}
        return tuple(sorted(words | {(n[1], n[1] + n[2]) for n in self.program.nodes if n[0] == "param"}))

    def _relevant(self, moved: frozenset[int]) -> tuple[slice, ...]:
        """Parts of the parameter block that the result depends on beyond the pointers ``moved``."""
        found = self._slices.get(moved)
        if found is None:
            parts = {
                (node[1], node[1] + node[2])
                for node in self.program.nodes if node[0] == "param" and node[1] not in moved
            }
            found = self._slices[moved] = tuple(slice(a, b) for a, b in sorted(parts))
        return found

    def evaluate(
        self, grid: Dimensions, block: Dimensions, params: bytes, allocations: Allocations,
        module_globals: Mapping[str, tuple[int, int]] | None = None, contents: Sequence[Known] | None = None,
        shared: int = 0,
    ) -> Evaluation:
        """Ranges of a launch; see :func:`ptxparse.api.evaluate`."""
        key = (grid, block, params, allocations.token, shared,
               tuple(module_globals.items()) if module_globals else (), tuple(contents) if contents else ())
        found = self._whole.get(key)
        if found is None:
            if min(*grid, *block) < 1:
                raise UsageError(f"{grid} blocks of {block} threads cannot be launched: all must be 1 or more")
            if len(params) < self.program.parameter_bytes:
                raise UsageError(f"{self.program.kernel} takes {self.program.parameter_bytes} bytes of parameters, "
                                 f"got {len(params)}")
            if len(self._whole) >= _MOST_REMEMBERED:
                self._whole.clear()
            found = self._whole[key] = self._evaluate(grid, block, params, allocations, module_globals or {},
                                                      contents or (), shared)
        return found

    def count(self, grid: Dimensions, block: Dimensions, params: bytes, shared: int = 0) -> dict[str, Amount]:
        """Amounts of a launch by class; see :func:`ptxparse.api.count`."""
        try:
            values = self.compiled.uniforms(params, (*grid, *block), shared)
        except DivisionByZero:
            threads = prod((*grid, *block))
            return {name: Amount(each * threads, 0, inf, True) for name, each in self.program.counts.items()}
        return counts(self.compiled, values, (*grid, *block))

    def _evaluate(
        self, grid: Dimensions, block: Dimensions, params: bytes, allocations: Allocations,
        module_globals: Mapping[str, tuple[int, int]], known: Sequence[Known], shared: int,
    ) -> Evaluation:
        program = self.program
        pointers: dict[int, tuple[int, Allocation]] = {}
        for word in self.words:
            value = int.from_bytes(params[word:word + 8], "little")
            allocation = allocations.find(value) or allocations.ending_at(value)
            if allocation is not None:
                pointers[word] = (value, allocation)
        pinned = dict.fromkeys(reason for reason, _ in program.pinned)
        if any(word in self.escaping for word in pointers):
            pinned[Reason.POINTER_ESCAPES] = None
        if program.opaque is not None:
            return Evaluation((), program.opaque, tuple(pinned))
        try:
            if known:
                known = self._unwritten(grid, block, params, allocations, module_globals, known, shared)
            found = self._hulls(grid, block, params, frozenset(pointers), allocations, known, shared)
        except _Opaque as opaque:
            return Evaluation((), opaque.reason, tuple(pinned))
        ranges: list[Range] = []
        reached: dict[Range, dict[Base, None]] = {}
        for hull in self._without_strays(found, pointers, allocations):
            already = len(ranges)
            if hull.base.name:
                self._global_range(hull, module_globals, allocations, ranges)
            elif hull.base.word in pointers:
                value, allocation = pointers[hull.base.word]
                origin = value if hull.base.word in self.movable else 0
                ranges.append(_range(hull, allocation.id, allocation.size, origin - allocation.address))
                before = allocations.ending_at(value) if value == allocation.address else None
                if before is not None and not (hull.bounded and ranges[-1].hi - ranges[-1].lo == hull.hi - hull.lo):
                    # The pointer may just as well stand at the end of the allocation before.
                    ranges[-1] = _maybe(ranges[-1])
                    ranges.append(_maybe(_range(hull, before.id, before.size, origin - before.address)))
            else:
                return Evaluation((), Reason.UNKNOWN_BASE, tuple(pinned))
            for one in ranges[already:]:
                reached.setdefault(one, {})[hull.base] = None
        movable = tuple(word for word in pointers if word not in self.escaping)
        bases = tuple([tuple(ways) for ways in reached.values()])
        return Evaluation(tuple(reached), None, tuple(pinned), movable, bases)

    def _without_strays(
        self, found: Sequence[Hull], pointers: Mapping[int, tuple[int, Allocation]], allocations: Allocations
    ) -> Sequence[Hull]:
        """The hulls but pieces that lie outside of the allocation of their base where others of them lie inside: a
        program stays inside, so those are not touched."""
        if len({(hull.base, hull.kind) for hull in found}) == len(found):
            return found
        beyond = [self._is_beyond(hull, pointers, allocations) for hull in found]
        if not any(beyond):
            return found
        near = {(hull.base, hull.kind) for hull, far in zip(found, beyond, strict=True) if not far}
        return [hull for hull, far in zip(found, beyond, strict=True) if not far or (hull.base, hull.kind) not in near]

    def _is_beyond(self, hull: Hull, pointers: Mapping[int, tuple[int, Allocation]], allocations: Allocations) -> bool:
        if not hull.bounded or hull.base.word not in pointers:
            return False
        value, allocation = pointers[hull.base.word]
        if value == allocation.address and allocations.ending_at(value) is not None:
            # The pointer may as well stand at the end of the allocation before, where pieces below zero lie inside.
            return False
        low, high = _turned(hull, (value if hull.base.word in self.movable else 0) - allocation.address)
        size = allocation.size
        return size <= low and high < _TOP if low > 0 else high <= 0 and low > size - _TOP

    def _unwritten(
        self, grid: Dimensions, block: Dimensions, params: bytes, allocations: Allocations,
        module_globals: Mapping[str, tuple[int, int]], known: Sequence[Known], shared: int,
    ) -> list[Known]:
        """Known bytes that the launch itself does not change: the others are not known for long."""
        written = [r for r in self._evaluate(grid, block, params, allocations, module_globals, (), shared).ranges
                   if r.kind != "R"]
        return [
            (identity, low, data) for identity, low, data in known
            if not any(r.allocation == identity and r.lo < low + len(data) and low < r.hi for r in written)
        ]

    def _global_range(
        self, hull: Hull, module_globals: Mapping[str, tuple[int, int]], allocations: Allocations, ranges: list[Range]
    ) -> None:
        name = hull.base.name
        placed = module_globals.get(name)
        declared = self.program.global_sizes.get(name, 0)
        if placed is None:
            ranges.append(_range(hull, name, declared or _TOP, 0))
            return
        address, size = placed
        allocation = allocations.find(address)
        if allocation is None:
            ranges.append(_range(hull, name, size, 0))
        else:
            inside = _range(hull, allocation.id, size, 0)
            shift = address - allocation.address
            ranges.append(inside._replace(lo=inside.lo + shift, hi=inside.hi + shift))

    def _hulls(
        self, grid: Dimensions, block: Dimensions, params: bytes, pointers: frozenset[int], allocations: Allocations,
        known: Sequence[Known], shared: int,
    ) -> tuple[Hull, ...]:
        bases = []
        for access in self.program.accesses:
            real = [base for base in access.bases if base.name or base.word in pointers]
            bases.append(real)
        key = None
        if not known:
            parts = self._relevant(pointers & self.movable)
            key = (grid, block, shared, pointers, tuple([params[part] for part in parts]))
            found = self._relative.get(key)
            if found is not None:
                return found
        still = pointers & self.movable
        launch: Launch = (*grid, *block)
        contents = Contents()
        zeroed = bytearray(params)
        if known:
            # Known bytes are found by address, so pointers keep theirs.
            contents = Contents(_pieces(known, allocations))
        else:
            for word in still:
                zeroed[word:word + 8] = bytes(8)
        try:
            values = self.compiled.uniforms(bytes(zeroed), launch, shared)
        except DivisionByZero:
            values = None
        result = hulls(self.compiled, values, launch, bases, contents)
        for hull in result:
            if hull.reason is not None:
                raise _Opaque(hull.reason)
        if known:
            result = tuple(
                hull._replace(lo=hull.lo - value, hi=hull.hi - value)
                if hull.bounded and hull.base.word in still
                and (value := int.from_bytes(params[hull.base.word:hull.base.word + 8], "little")) else hull
                for hull in result
            )
        elif key is not None:
            if len(self._relative) >= _MOST_REMEMBERED:
                self._relative.clear()
            self._relative[key] = result
        return result


class _Opaque(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def _pieces(known: Sequence[Known], allocations: Allocations) -> Iterable[Piece]:
    for identity, low, data in known:
        allocation = allocations.by_id(identity)
        if allocation is not None:
            first, last = allocation.address, allocation.address + allocation.size
            yield Piece(first + low, bytes(data)[:max(last - first - low, 0)], first, last)


def _maybe(found: Range) -> Range:
    return found._replace(kind="MAYW" if found.kind == "MUSTW" else found.kind, exact=False)


def _turned(hull: Hull, displacement: int) -> tuple[int, int]:
    """The ends of a hull in an allocation; of its representatives modulo 2^64 the one nearest to it."""
    low, high = hull.lo + displacement, hull.hi + displacement
    turn = (low + (_TOP >> 1)) // _TOP * _TOP if hull.bounded else 0
    return low - turn, high - turn


def _range(hull: Hull, identity: object, size: int, displacement: int) -> Range:
    """A hull relative to its base, as a range of the allocation; cut to it, since programs stay in bounds.

    Addresses are numbers modulo 2^64. A hull so wide, or so far off, that another representative of one of its
    addresses may lie in the allocation says nothing.
    """
    low, high = _turned(hull, displacement)
    if hull.bounded and low >= 0 and high <= size:
        return Range(hull.kind, identity, low, high, hull.exact)
    kind = "MAYW" if hull.kind == "MUSTW" else hull.kind
    ambiguous = not hull.bounded or low <= size - _TOP or high >= _TOP
    low, high = max(low, 0), min(high, size)
    if ambiguous or low >= high:
        return Range(kind, identity, 0, size, False)
    return Range(kind, identity, low, high, False)


__all__ = ["Allocation", "Allocations", "Base", "Evaluation", "Evaluator", "Range"]
