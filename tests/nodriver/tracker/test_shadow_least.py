"""What launches really touch, and the least bytes that a placement moves."""

from __future__ import annotations

import pytest

from ptxparse.evaluation.pieces import joined
from tests.nodriver.tracker.by_hand import ADD, BYTES, COUNT, GROW, ODD, A, B, C, Program
from tests.shadow import Logged, Shadow
from tests.shadow.least import Least, least


def bare(program: Program, engine: bool = True) -> list[Logged]:
    outcome = Shadow(1, None, engine=engine, log=True).run(program.data, None)
    assert outcome.faults == []
    return outcome.log


@pytest.mark.parametrize("engine", [True, False])
def test_the_log_has_bytes_really_touched(engine: bool) -> None:
    program = Program()
    copied = program.put(A)
    launched = program.run(ODD, B, A, 1)
    again = program.run(GROW, B, A, block=3)
    filled = program.set(C, 1)
    upload, odd, grow, memset = bare(program, engine)
    assert upload == (copied, -1, 0, -1, "", (), ((A, A + BYTES),))
    elements = joined((4 * k, 4 * k + 4) for k in range(1, 64) if (k ^ 1).bit_count() % 2 == 0)
    assert (odd.sequence, odd.kernel) == (launched, "odd")
    assert odd.read == tuple([(A + lo, A + hi) for lo, hi in elements])
    assert odd.written == tuple([(B + lo, B + hi) for lo, hi in elements])
    assert grow == (again, -1, 0, odd.run, "grow", ((A, A + 12), (B, B + 12)), ((B, B + 12),))
    assert memset[:1] + memset[-1:] == (filled, ((C, C + BYTES),))


def test_what_is_there_is_not_gathered_again() -> None:
    program = Program()
    program.put(A)
    first = program.run(ADD, B, A), program.run(ADD, C, B)
    program.get(C)
    second = program.run(GROW, C, A)
    program.put(A)
    third = program.run(GROW, C, A)
    log = bare(program)
    sent = {(number, -1): (1,) for number in (*first, second, third)}
    assert least(log, sent) == Least(gather=2 * BYTES, apply=4 * BYTES)
    del sent[second, -1]
    assert least(log, sent) == Least(gather=3 * BYTES, apply=3 * BYTES)  # C was written at home
    assert least(log, {(second, -1): (2, 0)}) == Least(gather=2 * BYTES, apply=0)  # mirrored
    assert least(log, {(second, -1): (0,), (third, -1): ()}) == Least(0, 0)


def test_a_segment_brings_home_once_what_it_writes() -> None:
    program = Program()
    program.put(A)
    program.put(B)
    one, two = program.run(GROW, B, A), program.run(GROW, B, A)
    program.get(B)
    three = program.run(GROW, B, A)
    log = bare(program)
    assert least(log, {(n, -1): (1,) for n in (one, two)}) == Least(2 * BYTES, BYTES)
    assert least(log, {(n, -1): (1,) for n in (one, two, three)}) == Least(2 * BYTES, 2 * BYTES)
    assert least(log, {(one, -1): (1,), (two, -1): (2,)}) == Least(4 * BYTES, 2 * BYTES)


def test_variables_are_everywhere_until_they_are_written() -> None:
    program = Program()
    launches = [program.run(COUNT, B, A, block=1) for _ in range(3)]
    outcome = Shadow(1, None, log=True).run(program.data, None)
    sent = {(launches[0], -1): (1,), (launches[2], -1): (1,)}
    assert least(outcome.log, sent, outcome.places) == Least(4, 16)
    assert least(outcome.log, sent) == Least(8, 16)


def test_memory_that_ended_holds_nothing() -> None:
    program = Program()
    program.put(A)
    first = program.run(ADD, B, A)
    program.free(A)
    program.memory(A, BYTES)
    second = program.run(ADD, B, A, block=2)
    assert least(bare(program), {(first, -1): (1,), (second, -1): (1,)}) == Least(BYTES + 8, BYTES + 8)
