"""Steps that are known are taken as a whole, with all that they would have done record by record."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.session import habits
from orchestrator.session.code import Code
from orchestrator.session.jobs import Job
from orchestrator.session.placement import Home, Placement
from orchestrator.session.placements import chance
from orchestrator.session.placements.file import Mixed
from orchestrator.session.placements.file import Placing as Placed
from orchestrator.session.placements.followed import FilePlacement
from orchestrator.session.placements.rules import Rule, Rules
from orchestrator.session.placing import Settings
from orchestrator.session.recognition import LARGEST
from orchestrator.session.segments import Gpu
from shim import tails
from shim.wire import Kind, NodeKind, WireError, lib
from tests.generated import ALL, paged_attention, random_devices, random_program
from tests.generated.kernels import KERNELS, layout, parameters, text
from tests.nodriver.tracker.repeats import Pair, repeated
from tests.patterns import share
from tests.program_records import CONTEXT, Program, side

GPUS = Settings((Gpu(1 << 20),) * 3)
CODE = Code()
A, B, C, D, TABLE = [0x10_0000_0000 + 0x1000 * k for k in range(5)]
USED = ("affine", "accumulate", "scatter", "gather", "total")
EXEC, N, SIZE = 0xE000, 16, 64
TO_ONE = Rules([Rule("*", None, (1,))])


class Steps(Program):
    """A program whose trackers are told everything as soon as it is written: step by step, or record by record."""

    def __init__(self, placement: Any = None, settings: Settings = GPUS, single: bool = False) -> None:
        super().__init__()
        self.pair = Pair(settings, placement or (lambda: TO_ONE), CODE)
        self.single = single
        self.begin()
        self.module(text().encode())
        for number, name in enumerate(USED):
            self.function(name, list(layout(name)[0].values()), 0xF000 + number)
        for address in (A, B, C, D, TABLE):
            self.memory(address, 0x400)
        self.over()

    def over(self) -> list[Any]:
        """What was written up to here is read; what was decided."""
        made, self.data = self.data, []
        given = []
        for one in made if self.single else [b"".join(made)]:
            given += self.pair.take(one)
        return given

    def run(self, name: str, place: tuple[int, int] = (1, CONTEXT), **values: int) -> None:
        values = {"n": N, "salt": 0, "out": A, "in": B, "table": TABLE} | values
        block = parameters(name, {key: values[key] for key, _ in KERNELS[name].parameters})
        self.launch(block, 0xF000 + USED.index(name), 1, 32, place=place)

    def wait(self) -> list[Any]:
        self.record(Kind.SYNCHRONIZE, what=lib.WIRE_WAITED_CONTEXT)
        return self.over()

    def step(self, **values: int) -> list[Any]:
        self.run("affine", **values)
        self.run("accumulate", out=C, **values)
        return self.wait()

    @property
    def known(self) -> int:
        """How many steps were taken as a whole."""
        return self.pair.steps.recognised


@given(st.integers(0, 1 << 32))
@share(8)
def test_programs_whose_steps_come_again(seed: int) -> None:
    rng = Random(seed)
    features = ALL if rng.random() < 0.5 else {f for f in ALL if rng.random() < 0.5} | {"loops"}
    program = random_program(seed, 50, features) if rng.random() < 0.7 else paged_attention(
        seed, 6, graph=rng.random() < 0.5)
    placements: list[Any] = [
        Home, lambda: chance.Random(seed, 3), lambda: chance.Random(seed, 3, 0.9), lambda: TO_ONE,
        lambda: random_devices(seed, 3, steady=True), lambda: random_devices(seed, 3)]
    rooms = Settings(tuple([Gpu(rng.choice((1 << 20, 6000))) for _ in range(3)]), 0, rng.random() < 0.3)
    most = rng.choice((1, 4, 50, 10000))
    pair = Pair(rooms, rng.choice(placements), CODE)
    pair.run(repeated(program.data, rng, rng.choice((0, 0.1, 0.5))), lambda: rng.randrange(1, most + 1))


@pytest.mark.parametrize("single", [False, True])
def test_a_step_that_comes_again_is_known(single: bool) -> None:
    program = Steps(single=single)
    given = [program.step() for _ in range(8)]
    assert program.known >= 4
    assert [len(one) for one in given] == [1] * 8
    assert given[-1][0].number == 7 and len(given[-1][0].launches) == 2


def test_decisions_come_with_the_records_that_close_their_segments() -> None:
    program = Steps(single=True)
    for number in range(8):
        program.run("affine", salt=number)
        assert not program.over() and len(program.pair.knowing.open) == 1
        program.record(Kind.EVENT_RECORD, event=1)
        (job,) = program.over()
        assert job.launches[0].sequence == program.sequence - 2 and not program.pair.knowing.open
        program.run("accumulate", out=C)
        program.wait()
    assert program.known >= 4


@pytest.mark.parametrize("home", [False, True])
def test_parameters_that_do_not_matter_may_change(home: bool) -> None:
    program = Steps(Home if home else None)
    given = [program.step(salt=number) for number in range(8)]
    assert program.known >= 4
    if not home:
        (job,) = given[-1]
        assert [one.launch.parameters[-4:] for one in job.launches] == [b"\7\0\0\0"] * 2


@pytest.mark.parametrize("home", [False, True])
def test_parameters_that_matter_must_not(home: bool) -> None:
    program = Steps(Home if home else None)
    for _ in range(6):
        program.step()
    known = program.known
    for other in ({"n": 8}, {"out": D}, {"in": D}):
        program.run("affine", **other)
        program.run("accumulate", out=C)
        program.wait()
    assert program.known == known


def test_opaque_kernels_with_a_promise_depend_on_all_their_parameters() -> None:
    program = Steps(settings=GPUS._replace(promised=True))
    known = []
    for out in (A, A, A, A, A, A, B, C):
        known.append(program.known)
        program.launch(out.to_bytes(8, "little") + A.to_bytes(8, "little"), 0xBAD)
        program.run("affine", out=D)
        program.wait()
    assert program.known == known[6] >= 2


@pytest.mark.parametrize("single", [False, True])
def test_a_step_may_go_on_otherwise(single: bool) -> None:
    program = Steps(single=single)
    for way in (0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1, 1, 1, 3, 0):
        program.run("affine")
        program.record(Kind.EVENT_RECORD, event=1)
        if way != 2:
            program.run("accumulate", out=C)
        if way == 1:
            program.record(Kind.SET, address=A, width=4, height=1, element_bytes=1)
        if way == 3:
            program.memory(0x20_0000_0000, 64)
        program.wait()
    assert program.known >= 4


def test_steps_with_one_beginning() -> None:
    program = Steps(Home, single=True)
    for number in range(60):
        program.run("affine")
        program.record(Kind.EVENT_RECORD, event=1)
        program.run("accumulate", out=(C, D, A)[number * number // 4 % 3])
        program.wait()
    assert program.known >= 50


def test_steps_in_turn() -> None:
    program = Steps()
    for _ in range(10):
        program.step()
        program.run("total", out=D)
        program.wait()
    assert program.known >= 10


def test_a_call_that_fails() -> None:
    program = Steps(single=True)
    for number in range(24):
        program.run("affine")
        program.run("accumulate", out=C)
        if number % 6 == 5:
            program.outcome(program.sequence - 1, result=1)
        program.wait()
    assert program.known >= 3


def test_memory_that_comes_and_goes() -> None:
    program = Steps()
    for number in range(24):
        if number % 6 == 5:
            program.free(A)
            program.memory(A, 0x400, lib.WIRE_MANAGED if number == 11 else lib.WIRE_ALLOCATED)
        program.step()
    assert program.known >= 4


@pytest.mark.parametrize("single", [False, True])
def test_what_was_sent_is_gone(single: bool) -> None:
    program = Steps(single=single)
    for number in range(20):
        if number % 7 == 6:
            program.pair.withdraw(1)
        program.run("affine")
        program.record(Kind.EVENT_RECORD, event=1)
        if single and number % 7 == 4:
            program.over()
            program.pair.withdraw(1)
        program.run("accumulate", out=C, **{"in": A})
        program.wait()
    assert program.known >= 4


def test_records_are_missing() -> None:
    program = Steps()
    for number in range(16):
        program.sequence += number % 5 == 4
        program.run("affine")
        program.sequence += number % 5 == 2
        program.run("accumulate", out=C)
        program.wait()
    assert program.pair.plain.tally.gaps == 6


@pytest.mark.parametrize(("home", "inside"), [(False, False), (False, True), (True, True)])
def test_tables(home: bool, inside: bool) -> None:
    program = Steps(Home if home else None)
    tables = [b"".join([((k * step) % N).to_bytes(4, "little") for k in range(N)]) for step in (1, 0)]
    program.to_device(TABLE, tables[0])
    for number in range(14):
        program.run("affine")
        if inside:
            program.to_device(TABLE, tables[number > 8])
        elif number == 9:
            program.to_device(TABLE, tables[1])
        program.run("scatter", out=C)
        program.wait()
    assert program.known >= 4


def test_contents_that_are_gathered() -> None:
    program = Steps()
    given = []
    for number in range(10):
        program.to_device(B, bytes([number]) * SIZE)
        given += program.step()
    assert program.known >= 4
    assert [one.assumed[0].data for one in given if isinstance(one, Job)] == [bytes([k]) * SIZE for k in range(10)]


def test_contents_told_later() -> None:
    program = Steps()
    for number in range(10):
        data = bytes([number]) * SIZE
        name = program.payload(data)
        copy = program.record(
            Kind.COPY, width=SIZE, height=1, depth=1, to=side(B, lib.WIRE_SIDE_DEVICE), content_kind=3,
            from_=side(0x5000, lib.WIRE_SIDE_HOST), flags=lib.WIRE_SYNCHRONOUS)
        if number % 2:
            program.run("affine")
        program.record(Kind.OUTCOME, of=copy, has_content=1, bytes=SIZE, content=name)
        program.run("accumulate", out=C)
        program.wait()
    assert program.known >= 2


def test_contents_told_in_the_next_step() -> None:
    program = Steps()
    for number in range(10):
        program.run("affine")
        copy = program.sequence
        if number < 7:
            program.to_host(A, bytes(4), flags=0)
            program.data.pop()
        else:
            program.record(Kind.COPY, width=4, height=1, depth=1, to=side(C, lib.WIRE_SIDE_DEVICE), content_kind=3,
                           from_=side(0x5000, lib.WIRE_SIDE_HOST))
        program.sequence = copy + 1
        program.wait()
        program.record(Kind.OUTCOME, of=copy, has_content=1, bytes=4, content=bytes(32))
    assert program.known >= 3


def test_host_memory_that_no_gpu_sees_may_be_anywhere() -> None:
    program = Steps()
    program.memory(0x7000, 0x1000, lib.WIRE_HOST)
    program.over()
    known = []
    for host in (0x5000, 0x5100, 0x5200, 0x5300, 0x5400, 0x5500, 0x5600, 0x7100, 0x5700):
        program.run("affine")
        program.to_host(A, bytes(4), host, 0)
        program.data.pop()
        program.sequence -= 1
        program.wait()
        known.append(program.known)
    assert known[6] > known[5] > known[4] and known[7] == known[6] < known[8]


@pytest.mark.parametrize("home", [False, True])
def test_graphs(home: bool) -> None:
    program = Steps(Home if home else None)

    def node(number: int, **values: int) -> bytes:
        values = {"n": N, "salt": 0, "out": A, "in": B} | values
        block = parameters("affine", {key: values[key] for key, _ in KERNELS["affine"].parameters})
        return tails.encode_node(NodeKind.LAUNCH, node=number, function=0xF000, grid=(1, 1, 1), block=(32, 1, 1),
                                 parameter_bytes=len(block), tail=tails.launch_tail(block))

    tail = node(1) + node(2, out=C) + tails.edges_tail([(1, 2)])
    program.record(Kind.GRAPH_EXEC, exec=EXEC, graph=1, context=CONTEXT, nodes=2, edges=1, whole=1, tail=tail)
    program.wait()
    for number in range(20):
        if number > 4:
            program.record(Kind.GRAPH_NODE, exec=EXEC, tail=node(1, salt=number, n=8 if number in (14, 15) else N))
        program.record(Kind.GRAPH_LAUNCH, exec=EXEC)
        if number == 17:
            program.record(Kind.GRAPH_NODE, exec=EXEC, tail=node(2, out=D))
        given = program.wait()
        if not home:
            salts = [one.launch.parameters[-4] for one in given[0].launches]
            assert salts == [number if number > 4 else 0, 0]
    assert program.known >= 6


def test_streams_that_have_work() -> None:
    program = Steps()
    for handle in (0x51, 0x52):
        program.record(Kind.STREAM, handle=handle, context=CONTEXT)
    program.over()
    waits = []
    for number in range(16):
        program.run("affine", (0x51, CONTEXT))
        if number == 9:
            program.run("total", (0x52, CONTEXT), out=D)
        program.run("accumulate", (1, CONTEXT), out=C)
        program.record(Kind.SYNCHRONIZE, place=(0x51, CONTEXT), what=lib.WIRE_WAITED_STREAM)
        waits.append([len(one.waits) for one in program.over()])
    assert waits[8] == [1, 1] and waits[12] == [2, 2] and program.known >= 8


def test_a_mixture_of_placements() -> None:
    client = Steps(Home)
    client.step()
    (known,) = client.pair.plain._placing.classes
    mixture = (Mixed(0.75, {0: Placed("affine", (1,))}), Mixed(0.25, {1: Placed("accumulate", (2,))}))
    program = Steps(lambda: FilePlacement({known.signature: mixture}))
    for _ in range(40):
        program.step()
    assert program.known >= 16
    assert program.pair.plain.tally.sent == {1: 29, 2: 10}


def test_what_is_ambiguous_is_counted() -> None:
    client = Steps(Home)
    client.step()
    (known,) = client.pair.plain._placing.classes
    placement: Placement = FilePlacement({known.signature: (Mixed(1, {0: Placed("affine", (1,))}),)})
    program = Steps(lambda: FilePlacement({known.signature: (Mixed(1, {0: Placed("affine", (1,))}),)}))
    for _ in range(12):
        program.run("affine")
        program.run("total", out=D)
        program.wait()
        program.step()
    assert program.known >= 8 and program.pair.plain._placing._placement.ambiguous > 8
    assert placement.ambiguous == 0


def test_a_kernel_whose_image_may_come() -> None:
    program = Steps(Home)
    other = text().replace("affine", "affin2").encode()
    name = program.sequence, bytes(range(32))
    program.record(Kind.MODULE, handle=0xA001, context=CONTEXT, image=lib.WIRE_IMAGE_PTX, bytes=len(other),
                   content=name[1])
    program.function("affin2", [(0, 8)], 0xF100, 0xA001)
    for _ in range(8):
        program.launch(bytes(24), 0xF100)
        program.wait()
    assert program.known == 0


def test_records_that_cannot_be() -> None:
    program = Steps()
    for _ in range(6):
        program.step()
    assert program.known
    program.run("affine")
    whole = program.data[0]
    with pytest.raises(WireError, match="record 1, at byte"):
        program.pair.knowing.take(whole + whole[:40])


def test_what_is_never_met_is_kept_ever_more_rarely() -> None:
    program = Steps(Home)
    for number in range(200):
        program.step(n=number + 1)
    assert program.known == 0 and 2 < len(program.pair.steps.memos) < 9


def test_only_so_many_are_kept() -> None:
    program = Steps(Home)
    memos = program.pair.steps.memos
    memos._most = 3
    for _ in range(8):
        for n in range(1, 6):
            for _ in range(3):
                program.step(n=n)
    assert 0 < len(memos) <= 3
    assert memos.bytes == sum(memo.bytes for memo in memos._all) > 0
    assert len(memos._states) <= 6
    assert sum(map(len, memos._starting.values())) == len(memos)


def test_a_step_that_is_too_long_is_not_kept() -> None:
    program = Steps(Home)
    program.memory(0x20_0000_0000, LARGEST)
    program.step()
    for _ in range(6):
        program.to_device(0x20_0000_0000, bytes(LARGEST))
        program.wait()
    assert program.known == 0 and not program.pair.steps.memos


def test_keys_that_are_known_are_not_more_and_more() -> None:
    seen = Steps().pair.steps._habits
    for number in range(3 * habits.MOST_SEEN):
        seen.count(habits.StepKey(number, 1, ""))
        seen.due()
    assert len(seen._seen) == habits.MOST_SEEN


def test_without() -> None:
    program = Steps()
    for _ in range(8):
        program.step()
    assert program.pair.plain._steps is None and program.pair.plain.tally.jobs == 8
