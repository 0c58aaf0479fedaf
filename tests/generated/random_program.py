"""Random programs that never ran, correctly synchronised."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

import numpy as np

from shim.wire import lib
from tests.generated.author import Author
from tests.generated.chooser import Chooser
from tests.generated.clocks import Stream
from tests.generated.graphs import Graphs
from tests.generated.operations import Copy, Host, Launch, Operation, Place, Set, Table, device, pageable
from tests.generated.records import Program
from tests.generated.things import Things
from tests.generated.virtual import Virtual

ALL = frozenset({
    "aliases", "atomics", "captures", "events", "failures", "gaps", "graphs", "handles", "host", "loops", "modules",
    "opaque", "operations", "pinned", "pooled", "reuse", "sets", "shapes", "streams", "tables", "threads", "unordered",
    "updates", "variables", "variant", "virtual"})
"""aliases: memory at two addresses; failures: calls that are refused; gaps: lost records; handles: used again; loops:
steps; operations: stream memory operations; shapes: rows with pitches; threads: two, with per-thread streams;
unordered: atomic additions of several streams at a time; updates: of graphs; virtual: addresses and physical memory
apart. What the others are is clear."""


class _Random:
    """One program being made."""

    def __init__(self, seed: int, features: frozenset[str]) -> None:
        self.rng = Random(seed)
        self.features = features
        self.author = Author(self.rng, features)
        self.chooser = Chooser(self.author)
        self.things = Things(self.author, self.chooser)
        self.graphs = Graphs(self.author, self.chooser)
        self.virtual = Virtual(self.things)
        self.waiting = False

    def make(self, size: int) -> Program:
        program, things = self.author.program, self.things
        program.begin()
        things.load()
        if "streams" in self.features:
            things.stream()
            things.stream()
        things.allocate()
        things.allocate()
        actions, weights = zip(*self._actions(), strict=True)
        for _ in range(size):
            if "gaps" in self.features and self.rng.random() < 0.02:
                program.lose(self.rng.randrange(20), self.rng.randrange(1, 30))
            self.rng.choices(actions, weights)[0]()
        self._finish()
        return program

    def _actions(self) -> list[tuple[Callable[[], object], float]]:
        things, graphs, virtual = self.things, self.graphs, self.virtual
        by_feature: dict[str, list[tuple[Callable[[], object], float]]] = {
            "": [(self._operation, 40), (things.allocate, 2), (things.free, 2), (self._download, 3),
                 (self._wait, 2), (self._focus, 2)],
            "tables": [(self._table, 6)],
            "opaque": [(self._escape, 1)],
            "pooled": [(things.allocate_pooled, 3), (things.free_pooled, 3)],
            "pinned": [(things.pin, 1), (self._to_pinned, 2)],
            "virtual": [(virtual.reserve, 0.7), (virtual.map_page, 2), (virtual.unmap_page, 1),
                        (virtual.exchange, 1)],
            "aliases": [(virtual.use_twice, 1)],
            "streams": [(self._interleaved, 3), (things.stream, 1), (things.destroy_stream, 0.5)],
            "events": [(self._event, 2), (self._event_wait, 2), (things.destroy_event, 0.3)],
            "variables": [(things.find_variable, 1)],
            "modules": [(things.load, 0.3), (things.unload, 0.3), (self._reload, 0.5)],
            "graphs": [(graphs.make, 2), (graphs.launch, 5), (graphs.destroy, 0.3)],
            "updates": [(graphs.change, 3)],
            "captures": [(graphs.capture, 1)],
            "failures": [(self._failure, 2)],
            "host": [(self._host_function, 1)],
            "loops": [(self._loop, 1)],
        }
        return [pair for name, pairs in by_feature.items() if not name or name in self.features for pair in pairs]

    def _operation(self) -> None:
        operation = self.chooser.operation()
        if operation is not None:
            self.author.submit(operation)

    def _focus(self) -> None:
        buffers = self.chooser.buffers
        self.chooser.focus = self.rng.sample(buffers, min(self.rng.randrange(3), len(buffers)))

    def _interleaved(self) -> None:
        """Streams that do not wait for each other have each its own elements of the same rows."""
        author, rng = self.author, self.rng
        streams = rng.sample(author.streams, min(rng.choice([2, 2, 3]), len(author.streams)))
        step, n = len(streams), rng.choice([8, 16, 33])
        unit = 4 if rng.random() < 0.7 else 1
        base = self.chooser.address(unit * step * n, 4, 0)
        modules = [module for module in self.chooser.modules if module.alive]
        if not base or not modules:
            return
        module, kernel = rng.choice(modules), "strided" if unit == 4 else "octets"
        self.things.function(module, kernel)
        self.things.function(module, "affine")
        for _ in range(rng.randrange(2, 5)):
            for k, stream in rng.sample(list(enumerate(streams)), step):
                start = base + unit * k
                values = {"out": start, "in": start, "n": n, "stride": step, "salt": author.number()}
                if rng.random() < 0.2:
                    author.submit(Set(start, 1, unit, author.number() & 0xFF, n, unit * step), stream)
                else:
                    author.submit(Launch(module, kernel, values), stream)
        words = unit * step * n // 4
        out = self.chooser.address(4 * words)
        if out:
            author.submit(Launch(module, "affine", {"out": out, "in": base, "n": words, "salt": author.number()}),
                          rng.choice(streams))

    def _reload(self) -> None:
        """A module ends and is loaded again, and its variables are as they were at first."""
        author, things = self.author, self.things
        things.load()
        things.unload()
        for module in [m for m in self.chooser.modules if m.alive]:
            out = self.chooser.address(4 * 16)
            if out and "variables" in self.features:
                things.function(module, "stateful")
                author.submit(Launch(module, "stateful", {"out": out, "n": 16, "salt": author.number()}))

    def _host_function(self) -> None:
        self.author.submit(Host())

    def _table(self) -> None:
        """A new one, or other contents for one that is there or was overwritten."""
        author = self.author
        old = self.rng.choice(author.tables) if author.tables and self.rng.random() < 0.4 else None
        if old is not None:
            self.restore(old)
            return
        made = self.chooser.new_table()
        if made is not None and author.submit(made[1]):
            author.tables.append(made[0])

    def restore(self, table: Table) -> bool:
        """Puts the table's numbers where it is; indices in another order."""
        entries = table.entries
        if table.width == 4 and self.rng.random() < 0.7:
            table.entries = np.array(self.rng.sample(entries.tolist(), len(entries)), np.int64)
        if self.author.submit(Copy(device(table.address), pageable(), table.size, data=table.data)):
            table.valid = True
            return True
        table.entries = entries
        return False

    def _escape(self) -> None:
        """A kernel stores a pointer, which others may follow."""
        launch = next((made for _ in range(20) if (made := self.chooser.launch()) and made.kernel == "escape"), None)
        if launch is not None and self.author.submit(launch):
            target = np.array([launch.values["target"]], np.int64)
            self.author.tables.append(Table(launch.values["out"], target, 8, 16))

    def _download(self) -> None:
        """To pageable memory: the host waits, or hears of it when it waits for the stream."""
        author, rng = self.author, self.rng
        buffer = rng.choice(self.chooser.buffers)
        size = rng.randrange(1, buffer.size + 1)
        start = buffer.address + rng.randrange(buffer.size - size + 1)
        if rng.random() < 0.3:
            author.submit(Copy(pageable(0x6000), device(start), size, flags=lib.WIRE_PINNED))
        else:
            author.submit(self.chooser.download(start, size), self._default_stream())

    def _default_stream(self) -> Stream:
        fitting = [s for s in self.author.streams if s.handle < 3]
        return self.rng.choice(fitting)

    def _to_pinned(self) -> None:
        buffer = self.chooser.buffer(64, ["host"])
        start = self.chooser.address(64, 1, 0)
        if buffer is not None and start:
            to = Place(buffer.address + self.rng.randrange(buffer.size - 64), lib.WIRE_SIDE_HOST)
            self.author.submit(Copy(to, device(start), 64, flags=lib.WIRE_PINNED))

    def _wait(self) -> None:
        author = self.author
        if self.rng.random() < 0.3:
            author.synchronize_context()
        else:
            author.synchronize(self.rng.choice(author.streams))

    def _event(self) -> None:
        self.author.record_event(self.rng.choice(self.author.streams))

    def _event_wait(self) -> None:
        """Also for one that was never recorded, which is nothing."""
        if self.author.events:
            self.author.wait(self.rng.choice(self.author.streams), self.rng.choice(self.author.events))

    def _failure(self) -> None:
        operation = self.chooser.operation()
        if operation is not None and self.author.possible(operation) is not None:
            self.author.failed(operation, self.rng.choice(self.author.streams))

    def _loop(self) -> None:
        """A step, several times: the same work with other running numbers, and a wait at its end."""
        author, rng = self.author, self.rng
        stream = rng.choice(author.streams)
        body: list[tuple[Operation, bool]] = []
        for _ in range(rng.randrange(1, 6)):
            made = self.chooser.launch() if rng.random() < 0.8 else self.chooser.operation()
            if made is not None:
                body.append((made, rng.random() < 0.6))
        launches = [operation for operation, _ in body if isinstance(operation, Launch)]
        if not launches:
            return
        out = launches[-1].touch()
        written = [*out.writes.tolist(), *out.own.tolist(), *out.adds.tolist()] or [self.chooser.buffers[0].address]
        for _ in range(rng.randrange(3, 8)):
            for operation, changes in body:
                for table in operation.tables:
                    if not table.valid:
                        self.restore(table)
                author.submit(operation.salted(author.number()) if changes else operation, stream)
            author.submit(self.chooser.download(written[0], 1), self._default_stream())

    def _finish(self) -> None:
        """All that there is comes to the host."""
        self.author.synchronize_context()
        for buffer in list(self.chooser.buffers):
            self.author.submit(self.chooser.download(buffer.address, buffer.size), self.author.legacy)


def random_program(seed: int, size: int, features: Collection[str] = ALL) -> Program:
    """A program of ``size`` random actions; the same for the same arguments. Fewer of :data:`ALL` make a simpler
    one. Raises ValueError for a feature that there is not."""
    unknown = set(features) - ALL
    if unknown:
        raise ValueError(f"no such features: {', '.join(sorted(unknown))}")
    return _Random(seed, frozenset(features)).make(size)
