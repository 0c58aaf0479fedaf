"""The generated programs are what they are said to be: records without fault, kernels that touch the bytes that the
generator takes them to touch, and no race."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.session.placement import Placement
from orchestrator.session.steps import LaunchKey
from ptxparse.api import Allocations, evaluate
from shim import tails
from shim.wire import Kind, NodeKind, fault, lib, records
from softgpu.reference import LoadedModule, Memory, launch
from tests.generated import ALL, Program, Written, paged_attention, random_devices, random_program
from tests.generated.clocks import Clocks, Event, touched
from tests.generated.kernels import KERNELS, Addresses, Touch, module, programs
from tests.generated.memory import Mapping, Physical, Space, Unmapped
from tests.generated.operations import Launch, Module, Table
from tests.patterns import share
from tests.shadow import Shadow
from tests.soundness import ALLOWED, inside, union

SEEDS = range(100, 130)
SIZE = 40


DECODER = {"embed", "project", "kv_write", "attention", "largest"}
"""Kernels that no random program launches."""


@cache
def program(seed: int) -> Program:
    return random_program(seed, SIZE)


# Records.

def test_every_record_is_right() -> None:
    for seed in SEEDS:
        for written in program(seed).records:
            assert fault(written.data) is None
        data = b"".join(program(seed).data)
        sequences = [record.sequence for record in records(data)]
        assert sequences == sorted(set(sequences))


def test_the_same_arguments_give_the_same_program() -> None:
    assert random_program(7, 60).records == random_program(7, 60).records
    assert random_program(7, 60).records != random_program(8, 60).records


@share(5)
@given(seed=st.integers(0, 1 << 32), size=st.integers(0, 60), features=st.sets(st.sampled_from(sorted(ALL))))
def test_any_features_make_a_program(seed: int, size: int, features: set[str]) -> None:
    made = random_program(seed, size, features)
    kinds = {record.kind for record in records(b"".join(made.data))}
    assert ("gaps" in features) or Kind.EPOCH not in kinds
    assert ("graphs" in features or "captures" in features) or Kind.GRAPH_EXEC not in kinds
    assert ("virtual" in features) or Kind.PHYSICAL not in kinds
    if size == 0:
        assert Kind.COPY in kinds  # all comes to the host at the end


def test_no_such_feature() -> None:
    with pytest.raises(ValueError, match="no such features: gaps in teeth"):
        random_program(0, 1, {"gaps in teeth"})


def test_all_that_was_asked_for_comes() -> None:
    seen: Counter[object] = Counter()
    for seed in SEEDS:
        made, names = program(seed), dict[int, str]()
        seen["lost"] += sum(written.lost for written in made.records)
        for record in records(b"".join(written.data for written in made.records)):
            seen[record.kind] += 1
            seen["captured"] += record.flags & lib.WIRE_CAPTURED
            seen["restated"] += record.flags // lib.WIRE_RESTATED
            if record.place is not None:
                seen["stream", min(record.place.stream, 3)] += 1
            if record.kind is Kind.FUNCTION:
                names[record.body.handle] = tails.name(record)
            elif record.kind is Kind.LAUNCH:
                seen[names[record.body.function]] += 1
            elif record.kind is Kind.MEMORY:
                seen["memory", record.body.kind] += 1
            elif record.kind is Kind.OUTCOME:
                seen["failed"] += record.body.result != 0
            elif record.kind is Kind.GRAPH_EXEC:
                for node in tails.nodes(record):
                    seen[node.kind, "node"] += 1
            elif record.kind is Kind.GRAPH_NODE:
                (node,) = tails.nodes(record)
                seen["on" if node.enabled else "off"] += 1
    memory = (lib.WIRE_ALLOCATED, lib.WIRE_POOLED, lib.WIRE_HOST, lib.WIRE_MAPPED, lib.WIRE_VARIABLE)
    nodes = (NodeKind.LAUNCH, NodeKind.COPY, NodeKind.SET, NodeKind.EMPTY, NodeKind.CHILD, NodeKind.HOST_FUNCTION)
    kinds = set(Kind) - {Kind.CALL, Kind.DOOR, Kind.ARRAY, Kind.LINK_INPUT, Kind.LINK_OUTPUT, Kind.EXPORT,
                         Kind.OTHER_WORK}
    wanted = {"lost", "captured", "restated", "failed", "on", "off", *kinds, *(("memory", kind) for kind in memory),
              *((kind, "node") for kind in nodes), *(("stream", number) for number in (1, 2, 3)),
              *(set(KERNELS) - DECODER)}
    assert {what for what in wanted if not seen[what]} == set()


def test_a_gap_says_what_there_is() -> None:
    """Behind it a reader knows all that one knows who lost nothing."""
    for seed in SEEDS:
        found = list(records(b"".join(program(seed).data)))
        whole = list(records(b"".join(written.data for written in program(seed).records)))
        places = [k for k, record in enumerate(found) if record.kind is Kind.EPOCH]
        for k in places:
            epoch = found[k]
            assert epoch.body.lost == epoch.sequence - found[k - 1].sequence - 1 > 0
            before = [record for record in whole if record.sequence < epoch.sequence]
            said = {record.body.address for record in found[k:] if record.flags & lib.WIRE_RESTATED
                    and record.kind is Kind.MEMORY}
            alive: set[int] = set()
            for record in before:
                if record.kind is Kind.MEMORY:
                    alive.add(record.body.address)
                elif record.kind is Kind.END and record.body.kind == Kind.MEMORY:
                    alive.discard(record.body.handle)
            assert alive <= said | {a for a in alive if a >> 40 == 0x12}  # variables end with their modules


# Kernels.

@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_a_kernel_touches_what_is_said(kernel: str) -> None:
    """And its access program says so too."""
    rng = np.random.default_rng(len(kernel))
    for n in (8, 24, 64) if kernel in DECODER else (0, 1, 7, 33, 64):
        _launched(kernel, n, rng)


def _launched(kernel: str, n: int, rng: np.random.Generator) -> None:
    memory = Memory()
    loaded = LoadedModule(module(), memory)
    size = 8192
    at = {name: memory.allocate(size) for name, kind in KERNELS[kernel].parameters if kind == "u64"}
    if kernel == "through":
        at = {name: memory.allocate(size) for name in ("out", "in")}
    for address in at.values():
        memory.write(address, rng.integers(0, 255, size, dtype=np.uint8))
    rest = {"n": n, "salt": 5, "stride": 3, "gap": 2, "m": 5, "b": 3, "d": 8, "length": n // 2, "vocabulary": 13}
    tables: dict[str, Addresses] = {name: rng.permutation(64) for name in ("table", "slots") if name in at}
    if kernel == "follow":
        at["out"] = memory.allocate(size)
        tables["table"] = np.array([at["out"]])
    if kernel == "attention":
        rest["n"] = 8
    if kernel == "largest":
        rest["n"] = n // 8
    width = 8 if kernel == "follow" else 4
    used: dict[str, Table] = {name: Table(at[name], entries, width) for name, entries in tables.items()}
    for table in used.values():
        memory.write(table.address, table.data)
    variables = {name: address for name, (address, _) in loaded.globals.items()}
    operation = Launch(Module(1, {}, variables), kernel, {**at, **rest}, used)
    touch, block = operation.touch(), operation.parameters()
    blocks, threads = operation.grid()
    result = launch(loaded, kernel, (blocks,), (threads,), block, log=True)
    _compare(kernel, touch, result.log.entries, loaded.globals["factors"][0])
    allocations = Allocations([(name, address, size) for name, address in at.items()])
    evaluation = evaluate(programs()[kernel], (blocks, 1, 1), (threads, 1, 1), block, allocations, loaded.globals)
    if evaluation.opaque is not None:
        assert kernel == "follow"
        return
    bases: dict[object, int] = dict([*at.items(), *variables.items()])
    entries = result.log.entries
    for kind, allowed in ALLOWED.items():
        cover = union((bases[r.allocation] + r.lo, bases[r.allocation] + r.hi)
                      for r in evaluation.ranges if r.kind in allowed)
        chosen = entries[entries["kind"] == kind]
        low = chosen["address"].astype(np.int64)
        assert inside(cover, low, low + chosen["width"]).all(), kind


def _compare(kernel: str, touch: Touch, entries: np.ndarray, constant: int) -> None:
    def logged(*kinds: bytes) -> set[int]:
        chosen = entries[np.isin(entries["kind"], kinds)]
        return {byte for entry in chosen for byte in range(int(entry["address"]),
                                                           int(entry["address"]) + int(entry["width"]))}

    own, adds = set(touch.own.tolist()), set(touch.adds.tolist())
    reads = {byte for byte in touch.reads.tolist() if not constant <= byte < constant + 32}
    writes = set(touch.writes.tolist())
    if kernel == "exchange":
        assert logged(b"A") == own
        assert logged(b"W") == writes
        return
    assert logged(b"A") == adds
    if kernel == "may":
        assert logged(b"W") <= writes
        assert logged(b"R") == reads
    elif kernel == "embed":
        assert logged(b"R") <= reads
        assert logged(b"W") == writes
    else:
        assert logged(b"R") == reads | own, "reads"
        assert logged(b"W") == writes | own, "writes"


# Order.

def _one() -> tuple[Clocks, Space]:
    space = Space()
    space.add(Mapping(0x1000, 64, Physical(64), 0))
    return Clocks(unordered=False), space


def test_interleaved_bytes_are_no_conflict_and_the_same_are() -> None:
    clocks, space = _one()
    one, other = clocks.stream(0x10, blocking=False), clocks.stream(0x20, blocking=False)
    clocks.queue(one, touched(space, Touch(writes=np.arange(0x1000, 0x1040, 2))))
    between = touched(space, Touch(writes=np.arange(0x1001, 0x1040, 2)))
    assert not clocks.missing(clocks.start(other), between)
    reading = touched(space, Touch(reads=np.array([0x1002])))
    assert clocks.missing(clocks.start(other), reading) == {one.number: 1}
    with pytest.raises(AssertionError, match="a race"):
        clocks.queue(other, reading)


def test_what_orders() -> None:
    clocks, space = _one()
    legacy, blocking = clocks.stream(1), clocks.stream(0x10)
    apart = clocks.stream(0x20, blocking=False)
    what = touched(space, Touch(writes=np.array([0x1000])))
    clocks.queue(blocking, what)
    clocks.queue(legacy, what)
    clocks.queue(blocking, what)
    assert clocks.missing(clocks.start(apart), what) == {blocking.number: 2}
    event = Event(0x30)
    clocks.wait(apart, event)  # not recorded yet
    assert clocks.missing(clocks.start(apart), what)
    clocks.record(blocking, event)
    clocks.wait(apart, event)
    clocks.queue(apart, what)
    assert clocks.missing(clocks.start(blocking), what) == {apart.number: 1}
    assert clocks.missing(clocks.start(legacy), what) == {apart.number: 1}
    clocks.waited(apart.clock)
    clocks.queue(legacy, what)


def test_two_addresses_of_one_byte() -> None:
    clocks, space = _one()
    physical = space.resolve(np.array([0x1000]))[0].physical
    space.add(Mapping(0x2000, 64, physical, 0))
    one, other = clocks.stream(0x10, blocking=False), clocks.stream(0x20, blocking=False)
    clocks.queue(one, touched(space, Touch(writes=np.array([0x1000]))))
    assert clocks.missing(clocks.start(other), touched(space, Touch(reads=np.array([0x2000]))))
    space.remove(0x1000)
    with pytest.raises(Unmapped):
        space.resolve(np.array([0x1000]))


def test_additions_need_no_order_if_so_said() -> None:
    _, space = _one()
    for unordered in (False, True):
        clocks = Clocks(unordered)
        one, other = clocks.stream(0x10, blocking=False), clocks.stream(0x20, blocking=False)
        adding = touched(space, Touch(adds=np.array([0x1000])))
        clocks.queue(one, adding)
        assert bool(clocks.missing(clocks.start(other), adding)) is not unordered
        assert clocks.missing(clocks.start(other), touched(space, Touch(reads=np.array([0x1000]))))
        space.remove(0x1000)
        space.add(Mapping(0x1000, 64, Physical(64), 0))


def _differ(made: Iterable[Written], orders: Iterable[int | None]) -> bool:
    outcomes = [Shadow(1, order, engine=False).run(made, None) for order in orders]
    return any(outcome.differences(outcomes[0]) for outcome in outcomes)


def test_every_order_brings_the_same_bytes() -> None:
    for seed in SEEDS:
        assert not _differ(program(seed).records, (None, 1, 2)), seed


def test_the_order_is_there_for_a_reason() -> None:
    """Without the waits for events, or those of the host, there are other bytes."""
    for dropped in (Kind.EVENT_WAIT, Kind.SYNCHRONIZE):
        bad = sum(_differ(_without(program(seed), dropped), (None, 1, 2, 3)) for seed in SEEDS[:12])
        assert bad >= 2, dropped


def _without(made: Program, kind: Kind) -> list[Written]:
    return [written for written in made.records if next(records(written.data)).kind is not kind]


@pytest.mark.parametrize("graph", [False, True])
def test_a_decoder_brings_the_same_tokens_in_every_order(graph: bool) -> None:
    for seed in range(3):
        made = paged_attention(seed, 12, graph=graph, layers=2)
        outcomes = [Shadow(1, order, engine=False).run(made.records, None) for order in (None, 1)]
        assert not outcomes[1].differences(outcomes[0])
        tokens = [struct.unpack("<2i", arrived.data) for arrived in outcomes[0].arrived if len(arrived.data) == 8]
        assert len(tokens) == 12
        assert len(set(tokens)) > 2


def test_a_decoder_is_the_same_as_a_graph_and_without() -> None:
    found = []
    for graph in (False, True):
        outcome = Shadow(1, None, engine=False).run(paged_attention(5, 10, graph=graph).records, None)
        found.append([arrived.data for arrived in outcome.arrived])
    assert found[0] == found[1]


# Placements.

def test_random_devices() -> None:
    placement: Placement = random_devices(3, 4)
    again: Placement = random_devices(3, 4)
    asked = [(f"k{k % 5}", (k % 3 + 1, 1, 1), (32, 1, 1), k % 4) for k in range(400)]
    found = [placement.devices(LaunchKey(*each[:3]), each[3]) for each in asked]
    assert found == [again.devices(LaunchKey(*each[:3]), each[3]) for each in asked]
    shapes = Counter(len(devices) for devices in found)
    assert all(shapes[count] > 20 for count in (0, 1, 2))
    for devices, (_, _, _, home) in zip(found, asked, strict=True):
        assert all(0 <= d < 4 for d in devices)
        assert len(devices) < 2 or (devices[0] == home != devices[1])


def test_steady_devices_repeat_themselves() -> None:
    placement = random_devices(3, 4, steady=True)
    keys = [LaunchKey("k", (k, 1, 1), (32, 1, 1)) for k in range(1, 20)]
    first, second = ([placement.devices(key, 0) for key in keys] for _ in range(2))
    assert first == second
    assert len(set(first)) > 2


