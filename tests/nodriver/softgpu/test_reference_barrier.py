"""Block barriers: in loops, named, with counts, reducing, arriving, with exited threads; grid-wide barriers."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.reference import DeadlockError, InterpreterError, KernelTrap, Schedule, StepLimit
from tests.reference_kernels import HEADER, REGISTERS, Run, checked

SCHEDULES = [Schedule(), Schedule("reverse", together=1), Schedule("random", seed=5),
             Schedule("random", seed=6, quantum=5), Schedule(quantum=9, warps="apart")]


def kernel(body: str, declarations: str = "") -> Run:
    run = Run(f"""{HEADER}{declarations}
.visible .entry k(.param .u64 p, .param .u64 q)
{{{REGISTERS} .shared .align 8 .b8 s[4096];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
    mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    mov.u32 %r4, s; mad.lo.u32 %r5, %r0, 4, %r4;
{body}
    ret;
}}""")
    checked(run.loaded, "k")
    return run


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tree_reduction_with_barriers_in_a_loop(schedule: Schedule) -> None:
    run = kernel("""
        ld.global.u32 %r6, [%rd4]; st.shared.u32 [%r5], %r6; shr.u32 %r7, %r2, 1;
    $L: bar.sync 0; setp.ge.u32 %p0, %r0, %r7; @%p0 bra $S;
        mad.lo.u32 %r8, %r7, 4, %r5; ld.shared.u32 %r9, [%r8]; ld.shared.u32 %r10, [%r5]; add.u32 %r9, %r9, %r10;
        st.shared.u32 [%r5], %r9;
    $S: shr.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra $L;
        bar.sync 0; ld.shared.u32 %r11, [s]; st.global.u32 [%rd5], %r11;
    """)
    data = np.random.default_rng(1).integers(0, 2**32, 128 * 3, dtype=np.uint32)
    out = run.buffer(data.nbytes)
    run.launch("k", 3, 128, run.buffer(data), out, schedule=schedule)
    sums = data.reshape(3, 128).sum(axis=1, dtype=np.uint32)
    assert run.read(out, 384).tolist() == np.repeat(sums, 128).tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_at_different_places_meet(schedule: Schedule) -> None:
    """barrier.sync (not aligned) in both arms of a branch, for threads of one warp."""
    run = kernel("""
        and.b32 %r6, %r0, 1; setp.eq.u32 %p0, %r6, 0; st.shared.u32 [%r5], %r0; @%p0 bra $E;
        barrier.sync 3; xor.b32 %r7, %r0, 33; bra $J;
    $E: barrier.cta.sync 3; xor.b32 %r7, %r0, 35;
    $J: mad.lo.u32 %r8, %r7, 4, %r4; ld.shared.u32 %r9, [%r8]; st.global.u32 [%rd5], %r9;
    """)
    out = run.buffer(4 * 128)
    run.launch("k", 2, 64, 0, out, schedule=schedule)
    assert run.read(out, 128).tolist() == [i ^ (33 if i & 1 else 35) for i in range(64)] * 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_producers_arrive_and_consumers_wait_at_named_barriers(schedule: Schedule) -> None:
    """Warp 0 fills a buffer, warp 1 empties it, three rounds, with bar.arrive and bar.sync on two barriers."""
    run = kernel("""
        mov.u32 %r6, 0; and.b32 %r7, %r0, 31; mad.lo.u32 %r8, %r7, 4, %r4; setp.ge.u32 %p0, %r0, 32; @%p0 bra $C;
    $P: setp.eq.u32 %p1, %r6, 0; @%p1 bra $F; bar.sync 2, 64;
    $F: mad.lo.u32 %r9, %r6, 1000, %r7; st.shared.u32 [%r8], %r9; bar.arrive 1, 64;
        add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra $P; ret;
    $C: bar.sync 1, 64; ld.shared.u32 %r9, [%r8]; mad.lo.u32 %r10, %r6, 32, %r7; mad.lo.u32 %r10, %r1, 96, %r10;
        mul.wide.u32 %rd6, %r10, 4; add.s64 %rd6, %rd6, %rd2; st.global.u32 [%rd6], %r9;
        setp.eq.u32 %p3, %r6, 2; @%p3 bra $D; bar.arrive 2, 64;
    $D: add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 3; @%p4 bra $C;
    """)
    out = run.buffer(4 * 192)
    run.launch("k", 2, 64, 0, out, schedule=schedule)
    assert run.read(out, 192).tolist() == [r * 1000 + i for r in range(3) for i in range(32)] * 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reducing_barriers(schedule: Schedule) -> None:
    run = kernel("""
        setp.lt.u32 %p0, %r3, 70; barrier.cta.red.popc.aligned.u32 %r6, 0, %p0; bar.red.popc.u32 %r7, 1, %r2, !%p0;
        bar.red.and.pred %p1, 2, %p0; bar.red.or.pred %p2, 3, %p0; selp.b32 %r8, 1, 0, %p1; selp.b32 %r9, 1, 0, %p2;
        mad.lo.u32 %r6, %r6, 1000, %r7; mad.lo.u32 %r6, %r6, 10, %r8; mad.lo.u32 %r6, %r6, 10, %r9;
        st.global.u32 [%rd5], %r6;
    """)
    out = run.buffer(4 * 192)
    run.launch("k", 3, 64, 0, out, schedule=schedule)
    got = run.read(out, 192).reshape(3, 64)
    for row, want in zip(got, [(64 * 1000) * 100 + 11, (6 * 1000 + 58) * 100 + 1, (64) * 100], strict=True):
        assert set(row.tolist()) == {want}


def test_exited_threads_count_as_arrived() -> None:
    run = kernel("""
        setp.ge.u32 %p0, %r0, 40; @%p0 exit; st.shared.u32 [%r5], %r0; bar.sync 0;
        sub.u32 %r6, 39, %r0; mad.lo.u32 %r6, %r6, 4, %r4; ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd5], %r7;
    """)
    out = run.buffer(4 * 96)
    run.launch("k", 1, 96, 0, out)
    assert run.read(out, 96).tolist() == list(range(39, -1, -1)) + [0] * 56


def test_threads_that_leave_later_release_those_that_wait() -> None:
    run = kernel("""
        setp.ge.u32 %p0, %r0, 32; @%p0 bra $W; bar.sync 0; st.global.u32 [%rd5], 1; ret;
    $W: mov.u32 %r6, 0; $L: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 50; @%p1 bra $L;
    """)
    out = run.buffer(4 * 64)
    run.launch("k", 1, 64, 0, out)
    assert run.read(out, 64).tolist() == [1] * 32 + [0] * 32


def test_partial_count_lets_other_warps_pass() -> None:
    """Warps 0 and 1 synchronise with a count of 64, warp 2 never comes."""
    run = kernel("""
        setp.ge.u32 %p0, %r0, 64; @%p0 bra $D; st.shared.u32 [%r5], %r0; bar.sync 5, 64; xor.b32 %r6, %r0, 32;
        mad.lo.u32 %r6, %r6, 4, %r4; ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd5], %r7;
    $D:
    """)
    out = run.buffer(4 * 96)
    run.launch("k", 1, 96, 0, out)
    assert run.read(out, 96).tolist() == [i ^ 32 for i in range(64)] + [0] * 32


def test_barrier_number_and_count_from_registers() -> None:
    run = kernel("""
        shr.u32 %r6, %r0, 6; add.u32 %r6, %r6, 4; st.shared.u32 [%r5], %r0; mov.u32 %r7, 64; bar.sync %r6, %r7;
        xor.b32 %r8, %r0, 32; mad.lo.u32 %r8, %r8, 4, %r4; ld.shared.u32 %r9, [%r8]; st.global.u32 [%rd5], %r9;
    """)
    out = run.buffer(4 * 128)
    run.launch("k", 1, 128, 0, out)
    assert run.read(out, 128).tolist() == [i ^ 32 for i in range(128)]


def test_divergence_before_a_barrier_waits_for_the_whole_warp() -> None:
    """Half a warp comes to the barrier early and must not be counted as the warp."""
    run = kernel("""
        and.b32 %r6, %r0, 1; setp.eq.u32 %p0, %r6, 0; @%p0 bra $S; st.shared.u32 [%r5], 7;
    $S: bar.sync 0; xor.b32 %r8, %r0, 1; mad.lo.u32 %r8, %r8, 4, %r4; ld.shared.u32 %r9, [%r8];
        st.global.u32 [%rd5], %r9;
    """)
    out = run.buffer(4 * 64)
    run.launch("k", 1, 64, 0, out, schedule=Schedule(quantum=2, warps="apart"))
    assert run.read(out, 64).tolist() == [7, 0] * 32


@pytest.mark.parametrize(("text", "error", "reason"), [
    ("bar.sync 16;", InterpreterError, "0 to 15"), ("bar.sync 0, 33;", InterpreterError, "multiple"),
    ("bar.sync 0, 96;", DeadlockError, "barrier 0"), ("bar.arrive 0, 0;", InterpreterError, "multiple"),
    ("setp.lt.u32 %p0, %r0, 32; @%p0 bar.sync 0, 64; @!%p0 bar.sync 0;", InterpreterError, "expects"),
])
def test_misuse(text: str, error: type[InterpreterError], reason: str) -> None:
    with pytest.raises(error, match=reason):
        kernel(text).launch("k", 1, 64, 0, 0)


GRID = """
    mov.u32 %r20, %envreg2; cvt.u64.u32 %rd10, %r20; mov.u32 %r21, %envreg1; cvt.u64.u32 %rd11, %r21;
    bfi.b64 %rd12, %rd11, %rd10, 32, 32; setp.ne.s64 %p9, %rd12, 0; @%p9 bra $have; trap;
