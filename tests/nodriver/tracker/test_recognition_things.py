"""Steps that are known are not what they were when anything has changed that they depend on, whatever it is."""

from __future__ import annotations

import pytest

from orchestrator.session.placement import Home
from orchestrator.session.placements.file import Mixed
from orchestrator.session.placements.file import Placing as Placed
from orchestrator.session.placements.followed import FilePlacement
from orchestrator.session.placements.rules import Rule, Rules
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from shim import tails
from shim.wire import Kind, NodeKind, WireError, lib
from tessera.reasons import Reason
from tests.generated import random_devices
from tests.generated.kernels import layout, parameters
from tests.nodriver.tracker.test_recognition import EXEC, TABLE, TO_ONE, A, B, C, D, Steps
from tests.program_records import CONTEXT, side

MANY = 8


def steady(program: Steps, **values: int) -> int:
    """So many steps, after which they are known; how many are."""
    for _ in range(MANY):
        program.step(**values)
    assert program.known
    return program.known


def once_more(program: Steps, **values: int) -> None:
    """A step that must not be known."""
    known = program.known
    program.step(**values)
    assert program.known == known


def test_a_handle_that_is_another_function() -> None:
    program = Steps(Home)
    steady(program)
    program.function("total", list(layout("total")[0].values()), 0xF000)
    once_more(program)


def test_memory_that_is_smaller() -> None:
    program = Steps(Home)
    steady(program)
    program.free(B)
    program.memory(B, 32)
    once_more(program)


def test_memory_that_others_may_use() -> None:
    program = Steps()
    steady(program)
    program.record(Kind.EXPORT, address=B, kind=int(Kind.MEMORY))
    program.over()
    once_more(program)


def test_a_stream_that_is_another_one() -> None:
    program = Steps()
    program.record(Kind.STREAM, handle=0x51, context=CONTEXT)
    keys = []
    for number in range(12):
        if number == 9:
            program.record(Kind.STREAM, handle=0x51, context=CONTEXT)
        program.run("affine", (0x51, CONTEXT))
        keys.append(program.wait()[0].stream.born)
    assert program.known and len(set(keys)) == 2


def test_memory_that_a_graph_allocates() -> None:
    program = Steps(Home)
    node = tails.encode_node(NodeKind.ALLOCATE, node=1, address=B, bytes=32)
    program.record(Kind.GRAPH_EXEC, exec=EXEC, graph=1, context=CONTEXT, nodes=1, whole=1, tail=node)
    steady(program)
    program.record(Kind.GRAPH_LAUNCH, exec=EXEC)
    program.step()
    once_more(program)


def test_a_step_in_which_a_graph_allocates() -> None:
    program = Steps(Home)
    nodes = tails.encode_node(NodeKind.ALLOCATE, node=1, address=0x30_0000_0000, bytes=64) + tails.encode_node(
        NodeKind.FREE, node=2, address=0x30_0000_0000) + tails.edges_tail([(1, 2)])
    program.record(Kind.GRAPH_EXEC, exec=EXEC, graph=1, context=CONTEXT, nodes=2, edges=1, whole=1, tail=nodes)
    for _ in range(MANY):
        program.record(Kind.GRAPH_LAUNCH, exec=EXEC)
        program.step()
    assert program.known == 0


def test_a_placement_of_which_nobody_can_say() -> None:
    program = Steps(lambda: random_devices(4, 3))
    for _ in range(MANY):
        program.step()
    assert program.known == 0


