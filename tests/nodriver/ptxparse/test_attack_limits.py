"""Inputs made to take long, use much memory or raise: the analysis ends in time, with a program for every kernel."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ptxparse.api import AccessProgram, Evaluation, analyze, count, evaluate, parse, program_from_json, program_to_json
from tests.small_kernels import small, text_of

INDEX = "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;"
BASE = 1 << 20


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails when the block takes longer (bounds are generous: machines are shared)."""
    start = time.perf_counter()
    yield
    taken = time.perf_counter() - start
    assert taken < seconds, f"{taken:.1f} s"


def everything(
    body: str, parameters: str = "a:u64 n:u32", before: str = "", grid: int = 2, block: int = 32, **values: int
) -> tuple[AccessProgram, Evaluation]:
    """Analysed, evaluated, counted and written as JSON."""
    kernel = small(body, parameters, before)
    program = kernel.program
    data = bytearray(program.parameter_bytes)
    for parameter in program.parameters:
        value = values.get(parameter.name, BASE if parameter.name == "a" else 0)
        data[parameter.offset:parameter.offset + parameter.size] = value.to_bytes(parameter.size, "little")
    found = evaluate(program, (grid, 1, 1), (block, 1, 1), bytes(data), [("a", BASE, 1 << 20)])
    count(program, (grid, 1, 1), (block, 1, 1), bytes(data))
    program_to_json(program)
    return program, found


GROWING = [
    ("constant_squared", "mov.u32 %r1, 3;", "mul.lo.u32 %r1, %r1, %r1;", INDEX, 60),
    ("long_constant_squared", "mov.u64 %rd1, 3;", "mul.lo.u64 %rd1, %rd1, %rd1;",
     "add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;", 60),
    ("index_squared", "mov.u32 %r1, %tid.x; add.u32 %r1, %r1, 1;", "mul.lo.u32 %r1, %r1, %r1;", INDEX, 60),
    ("index_times_itself_plus", "mov.u32 %r1, %tid.x;", "mad.lo.u32 %r1, %r1, %r1, %n;", INDEX, 60),
    ("coefficient_grows", "mov.u32 %r1, %tid.x;", "mul.lo.u32 %r1, %r1, 2147483647;", INDEX, 5000),
    ("shifted_over_and_over", "mov.u64 %rd1, %a;", "shl.b64 %rd1, %rd1, 63;",
     "add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;", 2000),
    ("doubled", "mov.u32 %r1, %n;", "add.u32 %r1, %r1, %r1;", INDEX, 3000),
    ("sum_of_loads", "mov.u32 %r1, 0;", "ld.global.u32 %r2, [%a]; add.u32 %r1, %r1, %r2;", INDEX, 1500),
    ("sum_of_products_of_loads", "mov.u32 %r1, 1;", "ld.global.u32 %r2, [%a]; mad.lo.u32 %r1, %r1, %r2, %r2;", INDEX, 500),
    ("chain_of_loads", "mov.u32 %r1, 0;", "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; ld.global.u32 %r1, [%rd2];", INDEX,
     1000),
    ("chain_of_divisions", "mov.u32 %r1, %tid.x;", "add.u32 %r1, %r1, 7; div.u32 %r1, %r1, 3;", INDEX, 500),
    ("chain_of_remainders", "mov.u32 %r1, %tid.x;", "mad.lo.u32 %r1, %r1, 5, 3; rem.u32 %r1, %r1, 77;", INDEX, 500),
    ("chain_of_exclusive_or", "mov.u32 %r1, %tid.x;", "xor.b32 %r2, %r1, %n; shl.b32 %r1, %r1, 1; xor.b32 %r1, %r1, %r2;", INDEX, 300),
    ("chain_of_minima", "mov.u32 %r1, %tid.x;", "add.u32 %r1, %r1, %n; min.u32 %r1, %r1, 500;", INDEX, 500),
    ("chain_of_wraps", "mov.u32 %r1, %tid.x;", "add.u32 %r1, %r1, 77; cvt.u32.u8 %r1, %r1;", INDEX, 1000),
    ("predicates_combined", "setp.eq.u32 %p1, %n, 7; mov.u32 %r1, 0;", "add.u32 %r1, %r1, 1; setp.ne.u32 %p2, %n, %r1; "
     "and.pred %p1, %p1, %p2;", "@!%p1 bra E; st.global.u32 [%a], 1; E: ret;", 600),
    ("predicates_of_predicates", "setp.eq.u32 %p1, %n, 7; mov.u32 %r1, 0; setp.eq.u32 %p2, %n, 8;",
     "and.pred %p3, %p1, %p2; or.pred %p1, %p1, %p2; xor.pred %p2, %p3, %p1;",
     "@!%p1 bra E; st.global.u32 [%a], 1; E: ret;", 60),
    ("selected_offsets", "mov.u64 %rd1, 0;", "setp.eq.u32 %p1, %n, 3; add.s64 %rd2, %rd1, 16; add.s64 %rd3, %rd1, 1; "
     "selp.b64 %rd1, %rd2, %rd3, %p1;", "add.s64 %rd2, %a, %rd1; st.global.u8 [%rd2], 1; ret;", 100),
    ("binary_search", "mov.u64 %rd1, 0;", "shl.b64 %rd4, %rd1, 2; add.s64 %rd4, %rd4, %a; ld.global.u32 %r1, [%rd4]; "
     "setp.lt.u32 %p1, %r1, %n; add.s64 %rd2, %rd1, 32; selp.b64 %rd1, %rd2, %rd1, %p1;",
     "add.s64 %rd2, %a, %rd1; st.global.u8 [%rd2], 1; ret;", 60),
    ("selected_pointers", "mov.u64 %rd1, %a;", "setp.eq.u32 %p1, %n, 3; add.s64 %rd2, %rd1, 4; selp.b64 %rd1, %rd2, %rd1, %p1;",
     "st.global.u8 [%rd1], 1; ret;", 600),
    ("selected_predicates", "setp.eq.u32 %p1, %n, 7; mov.u32 %r1, 0;", "add.u32 %r1, %r1, 1; setp.eq.u32 %p2, %n, %r1; "
     "@%p2 setp.gt.u32 %p1, %n, %r1;", "@!%p1 bra E; st.global.u32 [%a], 1; E: ret;", 300),
]