$have:
    st.global.u32 [%rd4], %r3; barrier.sync 0; setp.ne.u32 %p0, %r0, 0; @%p0 bra $after;
    mov.u32 %r6, %nctaid.x; sub.u32 %r7, 0x80000001, %r6; setp.eq.u32 %p1, %r1, 0; selp.b32 %r8, %r7, 1, %p1;
    atom.add.release.gpu.u32 %r9, [%rd12+4], %r8;
$wait: ld.acquire.gpu.u32 %r10, [%rd12+4]; xor.b32 %r11, %r10, %r9; setp.gt.s32 %p2, %r11, -1; @%p2 bra $wait;
$after: barrier.sync 0; mad.lo.u32 %r12, %r6, 0, 0; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r13, %r6, %r2;
    sub.u32 %r13, %r13, %r3; sub.u32 %r13, %r13, 1; mul.wide.u32 %rd6, %r13, 4; add.s64 %rd6, %rd6, %rd1;
    ld.global.u32 %r14, [%rd6]; st.global.u32 [%rd5], %r14;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_grid_wide_barrier_of_a_cooperative_launch(schedule: Schedule) -> None:
    run = kernel(GRID)
    first, out = run.buffer(4 * 640), run.buffer(4 * 640)
    result = run.launch("k", 10, 64, first, out, schedule=schedule, cooperative=True, step_limit=2_000_000)
    assert run.read(out, 640).tolist() == list(range(639, -1, -1))
    assert result.workspace is not None
    start, size = result.workspace
    own = (result.log["address"] >= start) & (result.log["address"] < start + size)
    assert own.any() and result.log["kind"][own].tolist().count(b"A") == 10
    with pytest.raises(InterpreterError):
        run.memory.read(start, 4)
    with pytest.raises(KernelTrap):
        run.launch("k", 10, 64, first, out)


def test_a_wait_for_a_block_that_never_comes_hits_the_step_limit() -> None:
    run = kernel("$L: ld.volatile.global.u32 %r6, [%rd1]; setp.eq.u32 %p0, %r6, 0; @%p0 bra $L;")
    with pytest.raises(StepLimit):
        run.launch("k", 2, 32, run.buffer(4096), 0, step_limit=5000, schedule=Schedule(quantum=100))
