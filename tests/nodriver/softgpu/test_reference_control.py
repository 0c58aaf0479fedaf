"""Branches, divergence and reconvergence, calls, printf and the ends of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.reference import (
    DeadlockError,
    InterpreterError,
    KernelTrap,
    MemoryFault,
    Schedule,
    StepLimit,
    UndefinedBehaviour,
    UnsupportedInstruction,
)
from tests.reference_kernels import HEADER, REGISTERS, Run, checked, evaluate, one

SCHEDULES = [Schedule(), Schedule("reverse"), Schedule("random", seed=3), Schedule("random", seed=4, quantum=7),
             Schedule("forward", quantum=11, warps="apart"), Schedule("reverse", together=2, warps="apart")]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_loops_of_different_lengths(schedule: Schedule) -> None:
    """Collatz steps: every thread leaves the loop at its own time."""
    body = """
        mov.u32 %x, 0;
    $L: setp.le.u32 %p0, %a, 1; @%p0 bra $D; and.b32 %r0, %a, 1; setp.eq.u32 %p1, %r0, 0; @%p1 bra $E;
        mad.lo.u32 %a, %a, 3, 1; bra.uni $N;
    $E: shr.u32 %a, %a, 1;
    $N: add.u32 %x, %x, 1; bra $L;
    $D:
    """
    numbers = [1, 2, 3, 27, 97, *range(5, 200)]

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    assert one(body, [("u32", numbers)], "u32", block=40, schedule=schedule).tolist() == [steps(n) for n in numbers]


def test_threads_reconverge_at_the_join() -> None:
    """After the two arms of a branch all lanes are active together again: activemask sees the whole warp."""
    body = """
        and.b32 %r0, %a, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra $E; activemask.b32 %x; bra $J;
    $E: activemask.b32 %x;
    $J: activemask.b32 %y;
    """
    inside, after = evaluate(body, [("u32", range(32))], ["b32", "b32"])
    assert inside.tolist() == [0x55555555, 0xAAAAAAAA] * 16
    assert after.tolist() == [0xFFFFFFFF] * 32


def test_a_partial_warp_has_only_its_lanes() -> None:
    got = one("activemask.b32 %x;", [("u32", range(40))], "b32", block=40)
    assert got.tolist() == [0xFFFFFFFF] * 32 + [0xFF] * 8


def test_lowest_program_counter_runs_first() -> None:
    """Threads that wait behind a loop do not run ahead of those still in it: each sees the full mask at the end."""
    body = """mov.u32 %r1, %a;
        $L: setp.eq.u32 %p0, %r1, 0; @%p0 bra $D; sub.u32 %r1, %r1, 1; bra $L; $D: activemask.b32 %x;"""
    assert set(one(body, [("u32", range(32))], "b32").tolist()) == {0xFFFFFFFF}


def test_guarded_instructions_act_in_some_threads_only() -> None:
    body = "mov.u32 %x, 5; setp.gt.u32 %p0, %a, 2; @%p0 add.u32 %x, %x, %a; @!%p0 mul.lo.u32 %x, %x, %a;"
    assert one(body, [("u32", range(6))], "u32").tolist() == [0, 5, 10, 8, 9, 10]


def test_indexed_branches() -> None:
    body = """
        T: .branchtargets $A, $B, $C;
        brx.idx %a, T;
    $A: mov.u32 %x, 10; bra $D;
    $B: mov.u32 %x, 20; bra $D;
    $C: mov.u32 %x, 30;
    $D:
    """
    assert one(body, [("u32", [2, 0, 1, 1, 2])], "u32").tolist() == [30, 10, 20, 20, 30]
    with pytest.raises(UndefinedBehaviour, match="3 targets"):
        one(body, [("u32", [0, 3])], "u32")


def test_exit_and_ret_end_threads_early() -> None:
    text = f"""{HEADER}
