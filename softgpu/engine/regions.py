"""Where lanes part ways: which blocks run under a mask, in which order, and where all come together again.

After a branch that lanes may take differently, everything up to the branch's immediate post-dominator, its join, runs
under masks, one block after the other in an order that keeps loops together. Regions that overlap form one component
with one join. If threads may wait for one another inside a region, lanes must not be kept waiting at its join by lanes
that wait for them; such a region reaches to the end of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from ptxparse.flow import Flow


@dataclass
class Region:
    """Of one branch that diverges. ``ways``: blocks reachable by each successor before the join."""

    branch: int
    join: int
    ways: list[set[int]]


@dataclass
class Component:
    """Masked blocks in the order in which they run. ``join``: the block where all lanes meet, or the flow's exit.
    ``tangled``: it holds cycles with several entries, so it is repeated until no lane is left in it."""

    chain: list[int]
    join: int
    tangled: bool = False
    loop_ends: dict[int, list[int]] = field(default_factory=dict)
    """Position in the chain -> heads of the loops that end there, innermost first."""


def find_regions(flow: Flow, branches: list[int], waits: set[int]) -> list[Region]:
    """The regions of divergent branches; ``waits`` are the blocks in which threads may wait for others.

    Lanes must really wait at a join for those that are under way. At one that is masked itself they do when the walk
    comes to all blocks of the region first; otherwise the region goes on to a later post-dominator.
    """
    position = {block: place for place, block in enumerate(contiguous_order(flow))}
    regions = [_region(flow, branch, _join(flow, branch), waits) for branch in branches]
    changed = True
    while changed:
        changed = False
        masked = masked_blocks(regions)
        for number, region in enumerate(regions):
            if region.join in masked and not _waited_for(flow, region, position):
                following = flow.post_dominator[region.join]
                join = flow.exit if following == -1 else following
                regions[number] = _region(flow, region.branch, join, waits)
                changed = True
    return regions


def _join(flow: Flow, branch: int) -> int:
    join = flow.post_dominator[branch]
    return flow.exit if join == -1 or branch in flow.tangled else join


def _region(flow: Flow, branch: int, join: int, waits: set[int]) -> Region:
    targets = [edge.target for edge in flow.blocks[branch].successors]
    ways = [_reachable(flow, target, join) for target in targets]
    if join != flow.exit and any(not way.isdisjoint(waits) for way in ways):
        join = flow.exit
        ways = [_reachable(flow, target, join) for target in targets]
    return Region(branch, join, ways)


def _waited_for(flow: Flow, region: Region, position: dict[int, int]) -> bool:
    """Whether the walk comes to every block of the region before its join, or comes to the join at the end of a loop
    around all of them."""
    blocks = set().union(*region.ways)
    late = [block for block in blocks if position[block] > position[region.join]]
    if not late:
        return True
    around = next((loop for loop in flow.loops if loop.header == region.join), None)
    return around is not None and region.branch in around.blocks and around.blocks.issuperset(late)


def _reachable(flow: Flow, start: int, join: int) -> set[int]:
    if start == join:
        return set()
    found = {start}
    work = [start]
    while work:
        for edge in flow.blocks[work.pop()].successors:
            if edge.target != join and edge.target not in found:
                found.add(edge.target)
                work.append(edge.target)
    return found


def masked_blocks(regions: list[Region]) -> set[int]:
    """All blocks that may run with some of the lanes only."""
    masked: set[int] = set()
    for region in regions:
        for way in region.ways:
            masked |= way
    return masked


def components(flow: Flow, regions: list[Region]) -> list[Component]:
    """Connected regions, ordered."""
    masked = masked_blocks(regions)
    parent = {block: block for block in masked}

    def find(block: int) -> int:
        while parent[block] != block:
            parent[block] = parent[parent[block]]
            block = parent[block]
        return block

    for region in regions:
        whole = sorted(set().union(*region.ways))
        if region.join in masked:
            whole.append(region.join)
        if region.branch in masked:
            whole.append(region.branch)
        for block in whole[1:]:
            parent[find(block)] = find(whole[0])
    joins: dict[int, set[int]] = {}
    for region in regions:
        for block in set().union(*region.ways):
            if region.join not in masked:
                joins.setdefault(find(block), set()).add(region.join)
            break
    order = contiguous_order(flow)
    chains: dict[int, list[int]] = {}
    for block in order:
        if block in masked:
            chains.setdefault(find(block), []).append(block)
    found = []
    for root, chain in chains.items():
        ends = joins.get(root, {flow.exit})
        assert len(ends) == 1, "regions that overlap have one join"
        component = Component(chain, next(iter(ends)), not flow.tangled.isdisjoint(chain))
        _place_loop_ends(flow, component)
        found.append(component)
    return found


def _place_loop_ends(flow: Flow, component: Component) -> None:
    position = {block: i for i, block in enumerate(component.chain)}
    for loop in flow.loops:
        inside = [position[b] for b in loop.blocks if b in position]
        if loop.header in position and any(latch in position for latch in loop.latches):
            component.loop_ends.setdefault(max(inside), []).insert(0, loop.header)


def contiguous_order(flow: Flow) -> list[int]:
    """Blocks in an order in which every block follows its predecessors, back edges aside, and each loop's blocks stand
    together."""
    children: dict[int, list[int]] = {-1: []}
    for number, loop in enumerate(flow.loops):
        children.setdefault(loop.parent, []).append(number)
        children.setdefault(number, [])

    def level_of(block: int, level: int) -> tuple[str, int] | None:
        """The item of a level (a block of its own, or a loop right inside it) that a block belongs to."""
        loop = flow.loop_of[block]
        if loop == level:
            return ("block", block)
        while loop != -1:
            if flow.loops[loop].parent == level:
                return ("loop", loop)
            loop = flow.loops[loop].parent
        return None

    def arrange(level: int) -> list[int]:
        blocks = [b for b in flow.order if level == -1 or b in flow.loops[level].blocks]
        header = flow.order[0] if level == -1 else flow.loops[level].header
        items: dict[tuple[str, int], set[tuple[str, int]]] = {}
        for block in blocks:
            item = level_of(block, level)
            assert item is not None
            successors = items.setdefault(item, set())
            for edge in flow.blocks[block].successors:
                other = level_of(edge.target, level)
                if other is not None and other != item and edge.target != header and (
                        level == -1 or edge.target in flow.loops[level].blocks):
                    successors.add(other)
        waiting = dict.fromkeys(items, 0)
        for successors in items.values():
            for other in successors:
                waiting[other] += 1
        place = {item: flow.position[item[1] if item[0] == "block" else flow.loops[item[1]].header] for item in items}
        ready: list[tuple[int, tuple[str, int]]] = []
        for item, count in waiting.items():
            if count == 0:
                heappush(ready, (place[item], item))
        out: list[int] = []
        done: set[tuple[str, int]] = set()
        while len(done) < len(items):
            if not ready:  # a cycle with several entries: take the first that is left
                item = min((i for i in items if i not in done), key=place.__getitem__)
            else:
                item = heappop(ready)[1]
                if item in done:
                    continue
            done.add(item)
            out += [item[1]] if item[0] == "block" else arrange(item[1])
            for other in items[item]:
                waiting[other] -= 1
                if waiting[other] == 0 and other not in done:
                    heappush(ready, (place[other], other))
        return out

    return arrange(-1)
