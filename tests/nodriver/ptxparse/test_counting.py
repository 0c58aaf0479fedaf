"""Amounts of a launch against counting thread by thread, and against the interpreter."""

from __future__ import annotations

import struct
from math import inf, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.api import Amount, count
from ptxparse.evaluation.compiled import Compiled
from ptxparse.evaluation.counting import counts
from ptxparse.program import Work
from tests.boxes import Plans, Shape, box, box_steps, guard_plans, program_of, shapes, small
from tests.small_kernels import small as kernel_of
from tests.small_kernels import sound, words
from tests.symbolic import Step, Unspecified


@given(shapes, box_steps, guard_plans, st.sampled_from([1.0, 4.0, 0.5]))
def test_guarded_work_is_counted_thread_by_thread(
    shape: Shape, program: list[Step], plans: Plans, each: float
) -> None:
    found = box(shape, program, plans, ((0, 1),))
    if small(found) is None or found.found.false:
        return
    guards = found.program.accesses[0].guards
    work = Work(guards, (), found.found.whole, False, (("integer", each),))
    compiled = program_of(found.graph, (), work=(work,))
    made = Compiled(compiled)
    params = struct.pack("<qi", 0, shape.n)
    try:
        least = each * sum(all(map(found.happens, choices)) for choices in found.threads())
        most = each * sum(any(map(found.happens, choices)) for choices in found.threads())
        values = made.uniforms(params, shape.launch, 0)
    except (Unspecified, ArithmeticError):
        return
    amount = counts(made, values, shape.launch).get("integer", Amount(0, 0, 0, False))
    assert amount.low <= amount.expected <= amount.high
    assert amount.low <= least <= most <= amount.high
    # There is no loop, so there is always an upper bound.
    assert isfinite(amount.high)


EXACT: dict[str, str] = {
    "one store per thread": "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], %r1;",
    "a guard": "setp.ge.s32 %p1, %r1, %n; @%p1 bra END; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; "
               "st.global.u32 [%rd2], %r1; END:",
    "a guarded instruction": "setp.lt.s32 %p1, %r1, %n; @%p1 st.global.u32 [%a], %r1;",
    "both sides of a branch": "setp.ge.s32 %p1, %r1, %n; @%p1 bra ELSE; ld.global.u32 %r2, [%a]; bra END; "
                              "ELSE: ld.global.u64 %rd1, [%a]; mul.lo.s32 %r2, %r1, %r1; END:",
    "two guards": "and.b32 %r3, %r1, 7; setp.lt.s32 %p1, %r1, %n; setp.gt.s32 %p2, %r3, 2; and.pred %p3, %p1, %p2; "
                  "@!%p3 bra END; st.global.u32 [%a], %r1; END:",
    "a loop": "mov.u32 %r2, 0; L: ld.global.f32 %f1, [%a]; fma.rn.f32 %f2, %f1, %f1, %f2; add.s32 %r2, %r2, 1; "
              "setp.lt.s32 %p1, %r2, %n; @%p1 bra L;",
    "a loop tested first": "mov.u32 %r2, 0; L: setp.ge.s32 %p1, %r2, %n; @%p1 bra END; ld.global.f64 %fd1, [%a]; "
                           "mul.f64 %fd1, %fd1, %fd1; add.s32 %r2, %r2, 1; bra L; END:",
    "a loop in a loop": "mov.u32 %r2, 0; L: mov.u32 %r3, 0; M: ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%a]; "
                        "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, 3; @%p1 bra M; add.s32 %r2, %r2, 1; "
                        "setp.lt.s32 %p2, %r2, %n; @%p2 bra L;",
    "steps of three": "mov.u32 %r2, 0; L: ld.global.u8 %r3, [%a]; add.s32 %r2, %r2, 3; setp.lt.s32 %p1, %r2, %n; "
                      "@%p1 bra L;",
    "a loop with the stride of the block": "mov.u32 %r2, %tid.x; L: setp.ge.s32 %p1, %r2, %n; @%p1 bra END; "
                                           "ld.global.u32 %r3, [%a]; add.s32 %r2, %r2, %r51; bra L; END:",
    "a strided loop that runs at least once": "mov.u32 %r2, %r1; L: ld.global.u32 %r3, [%a]; add.s32 %r2, %r2, 8; "
                                              "setp.lt.s32 %p1, %r2, %n; @%p1 bra L;",
    "a loop of as many steps as the thread's number": "mov.u32 %r2, 0; L: ld.global.u32 %r3, [%a]; "
                                                      "add.s32 %r2, %r2, 1; "
                                                      "setp.le.s32 %p1, %r2, %r1; @%p1 bra L;",
    "atomics": "red.global.add.u32 [%a], 1; atom.global.add.u32 %r2, [%a], 1;",
    "shared memory": ".shared .b32 tile[64]; mov.u32 %r2, tile; st.shared.u32 [%r2], %r1; ld.shared.u32 %r3, [%r2]; "
                     "st.global.u32 [%a], %r3;",
    "other classes": "cvt.rn.f32.s32 %f1, %r1; sqrt.rn.f32 %f2, %f1; ex2.approx.f32 %f3, %f2; add.f32 %f4, %f3, %f1; "
                     "st.global.f32 [%a], %f4;",
}  # fmt: skip
START = "mov.u32 %r1, %tid.x; mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mad.lo.s32 %r1, %r50, %r51, %r1;"


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("blocks", "threads", "n"), [(1, 1, 1), (2, 32, 40), (3, 16, 5), (1, 64, 200)])
def test_amounts_of_regular_kernels_are_exact(name: str, blocks: int, threads: int, n: int) -> None:
    kernel = kernel_of(f"{START} {EXACT[name]} ret;", "a:u64 n:s32")
    found = sound(kernel, (blocks, 1, 1), (threads, 1, 1), {"a": words(1024), "n": n})
    for kind, actual in found.actual.items():
        if kind != "none":
            assert found.counts.get(kind, Amount(0, 0, 0, False)) == (actual, actual, actual, False), kind


