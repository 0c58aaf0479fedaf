"""Registers split into webs: definitions and uses that belong together.

A register that a producer uses for unrelated values becomes several webs, so that each can have its own shape. A web is
a set of definitions of one register that reach common uses; with one definition it is a value in the sense of SSA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ptxparse.flow import Flow
from softgpu.engine.waiting import read, written


@dataclass
class Web:
    """``definitions`` are instruction indices; ``initial``: a use may come before any definition (it sees zero).
    ``live_in`` are the blocks at whose entry the web is live."""

    number: int
    register: str
    type: str
    definitions: list[int] = field(default_factory=list)
    initial: bool = False
    live_in: set[int] = field(default_factory=set)


class Webs:
    """``defined[i][name]`` and ``used[i][name]`` are the webs of the registers that instruction i writes and reads."""

    def __init__(self, flow: Flow, types: dict[str, str]) -> None:
        self.flow = flow
        self.webs: list[Web] = []
        count = len(flow.instructions)
        self.reads = [[n for n in read(i) if n in types] for i in flow.instructions]
        self.writes = [[n for n in written(i) if n in types] for i in flow.instructions]
        self.used: list[dict[str, Web]] = [{} for _ in range(count)]
        self.defined: list[dict[str, Web]] = [{} for _ in range(count)]
        self._build(types)
        self._liveness()

    def kills(self, index: int) -> bool:
        """Whether a definition replaces the old value for certain."""
        return kills(self.flow, index)

    def _build(self, types: dict[str, str]) -> None:
        """Definitions that reach a block's entry at which the register is live are one web (by union-find)."""
        flow = self.flow
        live = live_registers(flow, self.reads, self.writes)
        parent: list[int] = []

        def find(x: int) -> int:
            while parent[x] != x:
                parent[x] = parent[parent[x]]
                x = parent[x]
            return x

        def node() -> int:
            parent.append(len(parent))
            return parent[-1]

        # One node for each register that is live at a block's entry: whatever reaches it; and one for each definition.
        # ``unknown`` nodes stand for a use before any definition.
        entries = [{name: node() for name in names} for names in live]
        unknown: list[int] = []
        last: list[dict[str, int]] = []
        uses: list[tuple[int, str, int]] = []
        sites: list[tuple[int, str, int]] = []
        for number, block in enumerate(flow.blocks):
            current = dict(entries[number])
            for index in range(block.start, block.end):
                for name in self.reads[index]:
                    if name not in current:
                        current[name] = node()
                        unknown.append(current[name])
                    uses.append((index, name, current[name]))
                for name in self.writes[index]:
                    site = node()
                    if not self.kills(index):
                        before = current.get(name)
                        if before is None:
                            before = node()
                            unknown.append(before)
                        parent[site] = find(before)
                    current[name] = site
                    sites.append((index, name, site))
            last.append(current)
        for number, block in enumerate(flow.blocks):
            for edge in block.successors:
                for name, entry in entries[edge.target].items():
                    reaching = last[number].get(name)
                    if reaching is None:
                        reaching = node()
                        unknown.append(reaching)
                    parent[find(entry)] = find(reaching)
        if flow.order:
            unknown += entries[flow.order[0]].values()
        uninitialised = {find(x) for x in unknown}
        found: dict[int, Web] = {}

        def web_of(x: int, name: str) -> Web:
            root = find(x)
            web = found.get(root)
            if web is None:
                web = found[root] = Web(len(self.webs), name, types[name], initial=root in uninitialised)
                self.webs.append(web)
            return web

        for index, name, site in sites:
            web = web_of(site, name)
            web.definitions.append(index)
            self.defined[index][name] = web
        for index, name, site in uses:
            self.used[index][name] = web_of(site, name)
        for number, names in enumerate(entries):
            for entry in names.values():
                root = find(entry)
                if root in found:
                    found[root].live_in.add(number)

    def _liveness(self) -> None:
        self.live_in: list[set[int]] = [set() for _ in self.flow.blocks]
        for web in self.webs:
            for block in web.live_in:
                self.live_in[block].add(web.number)


def kills(flow: Flow, index: int) -> bool:
    """Whether the definitions of an instruction replace old values for certain."""
    return flow.instructions[index].predicate is None


def live_registers(flow: Flow, reads: Sequence[Sequence[str]], writes: Sequence[Sequence[str]]) -> list[set[str]]:
    """Registers live at each block's entry; ``reads`` and ``writes`` are those of each instruction."""
    generated: list[set[str]] = []
    killed: list[set[str]] = []
    for block in flow.blocks:
        gen: set[str] = set()
        kill: set[str] = set()
        for index in range(block.start, block.end):
            gen.update([n for n in reads[index] if n not in kill])
            if kills(flow, index):
                kill.update(writes[index])
        generated.append(gen)
        killed.append(kill)
    live = [set(gen) for gen in generated]
    work = list(range(len(flow.blocks)))
    while work:
        number = work.pop()
        out: set[str] = set()
        for edge in flow.blocks[number].successors:
            out |= live[edge.target]
        new = generated[number] | (out - killed[number])
        if new - live[number]:
            live[number] |= new
            work.extend(edge.source for edge in flow.blocks[number].predecessors)
    return live
