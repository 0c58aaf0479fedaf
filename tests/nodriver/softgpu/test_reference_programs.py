"""Random structured programs: the interpreter under every kind of schedule against a thread-by-thread evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgpu.reference import Schedule
from tests.reference_kernels import HEADER, REGISTERS, Run

MASK = 2**32 - 1
VARIABLES = 5
THREADS = 80
BLOCKS = 3

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b & MASK, "sub.u32": lambda a, b: a - b & MASK, "xor.b32": lambda a, b: a ^ b,
    "mul.lo.u32": lambda a, b: a * b & MASK, "max.u32": max, "and.b32": lambda a, b: a & b,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "ge": lambda a, b: a >= b,
}

Statement = tuple[Any, ...]
variables = st.integers(0, VARIABLES - 1)
assignments = st.tuples(st.just("set"), st.sampled_from(list(OPERATIONS)), variables, variables, variables)
conditions = st.tuples(st.sampled_from(list(COMPARISONS)), variables, variables, st.integers(1, 7))
guarded = st.tuples(st.just("guard"), conditions, assignments)
leave = st.tuples(st.just("exit"), conditions)


def compound(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    block = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("if"), conditions, block, block),
        st.tuples(st.just("loop"), variables, block),
        st.tuples(st.just("call"), variables, variables),
    )


statements: st.SearchStrategy[Statement] = st.recursive(st.one_of(assignments, guarded), compound, max_leaves=8)
top_level = st.one_of(statements, st.tuples(st.just("barrier")), st.tuples(st.just("shuffle"), variables, variables,
                                                                            st.integers(1, 31)), leave)
programs = st.lists(top_level, min_size=1, max_size=7)


class Text:
    """PTX of a program. %v0.. are its variables; %l0.. loop counters; the result is their sum in %v0."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.labels = 0
        self.depth = 0

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"

    def condition(self, condition: Statement) -> None:
        comparison, a, b, modulus = condition
        self.lines.append(f"rem.u32 %r1, %v{a}, {modulus}; rem.u32 %r2, %v{b}, {modulus}; "
                          f"setp.{comparison}.u32 %p1, %r1, %r2;")

    def block(self, program: list[Statement]) -> None:
        for statement in program:
            getattr(self, f"put_{statement[0]}")(*statement[1:])

    def put_set(self, operation: str, d: int, a: int, b: int, guard: str = "") -> None:
        self.lines.append(f"{guard}{operation} %v{d}, %v{a}, %v{b};")

    def put_guard(self, condition: Statement, assignment: Statement) -> None:
        self.condition(condition)
        self.put_set(*assignment[1:], guard="@!%p1 ")

    def put_exit(self, condition: Statement) -> None:
        self.condition(condition)
        self.lines.append("@%p1 bra $STORE;")

    def put_if(self, condition: Statement, yes: list[Statement], no: list[Statement]) -> None:
        other, end = self.label(), self.label()
        self.condition(condition)
        self.lines.append(f"@!%p1 bra {other};")
        self.block(yes)
        self.lines.append(f"bra {end}; {other}:")
        self.block(no)
        self.lines.append(f"{end}:")

    def put_loop(self, bound: int, body: list[Statement]) -> None:
        top, end = self.label(), self.label()
        counter = f"%l{self.depth}"
        self.depth += 1
        self.lines.append(f"rem.u32 {counter}, %v{bound}, 5; {top}: setp.eq.u32 %p2, {counter}, 0; @%p2 bra {end};")
        self.block(body)
        self.lines.append(f"sub.u32 {counter}, {counter}, 1; bra {top}; {end}:")
        self.depth -= 1

    def put_call(self, d: int, a: int) -> None:
        self.lines.append(f"call (%v{d}), mix, (%v{a});")

    def put_barrier(self) -> None:
        self.lines.append("bar.sync 0;")

    def put_shuffle(self, d: int, a: int, by: int) -> None:
        self.lines.append(f"shfl.sync.bfly.b32 %v{d}, %v{a}, {by}, 31, -1;")


def mixed(value: int) -> int:
    """What the device function does: halve until odd, at most four times."""
    for _ in range(4):
        if value & 1:
            break
        value >>= 1
    return value * 3 & MASK