.visible .entry k(.param .u64 p)
{{{REGISTERS}
    mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;
    setp.lt.u32 %p0, %r0, 3; @%p0 exit; setp.lt.u32 %p1, %r0, 6; @%p1 ret; st.global.u32 [%rd1], %r0;
}}"""
    run = Run(text)
    out = run.buffer(40)
    result = run.launch("k", 1, 10, out)
    assert run.read(out, 10).tolist() == [0] * 6 + [6, 7, 8, 9]
    assert (result.instructions["exit"], result.instructions["ret"]) == (3, 3)
    assert result.instructions["st.global.u32"] == 4


FUNCTIONS = """
.func (.param .b32 r) fib(.param .b32 n)
{
    .reg .pred %p; .reg .b32 %r<8>;
    ld.param.u32 %r1, [n]; setp.lt.u32 %p, %r1, 2; @%p bra $base;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; st.param.b32 [a], %r2; .param .b32 v; call.uni (v), fib, (a); ld.param.b32 %r3, [v]; }
    sub.u32 %r4, %r1, 2;
    { .param .b32 a; st.param.b32 [a], %r4; .param .b32 v; call.uni (v), fib, (a); ld.param.b32 %r5, [v]; }
    add.u32 %r6, %r3, %r5; st.param.b32 [r+0], %r6; ret;
$base:
    st.param.b32 [r+0], %r1; ret;
}
.func (.reg .b32 %out) twice(.reg .b32 %in) { add.u32 %out, %in, %in; ret; }
.func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 pair[16])
{
    .reg .b64 %rd<4>; .local .align 8 .b8 room[16]; .reg .b64 %s;
    mov.u64 %s, room; ld.param.b64 %rd1, [pair]; ld.param.b64 %rd2, [pair+8];
    st.local.u64 [%s], %rd2; st.local.u64 [%s+8], %rd1; ld.local.v2.u64 {%rd1, %rd2}, [%s];
    st.param.b64 [r], %rd1; st.param.b64 [r+8], %rd2; ret;
}
.func (.param .b32 r) add1(.param .b32 n) { .reg .b32 %r; ld.param.b32 %r, [n]; add.u32 %r, %r, 1;
    st.param.b32 [r], %r; ret; }
.func (.param .b32 r) add2(.param .b32 n) { .reg .b32 %r; ld.param.b32 %r, [n]; add.u32 %r, %r, 2;
    st.param.b32 [r], %r; ret; }
