"""The shadow executor does what records say, in every order that the driver's rules allow and in no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from shim import tails
from shim.wire import Kind, NodeKind, lib
from tessera.content import content
from tests.nodriver.tracker.by_hand import (
    ADD,
    BYTES,
    COUNT,
    GROW,
    PER_THREAD,
    PTX,
    WORDS,
    A,
    B,
    C,
    Program,
    Scripted,
    job,
    node,
    numbers,
    parameters,
    placed,
    set_node,
    side,
    span,
    words,
)
from tests.program_records import CONTEXT, LEGACY, MODULE
from tests.program_records import side as any_side
from tests.shadow import Outcome, Shadow, ShadowError

SEEDS = range(40)
ONE, TWO = 0x51, 0x52
COUNTING = list(range(WORDS))


def outcomes(program: Program, engine: bool = True) -> list[Outcome]:
    return [Shadow(1, seed, engine=engine).run(program.data, None) for seed in (None, *SEEDS)]


def always(program: Program) -> list[list[int]]:
    """The words of each copy to the host, which are the same in all orders."""
    found = {tuple(arrived.data for arrived in outcome.arrived) for outcome in outcomes(program)}
    assert all(outcome.faults == [] for outcome in outcomes(program))
    assert len(found) == 1
    return [numbers(data) for data in found.pop()]


def sometimes(program: Program) -> set[tuple[int, ...]]:
    """The first word of each copy, of several orders that are not the same."""
    found = {tuple(numbers(arrived.data)[0] for arrived in outcome.arrived) for outcome in outcomes(program)}
    assert len(found) > 1
    return found


def streams(flags: int = 1) -> Program:
    program = Program()
    program.put(A)
    program.put(B, 1000)
    program.stream(ONE, flags)
    program.stream(TWO, flags)
    return program


@pytest.mark.parametrize("engine", [True, False])
def test_launches_copies_and_sets(engine: bool) -> None:
    program = Program()
    program.put(A)
    program.set(B, 0x11223344)
    program.run(GROW, B, A, 1)
    program.get(B)
    program.set(C, 0x1234, element=2)
    program.get(C)
    program.set(C, 0x56, element=1)
    program.to_host(C + 4, bytes(4))
    for outcome in outcomes(program, engine)[:4]:
        assert outcome.faults == []
        found = [numbers(arrived.data) for arrived in outcome.arrived]
        assert found == [[0x11223345 + k for k in COUNTING], [0x12341234] * WORDS, [0x56565656]]
        assert outcome.memory[A] == words(COUNTING)
        assert outcome.launches == {0: 1}


def test_bytes_are_compared_with_those_that_were_recorded() -> None:
    program = Program()
    program.put(A)
    right, wrong = program.to_host(A, words(COUNTING)), program.get(A)
    (found, *_) = outcomes(program)
    assert found.unlike == [wrong]
    assert [arrived.sequence for arrived in found.arrived] == [right, wrong]


def test_work_of_one_stream_is_in_order_and_streams_are_not() -> None:
    program = streams()
    program.set(B, 5, ONE)
    program.run(GROW, B, A, 0, ONE)
    program.run(ADD, C, B, 0, ONE)
    program.synchronize()
    program.get(C)
    assert always(program) == [[5 + k for k in COUNTING]]
    program = streams()
    program.set(B, 5, ONE)
    program.run(ADD, B, A, 6, TWO)
    program.synchronize()
    program.get(B)
    assert sometimes(program) == {(5,), (6,)}


def test_events_order_streams() -> None:
    program = streams()
    program.set(B, 5, ONE)
    program.record_event(9, ONE)
    program.wait_event(9, TWO)
    program.run(GROW, B, A, 0, TWO)
    program.record_event(9, TWO)
    program.record(Kind.SYNCHRONIZE, what=lib.WIRE_WAITED_EVENT, event=9)
    program.get(B)
    assert always(program) == [[5 + k for k in COUNTING]]


def test_an_event_stands_for_its_last_record_before_the_wait() -> None:
    program = streams()
    program.record_event(9, ONE)
    program.wait_event(9, TWO)
    program.set(B, 5, ONE)
    program.record_event(9, ONE)
    program.run(ADD, C, B, 0, TWO)
    program.synchronize()
    program.get(C)
    assert sometimes(program) == {(5,), (1000,)}


def test_events_that_captures_join_by_order_nothing() -> None:
    program = streams()
    program.set(B, 5, ONE)
    program.record_event(9, ONE)
    program.record_event(9, ONE, marks=lib.WIRE_CAPTURED)
    program.wait_event(9, TWO)
    program.run(ADD, C, B, 0, TWO)
    program.synchronize()
    program.get(C)
    assert sometimes(program) == {(5,), (1000,)}


def test_captured_work_is_not_done() -> None:
    program = streams()
    program.record(Kind.SET, marks=lib.WIRE_CAPTURED, place=(ONE, CONTEXT), address=B, width=4, height=1,
                   element_bytes=4)
    given = parameters(B, A, 0)
    program.record(Kind.LAUNCH, marks=lib.WIRE_CAPTURED, place=(ONE, CONTEXT), function=ADD, grid=(1, 1, 1),
                   block=(WORDS, 1, 1), parameter_bytes=len(given), tail=tails.launch_tail(given))
    program.synchronize()
    program.get(B)
    assert always(program) == [[1000 + k for k in COUNTING]]


def test_the_legacy_stream_and_blocking_ones_wait_for_each_other() -> None:
    for stream in (ONE, PER_THREAD):
        program = streams(flags=0)
        program.set(B, 5, stream)
        program.run(GROW, B, A, 0, LEGACY)
        program.run(ADD, C, B, 0, stream)
        program.synchronize()
        program.get(C)
        assert always(program) == [[5 + k for k in COUNTING]]
    program = streams(flags=1)
    program.set(B, 5, ONE)
    program.run(ADD, C, B, 0, LEGACY)
    program.synchronize()
    program.get(C)
    assert sometimes(program) == {(5,), (1000,)}


def test_a_host_function_has_its_place_among_streams() -> None:
    program = streams(flags=0)
    program.set(B, 5, ONE)
    program.record(Kind.HOST_FUNCTION, place=(LEGACY, CONTEXT))
    program.run(ADD, C, B, 0, TWO)
    program.synchronize()
    program.get(C)
    assert always(program) == [[5] * WORDS]


def test_two_threads_have_two_streams_of_their_own() -> None:
    program = streams()
    program.set(B, 5, PER_THREAD)
    program.run(ADD, C, B, 0, PER_THREAD)
    program.run(ADD, B, A, 7, PER_THREAD)
    program.by_thread(8)
    program.synchronize()
    program.get(C)
    program.get(B)
    assert sometimes(program) == {(5, 7), (5, 5), (7, 7)}


def wait_for_nothing(program: Program) -> None:
    pass


def wait_for_stream(program: Program) -> None:
    number = program.record(Kind.SYNCHRONIZE, place=(ONE, CONTEXT), what=lib.WIRE_WAITED_STREAM)
    program.outcome(number)


def wait_for_context(program: Program) -> None:
    program.synchronize()


def see_that_it_is_done(program: Program) -> None:
    program.record(Kind.SYNCHRONIZE, place=(ONE, CONTEXT), what=lib.WIRE_WAITED_STREAM, query=1)


@pytest.mark.parametrize(("wait", "ordered"), [
    (wait_for_nothing, False), (wait_for_stream, True), (wait_for_context, True), (see_that_it_is_done, True)])
def test_the_host_waits(wait: Callable[[Program], None], ordered: bool) -> None:
    program = streams()
    program.set(B, 5, ONE)
    wait(program)
    program.run(ADD, C, B, 0, TWO)
    program.synchronize()
    program.get(C)
    assert always(program) == [[5] * WORDS] if ordered else sometimes(program) == {(5,), (1000,)}


def test_a_wait_is_over_when_its_outcome_says_so() -> None:
    program = streams()
    flag = C
    program.to_device(flag, words([0]))
    program.record(Kind.MEMORY_OPERATIONS, place=(ONE, CONTEXT), count=1,
                   tail=tails.memory_operations_tail([(1, 1, flag, 3)]))
    program.set(B, 5, ONE)
    waited = program.record(Kind.SYNCHRONIZE, place=(ONE, CONTEXT), what=lib.WIRE_WAITED_STREAM)
    program.record(Kind.MEMORY_OPERATIONS, place=(TWO, CONTEXT), count=1,
                   tail=tails.memory_operations_tail([(2, 0, flag, 3)]))  # of another thread
    program.outcome(waited)
    program.get(B)
    assert always(program) == [[5] * WORDS]


@pytest.mark.parametrize(("flags", "there", "wanted", "over"), [
    (0, 4, 3, True), (0, 2, 3, False), (0, 0x80000005, 3, False), (1, 3, 3, True), (1, 4, 3, False), (2, 6, 2, True),
    (2, 4, 2, False), (3, 1, 2, True), (3, 0xFFFFFFFD, 2, False)])
def test_streams_wait_for_values(flags: int, there: int, wanted: int, over: bool) -> None:
    program = streams()
    program.to_device(C, words([there]))
    program.record(Kind.MEMORY_OPERATIONS, place=(ONE, CONTEXT), count=1,
                   tail=tails.memory_operations_tail([(1, flags, C, wanted)]))
    faults = Shadow(1, 1).run(program.data, None).faults
    assert faults == [] if over else "nothing can go on" in faults[0]


def test_pooled_memory_comes_and_goes_in_the_order_of_its_stream() -> None:
    program = streams()
    where = 0x20_0000_0000
    for value in (3, 4):
        program.memory(where, BYTES, lib.WIRE_POOLED, stream=ONE)
        program.set(where, value, ONE)
        program.run(GROW, B, where, 0, ONE)
        program.ended(Kind.MEMORY, where, memory=lib.WIRE_POOLED, stream=ONE)
    program.synchronize()
    program.get(B)
    assert always(program) == [[1007 + k for k in COUNTING]]


def test_memory_that_is_given_back_is_waited_for_and_gone() -> None:
    program = streams()
    program.run(ADD, B, A, 1, ONE)
    program.free(A)
    program.get(B)
    assert always(program) == [[1 + k for k in COUNTING]]
    assert A not in outcomes(program)[0].memory
    program.run(ADD, B, A, 1, ONE)
    assert all("kernel add" in outcome.faults[0] for outcome in outcomes(program))


def test_new_memory_holds_what_it_held_nowhere() -> None:
    program = Program()
    program.put(A)
    program.free(A)
    program.memory(A, BYTES)
    program.get(A)
    assert always(program) == [[0xCDCDCDCD] * WORDS]


def test_calls_that_failed_do_nothing() -> None:
    program = Program()
    program.put(A)
    program.put(B, 1000)
    for failed in (program.run(ADD, B, A, 1), program.set(B, 5), program.free(A), program.put(B, 7)):
        program.outcome(failed, result=1)
    program.get(B)
    assert always(program) == [[1000 + k for k in COUNTING]]


def test_lost_records_happen_and_nobody_tells_the_tracker() -> None:
    program = Program()
    program.put(A)
    first = program.run(ADD, B, A, 1)
    lost = program.put(A, 500)
    launch = program.run(ADD, B, A, 2)
    end = program.get(B)
    given = [(data, number == lost) for number, data in enumerate(program.data)]
    decision = job(0, [placed(first, ADD, B, A, 1)], [span(A)], [span(B)])
    again = job(1, [placed(launch, ADD, B, A, 2)], [span(A)], [span(B)])
    for seed in SEEDS:
        outcome = Shadow(2, seed).run(given, Scripted({launch: [decision], end: [again]}))
        assert outcome.faults == []
        assert outcome.voided == [0]
        assert outcome.launches == {0: 1, 1: 1}
        assert numbers(outcome.arrived[0].data)[:2] == [502, 503]


@pytest.mark.parametrize("engine", [True, False])
def test_rows_and_slices(engine: bool) -> None:
    """From A, 4 rows of 64 bytes, 2 rows from row 1 on, into B, in two ways; and into an array and back."""
    program = Program()
    program.put(A)
    program.set(B, 0)
    shape = {"width": 8, "height": 2, "depth": 1}
    program.record(Kind.COPY, from_=side(A, x=4, y=1, pitch=64), to=side(B, x=8, pitch=16), **shape)
    program.get(B)
    solid = {"width": 4, "height": 2, "depth": 2}
    program.record(Kind.COPY, from_=side(A, z=0, pitch=32, height=3), to=side(B, pitch=4, height=2), **solid)
    program.get(B)
    program.record(Kind.ARRAY, handle=0xAA, context=CONTEXT, width=4, height=3, depth=2, element_bytes=4, channels=1)
    array = {"width": 8, "height": 2, "depth": 1}
    program.record(Kind.COPY, from_=side(A, pitch=16), to=any_side(0xAA, lib.WIRE_SIDE_ARRAY, x=4, y=1, z=1), **array)
    program.record(Kind.COPY, from_=any_side(0xAA, lib.WIRE_SIDE_ARRAY, x=8, y=1, z=1), to=side(B, pitch=4),
                   width=4, height=2, depth=1)
    program.get(B)
    program.record(Kind.SET, address=B, width=2, height=3, pitch=12, element_bytes=4, value=9)
    program.get(B)
    for outcome in outcomes(program, engine)[:3]:
        assert outcome.faults == []
        plane, solid_, from_array, filled = [numbers(arrived.data) for arrived in outcome.arrived]
        assert plane[:8] == [0, 0, 17, 18, 0, 0, 33, 34]
        assert solid_[:5] == [0, 8, 24, 32, 0]
        assert from_array[:3] == [1, 5, 24]
        assert filled[:9] == [9, 9, 24, 9, 9, 0, 9, 9, 0]


def test_contents_come_from_where_the_records_have_them() -> None:
    program = Program()
    large = words(range(2000))
    where = 0x20_0000_0000
    program.memory(where, len(large))
    program.to_device(where, large)
    pinned, later = 0x30_0000_0000, words([42] * WORDS)
    program.memory(pinned, BYTES, lib.WIRE_HOST)
    copy = program.record(Kind.COPY, width=BYTES, height=1, depth=1, to=side(B),
                          from_=any_side(pinned, lib.WIRE_SIDE_HOST), flags=lib.WIRE_PINNED,
                          content_kind=lib.WIRE_LATER_CONTENT)
    program.payload(later)
    program.outcome(copy, later)
    program.to_host(B, later, host=pinned)
    program.record(Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), flags=lib.WIRE_PINNED,
                   from_=any_side(pinned, lib.WIRE_SIDE_HOST))  # what the program has brought there
    program.get(C)
    program.to_host(where, large)
    (found, *_) = outcomes(program)
    assert found.unlike == [found.arrived[1].sequence]
    assert numbers(found.arrived[1].data) == [42] * WORDS
    assert content(found.arrived[2].data) == content(large)
    program.record(Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), from_=any_side(0x5000, lib.WIRE_SIDE_HOST))
    with pytest.raises(ShadowError, match="nobody recorded what this copy brings"):
        Shadow(1, None).run(program.data, None)


@pytest.mark.parametrize("engine", [True, False])
def test_physical_memory_at_several_addresses(engine: bool) -> None:
    program = Program()
    page, first, second = 1 << 16, 0x20_0000_0000, 0x21_0000_0000
    program.record(Kind.PHYSICAL, handle=0x77, bytes=2 * page)
    program.memory(first, 2 * page, lib.WIRE_MAPPED, owner=0x77)
    program.memory(second, page, lib.WIRE_MAPPED, owner=0x77, offset=page)
    program.put(A)
    program.run(ADD, first + page, A, 3)
    program.run(ADD, B, second, 1)
    program.get(B)
    program.record(Kind.COPY, from_=side(A), to=side(first + page - 8), width=BYTES, height=1, depth=1)
    program.synchronize()
    program.ended(Kind.MEMORY, first, memory=lib.WIRE_MAPPED, bytes=2 * page)
    program.get(second)
    program.ended(Kind.PHYSICAL, 0x77)
    program.run(ADD, first, A)
    for seed in range(3):
        outcome = Shadow(1, seed, engine=engine).run(program.data, None)
        assert [numbers(arrived.data)[:2] for arrived in outcome.arrived] == [[4, 5], [2, 3]]
        assert "kernel add" in outcome.faults[0]


@pytest.mark.parametrize("engine", [True, False])
def test_variables_move_where_the_program_sees_them(engine: bool) -> None:
    program = Program()
    program.run(COUNT, B, A, 10, block=1)
    where = 0x20_0000_0000
    program.record(Kind.MEMORY, address=where, bytes=4, context=CONTEXT, kind=lib.WIRE_VARIABLE, owner=MODULE,
                   name_bytes=5, tail=b"total")
    program.to_host(where, words([17]))
    program.to_device(where, words([100]))
    program.run(COUNT, B, A, 1, block=1)
    program.to_host(B, words([101]))
    for seed in (None, 1, 2):
        outcome = Shadow(1, seed, engine=engine).run(program.data, None)
        assert (outcome.faults, outcome.unlike) == ([], [])
        assert list(outcome.variables.values()) == [words([101])]


def test_libraries_have_variables_in_each_context() -> None:
    program = Program()
    other, library, kernel = 0xC001, 0xB000, 0xF100
    program.record(Kind.CONTEXT, handle=other, device=1)
    program.module(PTX.encode(), library, library=1)
    program.function("count", [(0, 8), (8, 8), (16, 4)], kernel, library)
    for context, value in ((CONTEXT, 1), (other, 2), (other, 2)):
        given = parameters(B, A, value)
        program.record(Kind.LAUNCH, place=(LEGACY, context), function=kernel, grid=(1, 1, 1), block=(1, 1, 1),
                       parameter_bytes=len(given), tail=tails.launch_tail(given))
        program.record(Kind.SYNCHRONIZE, place=(0, context), what=lib.WIRE_WAITED_CONTEXT)
    outcome = Shadow(2, 5).run(program.data, None)
    assert sorted(numbers(data)[0] for data in outcome.variables.values()) == [7, 8, 11]
    assert outcome.launches == {0: 1, 1: 2}
    assert Shadow(2, 5, home=1).run(program.data, None).launches == {1: 1, 0: 2}


def a_graph(edges: Sequence[tuple[int, int]]) -> Program:
    program = streams()
    child = tails.encode_node(NodeKind.CHILD, node=3)
    nodes = [node(5, GROW, C, B, parent=3), child, node(4, GROW, C, A, parent=3), node(6, ADD, B, C), set_node(2, C, 5)]
    program.graph(nodes, edges)
    program.launch_graph(stream=ONE)
    program.launch_graph(stream=ONE)
    program.synchronize()
    program.get(B)
    return program


def test_nodes_of_graphs_run_in_any_order_that_edges_allow() -> None:
    assert always(a_graph([(2, 3), (3, 6)])) == [[1010 + 3 * k for k in COUNTING]]
    sometimes(a_graph([(2, 3)]))
    sometimes(a_graph([(3, 6)]))


def test_nodes_change_between_launches() -> None:
    program = a_graph([(2, 3), (3, 6)])
    program.record(Kind.GRAPH_NODE, exec=0xE0, tail=set_node(2, C, 6))
    program.record(Kind.GRAPH_NODE, exec=0xE0, tail=tails.encode_node(NodeKind.CHILD, node=3, enabled=0))
    program.launch_graph(stream=ONE)
    program.synchronize()
    program.get(B)
    assert always(program)[1] == [6] * WORDS


def test_graphs_have_memory_of_their_own_and_mark_events() -> None:
    program = streams()
    where = 0x20_0000_0000
    nodes = [tails.encode_node(NodeKind.ALLOCATE, node=1, address=where, bytes=BYTES), set_node(2, where, 8),
             node(3, GROW, B, where), tails.encode_node(NodeKind.FREE, node=4, address=where),
             tails.encode_node(NodeKind.EVENT_RECORD, node=5, event=9),
             tails.encode_node(NodeKind.MEMORY_OPERATIONS, node=6, count=1,
                               tail=tails.memory_operations_tail([(5, 0, C, 77)])),
             tails.encode_node(NodeKind.HOST_FUNCTION, node=7)]
    program.graph(nodes, [(1, 2), (2, 3), (3, 4), (4, 6), (6, 5), (5, 7)])
    program.launch_graph(stream=ONE)
    program.launch_graph(stream=ONE)
    program.wait_event(9, TWO)
    program.run(GROW, B, C, 0, TWO, block=1)
    program.synchronize()
    program.get(B)
    assert always(program) == [[1016 + 77, *[1016 + k for k in COUNTING[1:]]]]


def test_nobody_can_run_a_graph_that_was_not_read() -> None:
    program = streams()
    program.record(Kind.GRAPH_EXEC, exec=0xE0, context=CONTEXT)
    program.launch_graph()
    with pytest.raises(ShadowError, match="nodes of graph 0xe0 are not known"):
        Shadow(1, None).run(program.data, None)


def test_what_a_context_has_ends_with_it() -> None:
    program = streams()
    program.run(ADD, B, A, 0, ONE)
    program.ended(Kind.CONTEXT, CONTEXT)
    for outcome in outcomes(program):
        assert (outcome.faults, outcome.memory, outcome.variables) == ([], {}, {})
        assert outcome.launches == {0: 1}


def test_memory_where_this_process_is_cannot_be_had() -> None:
    program = Program()
    program.memory(id(program) // 4096 * 4096, BYTES)
    with pytest.raises(ShadowError, match="this process may be there itself"):
        Shadow(1, None).run(program.data, None)
    assert Shadow(1, None, engine=False).run(program.data, None).faults == []
