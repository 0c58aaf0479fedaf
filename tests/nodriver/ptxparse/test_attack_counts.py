"""Attempts to make amounts wrong: operations and bytes really made must lie within their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from ptxparse.api import count
from tests.small_kernels import Case, Checked, Shape, small, sound, words

STORE = "mul.wide.s32 %rd1, %r9, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;"
COUNT = "add.s32 %r50, %r50, 1; setp.lt.s32 %p50, %r50, %n; @%p50 bra L;"


def counted(name: str, body: str, n: int, threads: int = 64, size: int = 4096, **arguments: object) -> Case:
    parameters = "a:u64 n:s32" + "".join(f" {key}:u64" for key in arguments)
    return Case(name, f"mov.u32 %r9, %tid.x; mov.u32 %r50, 0; {body} ret;", {"a": words(size), "n": n, **arguments},  # type: ignore[dict-item]
                parameters, (threads, 1, 1))


CASES = [
    *(counted(f"plain_loop_{n}", f"L: {STORE} {COUNT}", n) for n in (-3, 0, 1, 7)),
    *(counted(f"strided_loop_{n}", f"L: setp.ge.s32 %p1, %r9, %n; @%p1 bra E; {STORE} add.s32 %r9, %r9, 64; bra L; E:", n)
      for n in (-3, 0, 1, 63, 64, 65, 1000)),
    *(counted(f"strided_loop_tested_below_{n}", f"L: {STORE} add.s32 %r9, %r9, 64; setp.lt.s32 %p1, %r9, %n; @%p1 bra L;", n)
      for n in (-3, 0, 1, 63, 64, 65, 1000)),
    *(counted(f"strided_loop_of_many_threads_{n}", f"L: {STORE} add.s32 %r9, %r9, 1024; setp.lt.s32 %p1, %r9, %n; @%p1 bra L;",
              n, 1024, 1 << 17) for n in (1, 1023, 1 << 17)),
    *(counted(f"narrow_stride_{n}", f"L: {STORE} add.s32 %r9, %r9, 48; setp.lt.s32 %p1, %r9, %n; @%p1 bra L;", n)
      for n in (1, 60, 300)),
    counted("triangle", f"L: {STORE} add.s32 %r50, %r50, 1; setp.le.s32 %p1, %r50, %r9; @%p1 bra L;", 1),
    counted("nested_triangle", f"L: mov.u32 %r51, 0; M: {STORE} add.s32 %r51, %r51, 1; setp.lt.s32 %p2, %r51, %r50; @%p2 bra M; "
            f"{COUNT}", 7),
    counted("nested_rectangle", f"L: mov.u32 %r51, 0; M: {STORE} add.s32 %r51, %r51, 1; setp.lt.s32 %p2, %r51, 5; @%p2 bra M; "
            f"{COUNT}", 7),
    counted("left_by_data", f"L: ld.global.u32 %r5, [%b+20]; setp.eq.u32 %p1, %r5, %r50; @%p1 bra E; {STORE} {COUNT} E:", 20,
            b=np.array([0] * 5 + [7] + [0] * 9, np.uint32)),
    counted("one_predicate_of_data", f"L: {STORE} ld.global.u32 %r5, [%b+20]; add.s32 %r50, %r50, 1; setp.lt.s32 %p1, %r50, %n; "
            "setp.lt.and.u32 %p2, %r5, 5, %p1; @%p2 bra L;", 20, b=np.array([0] * 5 + [7] + [0] * 9, np.uint32)),
    counted("data_dependent_length", f"ld.global.u32 %r5, [%b]; L: {STORE} add.s32 %r50, %r50, 1; setp.lt.s32 %p1, %r50, %r5; "
            "@%p1 bra L;", 20, b=words(4, 9)),
    counted("under_data", f"ld.global.u32 %r5, [%b]; setp.eq.u32 %p1, %r5, 9; @!%p1 bra E; {STORE} E:", 20, b=words(4, 9)),
    counted("under_data_guard", "ld.global.u32 %r5, [%b]; setp.eq.u32 %p1, %r5, 9; @%p1 st.global.u32 [%a], 1;", 20,
            b=words(4, 9)),
    counted("even_threads", f"and.b32 %r5, %r9, 1; setp.eq.u32 %p1, %r5, 0; @!%p1 bra E; {STORE} E:", 20),
    counted("not_the_fifth", f"setp.eq.u32 %p1, %r9, 5; @%p1 bra E; {STORE} E:", 20),
    counted("either_end", f"setp.lt.u32 %p1, %r9, 10; setp.gt.u32 %p2, %r9, 50; or.pred %p3, %p1, %p2; @!%p3 bra E; {STORE} E:", 20),
    counted("merged_predicate", "setp.lt.u32 %p3, %r50, 0; and.b32 %r2, %r9, 1; and.b32 %r3, %r9, 2; setp.ne.u32 %p1, %r2, 0; "
            "setp.ne.u32 %p2, %r3, 0; @%p1 bra X; bra Z; X: @%p2 bra M; Z: setp.lt.s32 %p3, %r9, %n; M: @!%p3 bra E; "
            f"{STORE} E:", 40),
    counted("uniform_branch", f"setp.gt.s32 %p1, %n, 9; @!%p1 bra E; {STORE} E:", 5),
    counted("uniform_exclusive_or", f"setp.gt.s32 %p1, %n, 9; setp.lt.s32 %p2, %n, 7; xor.pred %p3, %p1, %p2; @!%p3 bra E; {STORE} E:",
            5),
    counted("uniform_division_by_zero", f"div.s32 %r5, 40, %n; setp.gt.s32 %p1, %r5, 9; @!%p1 bra E; {STORE} E:", 0),
    counted("wrapping_loop", "mov.u16 %rs1, 0; cvt.u16.u32 %rs2, %n; L: setp.ne.s16 %p1, %rs1, %rs2; @!%p1 bra X; "
            f"add.s16 %rs1, %rs1, 16384; {STORE} bra L; X:", 0x8000),
    counted("after_a_loop_of_unknown_end", "mov.u32 %r5, 0; L: ld.global.u32 %r6, [%b]; setp.eq.u32 %p1, %r6, %r5; @%p1 bra X; "
            "add.u32 %r5, %r5, 1; setp.lt.s32 %p2, %r5, %n; @%p2 bra L; X: setp.lt.u32 %p3, %r5, 3; @!%p3 bra E; " + STORE + " E:", 20,
            b=words(4, 9)),
    counted("two_entries", f"setp.eq.s32 %p1, %n, 20; @%p1 bra M; L: add.s32 %r50, %r50, 2; M: {STORE} {COUNT}", 20),
    counted("copies_of_fewer_bytes", ".shared .align 16 .b8 sh[64]; mov.u32 %r1, sh; mov.u32 %r2, 8; "
            "cp.async.ca.shared.global [%r1], [%a], 16, %r2; cp.async.wait_all;", 20, 1),
    counted("copy_with_a_policy", ".shared .align 16 .b8 sh[64]; mov.u32 %r1, sh; mov.b64 %rd1, 0x14F0000000000000; "
            "cp.async.cg.shared.global.L2::cache_hint [%r1], [%a], 16, %rd1; cp.async.wait_all;", 20, 1),
    counted("vector_and_bytes", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a]; st.global.u8 [%a], %r1; "
            "st.global.v2.u16 [%a], {%rs1, %rs2};", 20),
    counted("atomics", "atom.global.add.u32 %r1, [%a], 1; red.global.add.u64 [%a+8], 1;", 20),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_amounts_lie_within_their_bounds(case: Case) -> None:
    case.prove()


def exact(found: Checked, name: str) -> bool:
    return found.counts[name].low == found.counts[name].high == found.actual[name]


@pytest.mark.parametrize("n", [1, 64, 65, 1000])
def test_plain_amounts_are_exact(n: int) -> None:
    body = f"mov.u32 %r9, %tid.x; L: setp.ge.s32 %p1, %r9, %n; @%p1 bra E; {STORE} add.s32 %r9, %r9, 64; bra L; E: ret;"
    found = sound(small(body, "a:u64 n:s32"), (1, 1, 1), (64, 1, 1), {"a": words(n), "n": n})
    assert exact(found, "bytes_written")


@pytest.mark.parametrize("grid", [(2**31 - 1, 1, 1), (2**31 - 1, 65535, 65535)])
def test_the_largest_grids_are_counted(grid: Shape) -> None:
    body = "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;"
    found = count(small(body).program, grid, (1024, 1, 1), (1 << 40).to_bytes(8, "little"))
    threads = grid[0] * grid[1] * grid[2] * 1024
    assert found["bytes_written"].low == found["bytes_written"].high == pytest.approx(4 * threads, rel=1e-12)


@pytest.mark.parametrize("depth", [1, 3, 20])
def test_loops_that_would_run_for_ever_are_counted(depth: int) -> None:
    """Twenty loops inside each other of 2^62 iterations each: the amount is beyond floating point, not an error."""
    starts = "".join(f"mov.u64 %rd{i}, 0; L{i}: " for i in range(depth))
    ends = "".join(f"add.s64 %rd{i}, %rd{i}, 1; setp.lt.s64 %p1, %rd{i}, %n; @%p1 bra L{i}; " for i in reversed(range(depth)))
    kernel = small(f"{starts} st.global.u32 [%a], 1; {ends} ret;", "a:u64 n:u64")
    block = (1 << 40).to_bytes(8, "little") + (1 << 62).to_bytes(8, "little")
    found = count(kernel.program, (1, 1, 1), (1, 1, 1), block)
    assert found["bytes_written"].high >= min(4.0 * float(2**62) ** min(depth, 10), 1e300)