MIX = """
.func (.reg .b32 %o) mix(.reg .b32 %i)
{ .reg .b32 %r<4>; .reg .pred %p<2>; mov.u32 %r1, 4; mov.u32 %r2, %i;
$T: and.b32 %r3, %r2, 1; setp.eq.u32 %p0, %r3, 1; @%p0 bra $D; setp.eq.u32 %p1, %r1, 0; @%p1 bra $D;
  shr.u32 %r2, %r2, 1; sub.u32 %r1, %r1, 1; bra $T;
$D: mul.lo.u32 %o, %r2, 3; ret; }
"""


class Thread:
    """Evaluation of one thread; ``shuffles`` are exchanged between threads by the caller."""

    def __init__(self, values: list[int]) -> None:
        self.values = values
        self.ended = False

    def holds(self, condition: Statement) -> bool:
        comparison, a, b, modulus = condition
        return COMPARISONS[comparison](self.values[a] % modulus, self.values[b] % modulus)

    def run(self, statement: Statement) -> None:
        kind, *rest = statement
        if kind == "set":
            operation, d, a, b = rest
            self.values[d] = OPERATIONS[operation](self.values[a], self.values[b])
        elif kind == "guard":
            if not self.holds(rest[0]):
                self.run(rest[1])
        elif kind == "exit":
            self.ended = self.holds(rest[0])
        elif kind == "if":
            for inner in rest[1] if self.holds(rest[0]) else rest[2]:
                self.run(inner)
        elif kind == "loop":
            for _ in range(self.values[rest[0]] % 5):
                for inner in rest[1]:
                    self.run(inner)
        elif kind == "call":
            self.values[rest[0]] = mixed(self.values[rest[1]])


def evaluated(program: list[Statement], start: np.ndarray[Any, Any]) -> list[int]:
    threads = [Thread([int(v) for v in row]) for row in start]
    for statement in program:
        if statement[0] == "shuffle":
            _, d, a, by = statement
            before = [t.values[a] for t in threads]
            for i, thread in enumerate(threads):
                place, partner = i % THREADS, (i % THREADS) ^ by
                if not thread.ended:
                    there = i - place + partner
                    present = partner < THREADS and not threads[there].ended
                    thread.values[d] = before[there if present else i]
            continue
        for thread in threads:
            if not thread.ended:
                thread.run(statement)
    return [sum(t.values) & MASK for t in threads]


def compiled(program: list[Statement]) -> str:
    text = Text()
    text.block(program)
    loads = "".join(f"ld.global.u32 %v{v}, [%rd1+{4 * v}];" for v in range(VARIABLES))
    total = "".join(f"add.u32 %v0, %v0, %v{v};" for v in range(1, VARIABLES))
    body = "\n".join(text.lines)
    return f"""{HEADER}{MIX}
.visible .entry k(.param .u64 p, .param .u64 q)
{{{REGISTERS} .reg .b32 %v<{VARIABLES}>; .reg .b32 %l<12>;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
    ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mul.wide.u32 %rd3, %r0, {4 * VARIABLES}; add.s64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd4, %r0, 4; add.s64 %rd2, %rd2, %rd4; {loads}
{body}
$STORE: {total} st.global.u32 [%rd2], %v0; ret;
}}"""


SCHEDULES = [Schedule(), Schedule("reverse"), Schedule("random", seed=1, quantum=3),
             Schedule(quantum=5, warps="apart"), Schedule("random", seed=2, together=2, warps="apart")]


def check(program: list[Statement], seed: int) -> None:
    start = np.random.default_rng(seed).integers(0, 2**32, (BLOCKS * THREADS, VARIABLES), dtype=np.uint32)
    start[:, 0] %= 50
    want = evaluated(program, start)
    run = Run(compiled(program))
    source = run.buffer(start)
    for schedule in SCHEDULES:
        out = run.buffer(4 * BLOCKS * THREADS)
        run.launch("k", BLOCKS, THREADS, source, out, schedule=schedule)
        assert run.read(out, BLOCKS * THREADS).tolist() == want, schedule


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs, st.integers(0, 1000))
def test_programs_compute_the_same_under_every_schedule(program: list[Statement], seed: int) -> None:
    check(program, seed)


@pytest.mark.long
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, st.integers(0, 1000))
def test_many_programs(program: list[Statement], seed: int) -> None:
    check(program, seed)