@pytest.mark.parametrize(("name", "start", "step", "end", "times"), GROWING, ids=[g[0] for g in GROWING])
def test_repeated_instructions_do_not_grow_without_end(name: str, start: str, step: str, end: str, times: int) -> None:
    with within(3):
        everything(f"{start} {step * times} {end}")


def repeated(piece: str, times: int) -> str:
    return "".join(piece.replace("#", str(i)) for i in range(times))


SHAPES = [
    ("early_exits", repeated("setp.eq.u32 %p1, %n, #; @%p1 bra E; st.global.u32 [%a+4], #;", 700) + "E: ret;"),
    ("diamonds", "mov.u32 %r1, 0;" + repeated("setp.eq.u32 %p1, %n, #; @%p1 bra S#; add.u32 %r1, %r1, #; S#:", 700) + INDEX),
    ("ifs_in_ifs", repeated("setp.eq.u32 %p1, %n, #; @%p1 bra E#; st.global.u32 [%a], #;", 400)
     + "".join(f"E{i}: st.global.u32 [%a+4], {i};" for i in reversed(range(400))) + "ret;"),
    ("one_or_the_other", repeated("setp.eq.u32 %p1, %n, #; setp.gt.u32 %p2, %n, #; @%p1 bra B#; @%p2 bra S#; B#: "
                                  "st.global.u32 [%a], #; S#:", 700) + "ret;"),
    ("loops_in_a_row", "mov.u32 %r1, 0;" + repeated("mov.u32 %r2, 0; L#: add.u32 %r1, %r1, 1; add.u32 %r2, %r2, 1; "
                                                    "setp.lt.u32 %p1, %r2, %n; @%p1 bra L#;", 500) + INDEX),
    ("loops_in_a_row_each_from_the_last", "mov.u32 %r1, 0;" + repeated("L#: add.u32 %r1, %r1, 3; setp.lt.u32 %p1, %r1, #0; "
                                                                       "@%p1 bra L#;", 150) + INDEX),
    ("loops_left_twice", "mov.u32 %r1, 0;" + repeated("mov.u32 %r2, 0; L#: ld.global.u32 %r5, [%a]; setp.eq.u32 %p2, %r5, 99; "
                                                      "@%p2 bra E#; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1; @%p1 bra L#; "
                                                      "E#: add.u32 %r1, %r1, %r2;", 80) + "and.b32 %r1, %r1, 15;" + INDEX),
    ("loops_in_loops", ".reg .b32 %q<200>;" + repeated("mov.u32 %q#, 0; L#: ", 120)
     + "mul.wide.u32 %rd1, %q0, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;"
     + "".join(f"add.u32 %q{i}, %q{i}, 1; setp.lt.u32 %p1, %q{i}, %n; @%p1 bra L{i};" for i in reversed(range(120))) + "ret;"),
    ("loops_in_loops_all_in_the_address", ".reg .b32 %q<200>; mov.u32 %r1, 0;" + repeated("mov.u32 %q#, 0; L#: ", 40)
     + repeated("add.u32 %r1, %r1, %q#;", 40) + "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;"
     + "".join(f"add.u32 %q{i}, %q{i}, 1; setp.lt.u32 %p1, %q{i}, %n; @%p1 bra L{i};" for i in reversed(range(40))) + "ret;"),
    ("many_ways_into_one_block", repeated("setp.eq.u32 %p1, %n, #; mov.u32 %r1, #; @%p1 bra M;", 900) + "M: " + INDEX),
    ("indexed_branch_of_many", "T: .branchtargets " + ", ".join(f"B{i}" for i in range(800)) + "; brx.idx %n, T;"
     + repeated("B#: mov.u32 %r1, #; bra M;", 800) + "M: " + INDEX),
    ("tangled_jumps", repeated("L#: setp.eq.u32 %p1, %n, #; @%p1 bra R#; add.u32 %r1, %r1, 1;", 200)
     + "".join(f"R{i}: setp.eq.u32 %p1, %r1, {i}; @%p1 bra L{(i * 7) % 200};" for i in range(200)) + INDEX),
    ("moves_against_the_flow", ".reg .f32 %g<1200>; L: " + repeated("mov.f32 %g#, %g1#;", 100)
     + "mul.f32 %g1000, %f1, %f2; add.f32 %f3, %f4, %f5; setp.lt.u32 %p1, %r1, %n; @%p1 bra L; ret;"),
    ("stores_to_many_places", "mov.u32 %r2, %tid.x;" + repeated("mad.lo.u32 %r1, %r2, #, #; mul.wide.u32 %rd1, %r1, 4; "
                                                                "add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;", 500) + "ret;"),
]