@pytest.mark.parametrize("n", [0, -4])
def test_a_loop_that_does_not_run(n: int) -> None:
    kernel = kernel_of(f"{START} {EXACT['a loop tested first']} ret;", "a:u64 n:s32")
    found = sound(kernel, (1, 1, 1), (32, 1, 1), {"a": words(8), "n": n})
    assert found.counts["bytes_read"] == found.counts["fp64"] == (0, 0, 0, False)


def test_a_loop_that_memory_ends_has_no_upper_bound() -> None:
    kernel = kernel_of("L: ld.global.u32 %r2, [%a]; setp.ne.s32 %p1, %r2, 0; @%p1 bra L; ret;")
    found = sound(kernel, (1, 1, 1), (4, 1, 1), {"a": words(1)})
    amount = found.counts["bytes_read"]
    assert amount.data_dependent and amount.low == 0 and amount.high == inf


def test_a_branch_on_memory_is_bounded_by_both_sides() -> None:
    kernel = kernel_of("ld.global.u32 %r2, [%a]; setp.ne.s32 %p1, %r2, 0; @%p1 bra END; st.global.u32 [%a], 5; "
                       "END: ret;")
    found = sound(kernel, (1, 1, 1), (4, 1, 1), {"a": words(1, fill=9)})
    assert found.counts["bytes_read"] == (16, 16, 16, False)
    written = found.counts["bytes_written"]
    assert written.data_dependent and (written.low, written.high) == (0, 16)


def test_an_opaque_kernel_may_do_more() -> None:
    kernel = kernel_of("st.global.u32 [%a], 5; call nothing; ret;")
    amount = count(kernel.program, (1, 1, 1), (4, 1, 1), bytes(8))["bytes_written"]
    assert amount.high == inf and amount.data_dependent


def test_tensor_work_is_shared_out_over_the_warp() -> None:
    kernel = kernel_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, "
                       "{%r5, %r6}, {%f1, %f2, %f3, %f4}; ret;")
    amount = count(kernel.program, (3, 1, 1), (64, 1, 1), bytes(8))["tensor.m16n8k16.f16"]
    assert amount == (6 * 2 * 16 * 8 * 16,) * 3 + (False,)


def test_amounts_grow_with_the_launch() -> None:
    kernel = kernel_of(f"{START} {EXACT['a guard']} ret;", "a:u64 n:s32")
    params = struct.pack("<Qi", 0x1000, 10**6)
    one = count(kernel.program, (1, 1, 1), (256, 1, 1), params)["bytes_written"]
    many = count(kernel.program, (100, 1, 1), (256, 1, 1), params)["bytes_written"]
    assert (one.expected, many.expected) == (1024, 102400)


def test_a_launch_value_that_divides_by_zero_leaves_nothing_to_count() -> None:
    kernel = kernel_of("div.u32 %r1, 40, %n; setp.lt.u32 %p1, %r1, 5; @%p1 st.global.u32 [%a], 5; ret;", "a:u64 n:u32")
    counted = count(kernel.program, (1, 1, 1), (4, 1, 1), struct.pack("<QI", 0x1000, 20))
    assert counted["bytes_written"] == (16, 16, 16, False)
    zero = count(kernel.program, (1, 1, 1), (4, 1, 1), struct.pack("<QI", 0x1000, 0))
    # Whatever the quotient is, the store is made by all four threads or by none.
    assert not zero or zero["bytes_written"].low <= 0 < 16 <= zero["bytes_written"].high


def test_a_launch_of_a_billion_threads_is_counted_at_once() -> None:
    kernel = kernel_of(f"{START} {EXACT['a guard']} ret;", "a:u64 n:s32")
    params = struct.pack("<Qi", 0x1000, 2**30 + 1)
    amount = count(kernel.program, (2**21, 1, 1), (1024, 1, 1), params)["bytes_written"]
    assert amount == (4 * (2**30 + 1),) * 3 + (False,)
