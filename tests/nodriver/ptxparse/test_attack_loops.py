"""Attempts to make the analysis misjudge what a loop does: counters, values carried around, values after it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.small_kernels import STORE, Case, Value, indexed, words

COUNT = "add.s32 %r50, %r50, 1; setp.lt.s32 %p50, %r50, %n; @%p50 bra L;"
"""The end of a loop that runs ``n`` times, at least once; ``%r50`` counts."""


def looped(name: str, before: str, inside: str, size: int, n: int, after: str = "", parameters: str = "a:u64 n:s32",
           **arguments: Value) -> Case:
    """A loop at label L around ``inside`` and a store to word ``%r99``."""
    body = f"mov.u32 %r50, 0; {before}\nL: {inside}\n{COUNT}\n{after} ret;"
    return Case(name, body, {"a": words(size), "n": n, **arguments}, parameters)


def after(name: str, body: str, size: int, parameters: str = "a:u64 n:s32", **arguments: Value) -> Case:
    """A store after whatever ``body`` does, to word ``%r99``."""
    return indexed(name, body, size, parameters, **arguments)


INSIDE = [
    looped("halving_signed", "mov.u32 %r1, %m;", f"shr.u32 %r99, %r1, 24; {STORE} shr.s32 %r1, %r1, 1;", 256, 4,
           parameters="a:u64 n:s32 m:u32", m=0xC0000000),
    looped("halving_unsigned", "mov.u32 %r1, %m;", f"mov.u32 %r99, %r1; {STORE} shr.u32 %r1, %r1, 1;", 65, 9,
           parameters="a:u64 n:s32 m:u32", m=64),
    looped("halving_16", "cvt.u16.u32 %rs1, %m;", f"cvt.u32.u16 %r2, %rs1; shr.u32 %r99, %r2, 8; {STORE} "
           "shr.s16 %rs1, %rs1, 1;", 256, 5, parameters="a:u64 n:s32 m:u32", m=0xC000),
    looped("halving_loaded", "ld.global.u32 %r1, [%b];", f"shr.u32 %r99, %r1, 24; {STORE} shr.s32 %r1, %r1, 1;", 256, 4,
           parameters="a:u64 n:s32 b:u64", b=words(1, 0xC0000000)),
    looped("wrapped_below_the_step", "mov.u32 %r1, 200;", f"add.s32 %r99, %r1, 300; {STORE} add.u32 %r1, %r1, 100; "
           "cvt.u32.u8 %r1, %r1; sub.u32 %r1, %r1, 100;", 600, 3),
    looped("wrapped_and_scaled", "mov.u32 %r1, 200;", f"add.u32 %r99, %r1, 300; {STORE} add.u32 %r2, %r1, 40; "
           "cvt.u32.u8 %r2, %r2; mul.lo.u32 %r2, %r2, 2; sub.u32 %r1, %r2, %r1;", 900, 4),
    looped("wrapped_16", "mov.u16 %rs1, 65530;", f"cvt.u32.u16 %r99, %rs1; {STORE} add.u16 %rs1, %rs1, 3;", 65536, 5),
    looped("wrapped_8", "mov.u32 %r1, 250;", f"cvt.u32.u8 %r99, %r1; {STORE} add.u32 %r1, %r1, 3;", 256, 5),
    looped("wrapped_32", "mov.u32 %r1, -8;", f"shr.u32 %r99, %r1, 28; {STORE} add.u32 %r1, %r1, 3;", 16, 5),
    looped("step_from_memory", "mov.u32 %r1, 0;", f"mov.u32 %r99, %r1; {STORE} ld.global.u32 %r2, [%b]; "
           "add.u32 %r1, %r1, %r2;", 65, 4, parameters="a:u64 n:s32 b:u64", b=words(1, 21)),
    looped("step_doubles", "mov.u32 %r1, 0; mov.u32 %r2, 1;", f"mov.u32 %r99, %r1; {STORE} add.u32 %r1, %r1, %r2; "
           "add.u32 %r2, %r2, %r2;", 65, 6),
    looped("step_grows", "mov.u32 %r1, 0; mov.u32 %r2, 1;", f"mov.u32 %r99, %r1; {STORE} add.u32 %r1, %r1, %r2; "
           "add.u32 %r2, %r2, 1;", 65, 6),
    looped("doubling", "mov.u32 %r1, 1;", f"mov.u32 %r99, %r1; {STORE} shl.b32 %r1, %r1, 1;", 65, 7),
    looped("squaring", "mov.u32 %r1, 2;", f"mov.u32 %r99, %r1; {STORE} mul.lo.u32 %r1, %r1, %r1;", 257, 4),
    looped("conditional_step", "mov.u32 %r1, 0;", f"mov.u32 %r99, %r1; {STORE} and.b32 %r2, %r50, 1; "
           "setp.eq.u32 %p1, %r2, 0; @%p1 add.u32 %r1, %r1, 9;", 65, 7),
    looped("two_lags", "mov.u32 %r1, 3; mov.u32 %r2, 5; mov.u32 %r3, 7;", f"mov.u32 %r99, %r1; {STORE} "
           "mov.u32 %r1, %r2; mov.u32 %r2, %r3; mul.lo.u32 %r3, %r50, 8;", 65, 7),
    looped("lagging_load", "mov.u32 %r1, 3;", f"mov.u32 %r99, %r1; {STORE} mul.wide.u32 %rd1, %r50, 4; "
           "add.s64 %rd2, %b, %rd1; ld.global.u32 %r1, [%rd2];", 65, 4, parameters="a:u64 n:s32 b:u64",
           b=np.array([60, 9, 30, 2], np.uint32)),
    looped("exchanged", "mov.u32 %r1, 3; mov.u32 %r2, 60;", f"mov.u32 %r99, %r1; {STORE} mov.u32 %r3, %r1; "
           "mov.u32 %r1, %r2; mov.u32 %r2, %r3;", 65, 4),
    looped("rotated_with_change", "mov.u32 %r1, 3; mov.u32 %r2, 30;", f"mov.u32 %r99, %r1; {STORE} mov.u32 %r3, %r1; "
           "add.u32 %r1, %r2, 1; mov.u32 %r2, %r3;", 65, 7),
    looped("xor_toggle", "mov.u32 %r1, 0;", f"mov.u32 %r99, %r1; {STORE} xor.b32 %r1, %r1, 64;", 65, 4),
    looped("predicate_carried", "setp.eq.u32 %p1, %r50, 0;", f"selp.b32 %r99, 60, 2, %p1; {STORE} not.pred %p1, %p1;", 65, 4),
    looped("predicate_lags", "setp.eq.u32 %p1, %r50, 1;", f"selp.b32 %r99, %r50, 60, %p1; {STORE} "
           "setp.lt.s32 %p1, %r50, 2;", 65, 6),
    looped("remainder_wraps", "mov.u32 %r1, 0;", f"mov.u32 %r99, %r1; {STORE} add.u32 %r1, %r1, 5; rem.u32 %r1, %r1, 13;",
           13, 9),
    looped("saturating", "mov.u32 %r1, 0;", f"mov.u32 %r99, %r1; {STORE} add.u32 %r1, %r1, 5; min.u32 %r1, %r1, 17;", 65, 9),
    looped("pointer_and_index", "mov.u64 %rd1, %a; mov.u32 %r1, 0;", "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; "
           "st.global.u32 [%rd3], 1; add.s64 %rd1, %rd1, 8; add.u32 %r1, %r1, 3;", 65, 7),
    looped("downwards", "mov.u32 %r1, 64;", f"mov.u32 %r99, %r1; {STORE} sub.u32 %r1, %r1, 7;", 65, 9),
    looped("downwards_64", "add.s64 %rd1, %a, 256;", "st.global.u32 [%rd1], 1; add.s64 %rd1, %rd1, -28;", 65, 9),
]


@pytest.mark.parametrize("case", INSIDE, ids=str)
def test_stores_in_a_loop_are_covered(case: Case) -> None:
    case.prove()


AFTER = [
    after("exit_by_inequality_wraps", "mov.u16 %rs1, 0; L: setp.ne.s16 %p1, %rs1, %n; @!%p1 bra X; add.s16 %rs1, %rs1, 16384; "
          "bra L; X: cvt.u32.u16 %r99, %rs1;", 65536, "a:u64 n:s16", n=-32768),
    after("exit_by_inequality_never_divides", "mov.u16 %rs1, 0; L: add.s16 %rs1, %rs1, 12288; setp.ne.s16 %p1, %rs1, %n; "
          "@%p1 bra L; cvt.u32.u16 %r99, %rs1;", 65536, "a:u64 n:s16", n=8192),
    after("test_of_a_selected_counter", "mov.u32 %r1, 0; L: cvt.s32.s8 %r2, %r1; setp.eq.u32 %p1, %r1, 200; "
          "selp.b32 %r3, %r2, %r1, %p1; setp.lt.u32 %p2, %r3, %n; @!%p2 bra X; add.s32 %r1, %r1, 1; bra L; X: mov.u32 %r99, %r1;",
          1001, n=1000),
    after("test_of_a_selected_counter_that_leaves_early", "mov.s32 %r1, -1000; L: cvt.u32.u16 %r2, %r1; setp.eq.s32 %p1, %r1, -56; "
          "selp.b32 %r3, %r2, %r1, %p1; setp.lt.s32 %p2, %r3, %n; @!%p2 bra X; add.s32 %r1, %r1, 1; bra L; "
          "X: add.s32 %r99, %r1, 1000;", 2001, n=1000),
    after("last_of_not_entered", "mov.u32 %r1, 0; mov.u32 %r99, 7; setp.ge.s32 %p2, %r1, %n; @%p2 bra X; "
          "L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %n; @%p1 bra L; mov.u32 %r99, %r1; X:", 64, n=0),
    after("negative_count_runs_once", "mov.u32 %r99, 0; L: add.s32 %r99, %r99, 1; setp.lt.s32 %p1, %r99, %n; @%p1 bra L;", 64,
          n=-5),
    after("found_by_search", "mov.u32 %r99, 0; L: mul.wide.u32 %rd1, %r99, 4; add.s64 %rd2, %b, %rd1; ld.global.u32 %r2, [%rd2]; "
          "setp.eq.u32 %p1, %r2, 7; @%p1 bra X; add.s32 %r99, %r99, 1; setp.lt.s32 %p2, %r99, %n; @%p2 bra L; X:", 17,
          "a:u64 n:s32 b:u64", n=16, b=np.array([0, 0, 0, 0, 0, 7] + [0] * 10, np.uint32)),
    after("triangular_bottom", "mov.u32 %r1, 0; L: mov.u32 %r2, 0; M: add.s32 %r2, %r2, 1; add.s32 %r3, %r2, %r1; "
          "setp.lt.s32 %p1, %r3, %n; @%p1 bra M; add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %n; @%p2 bra L; "
          "add.s32 %r99, %r1, %r2;", 64, n=9),
    after("triangular_top", "mov.u32 %r1, 0; mov.u32 %r2, 0; L: setp.ge.s32 %p2, %r1, %n; @%p2 bra X; mov.u32 %r2, 0; "
          "M: add.s32 %r3, %r2, %r1; setp.ge.s32 %p1, %r3, %n; @%p1 bra N; add.s32 %r2, %r2, 1; bra M; N: "
          "add.s32 %r1, %r1, 1; bra L; X: add.s32 %r99, %r1, %r2;", 64, n=9),
    after("inner_value_in_the_next_round", "mov.u32 %r1, 0; mov.u32 %r2, 40; L: add.s32 %r99, %r2, %r1; " + STORE +
          "mov.u32 %r2, 0; M: add.s32 %r2, %r2, 3; setp.lt.s32 %p1, %r2, %r1; @%p1 bra M; "
          "add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %n; @%p2 bra L;", 64, n=9),
    after("left_from_the_inner_loop", "mov.u32 %r1, 0; L: mov.u32 %r2, 0; M: mad.lo.s32 %r3, %r1, 5, %r2; setp.eq.s32 %p3, %r3, %n; "
          "@%p3 bra X; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 5; @%p1 bra M; add.s32 %r1, %r1, 1; bra L; "
          "X: mad.lo.s32 %r99, %r1, 8, %r2;", 64, n=23),
    after("two_latches", "mov.u32 %r1, 0; mov.u32 %r99, 0; L: add.s32 %r99, %r99, 1; setp.eq.s32 %p1, %r99, 3; @%p1 bra L; "
          "add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %n; @%p2 bra L;", 64, n=9),
    after("continue_with_another_step", "mov.u32 %r99, 0; L: setp.eq.s32 %p1, %r99, 4; @%p1 bra C; add.s32 %r99, %r99, 1; "
          "bra T; C: add.s32 %r99, %r99, 9; T: setp.lt.s32 %p2, %r99, %n; @%p2 bra L;", 64, n=9),
    after("entry_block_is_the_header", "L: add.s32 %r99, %n, 1; setp.lt.s32 %p2, %r99, 3; @%p2 bra L;", 64, n=9),
    after("two_entries", "setp.eq.s32 %p1, %n, 9; mov.u32 %r99, 2; @%p1 bra M; L: add.s32 %r99, %r99, 5; M: add.s32 %r99, %r99, 1; "
          "setp.lt.s32 %p2, %r99, 30; @%p2 bra L;", 64, n=9),
    after("two_entries_inside_a_loop", "mov.u32 %r1, 0; O: setp.eq.s32 %p1, %r1, 1; mov.u32 %r99, %r1; @%p1 bra M; "
          "L: add.s32 %r99, %r99, 5; M: add.s32 %r99, %r99, 1; setp.lt.s32 %p2, %r99, 20; @%p2 bra L; " + STORE +
          "add.s32 %r1, %r1, 1; setp.lt.s32 %p3, %r1, %n; @%p3 bra O;", 64, n=4),
    after("indexed_branch", "mov.u32 %r99, 0; L: rem.u32 %r1, %r99, 3; T: .branchtargets A, B, C; brx.idx %r1, T; "
          "A: add.s32 %r99, %r99, 1; bra D; B: add.s32 %r99, %r99, 9; bra D; C: add.s32 %r99, %r99, 2; "
          "D: setp.lt.s32 %p2, %r99, %n; @%p2 bra L;", 64, n=40),
    after("test_on_the_step_before", "mov.u32 %r1, 0; mov.u32 %r2, 0; L: mov.u32 %r99, %r1; add.s32 %r1, %r1, 4; "
          "setp.lt.s32 %p2, %r99, %n; @%p2 bra L; mov.u32 %r99, %r1;", 64, n=40),
    after("unsigned_test_of_a_negative", "mov.u32 %r99, 10; L: sub.s32 %r99, %r99, 1; setp.lt.u32 %p1, %r99, 10; @%p1 bra L; "
          "add.s32 %r99, %r99, %n;", 64, n=9),
    after("signed_test_of_a_large_limit", "mov.u32 %r99, 0; L: add.s32 %r99, %r99, 1; setp.lt.s32 %p1, %r99, %n; @%p1 bra L;", 64,
          n=-0x80000000),
    after("limit_changes_inside", "mov.u32 %r99, 0; mov.u32 %r2, %n; L: add.s32 %r99, %r99, 1; sub.s32 %r2, %r2, 1; "
          "setp.lt.s32 %p1, %r99, %r2; @%p1 bra L;", 64, n=21),
    after("limit_loaded_inside", "mov.u32 %r99, 0; L: ld.global.u32 %r2, [%b]; st.global.u32 [%b], 12; add.s32 %r99, %r99, 1; "
          "setp.lt.u32 %p1, %r99, %r2; @%p1 bra L;", 64, "a:u64 b:u64", b=words(1, 50)),
]


@pytest.mark.parametrize("case", AFTER, ids=str)
def test_stores_after_a_loop_are_covered(case: Case) -> None:
    case.prove()


def test_a_uniform_condition_on_the_last_value_keeps_its_checks() -> None:
    """The loop ends by wrapping around, so what it says about the last value does not hold: nothing may be dropped."""
    body = """
    mov.u16 %rs1, 0;
    L: setp.ne.s16 %p1, %rs1, %n; @!%p1 bra X; add.s16 %rs1, %rs1, 16384; bra L;
    X: setp.ne.s16 %p2, %rs1, 0; setp.eq.s16 %p3, %n, 12345; or.pred %p4, %p2, %p3; @!%p4 bra E;
    st.global.u32 [%a], 1; E: ret;"""
    case = Case("uniform", body, {"a": words(2), "n": -32768}, "a:u64 n:s16")
    assert case.prove().ranges("a")