@pytest.mark.parametrize(("name", "body"), SHAPES, ids=[s[0] for s in SHAPES])
def test_control_flow_of_any_shape_is_analysed_in_time(name: str, body: str) -> None:
    with within(5):
        everything(body, n=3)


def test_calls_that_double_at_every_level_end() -> None:
    functions = ".func f40() { }\n" + "".join(
        f".func f{i}() {{ call f{i + 1}, (); call f{i + 1}, (); }}\n" for i in reversed(range(40)))
    with within(3):
        program, _ = everything("call f0, (); st.global.u32 [%a], 1; ret;", before=functions)
    assert program.opaque is not None


def test_a_function_of_many_registers_called_often() -> None:
    with within(5):
        everything("call f, ();" * 400 + "st.global.u32 [%a], 1; ret;", before=".func f() { .reg .b32 %r<40000>; mov.u32 %r1, 1; ret; }")


@pytest.mark.parametrize("number", [400, 3000])
def test_a_sum_of_many_parameters(number: int) -> None:
    """What is generated for it must not nest as deep as the sum is long."""
    parameters = "a:u64 " + " ".join(f"q{i}:u32" for i in range(number))
    with within(6):
        _, found = everything("mov.u32 %r1, 0;" + "".join(f"add.u32 %r1, %r1, %q{i};" for i in range(number)) + INDEX, parameters,
                              q0=5, q7=6)
    assert any(r.lo <= 44 and r.hi >= 48 for r in found.ranges)