.func leave(.param .b32 n) { .reg .b32 %r; .reg .pred %p; ld.param.b32 %r, [n]; setp.gt.u32 %p, %r, 4; @%p exit; ret; }
.func (.param .b32 r) deep(.param .b32 n)
{
    .reg .b32 %r<3>; .local .align 16 .b8 big[4096];
    ld.param.b32 %r1, [n];
    { .param .b32 a; st.param.b32 [a], %r1; .param .b32 v; call.uni (v), deep, (a); ld.param.b32 %r2, [v]; }
    st.param.b32 [r], %r2; ret;
}
.global .align 8 .u64 choices[2] = {add1, add2};
"""


@pytest.mark.parametrize("schedule", SCHEDULES[:5])
def test_recursion(schedule: Schedule) -> None:
    body = "{ .param .b32 n; st.param.b32 [n], %a; .param .b32 v; call.uni (v), fib, (n); ld.param.b32 %x, [v]; }"
    got = one(body, [("u32", range(11))], "u32", declarations=FUNCTIONS, schedule=schedule)
    assert got.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_register_parameters_and_constant_arguments() -> None:
    body = "call (%x), twice, (%a); call (%r1), twice, (21); add.u32 %x, %x, %r1;"
    assert one(body, [("u32", [1, 2])], "u32", declarations=FUNCTIONS).tolist() == [44, 46]


def test_aggregates_by_value() -> None:
    body = """{ .param .align 8 .b8 g[16]; .param .align 8 .b8 v[16]; st.param.b64 [g], %a; st.param.b64 [g+8], %b;
        call (v), swap, (g); ld.param.b64 %x, [v]; ld.param.b64 %y, [v+8]; }"""
    columns = [("u64", [1, 2, 3]), ("u64", [7, 8, 2**60])]
    first, second = evaluate(body, columns, ["u64", "u64"], declarations=FUNCTIONS)
    assert (first.tolist(), second.tolist()) == ([7, 8, 2**60], [1, 2, 3])


def test_guarded_and_divergent_calls_meet_again() -> None:
    body = """
        setp.lt.u32 %p0, %a, 8; mov.u32 %r0, 0;
        @%p0 call (%r0), twice, (%a);
        @!%p0 bra $S; call (%r0), twice, (%r0);
    $S: activemask.b32 %y; mov.u32 %x, %r0;
    """
    got, mask = evaluate(body, [("u32", range(32))], ["u32", "b32"], declarations=FUNCTIONS)
    assert got.tolist() == [4 * i if i < 8 else 0 for i in range(32)]
    assert set(mask.tolist()) == {0xFFFFFFFF}


def test_indirect_calls_part_by_target() -> None:
    body = """
        mov.u64 %rd1, choices; and.b32 %r1, %a, 1; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2;
        ld.global.u64 %rd3, [%rd1];
        { .param .b32 n; st.param.b32 [n], %a; .param .b32 v; P: .callprototype (.param .b32 _) _ (.param .b32 _);
          call (v), %rd3, (n), P; ld.param.b32 %x, [v]; }
        mov.u64 %rd4, add2; setp.eq.u64 %y, %rd4, %rd3;
    """
    got, same = evaluate(body, [("u32", range(8))], ["u32", "pred"], declarations=FUNCTIONS)
    assert got.tolist() == [i + 1 + i % 2 for i in range(8)]
    assert same.tolist() == [0, 1] * 4
    with pytest.raises(InterpreterError, match="no function"):
        one(body.replace("ld.global.u64 %rd3, [%rd1];", "mov.u64 %rd3, 64;").split("mov.u64 %rd4")[0],
            [("u32", [0])], "u32", declarations=FUNCTIONS)


def test_exit_inside_a_function() -> None:
    body = "{ .param .b32 n; st.param.b32 [n], %a; call leave, (n); } mov.u32 %x, 9;"
    assert one(body, [("u32", range(8))], "u32", declarations=FUNCTIONS).tolist() == [9] * 5 + [0] * 3


def test_endless_recursion_overflows_the_stack() -> None:
    body = "{ .param .b32 n; st.param.b32 [n], %a; .param .b32 v; call.uni (v), deep, (n); ld.param.b32 %x, [v]; }"
    with pytest.raises(MemoryFault, match="call stack"):
        one(body, [("u32", [1])], "u32", declarations=FUNCTIONS)


@pytest.mark.parametrize("call", ["call nothing, ();", "call (%x), twice, ();", "call (%x, %x), twice, (%a);",
                                  "call (%x), malloc, (%a);"])
def test_calls_that_do_not_fit_are_refused(call: str) -> None:
    declarations = FUNCTIONS + ".extern .func (.param .b64 r) malloc (.param .b64 n);"
    with pytest.raises(UnsupportedInstruction):
        one(call, [("u32", [1])], "u32", declarations=declarations)


PRINT = """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 format[48] = {%s};
.global .align 1 .b8 word[6] = {104, 101, 108, 108, 111, 0};
"""


def declared(text: str) -> str:
    return PRINT % ", ".join(str(b) for b in [*text.encode(), 0])


def test_printf_text_order_and_result() -> None:
    text = f"""{HEADER}{declared('%d|%5.2f|%-4u|%s|%lld|%c%%|%x')}
.visible .entry k(.param .u64 p)
{{{REGISTERS} .local .align 8 .b8 depot[48];
    mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 1; @%p0 ret;
    mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; neg.s32 %r1, %r0; st.local.u32 [%rd1], %r1;
    cvt.rn.f64.u32 %fd1, %r0; st.local.f64 [%rd1+8], %fd1; st.local.u32 [%rd1+16], 7;
    mov.u64 %rd3, word; cvta.global.u64 %rd3, %rd3; st.local.u64 [%rd1+24], %rd3; st.local.u64 [%rd1+32], -5;
    st.local.u32 [%rd1+40], 65; st.local.u32 [%rd1+44], 255; mov.u64 %rd4, format; cvta.global.u64 %rd4, %rd4;
    {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd4; st.param.b64 [a], %rd2;
       call.uni (r), vprintf, (f, a); ld.param.b32 %r2, [r]; }}
    ld.param.u64 %rd5, [p]; st.global.u32 [%rd5], %r2; ret;
}}"""
    run = Run(text)
    out = run.buffer(4)
    result = run.launch("k", 1, 4, out)
    assert result.output == b"0| 0.00|7   |hello|-5|A%|ff-1| 1.00|7   |hello|-5|A%|ff"
    assert run.read(out, 1).tolist() == [7]
    assert len(result.log) == 2, "what printf reads is not an access of the kernel"


def test_failed_assertion_is_a_trap_with_its_words() -> None:
    text = f"""{HEADER}{declared('x > 0')}