def test_replicas_that_are_used_in_another_order() -> None:
    """Which ones give way is a matter of when they were used last."""
    program = Steps(settings=Settings((Gpu(0x1000), Gpu(0x1000))))
    for number in range(30):
        program.run("affine", out=(A, D)[number // 9 % 2])
        program.wait()
        program.run("affine", out=C)
        program.wait()
        if number % 9 == 8:
            program.run("total", out=0x10_0000_4000)
            program.wait()
    assert program.known


def test_work_that_began_before_the_step() -> None:
    """Other streams that have work when a step begins are waited for in it."""
    program = Steps()
    program.record(Kind.STREAM, handle=0x51, context=CONTEXT)
    program.record(Kind.STREAM, handle=0x52, context=CONTEXT)
    waits = []
    for number in range(3 * MANY):
        if number == 2 * MANY:
            program.run("total", (0x52, CONTEXT), out=D)
            program.record(Kind.SYNCHRONIZE, place=(0x51, CONTEXT), what=lib.WIRE_WAITED_STREAM)
        program.run("affine", (0x51, CONTEXT))
        program.record(Kind.SYNCHRONIZE, place=(0x51, CONTEXT), what=lib.WIRE_WAITED_STREAM)
        waits.append(len(program.over()[-1].waits))
    assert program.known > MANY and waits == [0] * 2 * MANY + [1] * MANY


def test_a_gap_at_the_beginning_of_a_step() -> None:
    program = Steps()
    steady(program)
    program.sequence += 1
    once_more(program)


def test_a_gap_within_a_step() -> None:
    program = Steps()
    steady(program)
    known = program.known
    program.run("affine")
    program.sequence += 1
    program.run("accumulate", out=C)
    program.wait()
    assert program.known == known


def test_a_gap_in_each_step() -> None:
    program = Steps(Home)
    for _ in range(MANY):
        program.to_device(D, bytes(64))
        program.run("affine")
        program.sequence += 1
        program.run("accumulate", out=C)
        program.wait()
    assert program.known == 0


def test_a_gap_of_which_a_record_tells() -> None:
    """Until all is announced again nobody knows what is there."""
    program = Steps(Home)
    steady(program)
    program.record(Kind.EPOCH, epoch=1, lost=1)
    program.record(Kind.SYNCHRONIZE, what=lib.WIRE_WAITED_CONTEXT, marks=lib.WIRE_RESTATED)
    program.over()
    once_more(program)


def test_an_outcome_of_another_record() -> None:
    """One of two copies whose bytes are told: those of the first have been gathered before."""
    program = Steps()
    for number in range(2 * MANY):
        copies = [program.record(
            Kind.COPY, width=64, height=1, depth=1, to=side(to, lib.WIRE_SIDE_DEVICE), content_kind=3,
            from_=side(0x5000, lib.WIRE_SIDE_HOST)) for to in (B, D)]
        name = program.payload(bytes([number] * 64))
        program.run("affine")
        program.record(Kind.EVENT_RECORD, event=1)
        program.record(Kind.OUTCOME, of=copies[number // MANY], has_content=1, bytes=64, content=name)
        program.run("accumulate", out=C, **{"in": A})
        program.wait()
    assert program.known


def test_contents_that_were_gathered_before_they_were_told() -> None:
    program = Steps()
    for number in range(MANY):
        copy = program.record(
            Kind.COPY, width=64, height=1, depth=1, to=side(B, lib.WIRE_SIDE_DEVICE), content_kind=3,
            from_=side(0x5000, lib.WIRE_SIDE_HOST))
        program.run("affine")
        program.record(Kind.EVENT_RECORD, event=1)
        name = program.payload(bytes([number] * 64))
        program.record(Kind.OUTCOME, of=copy, has_content=1, bytes=64, content=name)
        program.step()
    assert program.known


def test_a_known_table_that_a_step_writes() -> None:
    """It is forgotten in each, and with it what a part of the step gathers."""
    program = Steps()
    for number in range(MANY):
        if number % 4 == 0:
            program.to_device(A, bytes([number]) * 64)
        program.run("accumulate", out=C, **{"in": A})
        program.run("affine", (1, CONTEXT), out=A)
        program.wait()
    assert program.known


def test_a_step_that_is_taken_back_takes_back_what_it_has_made_known() -> None:
    program = Steps(single=True)
    for number in range(2 * MANY):
        program.to_device(B, bytes([number]) * 64)
        program.run("affine")
        program.record(Kind.EVENT_RECORD, event=1)
        program.to_device(B, bytes([number + 1]) * 64)
        if number % 5 == 4:
            program.over()
            program.record(Kind.CALL)
        program.run("accumulate", out=C, **{"in": B})
        program.wait()
    assert program.known >= 4


def test_a_step_that_is_taken_back_takes_back_changes_of_graphs() -> None:
    program = Steps(single=True)

    def node(address: int) -> bytes:
        return tails.encode_node(NodeKind.SET, node=1, address=address, width=4, height=1, element_bytes=1)

    program.record(Kind.GRAPH_EXEC, exec=EXEC, graph=1, context=CONTEXT, nodes=1, whole=1, tail=node(A))
    for number in range(2 * MANY):
        program.to_device(A, bytes(4))
        program.record(Kind.GRAPH_LAUNCH, exec=EXEC)
        program.record(Kind.GRAPH_NODE, exec=EXEC, tail=node(B))
        if number % 5 == 4:
            program.over()
            program.record(Kind.CALL)
        program.record(Kind.GRAPH_NODE, exec=EXEC, tail=node(A))
        program.step()
    assert program.known >= 4


def test_the_end_in_a_step_that_is_known() -> None:
    program = Steps(single=True)
    steady(program)
    program.run("affine")
    program.over()
    program.pair.finish()


def test_what_comes_before_the_first_step_is_over_counts_as_written_later() -> None:
    program = Steps(Home)
    for _ in range(MANY):
        program.record(Kind.SET, address=A, width=4, height=1, element_bytes=1)
        program.wait()
    program.run("affine", out=C, **{"in": A})
    program.wait()
    for _ in range(MANY):
        program.record(Kind.SET, address=A, width=4, height=1, element_bytes=1)
        program.wait()
    program.pair.compare()


def test_records_that_are_cut() -> None:
    """Bytes that end in the middle of a record are no records."""
    program = Steps()
    steady(program)
    program.run("affine")
    program.run("accumulate", out=C)
    whole = b"".join(program.data)
    for tracker in (program.pair.plain, program.pair.knowing):
        with pytest.raises(WireError, match="record 1, at byte"):
            tracker.take(whole[:-8])


def test_rules_that_send_some() -> None:
    program = Steps(lambda: Rules([Rule("affine", None, (2,)), *TO_ONE.rules]))
    steady(program)
    assert program.pair.plain.tally.sent == {1: MANY, 2: MANY}


def test_bytes_become_known_that_a_step_writes() -> None:
    program = Steps(Home)
    known = steady(program)
    program.to_device(A, bytes(64))
    program.wait()
    program.step()
    assert program.known == known + 1


def test_bytes_become_known_that_a_step_gathers() -> None:
    program = Steps()
    for number in range(3 * MANY):
        if number % MANY == MANY - 1:
            program.to_device(B, bytes([number]) * 64)
        else:
            program.record(Kind.SET, address=B, width=64, height=1, element_bytes=1)
        program.wait()
        (job,) = program.step()
        assert [one.data for one in job.assumed] == ([bytes([number]) * 64] if number % MANY == MANY - 1 else [])
    assert program.known > MANY


def test_a_step_that_is_taken_back_has_forgotten_nothing() -> None:
    """It is taken again with the table that it has forgotten then."""
    program = Steps(single=True)
    table = b"".join([(k // 2).to_bytes(4, "little") for k in range(16)])
    for number in range(3 * MANY):
        program.to_device(TABLE, table)
        program.wait()
        program.run("scatter", out=C)
        program.record(Kind.SET, address=TABLE, width=64, height=1, element_bytes=1)
        if number % MANY == MANY - 1:
            program.over()
            program.record(Kind.CALL)
        program.wait()
    assert program.known > MANY


def later(program: Steps, address: int) -> int:
    """A copy of which a record will say what it has read."""
    return program.record(Kind.COPY, width=64, height=1, depth=1, to=side(address, lib.WIRE_SIDE_DEVICE),
                          content_kind=lib.WIRE_LATER_CONTENT, from_=side(0x5000, lib.WIRE_SIDE_HOST))


def test_contents_of_the_step_before() -> None:
    """Whether they were gathered before they are told is a matter of where they are."""
    program = Steps()
    for number in range(2 * MANY):
        copy = later(program, D if number == 2 * MANY - 1 else B)
        program.run("affine")
        program.wait()
        name = program.payload(bytes([number]) * 64)
        program.record(Kind.OUTCOME, of=copy, has_content=1, bytes=64, content=name)
        program.run("accumulate", out=C, **{"in": A})
        program.wait()
    assert program.known


def test_contents_of_the_step_before_that_came_to_the_host() -> None:
    program = Steps()
    for number in range(2 * MANY):
        if number < 2 * MANY - 1:
            copy = program.record(Kind.COPY, width=64, height=1, depth=1, to=side(0x5000, lib.WIRE_SIDE_HOST),
                                  from_=side(A, lib.WIRE_SIDE_DEVICE))
        else:
            copy = later(program, D)
        program.wait()
        program.record(Kind.OUTCOME, of=copy, has_content=1, bytes=64, content=bytes(32))
        program.run("affine")
        program.wait()
    assert program.known


def test_a_step_writes_what_is_known_and_then_makes_other_bytes_known() -> None:
    program = Steps(Home)
    for number in range(2 * MANY):
        if number == MANY:
            program.to_device(A, bytes(64))
        program.wait()
        program.run("affine")
        program.to_device(D, bytes([number]) * 64)
        program.wait()
    assert program.known


def test_a_class_that_a_placement_meets_for_the_first_time() -> None:
    """It begins as the one that is placed does, which must be seen whole from then on."""
    client = Steps(Home)
    client.step()
    (known,) = client.pair.plain._placing.classes
    mixtures = {known.signature: (Mixed(1, {0: Placed("affine", (1,))}),)}
    program = Steps(lambda: FilePlacement(mixtures))
    steady(program)
    program.run("affine")
    program.run("total", out=D)
    program.wait()
    once_more(program)


@pytest.mark.parametrize("kind", [Kind.ACCESS, Kind.PHYSICAL, Kind.DOOR, Kind.EVENT])
def test_records_of_which_nothing_follows(kind: Kind) -> None:
    program = Steps()
    for number in range(MANY):
        program.run("affine")
        program.record(kind)
        program.run("accumulate", out=C)
        if number % 4 == 3:
            program.record(kind)
        program.wait()
    assert program.known


def test_host_memory_that_gpus_see_is_a_part_of_what_a_step_touches() -> None:
    program = Steps(Home)
    program.memory(0x7000, 0x1000, lib.WIRE_HOST)
    known = []
    for host in (*[0x7100] * MANY, 0x5000, 0x7200):
        program.run("affine")
        program.record(Kind.COPY, width=4, height=1, depth=1, to=side(host, lib.WIRE_SIDE_HOST),
                       from_=side(A, lib.WIRE_SIDE_DEVICE))
        program.wait()
        known.append(program.known)
    assert 0 < known[-3] == known[-1]


def test_a_word_that_is_stored_is_a_pointer_or_none() -> None:
    program = Steps()
    program.function("escape", list(layout("escape")[0].values()), 0xF200)
    program.over()
    for target in (*[7] * MANY, B, 8):
        block = parameters("escape", {"out": A, "target": target, "salt": 0})
        program.launch(block, 0xF200, 1, 32)
        program.wait()
    assert program.known and program.pair.plain.tally.pinned == {Reason.POINTER_ESCAPES: 1}


def once(program: Steps, calls: int) -> None:
    """A step that never comes again: what comes behind it is a surprise, and nothing is kept, or put off, in vain."""
    for _ in range(calls):
        program.record(Kind.CALL)
    program.wait()


def test_replicas_of_memory_that_has_ended() -> None:
    """The next job of the GPU gives them back, whether its step is known or not; and only that one."""
    program = Steps()
    evicted = []
    for number in range(3 * MANY):
        if number % MANY == MANY - 1:
            once(program, number)
            program.step()
            program.memory(0x20_0000_0000, 0x400)
            program.run("affine", out=0x20_0000_0000)
            program.step()
            once(program, 100 + number)
            program.free(0x20_0000_0000)
            program.wait()
        evicted += [len(job.evicted) for job in program.step()]
    assert sum(evicted) == 3 and program.known


def test_a_table_that_its_segment_writes() -> None:
    """What a launch relied on is compared although it is no longer known when the segment is closed."""
    program = Steps()
    table = b"".join([k.to_bytes(4, "little") for k in range(16)])
    for _ in range(MANY):
        program.to_device(TABLE, table)
        program.run("gather", out=C)
        program.run("affine", out=TABLE)
        (job,) = program.wait()
        assert table in [one.data for one in job.assumed]
    assert program.known


def test_work_that_goes_on_behind_the_step() -> None:
    program = Steps(lambda: Rules([Rule("accumulate", None, (1,))]))
    for handle in (0x51, 0x52):
        program.record(Kind.STREAM, handle=handle, context=CONTEXT)
    for _ in range(MANY):
        program.run("affine", (0x51, CONTEXT))
        program.record(Kind.SYNCHRONIZE, place=(0x52, CONTEXT), what=lib.WIRE_WAITED_STREAM)
        program.over()
        program.run("accumulate", out=C)
        (job,) = program.wait()
        assert [key.stream for key in job.waits] == [0x51]
    assert program.known >= MANY
