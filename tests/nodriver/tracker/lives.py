"""Programs made by chance, in which things come, go, and live on where records are lost or calls fail."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from shim import tails
from shim.wire import Kind, NodeKind, lib
from tests.program_records import Program, side

THREAD_AT = 24
"""Where the thread stands in a record's head."""
Key = tuple[Kind, int]


class Thing(NamedTuple):
    """What the library's ledger has of a thing: its record, with what it ends, and the changes of a graph's nodes."""

    fields: dict[str, Any]
    tail: bytes
    parents: tuple[Key, ...]
    changes: dict[int, bytes]


class Lives(Program):
    """A program with a ledger, as the library has one."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.living: dict[Key, Thing] = {}
        self.lost: int | None = None
        self.epoch = 0
        self.sequence = 1
        self.begin()
        self.things()

    def record(self, kind: Kind, /, **more: Any) -> int:
        if self.lost is not None:
            self.lost += 1
            self.sequence += 1
            return self.sequence - 1
        number = super().record(kind, **more)
        thread = self.random.choice((7, 8)).to_bytes(4, "little")
        self.data[-1] = self.data[-1][:THREAD_AT] + thread + self.data[-1][THREAD_AT + 4:]
        return number

    def announce(self, kind: Kind, handle: int, /, tail: bytes = b"", parents: tuple[Key, ...] = (), **fields: Any
                 ) -> None:
        name = {Kind.MEMORY: "address", Kind.RESERVATION: "address", Kind.GRAPH_EXEC: "exec"}.get(kind, "handle")
        fields[name] = handle
        for child in [key for key, thing in self.living.items() if (kind, handle) in thing.parents]:
            self.forget(child)
        self.living.pop((kind, handle), None)
        self.record(kind, tail=tail, **fields)
        self.living[kind, handle] = Thing(fields, tail, parents, {})

    def forget(self, key: Key) -> dict[Key, Thing]:
        """A thing with all that ends with it."""
        thing = self.living.pop(key, None)
        gone = {key: thing} if thing else {}
        for child in [child for child, other in self.living.items() if key in other.parents]:
            gone.update(self.forget(child))
        return gone

    def restate(self, things: dict[Key, Thing], marks: int) -> None:
        for (kind, handle), thing in things.items():
            self.record(kind, marks=marks, tail=thing.tail, **thing.fields)
            for node in thing.changes.values():
                self.record(Kind.GRAPH_NODE, marks=marks, exec=handle, tail=node)

    def lose(self) -> None:
        """From now on records are lost."""
        if self.lost is None:
            self.lost = 0

    def find(self) -> None:
        """Now they are no longer."""
        lost, self.lost = self.lost, None
        if lost:
            self.epoch += 1
            self.record(Kind.EPOCH, epoch=self.epoch, lost=lost)
            self.restate(self.living, lib.WIRE_RESTATED)

    def any(self, kind: Kind, known: bool = False) -> int:
        """A handle of that kind; now and then one that nobody knows. ``known``: 0 if there is none."""
        found = [handle for of, handle in self.living if of is kind]
        if known:
            return self.random.choice(found) if found else 0
        return self.random.choice(found) if found and self.random.random() < 0.95 else 0xBAD

    def place(self) -> tuple[int, int]:
        return self.random.choice((1, 2, self.any(Kind.STREAM))), self.any(Kind.CONTEXT)

    def things(self) -> None:
        self.announce(Kind.CONTEXT, 0xC000, device=0, primary=1)
        for _ in range(8):
            self.thing()

    def thing(self) -> None:
        chance, context = self.random, self.any(Kind.CONTEXT, known=True)
        of_context: tuple[Key, ...] = ((Kind.CONTEXT, context),)
        handle = chance.randrange(1, 5)  # few, so that they are used again
        kind = chance.choice((Kind.CONTEXT, Kind.MODULE, Kind.FUNCTION, Kind.STREAM, Kind.EVENT, Kind.MEMORY,
                              Kind.ARRAY, Kind.PHYSICAL, Kind.RESERVATION, Kind.GRAPH_EXEC, Kind.GRAPH_EXEC))
        if kind is Kind.CONTEXT:
            self.announce(kind, 0xC000 + handle, device=chance.randrange(2))
        elif kind is Kind.MODULE:
            image = b".version 8.%d\n" % chance.randrange(3)
            name = self.payload(image)
            self.announce(kind, 0xA000 + handle, parents=of_context, context=context, image=lib.WIRE_IMAGE_PTX,
                          bytes=len(image), content=name)
        elif kind is Kind.FUNCTION:
            module = self.any(Kind.MODULE, known=True)
            self.announce(kind, 0xF000 + handle, tails.function_tail([(0, 8), (8, 4)], "kernel"),
                          ((Kind.MODULE, module),), module=module, known=1, parameters=2, parameter_bytes=12,
                          name_bytes=6)
        elif kind in (Kind.STREAM, Kind.EVENT):
            self.announce(kind, 0x5000 + handle, parents=of_context, context=context, flags=chance.randrange(2))
        elif kind is Kind.MEMORY:
            self.memory_of(0x7000_0000 + handle * 4096, context)
        elif kind is Kind.ARRAY:
            self.announce(kind, 0xAA00 + handle, parents=of_context, context=context, width=8, height=handle, format=32,
                          channels=1, element_bytes=4)
        elif kind is Kind.PHYSICAL:
            self.announce(kind, 0x9000 + handle, bytes=4096, type=1, location_type=1)
        elif kind is Kind.RESERVATION:
            self.announce(kind, 0x8000_0000 + handle * 65536, bytes=65536)
        else:
            self.graph(0x6000 + handle, context)

    def memory_of(self, address: int, context: int) -> None:
        chance = self.random
        kind = chance.choice((lib.WIRE_ALLOCATED, lib.WIRE_MANAGED, lib.WIRE_MAPPED, lib.WIRE_VARIABLE))
        owners = {lib.WIRE_MAPPED: Kind.PHYSICAL, lib.WIRE_VARIABLE: Kind.MODULE}
        owner = self.any(owners[kind], known=True) if kind in owners else 0
        parents: tuple[Key, ...] = ()
        if kind == lib.WIRE_VARIABLE:
            parents = ((Kind.MODULE, owner),)
        elif kind != lib.WIRE_MAPPED:
            parents = ((Kind.CONTEXT, context),)
        self.announce(Kind.MEMORY, address, b"name", parents, bytes=chance.choice((1024, 4096)), context=context,
                      owner=owner, kind=kind, device=-1, name_bytes=4)

    def node(self, handle: int) -> bytes:
        chance = self.random
        kind = chance.choice((NodeKind.LAUNCH, NodeKind.COPY, NodeKind.SET, NodeKind.EMPTY, NodeKind.MEMORY_OPERATIONS,
                              NodeKind.ALLOCATE, NodeKind.HOST_FUNCTION, NodeKind.EVENT_RECORD))
        more: dict[NodeKind, dict[str, Any]] = {
            NodeKind.LAUNCH: {"function": self.any(Kind.FUNCTION), "grid": (chance.randrange(9), 1, 1),
                              "block": (1, 1, 1), "parameter_bytes": 12, "attributes": 1,
                              "tail": tails.launch_tail(bytes(12), [(4, bytes(range(64)))])},
            NodeKind.COPY: {"width": 8, "to": side(1 << 63, lib.WIRE_SIDE_DEVICE)},
            NodeKind.SET: {"address": 1 << 63, "body": {"context": self.any(Kind.CONTEXT)}},
            NodeKind.MEMORY_OPERATIONS: {"count": 1, "tail": tails.memory_operations_tail([(1, 2, 1 << 63, 4)])},
            NodeKind.EVENT_RECORD: {"event": self.any(Kind.EVENT)},
        }  # fmt: skip
        return tails.encode_node(kind, node=handle, context=self.any(Kind.CONTEXT), enabled=chance.randrange(2),
                                 **more.get(kind, {}))

    def graph(self, exec_: int, context: int) -> None:
        count = self.random.randrange(4)
        edges = [(k, k + 1) for k in range(1, count)]
        tail = b"".join([self.node(k + 1) for k in range(count)]) + tails.edges_tail(edges)
        self.announce(Kind.GRAPH_EXEC, exec_, tail, ((Kind.CONTEXT, context),), graph=0x60, context=context,
                      nodes=count, edges=len(edges), whole=1)

    def change(self) -> None:
        exec_ = self.any(Kind.GRAPH_EXEC)
        graph = self.living.get((Kind.GRAPH_EXEC, exec_))
        handle = self.random.randrange(1, 4)
        node = self.node(handle)
        if graph is not None and handle <= graph.fields["nodes"]:
            graph.changes[handle] = node
        self.record(Kind.GRAPH_NODE, exec=exec_, tail=node)

    def end(self) -> None:
        """Something ends; now and then it was not to be, and what is still there is announced once more."""
        key = self.random.choice([*self.living, (Kind.EVENT, 0xBAD)])
        if key[0] is Kind.CONTEXT and self.random.random() < 0.7:
            return
        bytes_ = 8192 if key[0] is Kind.MEMORY and self.living[key].fields["kind"] == lib.WIRE_MAPPED else 0
        stream = self.random.choice((0, 0, 1, 2))
        number = self.record(Kind.END, handle=key[1], kind=int(key[0]), bytes=bytes_, stream=stream)
        gone = self.forget(key)
        for other in [other for other in self.living if bytes_ and other[0] is Kind.MEMORY
                      and key[1] <= other[1] < key[1] + bytes_]:
            gone.update(self.forget(other))
        if self.random.random() < 0.2:
            self.record(Kind.OUTCOME, of=number, result=1)
            self.restate(gone, 0)
            self.living.update(gone)

    def link(self) -> None:
        source, state = self.payload(b".version 8.0 // to link\n"), 0x1100 + self.random.randrange(3)
        for _ in range(self.random.randrange(1, 3)):
            self.record(Kind.LINK_INPUT, state=state, type=1, name_bytes=1, bytes=3, content=source, tail=b"a")
        if self.random.random() < 0.7:
            self.record(Kind.LINK_OUTPUT, state=state, bytes=3, content=self.random.randbytes(32))
        self.record(Kind.END, handle=state, kind=int(Kind.LINK_INPUT))

    def work(self) -> None:
        chance, place, marks = self.random, self.place(), self.random.choice((0, 0, lib.WIRE_CAPTURED))
        kind = chance.randrange(13)
        if kind < 3:
            self.launch(bytes(12), self.any(Kind.FUNCTION), chance.randrange(1, 4), place=place, marks=marks)
        elif kind == 3:
            self.to_device(0x7000_0000 + chance.randrange(1 << 15), chance.randbytes(chance.choice((0, 9, 5000))),
                           place=place, marks=marks)
        elif kind == 4:
            self.to_host(0x7000_1000, chance.randbytes(4))
        elif kind == 5:
            self.record(Kind.SET, place=place, marks=marks, address=(1 << 63) + 5, width=1, height=1, value=1 << 31)
        elif kind == 6:
            self.record(Kind.GRAPH_LAUNCH, place=place, exec=self.any(Kind.GRAPH_EXEC))
        elif kind == 7:
            which = chance.choice((Kind.EVENT_RECORD, Kind.EVENT_WAIT))
            self.record(which, place=place, marks=marks, event=self.any(Kind.EVENT), flags=1)
        elif kind == 8:
            self.record(Kind.SYNCHRONIZE, place=place, event=self.any(Kind.EVENT), what=lib.WIRE_WAITED_EVENT)
        elif kind == 9:
            self.record(chance.choice((Kind.CALL, Kind.OTHER_WORK, Kind.CAPTURE_BEGIN, Kind.CAPTURE_END)), place=place)
        elif kind == 10:
            self.record(Kind.MEMORY_OPERATIONS, place=place, count=2,
                        tail=tails.memory_operations_tail([(2, 0, 1 << 63, 1), (3, 1, 2, 1 << 63)]))
        elif kind == 11:
            self.record(Kind.ACCESS, address=0x7000_1000, bytes=4096, location_type=1, flags=3)
            self.record(Kind.EXPORT, address=self.any(Kind.EVENT), kind=int(Kind.EVENT))
        else:
            self.record(Kind.END, marks=lib.WIRE_CAPTURED, handle=0x7000_1000, kind=int(Kind.MEMORY))
            self.record(Kind.DOOR, how=1, name_bytes=1, tail=b"f")

    def run(self, steps: int, losing: float) -> Lives:
        """So many steps by chance."""
        for _ in range(steps):
            step = self.random.choice((self.thing, self.thing, self.change, self.end, self.link, self.work, self.work))
            if self.lost is None and self.random.random() < losing:
                self.lose()
            elif self.random.random() < 0.3:
                self.find()
            step()
        self.find()
        self.record(Kind.CALL)
        return self