.visible .entry k(.param .u64 p)
{{{REGISTERS}
    mov.u64 %rd4, format; mov.u64 %rd5, word;
    {{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;
       st.param.b64 [m], %rd4; st.param.b64 [f], %rd5; st.param.b32 [l], 12; st.param.b64 [n], %rd5;
       st.param.b64 [c], 1; call.uni __assertfail, (m, f, l, n, c); }}
    ret;
}}"""
    with pytest.raises(KernelTrap, match=r"assertion `x > 0` failed in hello, hello:12"):
        Run(text).launch("k", 1, 1, 0)


@pytest.mark.parametrize("text", [
    "membar.cta;", "membar.gl;", "membar.sys;", "fence.sc.gpu;", "fence.acq_rel.sys;", "fence.acquire.cluster;",
    "fence.gpu;", "griddepcontrol.wait;", "griddepcontrol.launch_dependents;", "pmevent 3;", "pmevent.mask 5;",
    "nanosleep.u32 %a;", "prefetch.L1 [%rd40];", "prefetch.global.L2::evict_last [%rd40];",
])
def test_what_only_orders_or_hints_leaves_values_alone(text: str) -> None:
    assert one(f"mov.u32 %x, %a; {text}", [("u32", range(5))], "u32").tolist() == list(range(5))


@pytest.mark.parametrize("text", ["membar;", "fence.proxy.generic;", "fence.sc;", "bra.foo $L; $L:", "bar.sync;",
                                  "pmevent;", "barrier.cluster.arrive;", "nanosleep 5;", "brx.idx %a, %a;",
                                  "bra $nowhere;"])
def test_control_forms_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        one(f"mov.u32 %x, %a; {text}", [("u32", [1])], "u32")


def test_trap_and_breakpoint() -> None:
    for name, reason in (("trap", "trap"), ("brkpt", "breakpoint")):
        body = f"setp.eq.u32 %p0, %a, 5;\n@%p0 {name}; mov.u32 %x, 1;"
        with pytest.raises(KernelTrap, match=f"thread 5: {reason}"):
            one(body, [("u32", range(8))], "u32")
        assert one(body, [("u32", range(5))], "u32").tolist() == [1] * 5


def test_endless_loops_reach_the_step_limit() -> None:
    run = Run(f"{HEADER}.visible .entry k(.param .u64 p)\n{{ $L: bra $L; }}")
    with pytest.raises(StepLimit, match="1000"):
        run.launch("k", 4, 32, 0, step_limit=1000)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_spinning_thread_does_not_starve_the_one_it_waits_for(schedule: Schedule) -> None:
    """Lane 0 waits in a loop at lower addresses for the last lane, of the same and of another warp and block."""
    text = f"""{HEADER}
.visible .entry k(.param .u64 p)
{{{REGISTERS}
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; or.b32 %r2, %r0, %r1; ld.param.u64 %rd1, [p];
    setp.ne.u32 %p0, %r2, 0; @%p0 bra $work;
$wait: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.lt.u32 %p1, %r3, 3; @%p1 bra $wait; st.global.u32 [%rd1+4], %r3; ret;
$work: setp.ne.u32 %p2, %r0, 63; setp.ne.u32 %p3, %r0, 1; setp.ne.u32 %p4, %r1, 0;
    @!%p2 red.release.gpu.global.add.u32 [%rd1], 1;
    or.pred %p5, %p3, %p4; @!%p5 red.release.gpu.global.add.u32 [%rd1], 1; ret;
}}"""
    run = Run(text)
    out = run.buffer(8)
    run.launch("k", 2, 64, out, schedule=schedule, step_limit=500_000)
    assert run.read(out, 2).tolist() == [3, 3]


def test_a_spin_lock_within_one_warp_ends() -> None:
    """Each lane takes a lock in turn; the holder runs on although waiting lanes loop at lower addresses."""
    body = f"""{HEADER}
