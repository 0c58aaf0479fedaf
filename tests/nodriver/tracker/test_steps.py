"""What a step is, which steps are alike, and what they only read."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.session import step_classes
from orchestrator.session.intervals import Intervals
from orchestrator.session.step_classes import StepClass, StepClasses
from orchestrator.session.steps import LaunchKey, Step, Steps, ends_step, graph_text, launch_text
from orchestrator.traces.reader import Trace
from shim.wire import Kind, lib, records
from tests.material import ROOT
from tests.program_records import Program, side

TRACES = ROOT / "tests" / "fixtures" / "traces"


def key(kernel: str, grid: int = 1, block: int = 32) -> LaunchKey:
    return LaunchKey(kernel, (grid, 1, 1), (block, 1, 1))


def do_step(classes: StepClasses, *keys: LaunchKey, reads: tuple[tuple[int, int], ...] = ()) -> StepClass | None:
    for sequence, one in enumerate(keys):
        classes.launched(sequence, launch_text(one), (one,))
    for lo, hi in reads:
        classes.reads(lo, hi)
    return classes.over()


def weights(classes: StepClasses, step: StepClass | None) -> list[tuple[int, int]]:
    assert step is not None
    return list(classes.weights(step.signature))


def test_a_step_is_what_is_launched_between_two_waits() -> None:
    steps = Steps()
    assert steps.over() is None
    assert [steps.launched(number, launch_text(key("k"))) for number in (4, 6, 9)] == [True, False, False]
    signature = hashlib.blake2b(b"k (1, 1, 1) (32, 1, 1)\n" * 3, digest_size=8).hexdigest()
    assert steps.over() == Step(0, 4, 9, 3, signature)
    assert steps.over() is None
    assert steps.launched(11, launch_text(key("k")))
    again = steps.over()
    assert again is not None and again[:4] == (1, 11, 11, 1) and again.signature != signature


def test_a_graph_is_one_launch_of_its_kernels() -> None:
    assert graph_text([]) == b"graph"
    assert graph_text([launch_text(key("a")), launch_text(key("b", 2))]) == \
        b"graph;a (1, 1, 1) (32, 1, 1);b (2, 1, 1) (32, 1, 1)"


def test_names_that_are_no_utf_8_have_one_text() -> None:
    said = b"k\xff\xc3\xbc".decode(errors="surrogateescape")
    assert launch_text(LaunchKey(said, (1, 1, 1), (1, 1, 1))) == "k\ufffdü (1, 1, 1) (1, 1, 1)".encode()


def copy(program: Program, to: int, origin: int, **more: Any) -> None:
    program.record(Kind.COPY, width=4, height=1, depth=1, to=side(0x10, to), from_=side(0x20, origin), **more)


@pytest.mark.parametrize(("to", "origin", "flags", "ends"), [
    (lib.WIRE_SIDE_HOST, lib.WIRE_SIDE_DEVICE, lib.WIRE_SYNCHRONOUS, True),
    (lib.WIRE_SIDE_HOST, lib.WIRE_SIDE_DEVICE, 0, False),
    (lib.WIRE_SIDE_DEVICE, lib.WIRE_SIDE_HOST, lib.WIRE_SYNCHRONOUS, False),
    (lib.WIRE_SIDE_HOST, lib.WIRE_SIDE_HOST, lib.WIRE_SYNCHRONOUS, False),
    (lib.WIRE_SIDE_DEVICE, lib.WIRE_SIDE_DEVICE, lib.WIRE_SYNCHRONOUS, False),
])  # fmt: skip
def test_a_copy_ends_a_step_if_bytes_have_come_home_with_it(to: int, origin: int, flags: int, ends: bool) -> None:
    program = Program()
    copy(program, to, origin, flags=flags)
    copy(program, to, origin, flags=flags, marks=lib.WIRE_CAPTURED)
    assert [ends_step(record) for data in program.data for record in records(data)] == [ends, False]


def test_a_wait_ends_a_step_and_work_does_not() -> None:
    program = Program()
    program.launch(b"")
    program.synchronize()
    assert [ends_step(record) for data in program.data for record in records(data)] == [False, True, False]


@pytest.mark.parametrize("stem", [path.stem for path in sorted(TRACES.glob("*.trace"))])
def test_step_classes_are_those_of_kept_traces(stem: str) -> None:
    with Trace(TRACES / f"{stem}.trace") as trace:
        nodes: dict[int, dict[int, LaunchKey]] = {}
        for row in trace.rows("SELECT * FROM nodes ORDER BY graph, position, born"):
            if row["kind"] == "launch":  # as it was made: changes of its parameters come later
                nodes.setdefault(row["graph"], {}).setdefault(row["position"], launched(row))
        work: list[tuple[int, int, bytes, list[LaunchKey]]] = []
        for row in trace.rows("SELECT * FROM launches WHERE NOT captured"):
            one = launched(row)
            work.append((row["sequence"], row["step"], launch_text(one), [one]))
        for row in trace.rows("SELECT * FROM graph_launches WHERE NOT captured"):
            keys = list(nodes[row["graph"]].values())
            work.append((row["sequence"], row["step"], graph_text(launch_text(one) for one in keys), keys))
        wanted = [(row["step"], row["signature"]) for row in trace.rows("SELECT * FROM steps ORDER BY first")]
    classes, found = StepClasses(), []
    for number, _ in wanted:
        for sequence, step, text, keys in sorted(work):
            if step == number:
                classes.launched(sequence, text, keys)
        over = classes.over()
        found.append((number, over.signature if over else ""))
    assert wanted and found == wanted


def launched(row: Any) -> LaunchKey:
    return LaunchKey(row["kernel"], (row["grid_x"], row["grid_y"], row["grid_z"]),
                     (row["block_x"], row["block_y"], row["block_z"]))


def test_the_third_repeat_is_steady() -> None:
    classes = StepClasses()
    assert classes.over() is None
    seen = [do_step(classes, key("a"), key("b")) for _ in range(3)]
    assert seen[0] is seen[2] is not None and seen[0].launches == (key("a"), key("b"))
    other = do_step(classes, key("b"), key("a"))
    assert other is not None and (other.count, other.steady) == (1, False)
    assert (seen[0].count, seen[0].steady) == (3, True)
    assert [known.signature for known in classes] == [seen[0].signature, other.signature]


def test_a_graph_and_its_kernels_alone_are_two_classes_of_the_same_launches() -> None:
    classes = StepClasses()
    keys = (key("a"), key("b"))
    alone = do_step(classes, *keys)
    classes.launched(9, graph_text(launch_text(one) for one in keys), keys)
    graph = classes.over()
    assert alone is not None and graph is not None
    assert alone.launches == graph.launches and alone.signature != graph.signature


def test_weights_are_read_and_no_more_written() -> None:
    classes = StepClasses()
    classes.written(0, 50)  # loading
    first = do_step(classes, key("a"), reads=((0, 100), (300, 400)))
    assert weights(classes, first) == [(0, 100), (300, 400)]
    classes.written(90, 320)
    assert weights(classes, first) == [(0, 90), (320, 400)]
    other = do_step(classes, key("b"), reads=((50, 60), (95, 330)))
    assert weights(classes, other) == [(50, 60), (320, 330)]
    assert list(classes.weights("nobody's")) == []
    do_step(classes, key("a"), reads=((10, 20),))
    assert weights(classes, first) == [(10, 20)], "what the class reads is what its last step read"


def test_what_is_read_outside_a_step_is_no_step_s() -> None:
    classes = StepClasses()
    classes.reads(0, 10)
    first = do_step(classes, key("a"), reads=((20, 30),))
    classes.reads(40, 50)
    assert weights(classes, first) == [(20, 30)]


def test_what_was_seen_longest_ago_is_forgotten() -> None:
    classes = StepClasses(most=2)
    a, b = do_step(classes, key("a")), do_step(classes, key("b"))
    assert do_step(classes, key("a")) is a
    do_step(classes, key("c"))
    assert a is not None and b is not None and classes.forgotten == 1
    assert classes.get(a.signature) is a and classes.get(b.signature) is None
    again = do_step(classes, key("b"))
    assert again is not None and again.count == 1


def test_a_step_that_is_too_long_is_of_no_class() -> None:
    classes = StepClasses(most_launches=3)
    assert do_step(classes, *[key("a")] * 4) is None
    assert (classes.long, list(classes)) == (1, [])
    whole = do_step(classes, *[key("a")] * 3)
    assert whole is not None and len(whole.launches) == 3


def test_a_step_that_reads_too_many_ranges_is_of_no_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_classes, "MOST_RANGES", 4)
    classes = StepClasses()
    assert do_step(classes, key("a"), reads=tuple([(k, k + 1) for k in range(5)])) is None
    assert do_step(classes, key("a"), reads=tuple([(k, k + 1) for k in range(4)] * 2)) is not None


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 5)), max_size=60))
def test_weights_never_hold_what_was_written_however_many_ranges_it_took(writes: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_classes, "MOST_RANGES", 4)
        classes = StepClasses()
        first = do_step(classes, key("a"), reads=((0, 300),))
        for lo, size in writes:
            classes.written(lo, lo + size)
        exact = Intervals([(0, 300)])
        for lo, size in writes:
            exact.remove(lo, lo + size)
        found = weights(classes, first)
        assert all(exact.contains(*part) for part in found)
        assert found == list(exact) or len(exact) > 4
        assert len(found) <= 5
