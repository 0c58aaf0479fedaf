"""Random operations on the memory that a program has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shim.wire import lib
from tests.generated.author import Author
from tests.generated.kernels import KERNELS
from tests.generated.operations import (
    Copy,
    Host,
    Launch,
    Module,
    Operation,
    Place,
    Set,
    Table,
    Write,
    device,
    mixed,
    pageable,
)

BASIC = ("affine", "affine", "inplace", "strided", "strided", "sparse", "octets", "two", "accumulate", "may", "through",
         "chain", "total")
BY_FEATURE = {
    "tables": ("scatter", "gather", "block_read", "block_write") * 2,
    "atomics": ("add", "exchange"),
    "opaque": ("escape", "follow"),
    "variables": ("stateful", "scaled"),
    "variant": ("exponent",),
}
TRIES = 8
PAGE = 4096


@dataclass(eq=False)
class Buffer:
    """Memory that operations may name. ``kind``: device, pooled, mapped, host, variable, constant."""

    address: int
    size: int
    kind: str
    owner: object = None


class Chooser:
    """``buffers`` and ``modules`` are what there is."""

    def __init__(self, author: Author) -> None:
        self.author, self.rng = author, author.rng
        self.buffers: list[Buffer] = []
        self.modules: list[Module] = []
        self.focus: list[Buffer] = []
        """Buffers of which more is made than of others."""
        self.function: Callable[[Module, str], None]
        """Has a kernel of a module announced."""
        self.place: Callable[[int], int]
        """Allocates memory that no buffer is; its address."""
        self.kernels = [*BASIC, *(k for f, names in BY_FEATURE.items() if f in author.features for k in names)]

    # Where.

    def buffer(self, size: int, kinds: Sequence[str]) -> Buffer | None:
        """One of these kinds that has room for so many bytes."""
        fitting = [b for b in self.buffers if b.kind in kinds and b.size >= size + 8]
        near = [b for b in fitting if b in self.focus]
        if near and self.rng.random() < 0.5:
            return self.rng.choice(near)
        return self.rng.choice(fitting) if fitting else None

    def address(self, size: int, align: int = 4, host: float = 0.1) -> int:
        """Somewhere for so many bytes, in pinned memory with that probability; 0 if there is no room."""
        kinds = ("host",) if self.rng.random() < host else ("device", "pooled", "mapped", "variable")
        found = self.buffer(size, kinds)
        if found is None:
            return 0
        room = found.size - size
        page = self.rng.randrange(room // PAGE + 1) * PAGE if room else 0
        near = min(page + 4 * self.rng.randrange(16), room)
        start = found.address + self.rng.choice([near, near, room, self.rng.randrange(room + 1)])
        return max(start // align * align, -(-found.address // align) * align)

    def count(self) -> int:
        """How many elements: few, often odd; sometimes none."""
        return self.rng.choice([0, 1, 7, self.rng.randrange(1, 20), self.rng.randrange(8, 64), 33, 64])

    # What.

    def launch(self) -> Launch | None:
        """A random kernel with random arguments."""
        for _ in range(TRIES):
            kernel = self.rng.choice(self.kernels)
            modules = [m for m in self.modules if m.alive]
            if not modules:
                return None
            made = self._launch(self.rng.choice(modules), kernel)
            if made is not None and self.author.possible(made) is not None:
                return made
        return None

    def _launch(self, module: Module, kernel: str) -> Launch | None:
        rng, n, used = self.rng, self.count(), {}
        values = {"n": n, "salt": self.author.number()}
        stride = rng.choice([1, 2, 2, 3, 4]) if kernel in ("strided", "octets") else 1
        size = 4 * n * stride
        values["stride"] = stride
        if kernel in ("scatter", "gather", "block_read", "block_write", "follow"):
            table = self.table(8 if kernel == "follow" else 4)
            if table is None:
                return None
            used["table"] = table
            values["table"] = table.address
            if kernel == "follow":
                values["n"] = min(n, table.reach)
                return self._finish(module, kernel, values, used)
            values["b"] = b = rng.choice([2, 3, 4])
            entries = len(table.entries)
            values["n"] = n = min(n, entries * (b if kernel.startswith("block") else 1))
            size = 4 * n
            reach = 4 * (int(table.entries.max()) + 1) * (b if kernel.startswith("block") else 1)
            outside = "out" if kernel in ("scatter", "block_write") else "in"
            values[outside] = self.address(reach)
        elif kernel == "stateful":
            values["n"] = n = min(n, 64)
        elif kernel == "chain":
            values["gap"] = rng.choice([0, 1, 3, n])
            size = 4 * (n + values["gap"])
        elif kernel == "add":
            values["m"] = rng.choice([1, 3, 8, 64])
        elif kernel == "escape":
            values |= {"out": self.address(16, 8, 0), "target": self.address(4 * 16, 4, 0)}
            return self._finish(module, kernel, values, used)
        if n and kernel in ("affine", "through", "exponent") and rng.random() < 0.15:
            values["in"] = values["out"] = self.address(size)
        host = 0.1 if "pinned" in self.author.features else 0.0
        align = 1 if kernel == "octets" else 4
        named = {"out", "in"} if kernel == "through" else {name for name, _ in KERNELS[kernel].parameters}
        for name in ("out", "in", "other", "cells"):
            if name in named and name not in values:
                values[name] = self.address(4 if kernel == "total" and name == "out" else size, align, host)
        return self._finish(module, kernel, values, used)

    def _finish(self, module: Module, kernel: str, values: dict[str, int], used: dict[str, Table]) -> Launch | None:
        if not all(values.get(name, 1) for name in ("out", "in", "other", "cells", "target")):
            return None
        self.function(module, kernel)
        return Launch(module, kernel, values, used, self.rng.choice([8, 32, 32, 64]), self.rng.choice([0, 0, 5]))

    def table(self, width: int) -> Table | None:
        fitting = [t for t in self.author.tables if t.valid and t.width == width]
        return self.rng.choice(fitting) if fitting else None

    def upload(self) -> Copy | None:
        """From pageable memory."""
        size = self.rng.choice([1, 4, 17, 64, 255, 512, 2048])
        constant = self.buffer(24, ["constant"]) if self.rng.random() < 0.15 else None
        if constant:
            size = min(size, 17)
        to = constant.address + self.rng.randrange(8) if constant else self.address(size, 1, 0)
        return Copy(device(to), pageable(), size, data=mixed(size, self.author.number())) if to else None

    def download(self, address: int, size: int) -> Copy:
        """To pageable memory, and the host waits."""
        return Copy(pageable(0x6000), device(address), size, flags=lib.WIRE_SYNCHRONOUS)

    def copy(self) -> Copy | None:
        """Between devices, or pinned memory and devices; rows with pitches."""
        rng, shaped = self.rng, "shapes" in self.author.features and self.rng.random() < 0.4
        width, height = rng.choice([1, 4, 12, 33, 64]), rng.choice([2, 3, 5]) if shaped else 1
        sides = []
        for _ in range(2):
            pitch = width + rng.choice([0, 1, 4, 13]) if shaped else 0
            host = "pinned" in self.author.features and rng.random() < 0.3
            start = self.address(pitch * (height - 1) + width, rng.choice([1, 4]), 1.0 if host else 0.0)
            if not start:
                return None
            skip = (rng.randrange(pitch), rng.randrange(3)) if shaped and rng.random() < 0.5 else (0, 0)
            sides.append(Place(start, lib.WIRE_SIDE_HOST if host else lib.WIRE_SIDE_DEVICE, pitch, skip))
        pinned = any(side.kind == lib.WIRE_SIDE_HOST for side in sides)
        return Copy(sides[0], sides[1], width, height, flags=lib.WIRE_PINNED if pinned else 0)

    def set(self) -> Set | None:
        rng = self.rng
        element, width = rng.choice([1, 2, 4]), rng.choice([1, 5, 16, 40])
        height = rng.choice([2, 4]) if "shapes" in self.author.features and rng.random() < 0.4 else 1
        pitch = element * (width + rng.choice([0, 1, 3])) if height > 1 else 0
        start = self.address(pitch * (height - 1) + width * element, element, 0.1)
        value = rng.getrandbits(8 * element)
        return Set(start, width, element, value, height, pitch) if start else None

    def memory_operation(self) -> Write | None:
        start = self.address(4, 4, 0)
        return Write(start, self.rng.getrandbits(32)) if start else None

    def in_graph(self) -> Operation | None:
        """What a node may be."""
        made: Operation | None = self.rng.choice([self.launch, self.launch, self.launch, self.copy, self.set])()
        return Host() if made is None or self.rng.random() < 0.08 else made

    def operation(self) -> Operation | None:
        """Any."""
        ways: list[Callable[[], Operation | None]] = [self.launch, self.launch, self.launch, self.copy, self.upload]
        if "sets" in self.author.features:
            ways.append(self.set)
        if "operations" in self.author.features and self.rng.random() < 0.3:
            ways.append(self.memory_operation)
        return self.rng.choice(ways)()

    def new_table(self) -> tuple[Table, Copy] | None:
        """Indices, or one pointer, and the copy that brings them."""
        rng = self.rng
        if "opaque" in self.author.features and rng.random() < 0.3:
            start, target = self.address(8, 8, 0), self.address(4 * 64, 4, 0)
            entries, width = np.array([target], np.int64), 8
        else:
            bound = rng.choice([8, 16, 48])
            count = rng.randrange(4, bound + 1)
            start = self.place(4 * count) if rng.random() < 0.5 else self.address(4 * count, 4, 0)
            target = 1
            entries, width = np.array(rng.sample(range(bound), count), np.int64), 4
        if not start or not target:
            return None
        table = Table(start, entries, width, 64)
        return table, Copy(device(start), pageable(), table.size, data=table.data)