.visible .entry k(.param .u64 p)
{{{REGISTERS}
    ld.param.u64 %rd1, [p];
$try: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra $try;
    ld.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2; membar.gl;
    atom.global.exch.b32 %r3, [%rd1], 0; ret;
}}"""
    run = Run(body)
    out = run.buffer(8)
    run.launch("k", 1, 32, out, step_limit=200_000)
    assert run.read(out, 2).tolist() == [0, 32]


def test_launch_errors() -> None:
    run = Run(f"{HEADER}.visible .entry k(.param .u64 p) .reqntid 32, 1, 1 {{ ret; }}\n"
              ".visible .entry m(.param .u32 p) .maxntid 64 { ret; }\n.func f() { ret; }")
    run.launch("k", 1, 32, 0)
    for kernel, grid, block, arguments, options, reason in (
        ("absent", 1, 32, (0,), {}, "no kernel"), ("f", 1, 32, (0,), {}, "no kernel"),
        ("k", 1, 31, (0,), {}, "requires"), ("k", 0, 32, (0,), {}, "grid"), ("k", 1, (32, 1, 65), (0,), {}, "block"),
        ("k", (1, 1, 1, 1), 32, (0,), {}, "grid"), ("m", 1, 65, (0,), {}, "at most"),
        ("k", 1, 32, (), {}, "parameters"),
        ("k", 1, 32, (0, 0), {}, "parameters"), ("k", 1, 32, (0,), {"shared": 1 << 20}, "shared"),
    ):
        with pytest.raises(InterpreterError, match=reason):
            run.launch(kernel, grid, block, *arguments, **options)
    run.launch("m", 1, 64, 0)  # eight bytes for a four-byte parameter: the padding C compilers add


def test_refusal_comes_before_anything_runs() -> None:
    run = Run(f"{HEADER}.visible .entry k(.param .u64 p)\n{{{REGISTERS} ld.param.u64 %rd1, [p];\n"
              "st.global.u32 [%rd1], 1; wgmma.fence.sync.aligned; ret; }")
    out = run.buffer(4)
    with pytest.raises(UnsupportedInstruction, match=r"wgmma\.fence") as caught:
        run.launch("k", 1, 32, out)
    assert caught.value.mnemonic == "wgmma.fence.sync.aligned"
    assert run.read(out, 1).tolist() == [0]


def test_counts_are_thread_instructions_whose_guard_held() -> None:
    run = Run(f"{HEADER}.visible .entry k(.param .u64 p)\n{{{REGISTERS} mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 10;"
              "@%p0 add.u32 %r1, %r0, 1; @%p0 bra $E; mul.lo.u32 %r1, %r0, 3;\n"
              "$E: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; }")
    counts = run.launch("k", 3, 32, 0).instructions
    assert counts == {"mov.u32": 96, "setp.lt.u32": 96, "add.u32": 30, "bra": 30, "mul.lo.u32": 66,
                      "shfl.sync.idx.b32": 96}


def test_empty_kernel_and_uninitialised_registers() -> None:
    run = Run(f"{HEADER}.visible .entry k() {{ }}")
    assert run.launch("k", 5, 64).instructions == {}
    assert one("mov.u32 %x, %r7;", [("u32", [1])], "u32").tolist() == [0]


def test_deadlock_is_reported_with_who_waits_where() -> None:
    run = Run(f"{HEADER}.visible .entry k()\n{{{REGISTERS} mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32;\n"
              "@%p0 bar.sync 1, 64;\n@!%p0 bar.sync 2, 64; }")
    checked(run.loaded, "k")
    with pytest.raises(DeadlockError, match=r"thread 0 and 31 more at barrier 1, line 8.*thread 32.*barrier 2, line 9"):
        run.launch("k", 1, 64)


def test_random_orders_differ_by_seed_and_repeat_by_seed() -> None:
    def order(**options: object) -> list[int]:
        schedule = Schedule("random", **options)  # type: ignore[arg-type]
        return [b for batch in schedule.batches(50, 1000) for b in batch]

    assert order(seed=1) == order(seed=1) != order(seed=2)
    assert sorted(order(seed=1)) == list(range(50))
    assert list(Schedule().batches(50, 20)) == [list(range(20)), list(range(20, 40)), list(range(40, 50))]
    assert [b for batch in Schedule("reverse").batches(50, 1000) for b in batch] == list(range(49, -1, -1))
    assert np.array([len(b) for b in Schedule(quantum=3).batches(9, 100)]).tolist() == [1] * 9
