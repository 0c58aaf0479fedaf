"""Records of a program made over, so that its steps come again and again, now and then a little different; and two
trackers side by side, of which one knows no steps."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from orchestrator.session.code import Code
from orchestrator.session.jobs import Decision, Placed, Rest
from orchestrator.session.placement import Placement
from orchestrator.session.placing import Settings
from orchestrator.session.steps import ends_step
from orchestrator.session.tracker import Tracker
from shim import tails
from shim.layout import ffi
from shim.wire import Head, Kind, Record, encode, lib, records

SEQUENCE_AT, OF_AT = ffi.offsetof("struct wire_head", "sequence"), ffi.offsetof("struct wire_outcome", "of")
TICKS_AT = ffi.offsetof("struct wire_head", "ticks")
PARAMETERS_AT, INLINE_AT = ffi.sizeof("struct wire_launch"), ffi.sizeof("struct wire_copy")
HOST_AT = ffi.offsetof("struct wire_copy", "body", "from", "address")
GRAPH_NODE_AT = (ffi.sizeof("struct wire_graph_node") + ffi.sizeof("struct wire_node")
                 + ffi.sizeof("struct wire_launch_body"))
Step = list[bytes]


def decoded(data: bytes) -> Record:
    return next(records(data))


def steps(data: list[bytes]) -> Iterator[Step]:
    """Records up to and with those that end a step."""
    step: Step = []
    for one in data:
        step.append(one)
        if ends_step(decoded(one)):
            yield step
            step = []
    yield step


class Stream:
    """Records with numbers of their own, in order."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.number = 0

    def put(self, step: Step) -> None:
        """With the records that its records of outcome mean, if those are among them, or else as far behind."""
        known = {struct.unpack_from("<Q", one, SEQUENCE_AT)[0]: self.number + place for place, one in enumerate(step)}
        for one in step:
            made = bytearray(one)
            (old,) = struct.unpack_from("<Q", one, SEQUENCE_AT)
            if decoded(one).kind is Kind.OUTCOME:
                (of,) = struct.unpack_from("<Q", one, OF_AT)
                struct.pack_into("<Q", made, OF_AT, known.get(of, max(self.number + of - old, 0)))
            struct.pack_into("<QQ", made, SEQUENCE_AT, self.number, self.number * 100)
            self.data.append(bytes(made))
            self.number += 1


def repeated(data: list[bytes], rng: Random, changes: float = 0.3) -> list[bytes]:
    """Each step several times, some with the step before in turn; a share of the repeats is changed."""
    made, before = Stream(), None
    for step in steps(data):
        made.put(step)
        if step and all(decoded(one).kind not in CHANGES for one in step):
            turn = [before, step] if before is not None and rng.random() < 0.3 else [step]
            for _ in range(rng.randrange(9)):
                for one in turn:
                    made.put(changed(one, rng) if rng.random() < changes else one)
                    if rng.random() < 0.02:
                        made.number += rng.randrange(1, 4)
            before = step
        else:
            before = None
    return made.data


CHANGES = frozenset(Kind) - {
    Kind.DATA, Kind.OUTCOME, Kind.GRAPH_NODE, Kind.LAUNCH, Kind.COPY, Kind.SET, Kind.GRAPH_LAUNCH, Kind.HOST_FUNCTION,
    Kind.MEMORY_OPERATIONS, Kind.OTHER_WORK, Kind.SYNCHRONIZE, Kind.EVENT_RECORD, Kind.EVENT_WAIT, Kind.CALL,
}  # fmt: skip


