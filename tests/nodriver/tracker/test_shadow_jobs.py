"""The shadow executor carries out decisions to the letter: what is left out of one shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from orchestrator.session.jobs import Assumed, Decision, Replica, Rest, Span
from orchestrator.session.operations import Pointer, StreamKey
from shim import tails
from shim.wire import Kind, NodeKind, lib
from tests.nodriver.tracker.by_hand import (
    ADD,
    BYTES,
    COUNT,
    GROW,
    ODD,
    WORDS,
    A,
    B,
    C,
    Program,
    Scripted,
    job,
    node,
    numbers,
    placed,
    refused,
    set_node,
    span,
    words,
)
from tests.program_records import CONTEXT, MODULE
from tests.shadow import Outcome, Shadow

SEEDS = range(30)
Tracked = Callable[[], Scripted]


def bare(program: Program) -> Outcome:
    found = Shadow(1, None).run(program.data, None)
    assert not found.faults
    return found


def runs(program: Program, tracker: Tracked, gpus: int = 3) -> list[Outcome]:
    return [Shadow(gpus, seed).run(program.data, tracker()) for seed in (None, *SEEDS)]


def same(program: Program, tracker: Tracked) -> list[Outcome]:
    """Runs that all show what a run at home shows."""
    expected = bare(program)
    found = runs(program, tracker)
    for outcome in found:
        assert outcome.differences(expected) == []
    return found


def different(program: Program, tracker: Tracked) -> list[str]:
    """What is different in some run of those."""
    expected = bare(program)
    found = [difference for outcome in runs(program, tracker) for difference in outcome.differences(expected)]
    assert found
    return found


def one_launch() -> tuple[Program, int, int]:
    """A program with one launch; it, and what closes its segment."""
    program = Program()
    program.put(A)
    program.put(B, 1000)
    return program, program.run(GROW, B, A, 5), program.get(B)


@pytest.mark.parametrize("engine", [True, False])
def test_a_job_leaves_what_the_launch_would_have(engine: bool) -> None:
    program, launch, end = one_launch()
    decision = job(0, [placed(launch, GROW, B, A, 5)], [span(A), span(B)], [span(B)])
    found = Shadow(2, 3, engine=engine).run(program.data, Scripted({end: [decision]}))
    assert found.differences(bare(program)) == []
    assert numbers(found.arrived[0].data)[:3] == [1005, 1007, 1009]
    assert (found.launches, found.gathered, found.applied) == ({1: 1}, {0: 2 * BYTES}, {0: BYTES})
    assert found.replicas == {1: 2 * BYTES}


def test_a_forgotten_gather_is_seen() -> None:
    program, launch, end = one_launch()
    launches = [placed(launch, GROW, B, A, 5)]
    different(program, lambda: Scripted({end: [job(0, launches, [span(A)], [span(B)])]}))
    different(program, lambda: Scripted({end: [job(0, launches, [span(A, 0, 252), span(B)], [span(B)])]}))


def test_a_forgotten_apply_is_seen() -> None:
    program, launch, end = one_launch()
    launches = [placed(launch, GROW, B, A, 5)]
    different(program, lambda: Scripted({end: [job(0, launches, [span(A), span(B)], [span(B, 4)])]}))


def test_a_forgotten_pointer_is_a_fault() -> None:
    program, launch, end = one_launch()
    launches = [placed(launch, GROW, B, A, 5, pointers=[Pointer(0, 2, 0)])]
    tracker = Scripted({end: [job(0, launches, [span(B)], [span(B)])]})
    (fault,) = Shadow(2, None).run(program.data, tracker).faults
    assert f"job 0 on GPU 1: record {launch}, node -1, kernel grow: " in fault


@pytest.mark.parametrize(("replicas", "apply", "words_of"), [
    ([Replica(1, BYTES)], [], "allocation 2 has no replica"),
    ([Replica(1, BYTES), Replica(2, 64)], [], "256 bytes at 0 of allocation 2, which has 64"),
    ([Replica(1, BYTES), Replica(2, BYTES, "sum", 5)], [], "module 5 has no variable sum"),
    ([Replica(1, BYTES), Replica(2, BYTES, "total", 9)], [], "module 9"),
    ([Replica(1, BYTES), Replica(2, BYTES)], [Span(1 << 40, 2, 0, 4)], "there is no memory at 0x10000000000"),
])
def test_decisions_that_cannot_be_are_faults(replicas: list[Replica], apply: list[Span], words_of: str) -> None:
    program, launch, end = one_launch()
    decision = job(0, [placed(launch, GROW, B, A, 5)], [span(A), span(B)], apply, replicas=replicas)
    (fault,) = Shadow(2, None).run(program.data, Scripted({end: [decision]})).faults
    assert words_of in fault


def test_decisions_are_on_launches_that_wait_for_them() -> None:
    program, launch, end = one_launch()
    launches = [placed(launch, GROW, B, A, 5)]
    sent = job(0, launches, [span(A), span(B)], [span(B)])
    other = StreamKey(CONTEXT, 0x77, 0, 3)
    for decisions, words_of in (
        ([sent._replace(launches=(placed(launch + 1, GROW, B, A),))], "is no work"), ([sent, sent], "more than once"),
        ([sent._replace(stream=other)], "no stream"), ([sent._replace(device=2)], "no GPU 2"),
        ([sent._replace(home=1)], "is not a launch"),
    ):
        (fault,) = Shadow(2, None).run(program.data, Scripted({end: list(decisions)})).faults
        assert words_of in fault


def two_streams(first: int, second: int) -> tuple[Program, int, int, int, StreamKey, StreamKey]:
    """Two streams that write every other element of B each. ``first`` and ``second`` say which, and k."""
    program = Program()
    program.put(A)
    program.put(B, 1000)
    one, two = program.stream(0x51), program.stream(0x52)
    launches = program.run(ODD, B, A, first, 0x51), program.run(ODD, B, A, second, 0x52)
    program.synchronize()
    return program, *launches, program.get(B), one, two


def test_a_forgotten_wait_is_seen() -> None:
    program, _, launch, end, one, two = two_streams(4, 7)
    launches = [placed(launch, ODD, B, A, 7)]

    def tracker(waits: Sequence[StreamKey]) -> Scripted:
        return Scripted({launch + 1: [job(0, launches, [span(A), span(B)], [span(B)], stream=two, waits=waits)]})

    same(program, lambda: tracker([one]))
    different(program, lambda: tracker([]))
    assert end > launch


def test_a_forgotten_hold_is_seen() -> None:
    program, launch, other, _, one, _ = two_streams(4, 7)
    launches = [placed(launch, ODD, B, A, 4)]

    def tracker(holds: bool) -> Scripted:
        return Scripted({other: [job(0, launches, [span(A), span(B)], [span(B)], stream=one, holds=holds)]})

    same(program, lambda: tracker(True))
    different(program, lambda: tracker(False))


def test_replicas_are_kept_until_they_are_evicted() -> None:
    program, first, end = one_launch()
    second, third = program.run(ADD, B, A, 9), program.get(B)
    one = job(0, [placed(first, GROW, B, A, 5)], [span(A), span(B)], [span(B)])
    two = job(1, [placed(second, ADD, B, A, 9)], [], [span(B)])
    for found in same(program, lambda: Scripted({end: [one], third: [two]})):
        assert found.gathered == {0: 2 * BYTES, 1: 0}
    different(program, lambda: Scripted({end: [one], third: [two._replace(evicted=(1,))]}))
    different(program, lambda: Scripted({end: [one], third: [two._replace(device=2)]}))


def test_bytes_written_at_home_are_stale_elsewhere() -> None:
    program, first, end = one_launch()
    program.put(A, 500)
    second, third = program.run(ADD, B, A, 9), program.get(B)
    one = job(0, [placed(first, GROW, B, A, 5)], [span(A), span(B)], [span(B)])
    two = job(1, [placed(second, ADD, B, A, 9)], [], [span(B)])
    different(program, lambda: Scripted({end: [one], third: [two]}))
    same(program, lambda: Scripted({end: [one], third: [two._replace(gather=(span(A),))]}))


def test_launches_of_a_job_run_in_order() -> None:
    program = Program()
    program.put(A)
    first, second = program.run(ADD, B, A, 1), program.run(ADD, C, B, 10)
    end = program.get(C)
    launches = [placed(first, ADD, B, A, 1), placed(second, ADD, C, B, 10)]
    for found in same(program, lambda: Scripted({end: [job(0, launches, [span(A)], [span(B), span(C)])]})):
        assert found.launches == {1: 2}


def test_what_assumed_bytes_are_not_runs_at_home_with_all_behind_it() -> None:
    program, first, end = one_launch()
    second = program.run(GROW, B, A, 1)
    last = program.get(B)
    assumed = [Assumed(A + 4, words([1, 2])), Assumed(A + 16, words([4, 6]))]
    one = job(0, [placed(first, GROW, B, A, 5)], [span(A, 0, 20), span(A, 20), span(B)], [span(B)], assumed=assumed)
    two = job(1, [placed(second, GROW, B, A, 1)], [span(A), span(B)], [span(B)])
    trackers: list[Scripted] = []

    def tracker() -> Scripted:
        trackers.append(Scripted({end: [one], last: [two]}))
        return trackers[-1]

    for found in same(program, tracker):
        assert found.mismatches == [(0, 1)]
        assert found.launches == {0: 1, 1: 1}
    assert all(tracker.withdrawn == [(1, end)] for tracker in trackers)
    right = one._replace(assumed=(assumed[0],))
    for found in same(program, lambda: Scripted({end: [right], last: [two]})):
        assert not found.mismatches
    different(program, lambda: Scripted({end: [one], last: [two._replace(gather=(span(B),))]}))  # all is stale
    faults = different(program, lambda: Scripted({end: [one._replace(assumed=(Assumed(C, b"x"),))], last: [two]}))
    assert "is assumed, and not gathered" in faults[0]


def test_jobs_that_wait_behind_a_mismatch_run_at_home() -> None:
    program = Program()
    program.put(A)
    program.put(B, 1000)
    one, two = program.stream(0x51), program.stream(0x52)
    first = program.run(GROW, B, A, 5, 0x51)
    second = program.run(ADD, C, A, 1, 0x52)
    program.synchronize()
    program.get(B)
    program.get(C)
    wrong = job(0, [placed(first, GROW, B, A, 5)], [span(A), span(B)], [span(B)], stream=one,
                assumed=[Assumed(B, words([1]))])
    behind = job(1, [placed(second, ADD, C, A, 1)], [span(A)], [span(C)], stream=two)
    found = same(program, lambda: Scripted({second: [wrong], second + 1: [behind]}))
    early, late = [(0, 1), (1, 1)], [(0, 2)]  # early: the second was decided when the first had been found out
    assert [sorted(one.launches.items()) for one in found[:1]] == [early]
    assert late in [sorted(one.launches.items()) for one in found]


def test_mirrored_launches_run_on_all_that_they_are_mirrored_on() -> None:
    program, first, end = one_launch()
    second = program.run(ADD, C, B, 1)
    last = program.get(C)
    launches = [placed(first, GROW, B, A, 5)]
    mirrors = [job(number, launches, [span(A), span(B)], device=number + 1, mirrored=True, holds=False)
               for number in range(2)]
    mirrors[1] = mirrors[1]._replace(runs_home=True)
    behind = job(2, [placed(second, ADD, C, B, 1)], [], [span(C)], device=2)
    for found in same(program, lambda: Scripted({end: [*mirrors], last: [behind]})):
        assert found.launches == {0: 1, 1: 1, 2: 2}
        assert found.applied == {2: BYTES}
    for found in same(program, lambda: Scripted({end: [mirrors[1], refused(1, launches, 1, True)]})):
        assert found.launches == {0: 2, 2: 1}
    different(program, lambda: Scripted({end: [mirrors[0]]}))  # nobody runs it at home


def test_refused_launches_run_at_home() -> None:
    program, launch, end = one_launch()
    for found in same(program, lambda: Scripted({end: [refused(0, [placed(launch, GROW, B, A, 5)])]})):
        assert found.launches == {0: 1}


def test_launches_in_no_decision_run_at_home_in_their_place() -> None:
    program = Program()
    program.put(A)
    first, second, third = program.run(ADD, B, A, 1), program.run(GROW, B, B, 0), program.run(GROW, B, A, 2)
    end = program.get(B)
    decision = job(0, [placed(second, GROW, B, B, 0)], [span(B)], [span(B)])

    class Undecided(Scripted):
        """Keeps all open, and then decides on one of them."""

        def take(self, data: bytes) -> list[Decision]:
            given = super().take(data)
            waiting = [n for n in (first, second, third) if n <= self._seen < end]
            self.open = tuple(placed(n, ADD, B, A) for n in waiting)
            return given

    for found in same(program, lambda: Undecided({end: [decision]})):
        assert found.launches == {0: 2, 1: 1}


def test_what_is_left_at_the_end_is_decided_there() -> None:
    program = Program()
    program.put(A)
    launch = program.run(ADD, B, A, 1)
    decision = job(0, [placed(launch, ADD, B, A, 1)], [span(A)], [span(B)])
    for found in same(program, lambda: Scripted({}, [decision])):
        assert numbers(found.memory[B])[:2] == [1, 2]
    different(program, lambda: Scripted({}, [decision._replace(apply=())]))


def test_each_gpu_has_variables_of_its_own() -> None:
    program = Program()
    where = 0x10_0000_2000
    program.record(Kind.MEMORY, address=where, bytes=4, context=CONTEXT, kind=lib.WIRE_VARIABLE, owner=MODULE,
                   name_bytes=5, tail=b"total")
    first = program.run(COUNT, B, A, 10, block=1)
    middle = program.to_device(where, words([100]))
    second = program.run(COUNT, B, A, 1, block=1)
    end = program.get(B)
    total = Replica(9, 4, "total", 5)
    at_total = Span(where, 9, 0, 4)
    one = job(0, [placed(first, COUNT, B, A, 10, block=1)], [], [span(B, 0, 4), at_total],
              replicas=[Replica(1, BYTES), Replica(2, BYTES), total])
    two = job(1, [placed(second, COUNT, B, A, 1, block=1)], [at_total], [span(B, 0, 4), at_total],
              replicas=[Replica(1, BYTES), Replica(2, BYTES), total])
    for found in same(program, lambda: Scripted({middle: [one], end: [two]})):
        assert numbers(found.arrived[0].data)[0] == 101
        assert [numbers(data) for data in found.variables.values()] == [[101]]
    different(program, lambda: Scripted({middle: [one], end: [two._replace(gather=())]}))
    different(program, lambda: Scripted({middle: [one], end: [two._replace(apply=(span(B, 0, 4),))]}))


def graph() -> tuple[Program, int, int]:
    """A graph of four nodes, one after the other, a child among them; its launch and the next record."""
    program = Program()
    program.put(A)
    child = tails.encode_node(NodeKind.CHILD, node=3)
    nodes = [node(4, GROW, C, B, 2), node(1, ADD, B, A, 1), set_node(2, C, 5), child, node(5, GROW, B, B, parent=3)]
    program.graph(nodes, [(1, 2), (2, 3), (3, 4)])
    return program, program.launch_graph(), program.get(C)


def test_a_graph_may_be_taken_apart() -> None:
    program, launch, _ = graph()
    where = {"position": 4}
    middle = job(0, [placed(launch, GROW, B, B, **where)], [span(B)], [span(B)])
    around = Rest(launch, (1, 2, 3)), Rest(launch, (0,))
    for found in same(program, lambda: Scripted({launch: [around[0], middle, around[1]]})):
        assert found.launches == {0: 2, 1: 1}
        assert numbers(found.arrived[0].data)[:2] == [9, 11]
    faults = different(program, lambda: Scripted({launch: [around[0], middle]}))
    assert f"record {launch}: its graph is taken apart, and nodes [0] are in no decision" in faults[0]
    different(program, lambda: Scripted({launch: [around[1], around[0], middle]}))


def test_nodes_that_are_off_may_be_named_and_do_nothing() -> None:
    program, first, _ = graph()
    program.record(Kind.GRAPH_NODE, exec=0xE0, tail=set_node(2, C, 5, enabled=0))
    second = program.launch_graph()
    program.get(C)
    middle = job(0, [placed(second, GROW, B, B, position=4)], [span(B)], [span(B)])
    decisions: list[Decision] = [Rest(second, (1, 2)), middle, Rest(second, (0,))]
    for found in same(program, lambda: Scripted({second: decisions})):
        assert numbers(found.arrived[1].data)[:2] == [13, 17]
    assert first < second


def test_the_host_goes_on_while_jobs_run() -> None:
    """What another stream writes behind a job that holds nobody may come first, and what is gathered is from before."""
    program = Program()
    program.put(A)
    one = program.stream(0x51)
    program.stream(0x52)
    launch = program.run(ADD, B, A, 1, 0x51)
    program.set(A, 7, 0x52)
    program.synchronize()
    program.get(B)
    decision = job(0, [placed(launch, ADD, B, A, 1)], [span(A)], [span(B)], stream=one, holds=False)
    found = {outcome.arrived[0].data for outcome in runs(program, lambda: Scripted({launch + 1: [decision]}))}
    assert found == {words(range(1, WORDS + 1)), words([8] * WORDS)}
