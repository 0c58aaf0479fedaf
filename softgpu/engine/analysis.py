"""Shapes of all webs, divergent branches and masked blocks: they depend on one another, so all are found together.

At first everything is taken to be uniform and no branch to diverge; what turns out otherwise is added until nothing
changes. A definition must keep the values of lanes that do not execute it (it is *blended*) when such lanes may still
read the web: when they wait on another way of a divergent branch, or at its join, and the web is live there.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

from ptxparse.flow import Flow
from ptxparse.model import Address, FloatImmediate, Immediate, Negated, Operand, Register, Symbol
from ptxparse.model import Vector as VectorOperand
from softgpu.engine.flatten import Flat
from softgpu.engine.layout import Layout
from softgpu.engine.ops.operation import TYPES
from softgpu.engine.options import Options
from softgpu.engine.regions import Component, Region, components, find_regions, masked_blocks
from softgpu.engine.shapes import DIVERGENT, UNIFORM, Shape, constant, elementwise, join
from softgpu.engine.special import special_shape, special_type
from softgpu.engine.transfer import result_shape
from softgpu.engine.waiting import is_barrier, is_meeting
from softgpu.engine.webs import Web, Webs

_WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64, "i128": 128}
_INTEGERS = ("i8", "i16", "i32", "i64")
MOST_ROUNDS = 60


def width_of(type_: str) -> int:
    """Bits of a PTX type in a register."""
    return _WIDTH[TYPES[type_]] if type_ in TYPES else 128


class Analysis:
    """``shape[web.number]``; ``blended`` instruction indices whose definitions keep other lanes' values; ``masked``
    blocks; ``components`` of them, ``component_of`` by block; ``divergent`` branch blocks."""

    def __init__(self, flat: Flat, flow: Flow, webs: Webs, layout: Layout, options: Options) -> None:
        self.flat = flat
        self.flow = flow
        self.webs = webs
        self.layout = layout
        self.options = options
        self.shape: list[Shape] = []
        self.blended: set[tuple[int, int]] = set()
        self.divergent: set[int] = set()
        self.waits = {
            number for number, block in enumerate(flow.blocks)
            if any(is_barrier(i) or is_meeting(i) or i.opcode == "$yield"
                   for i in flow.instructions[block.start:block.end])
        }
        self.block_of = [0] * len(flow.instructions)
        for number, block in enumerate(flow.blocks):
            for index in range(block.start, block.end):
                self.block_of[index] = number
        self.spoiled: set[int] = set()
        self.regions: list[Region] = []
        for _ in range(MOST_ROUNDS):
            self._find_shapes()
            if not self._find_regions():
                break
        else:
            self._give_up()
        self.masked = masked_blocks(self.regions)
        self.components: list[Component] = components(flow, self.regions)
        self.component_of = {b: c for c in self.components for b in c.chain}

    def _give_up(self) -> None:
        """Too many rounds: take every web to be divergent, which is always right."""
        self.spoiled = {web.number for web in self.webs.webs}
        self._find_shapes()
        self._find_regions()

    # Shapes.

    def of(self, index: int, operand: Operand, type_: str = "b32") -> Shape | None:
        """Shape of an operand that instruction ``index`` reads; None when nothing is known yet."""
        if isinstance(operand, Register):
            web = self.webs.used[index].get(operand.name)
            if web is not None:
                return self._optimistic[web.number]
            if special_type(operand.name) is not None:
                return special_shape(operand.name, self.options)
            return UNIFORM
        if isinstance(operand, Immediate):
            return constant(operand.value, width_of(type_))
        if isinstance(operand, FloatImmediate):
            return UNIFORM
        if isinstance(operand, Symbol):
            return self._symbol(operand, type_)
        if isinstance(operand, Negated):
            inner = self.of(index, operand.operand, "pred")
            return None if inner is None else elementwise(inner)
        if isinstance(operand, Address):
            return self.of(index, operand.base, "u64")
        items = operand.items if isinstance(operand, VectorOperand) else (operand.first, operand.second)
        shapes = [self.of(index, item, type_) for item in items]
        known = [s for s in shapes if s is not None]
        return elementwise(*known) if len(known) == len(shapes) else None

    def _symbol(self, symbol: Symbol, type_: str) -> Shape:
        address = self.layout.constant_address(symbol)
        return UNIFORM if address is None else constant(address, width_of(type_))

    def _find_shapes(self) -> None:
        """Fixed point over all instructions, from unknown."""
        webs = self.webs.webs
        current: list[Shape | None] = [None] * len(webs)
        self._optimistic = current
        for web in webs:
            if web.number in self.spoiled or width_of(web.type) > 64:
                current[web.number] = DIVERGENT
            elif web.initial:
                current[web.number] = constant(0, width_of(web.type)) if web.type != "pred" else UNIFORM
        users: list[list[int]] = [[] for _ in webs]
        for index, used in enumerate(self.webs.used):
            if self.webs.defined[index]:
                for web in used.values():
                    users[web.number].append(index)
        # Users behind a change are looked at in the same round, those before it in the next.
        pending = [index for index, defined in enumerate(self.webs.defined) if defined]  # a heap
        queued = set(pending)
        following: set[int] = set()
        rounds: dict[int, int] = {}
        while pending:
            while pending:
                index = heappop(pending)
                queued.discard(index)
                for web, shape in self._results(index):
                    old = current[web.number]
                    if web.number in self.spoiled:
                        continue
                    new = self._clamped(join(old, shape), web)
                    new = self._with_origin(new, web)
                    if new == old:
                        continue
                    rounds[web.number] = rounds.get(web.number, 0) + 1
                    if rounds[web.number] > 8:  # bounds that creep
                        new = replace(new, low=None, high=None, align=1, residue=0)
                    if rounds[web.number] > 20:
                        new = DIVERGENT
                    current[web.number] = new
                    for user in users[web.number]:
                        if user <= index:
                            following.add(user)
                        elif user not in queued:
                            queued.add(user)
                            heappush(pending, user)
            pending, following = sorted(following), set()
            queued = set(pending)
        self.shape = [shape or UNIFORM for shape in current]

    def _with_origin(self, shape: Shape, web: Web) -> Shape:
        """A value with one definition can be the origin of others. (Uses of both come behind the same execution of it,
        as it comes before each of them on every way.)"""
        if len(web.definitions) != 1 or web.initial:
            return replace(shape, origin=None) if shape.origin is not None else shape
        unknown = shape.origin is None and shape.scalar and shape.constant is None
        if unknown and web.type in ("b32", "u32", "s32", "b64", "u64", "s64"):
            return replace(shape, origin=(web.number, 0))
        return shape

    def _clamped(self, shape: Shape, web: Web) -> Shape:
        """What a register can keep of a shape: numbers with a point have no pattern, as its offsets are added to
        integers; in a narrow one ``align`` is below the sign bit, into which offsets may carry."""
        if TYPES.get(web.type) not in _INTEGERS:
            return elementwise(shape)
        align = 1 << (width_of(web.type) - 1)
        if shape.align > align:
            return replace(shape, align=align, residue=shape.residue % align)
        return shape

    def _results(self, index: int) -> list[tuple[Web, Shape]]:
        """Shapes of what an instruction defines, as far as its operands are known."""
        instruction = self.flow.instructions[index]
        defined = self.webs.defined[index]
        shapes = result_shape(self, index, instruction)
        if shapes is None:
            return []
        guard = None
        if instruction.predicate is not None:
            guard = self.of(index, instruction.predicate, "pred")
            if guard is None:
                return []
        found = []
        for name, web in defined.items():
            shape = shapes if isinstance(shapes, Shape) else shapes.get(name, DIVERGENT)
            if guard is not None and not guard.uniform:
                shape = DIVERGENT
            found.append((web, shape))
        return found

    # Regions.

    def is_divergent(self, block: int) -> bool:
        """Whether lanes may leave a block different ways."""
        body = self.flow.blocks[block]
        if body.end == body.start:
            return False
        index = body.end - 1
        last = self.flow.instructions[index]
        ways = len(body.successors) + (1 if body.leaves else 0)
        if last.opcode == "brx":
            shape = self.of(index, last.operands[0])
            return shape is None or not shape.uniform or block in self.flow.tangled
        if last.opcode not in ("bra", "exit") or last.predicate is None or ways < 2:
            return False
        shape = self.of(index, last.predicate, "pred")
        return shape is None or not shape.uniform or block in self.flow.tangled

    def _find_regions(self) -> bool:
        """Add what the shapes show; whether anything was added."""
        before = (len(self.divergent), len(self.blended), len(self.spoiled))
        self._optimistic = list(self.shape)
        self.divergent |= {b for b in self.flow.order if self.is_divergent(b)}
        self.regions = find_regions(self.flow, sorted(self.divergent), self.waits)
        self._find_blended()
        self._spoil_guarded()
        return (len(self.divergent), len(self.blended), len(self.spoiled)) != before

    def _find_blended(self) -> None:
        live = self.webs.live_in
        for region in self.regions:
            seen = [self._live_at(way, region.join, live) for way in region.ways]
            leaves = self.flow.blocks[region.branch].leaves
            for number, way in enumerate(region.ways):
                others: set[int] = set()
                for other, names in enumerate(seen):
                    if other != number:
                        others |= names
                if len(region.ways) == 1 and not leaves:
                    continue
                if not others:
                    continue
                for block in way:
                    body = self.flow.blocks[block]
                    for index in range(body.start, body.end):
                        for web in self.webs.defined[index].values():
                            if web.number in others:
                                self.blended.add((index, web.number))
                                self.spoiled.add(web.number)

    def _live_at(self, way: set[int], join_block: int, live: list[set[int]]) -> set[int]:
        names: set[int] = set()
        for block in way:
            names |= live[block]
        if join_block != self.flow.exit:
            names |= live[join_block]
        return names

    def _spoil_guarded(self) -> None:
        """Definitions under a guard that lanes see differently keep the old value where it fails."""
        for index, instruction in enumerate(self.flow.instructions):
            if instruction.predicate is None or instruction.opcode in ("bra", "exit", "brx"):
                continue
            for web in self.webs.defined[index].values():
                guard = self.of(index, instruction.predicate, "pred")
                if guard is None or not guard.uniform:
                    self.spoiled.add(web.number)
