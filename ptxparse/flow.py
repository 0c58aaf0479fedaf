"""Control flow of one function: basic blocks, dominators, post-dominators, loops. Nothing here recurses."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxparse.model import Instruction, Register, Symbol

ENDS = frozenset({"ret", "exit"})


@dataclass(slots=True)
class Edge:
    """One way out of a block. ``guard`` is the predicate register whose value ``taken`` leads this way, None when
    the way is unconditional or unknown (an indexed branch)."""

    source: int
    target: int
    guard: Register | None = None
    taken: bool = True


@dataclass(slots=True)
class Block:
    """Instructions [start, end) that run one after another; ``leaves`` says that the function can end there."""

    start: int
    end: int
    leaves: bool = False
    successors: list[Edge] = field(default_factory=list)
    predecessors: list[Edge] = field(default_factory=list)


@dataclass(slots=True)
class Loop:
    """A natural loop: ``header`` dominates every block in ``blocks``; ``latches`` jump back to it. ``exits`` are edges
    that leave. ``parent`` is the index of the loop around it, or -1."""

    header: int
    latches: list[int]
    blocks: set[int]
    exits: list[Edge] = field(default_factory=list)
    parent: int = -1


class Flow:
    """Blocks in the order of the text; ``order`` is the reverse post-order of those that can be reached.

    ``dominator`` and ``post_dominator`` give the immediate one of each block (-1: none; the exit of the function is a
    virtual block after the last). ``loops`` stand outermost first; ``loop_of`` is the innermost loop of each block or
    -1. ``irreducible`` holds targets of backward jumps that do not dominate their source: nothing is known there;
    ``tangled`` are the blocks of such cycles.
    """

    def __init__(
        self, instructions: list[Instruction], labels: dict[str, int], targets: dict[str, tuple[str, ...]]
    ) -> None:
        self.instructions = instructions
        self.blocks: list[Block] = []
        self.undefined_targets: list[int] = []
        self._split(labels, targets)
        count = len(self.blocks)
        self.exit = count
        successors = [[e.target for e in b.successors] + [self.exit] * b.leaves for b in self.blocks] + [[]]
        self.order = _reverse_postorder(successors, 0)
        if self.exit in self.order:
            self.order.remove(self.exit)
        self.position = {block: i for i, block in enumerate(self.order)}
        forward = [[e.source for e in b.predecessors] for b in self.blocks]
        self.dominator = _dominators(self.order, forward, count)
        self._dominance_intervals()
        self.post_dominator = self._post_dominators(successors)
        self.irreducible: set[int] = set()
        self.tangled: set[int] = set()
        self.loops: list[Loop] = []
        self.loop_of = [-1] * count
        self._find_loops()
        if self.irreducible:
            for component in _components(successors):
                if not self.irreducible.isdisjoint(component):
                    self.tangled |= component

    def _split(self, labels: dict[str, int], targets: dict[str, tuple[str, ...]]) -> None:
        instructions = self.instructions
        starts = {0, len(instructions)}
        starts.update(labels.values())
        for index, instruction in enumerate(instructions):
            if instruction.op.opcode in ("bra", "brx", "ret", "exit"):
                starts.add(index + 1)
        ordered = sorted(s for s in starts if s < len(instructions))
        block_at = {start: i for i, start in enumerate(ordered)}
        block_at[len(instructions)] = len(ordered)
        ends = [*ordered[1:], len(instructions)]
        self.blocks = [Block(a, b) for a, b in zip(ordered, ends, strict=False)]
        if len(instructions) in labels.values() or not self.blocks:
            self.blocks.append(Block(len(instructions), len(instructions)))
        for number in range(len(self.blocks)):
            self._connect(number, block_at, labels, targets)
        for block in self.blocks:
            for edge in block.successors:
                self.blocks[edge.target].predecessors.append(edge)

    def _connect(
        self, number: int, block_at: dict[int, int], labels: dict[str, int], targets: dict[str, tuple[str, ...]]
    ) -> None:
        block = self.blocks[number]
        last = self.instructions[block.end - 1] if block.end > block.start else None
        follows = number + 1 < len(self.blocks)
        if last is None or last.op.opcode not in ("bra", "brx", "ret", "exit"):
            if follows:
                block.successors.append(Edge(number, number + 1))
            block.leaves = not follows
            return
        guard, taken = last.predicate, not last.negated
        if last.op.opcode == "bra":
            names: tuple[str, ...] = tuple(o.name for o in last.operands[:1] if isinstance(o, Symbol))
        elif last.op.opcode == "brx":
            names = ()
            for operand in last.operands:
                if isinstance(operand, Symbol):
                    names = targets.get(operand.name, ())
        else:
            names = ()
        reached = [labels[name] for name in names if name in labels]
        if last.op.opcode in ("bra", "brx") and (not names or len(reached) < len(names)):
            self.undefined_targets.append(block.end - 1)
        block.leaves = last.op.opcode in ENDS or not follows
        conditional = guard if last.op.opcode != "brx" else None
        for index in sorted(set(reached)):
            block.successors.append(Edge(number, block_at[index], conditional, taken))
        if guard is None and block.successors:
            block.leaves = False
        if guard is not None and follows:
            if last.op.opcode != "brx" and block.successors and block.successors[0].target == number + 1:
                block.successors[0] = Edge(number, number + 1)
            else:
                block.successors.append(Edge(number, number + 1, conditional, not taken))

    def _dominance_intervals(self) -> None:
        """Enter and leave times of a walk over the dominator tree, so that ``dominates`` takes constant time."""
        children: list[list[int]] = [[] for _ in self.blocks]
        for block in self.order[1:]:
            children[self.dominator[block]].append(block)
        self.children = children
        self._enter = [-1] * len(self.blocks)
        self._leave = [-1] * len(self.blocks)
        self.preorder: list[int] = []
        if not self.order:
            return
        stack = [(self.order[0], 0)]
        time = 0
        while stack:
            block, child = stack.pop()
            if child == 0:
                self._enter[block] = time
                self.preorder.append(block)
                time += 1
            if child < len(children[block]):
                stack.append((block, child + 1))
                stack.append((children[block][child], 0))
            else:
                self._leave[block] = time

    def dominates(self, a: int, b: int) -> bool:
        """Every path from the entry to ``b`` passes ``a``."""
        return self._enter[a] <= self._enter[b] and self._leave[b] <= self._leave[a] and self._enter[b] >= 0

    def _post_dominators(self, successors: list[list[int]]) -> list[int]:
        reached = set(self.order)
        backward: list[list[int]] = [[] for _ in range(len(self.blocks) + 1)]
        for block in self.order:
            for target in successors[block]:
                backward[target].append(block)
        # Blocks of endless loops do not reach the exit; they get no post-dominator.
        order = _reverse_postorder(backward, self.exit)
        keep = [[t for t in targets if t == self.exit or t in reached] for targets in successors]
        return _dominators(order, keep, len(self.blocks) + 1)

    def post_dominates(self, a: int, b: int) -> bool:
        """Every path from ``b`` to the end passes ``a``."""
        walk = b
        while walk != -1 and walk != a:
            walk = self.post_dominator[walk] if walk != self.exit else -1
        return walk == a

    def _find_loops(self) -> None:
        latches: dict[int, list[int]] = {}
        for block in self.order:
            for edge in self.blocks[block].successors:
                if self.position[edge.target] <= self.position[block]:
                    if self.dominates(edge.target, block):
                        latches.setdefault(edge.target, []).append(block)
                    else:
                        self.irreducible.add(edge.target)
        for header in sorted(latches, key=self.position.__getitem__):
            inside = {header}
            work = list(latches[header])
            while work:
                block = work.pop()
                if block not in inside:
                    inside.add(block)
                    work.extend(e.source for e in self.blocks[block].predecessors if e.source in self.position)
            loop = Loop(header, latches[header], inside)
            for block in inside:
                loop.exits += [e for e in self.blocks[block].successors if e.target not in inside]
                if self.blocks[block].leaves:
                    loop.exits.append(Edge(block, self.exit))
            loop.parent = self.loop_of[header]
            number = len(self.loops)
            self.loops.append(loop)
            # Headers come in reverse post-order, outer before inner, so inner loops overwrite outer ones here.
            for block in inside:
                self.loop_of[block] = number

    @property
    def deepest_nest(self) -> int:
        """How many loops stand around the innermost block."""
        depths: list[int] = []
        for loop in self.loops:
            depths.append(1 + (depths[loop.parent] if loop.parent != -1 else 0))
        return max(depths, default=0)

    def loops_around(self, block: int) -> list[int]:
        """The loops that hold a block, innermost first."""
        found = []
        loop = self.loop_of[block]
        while loop != -1:
            found.append(loop)
            loop = self.loops[loop].parent
        return found


def _reverse_postorder(successors: list[list[int]], start: int) -> list[int]:
    order: list[int] = []
    if start >= len(successors):
        return order
    seen = [False] * len(successors)
    seen[start] = True
    stack = [(start, 0)]
    while stack:
        block, child = stack.pop()
        targets = successors[block]
        while child < len(targets) and seen[targets[child]]:
            child += 1
        if child < len(targets):
            stack.append((block, child + 1))
            seen[targets[child]] = True
            stack.append((targets[child], 0))
        else:
            order.append(block)
    order.reverse()
    return order


def _dominators(order: list[int], predecessors: list[list[int]], count: int) -> list[int]:
    """Immediate dominators by iteration (Cooper, Harvey and Kennedy 2001)."""
    dominator = [-1] * count
    if not order:
        return dominator
    position = {block: i for i, block in enumerate(order)}
    root = order[0]
    dominator[root] = root
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            found = -1
            for other in predecessors[block]:
                if other not in position or dominator[other] == -1:
                    continue
                if found == -1:
                    found = other
                    continue
                a, b = other, found
                while a != b:
                    while position[a] > position[b]:
                        a = dominator[a]
                    while position[b] > position[a]:
                        b = dominator[b]
                found = a
            if found != dominator[block]:
                dominator[block] = found
                changed = True
    dominator[root] = -1
    return dominator


def _components(successors: list[list[int]]) -> list[set[int]]:
    """Strongly connected components (Tarjan 1972), without recursion."""
    number = [-1] * len(successors)
    lowest = [0] * len(successors)
    open_blocks: list[int] = []
    is_open = [False] * len(successors)
    found: list[set[int]] = []
    count = 0
    for root in range(len(successors)):
        stack = [(root, 0)] if number[root] == -1 else []
        while stack:
            block, child = stack.pop()
            if child == 0:
                number[block] = lowest[block] = count
                count += 1
                open_blocks.append(block)
                is_open[block] = True
            elif is_open[successors[block][child - 1]]:
                lowest[block] = min(lowest[block], lowest[successors[block][child - 1]])
            if child < len(successors[block]):
                stack.append((block, child + 1))
                if number[successors[block][child]] == -1:
                    stack.append((successors[block][child], 0))
            elif lowest[block] == number[block]:
                component: set[int] = set()
                while block not in component:
                    member = open_blocks.pop()
                    is_open[member] = False
                    component.add(member)
                found.append(component)
    return found
