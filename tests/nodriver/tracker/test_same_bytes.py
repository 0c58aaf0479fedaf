"""Under any placement a program sees the bytes that it sees on one GPU: a shadow executor carries out what the tracker
decides, with random delays within what the order of things allows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.session.placement import Placement
from orchestrator.session.placements.text import parse_placement
from orchestrator.traces.reader import Trace
from orchestrator.traces.records import records as trace_records
from shim.wire import records
from tessera.reasons import Kind, reasons
from tests.generated import ALL, Program, paged_attention, random_devices, random_program
from tests.material import ROOT
from tests.nodriver.tracker.all_scenes import SCENES
from tests.nodriver.tracker.proof import ROOM, Run, Way, bare, overfull, placed
from tests.shadow import Outcome
from tests.shadow.script import Given

TRACES = sorted((ROOT / "tests" / "fixtures" / "traces").glob("*.trace"))
SMALL = (900, 3000, 6000, 20_000)
"""Bytes that make replicas give way to others, and some of them find no room."""
FLEETS = (2, 4, 16)
LOOPS = frozenset({"atomics", "events", "loops", "streams", "tables", "variables"})
Note = Callable[[str, object], None]


def placement_of(rng: random.Random, gpus: int) -> Callable[[], Placement]:
    """Placements for tests and the product's: at random, the same in every step, all to one GPU, all mirrored."""
    seed, steady = rng.randrange(1 << 30), rng.random() < 0.5
    gpu = rng.randrange(1, gpus)
    all_gpus = "+".join([str(number) for number in range(min(gpus, 4))])
    return rng.choice([
        lambda: random_devices(seed, gpus, steady=steady), lambda: random_devices(seed, gpus, home=0, mirrored=0),
        lambda: random_devices(seed, gpus, home=0.1, mirrored=0.6), lambda: parse_placement(f"random:{seed}", gpus),
        lambda: parse_placement(f"*={gpu}", gpus), lambda: parse_placement(f"*=0+{gpu}", gpus),
        lambda: parse_placement(f"*={all_gpus}", gpus), lambda: parse_placement(f"[a-m]*={gpu},*=0", gpus),
    ])


def way_of(seed: int) -> Way:
    """Any way in which a program may be placed."""
    rng = random.Random(seed)
    gpus = rng.choice(FLEETS)
    rooms = (ROOM,) * gpus if rng.random() < 0.6 else tuple([rng.choice((*SMALL, ROOM)) for _ in range(gpus)])
    home = rng.randrange(gpus) if rng.random() < 0.3 else 0
    return Way(rooms, placement_of(rng, gpus), rng.randrange(1 << 30), home)


def same(name: str, program: Iterable[Given], ways: Iterable[Way], seen: Counter[str], holes: bool = True) -> None:
    """It is the same in all these ways. ``holes``: replicas may have some, which take memory in the shadow executor."""
    given, references = [*program], dict[tuple[int, int], Outcome]()
    for number, way in enumerate(ways):
        where = len(way.rooms), way.home
        if where not in references:
            references[where] = bare(given, way)
        run = placed(given, way)
        wrong = run.outcome.differences(references[where]) + ([] if holes else overfull(run, way))
        assert wrong == [], f"{name}, way {number}: {wrong[:3]}"
        honest(name, run)
        seen.update(run.seen())
        seen["runs"] += 1


def honest(name: str, run: Run) -> None:
    """All that happens is told, so that tables are what the tracker takes them for. But nobody is held by mirrored
    launches: bytes between those that they touch may be written by others before they are gathered."""
    found = [number for number, _ in run.outcome.mismatches if number not in run.mirrors]
    assert found == [], f"{name}: jobs {found} find other bytes in tables than were put there"


def note(record_property: Note, what: str, seen: Counter[str]) -> None:
    record_property(f"{what}: what was seen", dict(sorted(seen.items())))


