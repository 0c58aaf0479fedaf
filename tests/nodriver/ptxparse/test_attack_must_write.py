"""Attempts to have bytes called surely written that are not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.small_kernels import Case, Placed, Shape, check, place, pointers_of, small, sound, words

BLOCK: Shape = (64, 1, 1)
LINEAR = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;"
STORE = "mul.wide.s32 %rd1, %r9, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;"
SEARCH = (
    "mov.u32 %r9, 0; L: mul.wide.u32 %rd5, %r9, 4; add.s64 %rd6, %b, %rd5; ld.global.u32 %r5, [%rd6]; "
    "setp.eq.u32 %p1, %r5, 7; @%p1 bra X; add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %n; @%p2 bra L; X:"
)
SEVENS = np.array([0, 0, 0, 0, 0, 7] + [0] * 10, np.uint32)


def grown(name: str, body: str, size: int, threads: int = 64, parameters: str = "a:u64", **arguments: object) -> Case:
    return Case(name, body, {"a": words(size), **arguments}, parameters, (threads, 1, 1))  # type: ignore[dict-item]


CASES = [
    grown("search_then_store", f"{SEARCH} {STORE} ret;", 17, 1, "a:u64 b:u64 n:s32", b=SEVENS, n=16),
    grown("search_then_vector_store", f"{SEARCH} mul.wide.s32 %rd1, %r9, 16; add.s64 %rd2, %a, %rd1; "
          "st.global.v4.u32 [%rd2], {%r1, %r1, %r1, %r1}; ret;", 68, 1, "a:u64 b:u64 n:s32", b=SEVENS, n=16),
    grown("loop_left_by_data_in_one_predicate", "mov.u32 %r9, 0; L: mul.wide.u32 %rd5, %r9, 4; add.s64 %rd6, %b, %rd5; "
          "ld.global.u32 %r5, [%rd6]; add.s64 %rd7, %a, %rd5; st.global.u32 [%rd7], 1; add.s32 %r9, %r9, 1; "
          "setp.lt.s32 %p2, %r9, %n; setp.lt.and.s32 %p3, %r5, 5, %p2; @%p3 bra L; ret;", 16, 1, "a:u64 b:u64 n:s32",
          b=SEVENS, n=16),
    grown("loop_left_by_a_data_break", "mov.u32 %r9, 0; L: mul.wide.u32 %rd5, %r9, 4; add.s64 %rd6, %b, %rd5; "
          "ld.global.u32 %r5, [%rd6]; setp.eq.u32 %p1, %r5, 7; @%p1 bra X; add.s64 %rd7, %a, %rd5; "
          "st.global.u32 [%rd7], 1; add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %n; @%p2 bra L; X: ret;", 16, 1,
          "a:u64 b:u64 n:s32", b=SEVENS, n=16),
    grown("loop_left_by_exit", "mov.u32 %r9, 0; L: mul.wide.u32 %rd5, %r9, 4; add.s64 %rd6, %b, %rd5; "
          "ld.global.u32 %r5, [%rd6]; setp.eq.u32 %p1, %r5, 7; @%p1 exit; add.s64 %rd7, %a, %rd5; "
          "st.global.u32 [%rd7], 1; add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %n; @%p2 bra L; ret;", 16, 1,
          "a:u64 b:u64 n:s32", b=SEVENS, n=16),
    grown("store_after_a_possible_exit", "ld.global.u32 %r5, [%b+20]; setp.eq.u32 %p1, %r5, 7; @%p1 exit; "
          "st.global.u32 [%a], 1; ret;", 4, 1, "a:u64 b:u64", b=SEVENS),
    grown("guarded_by_data", "mov.u32 %r9, %tid.x; ld.global.u32 %r5, [%b+20]; setp.ne.u32 %p1, %r5, 7; "
          "@!%p1 bra E; " + STORE + " E: ret;", 64, 64, "a:u64 b:u64", b=SEVENS),
    grown("instruction_guarded_by_data", "ld.global.u32 %r5, [%b+20]; setp.ne.u32 %p1, %r5, 7; "
          "@%p1 st.global.u32 [%a], 1; ret;", 4, 1, "a:u64 b:u64", b=SEVENS),
    *(
        grown(f"guarded_by_data_{relation}", "mov.u32 %r9, %tid.x; ld.global.u32 %r5, [%b+20]; "
              f"setp.{relation}.{kind} %p1, %r5, {number}; @!%p1 bra E; " + STORE + " E: ret;", 64, 64, "a:u64 b:u64", b=SEVENS)
        for relation, kind, number in (("eq", "u32", 9), ("lt", "u32", 5), ("lt", "s32", 5), ("ge", "s32", 9), ("gt", "u32", 7))
    ),
    grown("guarded_by_data_and_index", "mov.u32 %r9, %tid.x; ld.global.u32 %r5, [%b+20]; setp.eq.u32 %p1, %r5, 9; "
          "setp.lt.and.u32 %p2, %r9, 40, %p1; @!%p2 bra E; " + STORE + " E: ret;", 64, 64, "a:u64 b:u64", b=SEVENS),
    grown("guarded_by_the_word_of_the_thread", "mov.u32 %r9, %tid.x; mul.wide.u32 %rd5, %r9, 4; add.s64 %rd6, %b, %rd5; "
          "ld.global.u32 %r5, [%rd6]; setp.eq.u32 %p1, %r5, 7; @!%p1 bra E; " + STORE + " E: ret;", 16, 16, "a:u64 b:u64", b=SEVENS),
    grown("guarded_by_a_lane_that_is_not_there", "mov.u32 %r9, %tid.x; mov.u32 %r5, %tid.y; setp.eq.u32 %p1, %r5, 3; "
          "@!%p1 bra E; " + STORE + " E: ret;", 16, 16),
    grown("guarded_by_a_warp_number", "mov.u32 %r9, %tid.x; mov.u32 %r5, %warpid; setp.eq.u32 %p1, %r5, 3; "
          "@!%p1 bra E; " + STORE + " E: ret;", 16, 16),
    grown("guarded_by_converted_data", "mov.u32 %r9, %tid.x; ld.global.f32 %f1, [%b]; cvt.rzi.u32.f32 %r5, %f1; "
          "setp.eq.u32 %p1, %r5, 3; @!%p1 bra E; " + STORE + " E: ret;", 16, 16, "a:u64 b:u64", b=SEVENS),
    grown("guarded_by_bits_of_data", "mov.u32 %r9, %tid.x; ld.global.u32 %r5, [%b+20]; popc.b32 %r6, %r5; "
          "setp.lt.u32 %p1, %r6, 3; @!%p1 bra E; " + STORE + " E: ret;", 16, 16, "a:u64 b:u64", b=SEVENS),
    grown("guarded_by_the_first_block", "mov.u32 %r9, %tid.x; mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 1; "
          "@!%p1 bra E; " + STORE + " E: ret;", 16, 16),
    grown("guarded_by_an_iteration", "mov.u32 %r9, %tid.x; mov.u32 %r5, 0; L: setp.ne.u32 %p1, %r5, 6; @%p1 bra M; " + STORE +
          " M: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %n; @%p2 bra L; ret;", 16, 16, "a:u64 n:u32", n=5),
    grown("guarded_by_an_iteration_of_some_threads", "mov.u32 %r9, %tid.x; mov.u32 %r5, 0; L: setp.ne.u32 %p1, %r5, 6; "
          "@%p1 bra M; " + STORE + " M: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r9; @%p2 bra L; ret;", 16, 16),
    grown("bounded_by_data", "mov.u32 %r9, %tid.x; ld.global.u32 %r5, [%b+20]; setp.lt.u32 %p1, %r9, %r5; "
          "@!%p1 bra E; " + STORE + " E: ret;", 64, 64, "a:u64 b:u64", b=SEVENS),
    grown("not_equal_leaves_a_hole", "mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 5; @%p1 bra E; " + STORE + " E: ret;", 64),
    grown("only_even", "mov.u32 %r9, %tid.x; and.b32 %r5, %r9, 1; setp.eq.u32 %p1, %r5, 1; @%p1 bra E; " + STORE + " E: ret;", 64),
    grown("either_of_two", "mov.u32 %r9, %tid.x; setp.lt.u32 %p1, %r9, 10; setp.gt.u32 %p2, %r9, 50; or.pred %p3, %p1, %p2; "
          "@!%p3 bra E; " + STORE + " E: ret;", 64),
    grown("either_of_two_by_branches", "mov.u32 %r9, %tid.x; setp.lt.u32 %p1, %r9, 10; @%p1 bra B; setp.gt.u32 %p2, %r9, 50; "
          "@!%p2 bra E; B: " + STORE + " E: ret;", 64),
    grown("merged_predicate", "setp.lt.u32 %p3, %r50, 0; mov.u32 %r9, %tid.x; and.b32 %r2, %r9, 1; and.b32 %r3, %r9, 2; "
          "setp.ne.u32 %p1, %r2, 0; setp.ne.u32 %p2, %r3, 0; @%p1 bra X; bra Z; X: @%p2 bra M; "
          "Z: setp.lt.u32 %p3, %r9, %n; M: @!%p3 bra E; " + STORE + " E: ret;", 64, 64, "a:u64 n:u32", n=64),
    grown("selected_predicate", "mov.u32 %r9, %tid.x; setp.lt.u32 %p1, %r9, 60; setp.gt.u32 %p2, %r9, 20; "
          "setp.lt.u32 %p3, %r9, 0; @%p2 mov.pred %p3, %p1; @!%p3 bra E; " + STORE + " E: ret;", 64),
    grown("band_of_a_matrix", "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 3; and.b32 %r3, %r1, 7; sub.s32 %r4, %r2, %r3; "
          "setp.gt.s32 %p1, %r4, 3; @%p1 bra E; setp.lt.s32 %p1, %r4, -3; @%p1 bra E; mul.lo.u32 %r5, %r2, 7; "
          "add.u32 %r9, %r5, %r3; " + STORE + " E: ret;", 57),
    grown("index_and_its_low_bit", "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, %n; @%p1 bra E; and.b32 %r2, %r1, 1; "
          "shl.b32 %r3, %r1, 1; add.u32 %r9, %r3, %r2; " + STORE + " E: ret;", 130, 64, "a:u64 n:u32", n=51),
    grown("index_and_its_half", "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 1; add.u32 %r9, %r1, %r2; " + STORE + " ret;", 100),
    grown("stride_two", "mov.u32 %r1, %tid.x; shl.b32 %r9, %r1, 1; " + STORE + " ret;", 128),
    grown("trapezoid", "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; L: mad.lo.u32 %r9, %r2, 64, %r1; " + STORE +
          "add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra L; ret;", 64 * 64),
    grown("strided_loop_with_a_tail", "mov.u32 %r9, %tid.x; L: setp.ge.u32 %p1, %r9, %n; @%p1 bra E; " + STORE +
          "add.u32 %r9, %r9, 64; bra L; E: ret;", 200, 64, "a:u64 n:u32", n=199),
    grown("strided_loop_that_skips", "mov.u32 %r9, %tid.x; L: setp.ge.u32 %p1, %r9, %n; @%p1 bra E; " + STORE +
          "add.u32 %r9, %r9, 65; bra L; E: ret;", 200, 64, "a:u64 n:u32", n=199),
    grown("bottom_tested_past_the_end", "mov.u32 %r9, %tid.x; L: " + STORE + "add.u32 %r9, %r9, 64; setp.lt.u32 %p1, %r9, %n; "
          "@%p1 bra L; ret;", 200, 64, "a:u64 n:u32", n=3),
    Case("discard", "discard.global.L2 [%a], 128; ret;", {"a": words(32)}, counting=False),
    grown("atomics_are_no_writes", "atom.global.add.u32 %r1, [%a], 0; ret;", 32, 1),
    grown("called_or_not", "setp.eq.u32 %p1, %n, 3; @%p1 bra E; st.global.u32 [%a], 1; E: ret;", 4, 1, "a:u64 n:u32", n=3),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_called_written_is_written(case: Case) -> None:
    case.prove()


@pytest.mark.parametrize("grid", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 100, 127, 128, 129])
def test_a_row_with_a_tail(grid: int, n: int) -> None:
    """The plain case must not be lost by caution: whole rows are surely written."""
    body = LINEAR + "setp.ge.s32 %p1, %r4, %n; @%p1 bra E; mov.u32 %r9, %r4; " + STORE + " E: ret;"
    found = sound(small(body, "a:u64 n:s32"), (grid, 1, 1), BLOCK, {"a": words(n), "n": n})
    assert found.ranges("a") == [(0, 4 * min(n, 64 * grid))]
    assert found.ranges("a", "MUSTW") == found.ranges("a")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_of_two_buffers_exchanged_in_a_loop_one_may_stay_untouched(n: int) -> None:
    body = """
    mov.u64 %rd1, %a; mov.u64 %rd2, %b; mov.u32 %r1, 0;
    L: st.global.u32 [%rd1], 5; mov.u64 %rd3, %rd1; mov.u64 %rd1, %rd2; mov.u64 %rd2, %rd3;
    add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %n; @%p1 bra L; ret;"""
    found = sound(small(body, "a:u64 b:u64 n:s32"), (1, 1, 1), (1, 1, 1), {"a": words(1), "b": words(1), "n": n})
    assert found.evaluation.opaque is None


SELECTED = [
    ("three_ways", "setp.eq.u32 %p1, %n, 1; setp.eq.u32 %p2, %n, 2; mov.u64 %rd1, %a; @%p1 bra M; @%p2 bra M; "
     "mov.u64 %rd1, %b; M: st.global.u32 [%rd1], 1; ret;"),
    ("by_selp", "setp.eq.u32 %p1, %n, 1; selp.b64 %rd1, %a, %b, %p1; st.global.u32 [%rd1], 1; ret;"),
    ("by_data", "ld.global.u32 %r1, [%c]; setp.eq.u32 %p1, %r1, %n; selp.b64 %rd1, %a, %b, %p1; st.global.u32 [%rd1], 1; ret;"),
    ("by_thread", "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, %n; selp.b64 %rd1, %a, %b, %p1; st.global.u32 [%rd1], 1; ret;"),
    ("twice", "setp.eq.u32 %p1, %n, 1; selp.b64 %rd1, %a, %b, %p1; setp.eq.u32 %p2, %n, 2; selp.b64 %rd2, %rd1, %c, %p2; "
     "st.global.u32 [%rd2], 1; ret;"),
]


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize(("name", "body"), SELECTED, ids=[name for name, _ in SELECTED])
def test_of_two_pointers_one_may_not_be_taken(name: str, body: str, n: int) -> None:
    arguments = {"a": words(1), "b": words(1), "c": words(1), "n": n}
    assert sound(small(body, "a:u64 b:u64 c:u64 n:u32"), (1, 1, 1), (1, 1, 1), arguments).evaluation.opaque is None


@pytest.mark.parametrize("n", [0, 1])
def test_a_pointer_out_of_an_array_of_parameters(n: int) -> None:
    kernel = small("mov.u64 %rd1, s; mul.wide.u32 %rd2, %n, 8; add.s64 %rd3, %rd1, %rd2; ld.param.u64 %rd4, [%rd3]; "
                   "st.global.u32 [%rd4], 1; ret;", "s:u64[16] n:u32")
    at = place(kernel, {"a": words(4), "b": words(4), "n": n, "s": b""})
    at = Placed(at.memory, at.loaded, at.allocations, pointers_of(at, "a", "b") + at.parameters[16:], at.places)
    found = check(kernel, (1, 1, 1), (1, 1, 1), {}, placed=at)
    assert not found.violations and found.evaluation.opaque is None