def test_many_swizzled_addresses_do_not_fill_memory() -> None:
    """A table of 65536 points for each of them would take a hundred megabytes, and seconds."""
    body = "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;" + repeated(
        "xor.b32 %r1, %r5, 1#; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;", 200) + "ret;"
    program = small(body).program
    tracemalloc.start()
    with within(8):
        evaluate(program, (64, 1, 1), (1024, 1, 1), BASE.to_bytes(8, "little"), [("a", BASE, 1 << 20)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20, f"{peak >> 20} MiB"


EXTREMES = [
    ("least_over_minus_one", "div.s32 %r1, -2147483648, -1; shr.u32 %r1, %r1, 31;"),
    ("remainder_of_the_least", "rem.s32 %r1, -2147483648, -1;"),
    ("divided_by_zero", "div.s32 %r2, %r1, 0; and.b32 %r1, %r2, 7;"),
    ("remainder_by_zero", "rem.u32 %r2, %r1, 0; and.b32 %r1, %r2, 7;"),
    ("zero_by_zero", "div.u32 %r2, 0, 0; and.b32 %r1, %r2, 7;"),
    ("shifted_by_the_width", "shl.b32 %r1, %r1, 32;"),
    ("shifted_by_the_largest_number", "shl.b32 %r1, %r1, 4294967295;"),
    ("shifted_by_a_negative_number", "shr.u32 %r1, %r1, -1;"),
    ("shifted_by_the_thread", "mov.u32 %r2, %tid.x; shl.b32 %r3, %r1, %r2; and.b32 %r1, %r3, 7;"),
    ("the_largest_immediate", "add.u32 %r1, %r1, 18446744073709551615; and.b32 %r1, %r1, 7;"),
    ("the_least_64_bit_factor", "mul.lo.s64 %rd1, %a, -9223372036854775808; shr.u64 %rd1, %rd1, 61; cvt.u32.u64 %r1, %rd1;"),
    ("least_absolute", "abs.s32 %r1, -2147483648; shr.u32 %r1, %r1, 31;"),
    ("empty_field", "bfe.u32 %r1, %r1, 0, 0;"),
    ("field_outside", "bfe.u32 %r1, %r1, 255, 255;"),
    ("inserted_outside", "bfi.b32 %r1, %r1, 0, 255, 255;"),
    ("trailing_divisor", "shl.b32 %r2, %r1, 4; div.s32 %r2, %r2, 0; mul.lo.s32 %r2, %r2, 0; and.b32 %r1, %r2, 7;"),
]


@pytest.mark.parametrize(("name", "body"), EXTREMES, ids=[e[0] for e in EXTREMES])
def test_extreme_operands_raise_nothing(name: str, body: str) -> None:
    everything(f"mov.u32 %r1, %tid.x; {body} {INDEX}")


BROKEN = [
    "add.s32 %r1;", "add.s32 %r1, %r2;", "add.s32;", "mov.u32 %r1;", "mov %r1, %r2;", "mov.u32 5, %r1;", "mov.u32 %r1, {};",
    "ld.global.u32 %r1, %r2;", "ld.global.u32 %r1;", "ld.global.u32 [%a], %r1;", "ld.global.u32;", "st.global.u32 %r1, [%a];",
    "st.global.u32 [%a];", "st.global [%a], %r1;", "ld.global %r1, [%a];", "ld.global.v4.u32 %r1, [%a];",
    "ld.global.v2.u32 {%r1, %r2, %r3, %r4}, [%a];", "ld.global.u32 {%r1, %r2}, [%a];", "ld.global.v4.u32 {%r1}, [%a];",
    "setp.lt.s32 %p1, %r1;", "setp.lt.s32 {%p1, %p2}, %r1, %r2;", "setp.lt.s32 %r1, %r2, %r3;", "setp.lt.and.s32 %p1, %r1, %r2;",
    "setp.s32 %p1, %r1, %r2;", "setp.lt %p1, %r1, %r2;", "setp %p1, %r1, %r2;", "setp.lt.s32 %p1|%p2|%p3, %r1, %r2;",
    "selp.b32 %r1, %r2, %r3;", "selp.b32 %r1, %r2, %r3, %r4;", "selp.b64 %rd1, %a, %a, 1;", "mad.lo.s32 %r1, %r2, %r3;",
    "mad.s32 %r1, %r2, %r3, %r4;", "mul.wide.s64 %rd1, %rd2, %rd3;", "mul.s32 %r1, %r2, %r3;", "shl.b32 %r1, %r2;",
    "bfe.u32 %r1, %r2, 3;", "bfi.b32 %r1, %r2, 3;", "cvt.u32 %r1, %r2;", "cvt %r1, %r2;", "cvt.u32.u32.u32 %r1, %r2;",
    "cvta.to.global %rd1, %a;", "mov.b64 {%r1}, %rd1;", "mov.b64 {%r1, %r2, %r3, %r4, %r5}, %rd1;", "mov.b64 %rd1, {%r1};",
    "mov.b64 {%rd1, %rd2}, %rd3;", "mov.b64 {%r1, {%r2, %r3}}, %rd1;", "mov.b32 {_, _}, %r1;", "mov.b64 {%p1, %p2}, %rd1;",
    "mov.u32 %p1, %r1;", "mov.pred %r1, %p1;", "and.pred %p1, %p2;", "not.pred %p1;", "neg.s32 %r1, {%r1, %r2};",
    "add.s32 %r1, [%a], %r2;", "add.s32 %r1, !%p1, %r2;", "add.s32 {%r1, %r2}, %r3, %r4;", "add.s32 %tid.x, %r1, %r2;",
    "atom.global.add.u32 [%a], %r1;", "atom.global.add %r1, [%a], 1;", "red.global.add.u32 [%a];", "cp.async.ca.shared.global [%r1];",
    "cp.async.ca.shared.global [%r1], [%a], %r2, %r3, %r4, %r5;", "bra %r1;", "bra 5;", "bra;", "brx.idx;", "brx.idx %r1;",
    "@%p1 brx.idx %r1, nothing;", "call;", "call (%r1);", "ret %r1;", "exit 5;", "bar.sync;", "shfl.sync.idx.b32 %r1;",
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%a];", "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%a];",
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%a], {%r1};", "discard.global.L2 [%a];", "discard.global.L2 [%a], %r1;",
    "ld.param.u64 %rd1, [nothing];", "ld.param.u64 %rd1, [a+4096];", "ld.param.u64 %rd1, [a+-8];", "ld.param.b128 %rd1, [a];",
    "ld.param.u64 %rd1, [a+3];", "st.param.u64 [a], %rd1;", "ld.const.u32 %r1, [nothing+4];", "st.shared.u32 [%a], %r1;",
    "mov.u64 %rd1, nothing; st.global.u32 [%rd1], 1;", "shr.cluster %r1, %r2, 2;", "div.s32 %r1, %r2, 0;", "rem.s16x2 %r1, %r2, %r3;",
    "min.s16x2 %r1, %r2;", "fence.proxy.tensormap::generic.acquire.gpu [%a], 128;", "prefetch.global.L2 [%a];", "ld.u32 %r1, [5];",
    "tex.1d.v4.f32.s32 {%f1}, [%a];", "mbarrier.try_wait.shared.b64 %p1|%p2, [%r1], %rd1;", "lop3.or.b32 %r1|%p1, %r1, %r1, %r1, 1, %p2;",
]