def changed(step: Step, rng: Random) -> Step:
    """A step that begins as it did, most likely."""
    place = rng.randrange(len(step))
    one, kept = step[place], list(step)
    record, body = decoded(one), decoded(one).body
    way = rng.randrange(8)
    if way == 0:
        del kept[place]
    elif way == 1:
        kept.insert(place, rng.choice(step[:-1] or step))
    elif way == 2 and place:
        (of,) = struct.unpack_from("<Q", step[place - 1], SEQUENCE_AT)
        kept.insert(place, encode(Kind.OUTCOME, head=Head(sequence=of + 1), of=of, result=1))
    elif way == 3:
        return kept[:place]
    elif record.kind is Kind.LAUNCH and body.parameter_bytes:
        kept[place] = overwritten(one, PARAMETERS_AT, body.parameter_bytes, rng)
    elif record.kind is Kind.GRAPH_NODE and next(tails.nodes(record)).kind.name == "LAUNCH":
        kept[place] = overwritten(one, GRAPH_NODE_AT, next(tails.nodes(record)).body.parameter_bytes, rng)
    elif record.kind is Kind.COPY and body.inline_bytes:
        kept[place] = overwritten(one, INLINE_AT, body.inline_bytes, rng)
    elif record.kind is Kind.COPY and body.from_.kind == lib.WIRE_SIDE_HOST:
        address = rng.choice((0x5000, 0x6000, 0x5500_0000_0000, body.to.address))
        kept[place] = one[:HOST_AT] + struct.pack("<Q", address) + one[HOST_AT + 8:]
    return kept


def overwritten(one: bytes, at: int, size: int, rng: Random) -> bytes:
    """One or a few bytes there are others."""
    first = at + rng.randrange(size) if size else at
    last = min(first + rng.choice((1, 4, 8)), at + size)
    return one[:first] + rng.randbytes(last - first) + one[last:]


class Pair:
    """Two trackers that are told the same, and must say the same."""

    def __init__(self, settings: Settings, placement: Callable[[], Placement], code: Code | None = None) -> None:
        code = code or Code()
        self.plain = Tracker(settings, placement(), code, recognise=False)
        self.knowing = Tracker(settings, placement(), code)
        assert self.knowing._steps is not None
        self.steps = self.knowing._steps

    def take(self, data: bytes) -> list[Decision]:
        given = self.knowing.take(data)
        assert [said(one) for one in self.plain.take(data)] == [said(one) for one in given]
        assert placed(self.plain.open) == placed(self.knowing.open)
        if self.steps._begins:
            self.compare()
        return given

    def withdraw(self, device: int) -> None:
        self.plain.withdraw(device)
        self.knowing.withdraw(device)

    def finish(self) -> None:
        assert [said(one) for one in self.plain.finish()] == [said(one) for one in self.knowing.finish()]
        self.compare()

    def compare(self) -> None:
        plain, knowing = state(self.plain), state(self.knowing)
        for name, of in plain.items():
            assert of == knowing[name], name

    def run(self, data: list[bytes], cut: Callable[[], int]) -> Pair:
        """In batches of so many records."""
        at = 0
        while at < len(data):
            count = cut()
            self.take(b"".join(data[at:at + count]))
            at += count
        self.finish()
        return self


def said(decision: Decision) -> object:
    return decision if isinstance(decision, Rest) else decision._replace(launches=placed(decision.launches))


def placed(launches: tuple[Placed, ...]) -> Any:
    """With kernels that can be compared: each tracker has its own."""
    return tuple([(one.sequence, one.node, one.launch.kernel.name, one.launch.kernel.module, one.launch.kernel.reason,
                   one.launch[1:]) for one in launches])


def state(tracker: Tracker) -> dict[str, object]:
    placing, contents = tracker._placing, tracker._contents
    classes = placing.classes
    return {
        "directory": tracker.directory.state(), "tally": tracker.tally, "open": placed(tracker.open),
        "known": [(lo, hi, piece.address, piece.data, piece.sequence) for lo, hi, piece in contents._pieces],
        "recent": list(contents._recent.items()), "known bytes": contents._bytes,
        "classes": [(one.signature, one.launches, one.count, one.reads) for one in classes],
        "written": classes._written, "steps": (classes._steps._number, classes._steps._launches),
        "forgotten": (classes.forgotten, classes.long), "streams": list(placing.streams.active),
        "number": placing.number, "ambiguous": placing._placement.ambiguous, "expected": tracker.expected,
        "graphs": {exec_: (graph.whole, graph.nodes) for exec_, graph in tracker._graphs._known.items()},
    }  # fmt: skip
