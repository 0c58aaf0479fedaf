"""Programs and decisions made by hand, for tests of who carries them out."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.session.jobs import Assumed, Decision, Job, Placed, Refused, Replica, Rest, Span
from orchestrator.session.operations import Kernel, Launch, Pointer, StreamKey
from shim import tails
from shim.wire import Kind, NodeKind, lib, records
from tessera.reasons import Reason
from tests import program_records
from tests.program_records import CONTEXT, LEGACY

NONE, PER_THREAD, NON_BLOCKING = 0, 2, 1
A, B, C = 0x10_0000_0000, 0x10_0000_1000, 0x10_0000_1100
"""Where programs have memory. B and C touch."""
BYTES, WORDS = 256, 64
ADD, GROW, COUNT, ODD = 0xF001, 0xF002, 0xF003, 0xF004

_HEAD = """
.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.u32 %r1, [k];
mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
"""
ENTRY = ".visible .entry {}(.param .u64 y, .param .u64 x, .param .u32 k) {{" + _HEAD
PTX = (
    ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .u32 total = 7;\n"
    # add: y = x + k; grow: y += x + k; count: total += k, y = total; odd: y = x + k, elements but the first with
    # as many bits in i as in k, both modulo 2: nobody can tell the gaps
    + ENTRY.format("add") + "ld.global.u32 %r3, [%rd5]; add.u32 %r3, %r3, %r1; st.global.u32 [%rd4], %r3; ret; }\n"
    + ENTRY.format("grow") + "ld.global.u32 %r3, [%rd5]; ld.global.u32 %r4, [%rd4]; add.u32 %r3, %r3, %r4;"
    "add.u32 %r3, %r3, %r1; st.global.u32 [%rd4], %r3; ret; }\n"
    + ENTRY.format("count") + "ld.global.u32 %r3, [total]; add.u32 %r3, %r3, %r1; st.global.u32 [total], %r3;"
    "st.global.u32 [%rd4], %r3; ret; }\n"
    + ENTRY.format("odd") + "setp.eq.u32 %p1, %r2, 0; @%p1 ret; xor.b32 %r5, %r2, %r1;"
    "popc.b32 %r5, %r5; and.b32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 ret;"
    "ld.global.u32 %r3, [%rd5]; add.u32 %r3, %r3, %r1; st.global.u32 [%rd4], %r3; ret; }\n")
KERNELS = {ADD: "add", GROW: "grow", COUNT: "count", ODD: "odd"}


class Program(program_records.Program):
    """With a module, that above unless another one is given, and memory at A, B and C."""

    def __init__(self, ptx: str = PTX, kernels: Mapping[int, str] = KERNELS) -> None:
        super().__init__()
        self.begin()
        self.module(ptx.encode())
        for handle, name in kernels.items():
            self.function(name, [(0, 8), (8, 8), (16, 4)], handle)
        for address in (A, B, C):
            self.memory(address, BYTES)

    def stream(self, handle: int, flags: int = NON_BLOCKING) -> StreamKey:
        number = self.record(Kind.STREAM, handle=handle, context=CONTEXT, flags=flags)
        return StreamKey(CONTEXT, handle, 0, number)

    def by_thread(self, thread: int) -> None:
        """It was another thread that wrote the last record."""
        data = bytearray(self.data[-1])
        data[24:28] = thread.to_bytes(4, "little")
        self.data[-1] = bytes(data)

    def put(self, address: int, start: int = 0) -> int:
        """Numbers from ``start`` on, by a call that waits."""
        return self.to_device(address, words(range(start, start + WORDS)))

    def get(self, address: int) -> int:
        """All words come home, by a call that waits."""
        return self.to_host(address, bytes(BYTES))

    def run(self, kernel: int, y: int, x: int, k: int = 0, stream: int = LEGACY, block: int = WORDS,
            context: int = CONTEXT) -> int:
        return self.launch(parameters(y, x, k), kernel, block=block, place=(stream, context))

    def set(self, address: int, value: int, stream: int = LEGACY, element: int = 4) -> int:
        return self.record(Kind.SET, place=(stream, CONTEXT), address=address, width=BYTES // element, height=1,
                           element_bytes=element, value=value)

    def record_event(self, event: int, stream: int, **more: Any) -> None:
        self.record(Kind.EVENT_RECORD, place=(stream, CONTEXT), event=event, **more)

    def wait_event(self, event: int, stream: int) -> None:
        self.record(Kind.EVENT_WAIT, place=(stream, CONTEXT), event=event)

    def graph(self, nodes: Sequence[bytes], edges: Sequence[tuple[int, int]], handle: int = 0xE0) -> int:
        return self.record(Kind.GRAPH_EXEC, exec=handle, context=CONTEXT, nodes=len(nodes), edges=len(edges), whole=1,
                           tail=b"".join(nodes) + tails.edges_tail(edges))

    def launch_graph(self, handle: int = 0xE0, stream: int = LEGACY) -> int:
        return self.record(Kind.GRAPH_LAUNCH, place=(stream, CONTEXT), exec=handle)


def node(handle: int, kernel: int, y: int, x: int, k: int = 0, **more: Any) -> bytes:
    """A node of a graph that launches a kernel."""
    given = parameters(y, x, k)
    return tails.encode_node(NodeKind.LAUNCH, node=handle, function=kernel, grid=(1, 1, 1), block=(WORDS, 1, 1),
                             parameter_bytes=len(given), tail=tails.launch_tail(given), **more)


def set_node(handle: int, address: int, value: int, **more: Any) -> bytes:
    return tails.encode_node(NodeKind.SET, node=handle, address=address, width=WORDS, height=1, element_bytes=4,
                             value=value, **more)


def parameters(y: int, x: int, k: int) -> bytes:
    return struct.pack("<QQI", y, x, k)


def words(numbers: Sequence[int] | range) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def numbers(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}I", data))


HELD = {A: 1, B: 2, C: 3}
"""The tracker's numbers of allocations."""
LEGACY_KEY = StreamKey(CONTEXT, LEGACY)