@pytest.mark.parametrize("statement", BROKEN)
def test_broken_statements_raise_nothing(statement: str) -> None:
    """The parser may refuse them; what it takes, the analysis takes too."""
    from ptxparse.errors import PtxError

    text = text_of(f"mov.u32 %r1, %tid.x; {statement} setp.lt.u32 %p1, %r1, 9; @!%p1 bra E; {INDEX} E: ret;")
    try:
        module = parse(text)
    except PtxError:
        return
    (program,) = analyze(module)
    program_to_json(program)
    evaluate(program, (2, 1, 1), (32, 1, 1), BASE.to_bytes(8, "little"), [("a", BASE, 1 << 20)])
    count(program, (2, 1, 1), (32, 1, 1), BASE.to_bytes(8, "little"))


ODD = [
    ".visible .entry k() { }", ".visible .entry k() { ret; }", ".visible .entry k() { L: bra L; }", ".visible .entry k() { L: }",
    ".visible .entry k() { L: M: N: }", ".visible .entry k(.param .align 8 .b8 s[0]) { ret; }",
    ".visible .entry k(.param .u64 a, .param .align 1 .b8 s[0], .param .u32 n) { .reg .b64 %rd<9>; ld.param.u64 %rd1, [a]; "
    "st.global.u32 [%rd1], 1; ret; }",
    ".visible .entry k(.param .align 8 .b8 s[0]) { .reg .b64 %rd<9>; ld.param.u64 %rd1, [s]; st.global.u32 [%rd1], 1; ret; }",
    ".visible .entry k(.param .u64 a) { .reg .b64 a; .reg .b64 %rd<9>; ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 1; ret; }",
    ".visible .entry k(.param .align 8 .b8 s[65528]) { .reg .b64 %rd<9>; .reg .b32 %r<3>; mov.u64 %rd1, s; mov.u32 %r1, %tid.x; "
    "mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2; ld.param.u64 %rd4, [%rd3]; st.global.u32 [%rd4], 1; ret; }",
    ".visible .entry k() .maxntid 0, 0, 0 { ret; }", ".global .b8 g[]; .visible .entry k() { st.global.u32 [g], 1; ret; }",
    ".extern .global .b8 g[]; .visible .entry k() { .reg .b64 %rd<9>; mov.u64 %rd1, g; st.global.u32 [%rd1+8], 1; ret; }",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_kernels_raise_nothing(text: str) -> None:
    from ptxparse.errors import PtxError

    try:
        module = parse(f".version 8.0\n.target sm_80\n.address_size 64\n{text}\n")
    except PtxError:
        return
    (program,) = analyze(module)
    data = BASE.to_bytes(8, "little") * (program.parameter_bytes // 8 + 1)
    evaluate(program, (2, 1, 1), (32, 1, 1), data, [("a", BASE, 1 << 20)])
    count(program, (2, 1, 1), (32, 1, 1), data)


LAUNCHES = [
    ((1, 1, 1), (1, 1, 1)), ((1, 1, 1), (1024, 1, 1)), ((2**31 - 1, 1, 1), (1024, 1, 1)),
    ((2**31 - 1, 65535, 65535), (1024, 1, 1)), ((1, 1, 1), (1, 1024, 1)), ((1, 65535, 1), (1, 1, 64)),
]


@pytest.mark.parametrize(("grid", "block"), LAUNCHES)
@pytest.mark.parametrize("n", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_every_launch_can_be_evaluated(grid: tuple[int, int, int], block: tuple[int, int, int], n: int) -> None:
    body = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3; mov.u32 %r5, %ctaid.y;
    mov.u32 %r6, %ntid.y; mov.u32 %r7, %tid.y; mad.lo.s32 %r8, %r5, %r6, %r7; setp.ge.s32 %p1, %r4, %n; @%p1 bra E;
    L: mad.lo.s32 %r9, %r8, %n, %r4; xor.b32 %r10, %r9, 5; div.s32 %r11, %r10, %n; mul.wide.s32 %rd1, %r11, 4;
    add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; add.s32 %r4, %r4, %n; setp.lt.s32 %p2, %r4, %r2; @%p2 bra L; E: ret;"""
    program = small(body, "a:u64 n:u32").program
    data = BASE.to_bytes(8, "little") + n.to_bytes(4, "little")
    with within(2):
        evaluate(program, grid, block, data, [("a", BASE, 1 << 20)])
        count(program, grid, block, data)


@pytest.mark.parametrize("offset", ["9223372036854775808", "-8", "16", "18446744073709551615"])
@pytest.mark.parametrize("kind", ["u64", "u32"])
def test_a_parameter_read_outside_the_parameters_is_not_a_parameter(offset: str, kind: str) -> None:
    """Only the bytes of the block are parameters; what lies elsewhere is not known, and the store through it hides nothing."""
    wide = "ld.param.u64 %rd1, [a+OFFSET];" if kind == "u64" else "ld.param.u32 %r1, [a+OFFSET]; cvt.u64.u32 %rd1, %r1;"
    program, found = everything(wide.replace("OFFSET", offset) + " cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], 1; ret;")
    assert program_from_json(program_to_json(program)) == program
    assert found.opaque is not None or program.opaque is not None