def reached(seen: Counter[str], *names: str) -> None:
    missing = [name for name in ("jobs", "sent", *names) if not seen[name]]
    assert missing == [], f"nothing is shown of {', '.join(missing)}: {seen}"


def programs(first: int, count: int) -> Iterator[tuple[str, Program, bool]]:
    """Random ones of several sizes, with all that there is and with less; whether they have memory with holes."""
    for seed in range(first, first + count):
        rng = random.Random(seed)
        size = rng.choice((20, 40, 40, 60, 100))
        features = ALL if rng.random() < 0.5 else frozenset(rng.sample(sorted(ALL), len(ALL) // 2)) | {"tables"}
        yield f"random program {seed}", random_program(seed, size, features), "virtual" in features


REACHED = ("mirrored", "evicted", "full_device", "pointer_escapes", "host_memory", "pointer_from_memory",
           "unknown_address", "not_deterministic", "device_variant", "aliased_memory")


def test_random_programs(long_run: bool, record_property: Note) -> None:
    seen: Counter[str] = Counter()
    for number, (name, program, holes) in enumerate(programs(0, 4000 if long_run else 50)):
        same(name, program.records, [way_of(2 * number), way_of(2 * number + 1)], seen, holes)
    note(record_property, "random programs", seen)
    reached(seen, *REACHED)


def test_steps(long_run: bool, record_property: Note) -> None:
    """Programs whose steps repeat themselves, in placements that do the same each time and in others."""
    seen: Counter[str] = Counter()
    for seed in range(10_000, 11_000 if long_run else 10_024):
        program = random_program(seed, 40, LOOPS | {"graphs", "updates"} if seed % 2 else LOOPS)
        same(f"steps {seed}", program.records, [way_of(seed), way_of(seed + 5000)], seen, holes=False)
    note(record_property, "steps", seen)
    reached(seen, "mirrored", "evicted", "known")


def test_paged_attention(long_run: bool, record_property: Note) -> None:
    """Blocks of a cache that is written and read through tables are sent, where they are known."""
    seen: Counter[str] = Counter()
    for seed in range(20_000, 20_400 if long_run else 20_010):
        program = paged_attention(seed, 14 if seed % 5 == 0 else 6, sequences=1 + seed % 3, blocks=12,
                                  layers=1 + seed % 2, graph=seed % 4 == 3)
        same(f"attention {seed}", program.records, [way_of(seed), way_of(seed + 5000)], seen, holes=False)
    note(record_property, "paged attention", seen)
    reached(seen, "mirrored", "evicted")


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_traces(path: Path, long_run: bool, record_property: Note) -> None:
    seen: Counter[str] = Counter()
    with Trace(path) as trace:
        clients = [row["id"] for row in trace.rows("SELECT id FROM client ORDER BY id")]
        for client in clients:
            program = list(each(b"".join(trace_records(trace, client))))
            same(f"{path.stem}, client {client}", program, map(way_of, range(200 if long_run else 20)), seen)
    note(record_property, path.stem, seen)
    reached(seen)


def each(data: bytes) -> Iterator[bytes]:
    """Records one by one."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "little")
        yield data[at:at + size]
        at += size
    assert len(list(records(data))) > 0


def test_all_reasons_are_met(record_property: Note) -> None:
    """By scenes, what random programs do not meet: each reason for which a launch can be refused."""
    met = {reason.value for stage in SCENES.values() for reason in stage.refused}
    assert {"full_device", "no_image", "unknown_address", "not_deterministic", "device_variant"} <= met
    memory = {"managed_memory", "host_memory", "shared_memory", "peer_memory", "aliased_memory", "unbounded_write"}
    assert memory <= met
    assert any(stage.mismatches for stage in SCENES.values())
    refused: Sequence[str] = [reason.value for reason in reasons(Kind.REFUSED)]
    record_property("reasons that are met by scenes", sorted(met & {*refused, *memory}))