def span(address: int, lo: int = 0, hi: int = BYTES) -> Span:
    """Bytes [lo, hi) of an allocation."""
    return Span(address + lo, HELD[address], lo, hi - lo)


def placed(sequence: int, kernel: int, y: int, x: int, k: int = 0, *, position: int = -1, block: int = WORDS,
           pointers: Sequence[Pointer] | None = None) -> Placed:
    """A launch in a decision; its pointers go to replicas unless others are given."""
    found = [Pointer(word, HELD[at], 0) for word, at in ((0, y), (8, x)) if at in HELD]
    launch = Launch(Kernel(KERNELS[kernel], 5, b"", None), (1, 1, 1), (block, 1, 1), 0, parameters(y, x, k),
                    pointers=tuple(found if pointers is None else pointers))
    return Placed(sequence, position, launch)


def job(number: int, launches: Sequence[Placed], gather: Sequence[Span] = (), apply: Sequence[Span] = (), *,
        device: int = 1, stream: StreamKey = LEGACY_KEY, replicas: Sequence[Replica] | None = None,
        mirrored: bool = False, runs_home: bool = False, waits: Sequence[StreamKey] = (), holds: bool = True,
        evicted: Sequence[int] = (), assumed: Sequence[Assumed] = ()) -> Job:
    """A job with replicas of whatever its launches point to."""
    if replicas is None:
        there = dict.fromkeys(p.allocation for one in launches for p in one.launch.pointers)
        replicas = [Replica(allocation, BYTES) for allocation in there]
    return Job(number, device, 0, stream, tuple(launches), mirrored, runs_home, tuple(waits), holds, tuple(replicas),
               tuple(evicted), tuple(gather), tuple(assumed), tuple(apply))


def refused(number: int, launches: Sequence[Placed], device: int = 1, mirrored: bool = False) -> Refused:
    return Refused(number, device, 0, LEGACY_KEY, tuple(launches), mirrored, Reason.FULL_DEVICE, "add")


class Scripted:
    """A tracker that gives decisions at the records that were said. Until then their launches are open."""

    def __init__(self, at: dict[int, list[Decision]], last: Sequence[Decision] = ()) -> None:
        self._at, self._last = at, list(last)
        self.withdrawn: list[tuple[int, int]] = []
        self.open: tuple[Placed, ...] = ()
        self._seen = -1

    def take(self, data: bytes) -> list[Decision]:
        (record,) = records(data)
        self._seen = record.sequence
        given = self._at.pop(record.sequence, [])
        left = [one for decisions in (*self._at.values(), self._last) for one in decisions if not isinstance(one, Rest)]
        self.open = tuple(p for one in left for p in one.launches if p.node < 0 and p.sequence <= self._seen)
        return given

    def finish(self) -> list[Decision]:
        self.open = ()
        return self._last

    def withdraw(self, device: int) -> None:
        self.withdrawn.append((device, self._seen))


def side(address: int, **more: int) -> Any:
    return program_records.side(address, lib.WIRE_SIDE_DEVICE, **more)
