"""A decoder with a paged cache of keys and values, as language models are served: every step uploads where the new
tokens go and which blocks each sequence has, and brings the chosen tokens to the host."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np

from shim.wire import lib
from tests.generated.author import Author
from tests.generated.chooser import Chooser
from tests.generated.clocks import Stream
from tests.generated.graphs import Graphs, Node
from tests.generated.operations import Copy, Launch, Table, device, mixed, pageable
from tests.generated.records import Program
from tests.generated.things import Things

FEATURES = frozenset({"events", "streams"})


class _Decoder:
    def __init__(self, seed: int, sequences: int, blocks: int, block: int, heads: int, layers: int,
                 graph: bool) -> None:
        self.rng = Random(seed)
        self.author = Author(self.rng, FEATURES)
        self.chooser = Chooser(self.author)
        self.things = Things(self.author, self.chooser)
        self.sequences, self.block, self.d, self.layers, self.graph = sequences, block, 4 * heads, layers, graph
        self.most = blocks // sequences * block
        """Positions of one sequence."""
        self.free = list(range(blocks))
        self.rng.shuffle(self.free)
        self.owned: list[list[int]] = [[] for _ in range(sequences)]
        self.lengths = [0] * sequences
        self.author.program.begin()
        self.things.load()
        self.stream = self.things.stream() if self.rng.random() < 0.5 else self.author.legacy
        d, s = self.d, sequences
        weights = {f"{name}{layer}": d * d for name in ("q", "k", "v", "o") for layer in range(layers)}
        self.at = {name: self._memory(4 * words) for name, words in {
            **weights, "embedding": VOCABULARY * d, "tokens": s, "x": s * d, "query": s * d, "key": s * d,
            "value": s * d, "mixed": s * d}.items()}
        self.pools = [(self._memory(4 * blocks * block * d), self._memory(4 * blocks * block * d))
                      for _ in range(layers)]
        self.slots = Table(self._memory(4 * s), np.zeros(s, np.int64))
        self.tables = [Table(self._memory(4 * (blocks // s)), np.zeros(blocks // s, np.int64)) for _ in range(s)]
        self.author.tables += [self.slots, *self.tables]

    def _memory(self, size: int) -> int:
        """An allocation with contents."""
        address = self.things.place(size)
        self.author.submit(Copy(device(address), pageable(), size, data=mixed(size, self.author.number())), self.stream)
        return address

    def _launch(self, kernel: str, values: Mapping[str, int], used: Mapping[str, Table] | None = None) -> Launch:
        (module,) = self.chooser.modules
        self.things.function(module, kernel)
        return Launch(module, kernel, values, used or {}, 32)

    def advance(self) -> None:
        """Every sequence has one token more; some have ended, and begin anew with blocks of others."""
        for s in range(self.sequences):
            if self.lengths[s] == self.most or (self.lengths[s] and self.rng.random() < 0.1):
                self.free += self.owned[s]
                self.rng.shuffle(self.free)
                self.owned[s], self.lengths[s] = [], 0
            if self.lengths[s] % self.block == 0:
                self.owned[s].append(self.free.pop())
            self.lengths[s] += 1
            self.tables[s].entries[:len(self.owned[s])] = self.owned[s]
            last = self.lengths[s] - 1
            self.slots.entries[s] = self.owned[s][last // self.block] * self.block + last % self.block

    def upload(self) -> None:
        for table in (self.slots, *self.tables):
            copy = Copy(device(table.address), pageable(), table.size, data=table.data)
            assert self.author.submit(copy, self.stream)
            table.valid = True

    def launches(self) -> list[Launch]:
        """Of one step."""
        at, d, n = self.at, self.d, self.sequences * self.d
        made = [self._launch("embed", {"out": at["x"], "tokens": at["tokens"], "weights": at["embedding"], "n": n,
                                       "d": d, "vocabulary": VOCABULARY})]
        for layer, (keys, values) in enumerate(self.pools):
            for name, weights in (("query", "q"), ("key", "k"), ("value", "v")):
                made.append(self._launch("project", {"out": at[name], "in": at["x"], "weights": at[f"{weights}{layer}"],
                                                     "n": n, "d": d}))
            made.append(self._launch("kv_write", {
                "keys": keys, "values": values, "key": at["key"], "value": at["value"], "slots": self.slots.address,
                "n": n, "d": d}, {"slots": self.slots}))
            for s, table in enumerate(self.tables):
                row = 4 * s * d
                made.append(self._launch("attention", {
                    "out": at["mixed"] + row, "in": at["query"] + row, "keys": keys, "values": values,
                    "table": table.address, "n": d, "d": d, "b": self.block, "length": self.lengths[s]},
                    {"table": table}))
            made.append(self._launch("project", {"out": at["x"], "in": at["mixed"], "weights": at[f"o{layer}"], "n": n,
                                                 "d": d}))
        made.append(self._launch("largest", {"out": at["tokens"], "in": at["x"], "n": self.sequences, "d": d}))
        return made

    def run(self, steps: int) -> Program:
        graphs = Graphs(self.author, self.chooser)
        nodes: list[Node] = []
        for _ in range(steps):
            self.advance()
            self.upload()
            if not self.graph:
                for launch in self.launches():
                    assert self.author.submit(launch, self.stream)
            elif not nodes:
                nodes = graphs.chain(self.launches())
            else:
                for node, launch in zip(nodes, self.launches(), strict=True):
                    if node.operation is None or node.operation.tail() != launch.tail():
                        node.operation = launch
                        graphs.note(graphs.graphs[0], node)
            assert not self.graph or graphs.launch(graphs.graphs[0], self.stream)
            self._download(self.at["tokens"], 4 * self.sequences)
        for keys, values in self.pools:
            self._download(keys, 64)
            self._download(values, 64)
        return self.author.program

    def _download(self, address: int, size: int) -> None:
        """Synchronously, where the stream is the default one; else in the stream, for which the host then waits."""
        legacy: Stream = self.author.legacy
        if self.stream is legacy:
            assert self.author.submit(self.chooser.download(address, size), legacy)
            return
        assert self.author.submit(Copy(pageable(0x6000), device(address), size, flags=lib.WIRE_PINNED), self.stream)
        self.author.synchronize(self.stream)


VOCABULARY = 13


def paged_attention(seed: int, steps: int, *, sequences: int = 2, blocks: int = 16, block: int = 4, heads: int = 2,
                    layers: int = 1, graph: bool = False) -> Program:
    """A decoder that runs so many steps. ``blocks`` of ``block`` tokens are in the cache, for all sequences; a token
    has 4 words for each head. With ``graph`` the launches of a step are an executable graph, whose nodes are given
    new parameters before each launch."""
    return _Decoder(seed, sequences, blocks, block, heads, layers, graph).run(steps)
