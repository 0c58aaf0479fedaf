"""Attempts to let a pointer get away unnoticed: a launch whose pointers are more than address bases must be pinned."""

from __future__ import annotations

import pytest

from tessera.reasons import Reason
from tests.small_kernels import At, Value, check, one, place, pointers_of, small, sound, words

USE = "st.global.u32 [%a], 1; "
"""Makes the parameter ``a`` a base, so that it would be rebased."""

PASS_ON = """.func (.param .b64 result) pass(.param .b64 x) { .reg .b64 %rd<3>;
ld.param.b64 %rd1, [x];
add.s64 %rd2, %rd1, 4;
st.param.b64 [result], %rd2;
ret; }"""
CALL = "{ .param .b64 p0; .param .b64 q0; st.param.b64 [p0], %a; call (q0), pass, (p0); "

ESCAPES = [
    ("stored", "st.global.u64 [%c], %a;"),
    ("stored_after_arithmetic", "add.s64 %rd1, %a, 12; st.global.u64 [%c], %rd1;"),
    ("stored_in_a_vector", "mov.u64 %rd1, %a; st.global.v2.u64 [%c], {%n, %rd1};".replace("%n,", "%rd1,")),
    ("stored_as_double", "mov.b64 %fd1, %a; st.global.f64 [%c], %fd1;"),
    ("stored_in_128_bits", ".reg .b128 %q; mov.b128 %q, {%a, %a}; st.global.b128 [%c], %q;"),
    ("stored_to_shared_memory", ".shared .b64 sh; st.shared.u64 [sh], %a; ld.shared.u64 %rd1, [sh]; st.global.u64 [%c], %rd1;"),
    ("stored_to_local_memory", ".local .b64 lo; st.local.u64 [lo], %a; ld.local.u64 %rd1, [lo]; st.global.u64 [%c], %rd1;"),
    ("selected_then_stored", "setp.eq.u32 %p1, %n, 1; selp.b64 %rd1, %a, %b, %p1; st.global.u64 [%c], %rd1;"),
    ("moved_under_a_guard_then_stored", "setp.eq.u32 %p1, %n, 1; mov.u64 %rd1, %b; @%p1 mov.u64 %rd1, %a; "
     "st.global.u64 [%c], %rd1;"),
    ("merged_then_stored", "setp.eq.u32 %p1, %n, 1; mov.u64 %rd1, %b; @!%p1 bra M; mov.u64 %rd1, %a; M: st.global.u64 [%c], %rd1;"),
    ("chosen_by_sign_then_stored", "slct.u64.s32 %rd1, %a, %b, %n; st.global.u64 [%c], %rd1;"),
    ("carried_by_a_loop_then_stored", "mov.u64 %rd1, %a; mov.u32 %r1, 0; L: st.global.u32 [%rd1], 0; add.s64 %rd1, %rd1, 4; "
     "add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %n; @%p1 bra L; st.global.u64 [%c], %rd1;"),
    ("exchanged_in_a_loop_then_stored", "mov.u64 %rd1, %a; mov.u64 %rd2, %b; mov.u32 %r1, 0; L: st.global.u32 [%rd1], 0; "
     "mov.u64 %rd3, %rd1; mov.u64 %rd1, %rd2; mov.u64 %rd2, %rd3; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %n; @%p1 bra L; "
     "st.global.u64 [%c], %rd1;"),
    ("lagging_in_a_loop_then_stored", "mov.u64 %rd1, %b; mov.u32 %r1, 0; L: mov.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r1, 4; "
     "add.s64 %rd1, %a, %rd3; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %n; @%p1 bra L; st.global.u64 [%c], %rd2;"),
    ("compared", "setp.lt.u64 %p1, %a, %b; @%p1 st.global.u32 [%c], 1;"),
    ("compared_with_a_number", "setp.ne.u64 %p1, %a, 8; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%c], %r1;"),
    ("compared_with_an_absolute_address", "add.s64 %rd1, %a, -30064771328; setp.ne.u64 %p1, %rd1, 0; @%p1 st.global.u32 [%c], 1;"),
    ("compared_after_a_step", "add.s64 %rd1, %a, 4; setp.lt.u64 %p1, %rd1, %b; @%p1 st.global.u32 [%c], 1;"),
    ("set", "set.lt.u32.u64 %r1, %a, %b; st.global.u32 [%c], %r1;"),
    ("least", "min.u64 %rd1, %a, %b; st.global.u64 [%c], %rd1;"),
    ("subtracted", "sub.s64 %rd1, %a, %b; st.global.u64 [%c], %rd1;"),
    ("subtrahend", "sub.s64 %rd1, %b, %a; st.global.u64 [%c], %rd1;"),
    ("negated", "neg.s64 %rd1, %a; st.global.u64 [%c], %rd1;"),
    ("hashed", "mul.lo.u64 %rd1, %a, 0x9e3779b97f4a7c15; shr.u64 %rd1, %rd1, 60; st.global.u64 [%c], %rd1;"),
    ("multiplied_by_the_wide_product", "mul.hi.u64 %rd1, %a, %b; st.global.u64 [%c], %rd1;"),
    ("aligned_check", "and.b64 %rd1, %a, 15; setp.eq.u64 %p1, %rd1, 0; @%p1 st.global.u32 [%c], 1;"),
    ("tagged", "or.b64 %rd1, %a, 1; st.global.u64 [%c], %rd1;"),
    ("shifted", "shl.b64 %rd1, %a, 8; st.global.u64 [%c], %rd1;"),
    ("field", "bfe.u64 %rd1, %a, 8, 8; st.global.u64 [%c], %rd1;"),
    ("counted", "popc.b64 %r1, %a; st.global.u32 [%c], %r1;"),
    ("narrowed", "cvt.u32.u64 %r1, %a; st.global.u32 [%c], %r1;"),
    ("made_a_float", "cvt.rn.f32.u64 %f1, %a; st.global.f32 [%c], %f1;"),
    ("widened_sum", "mad.wide.u32 %rd1, %n, 4, %a; st.global.u64 [%c], %rd1;"),
    ("factor_of_a_sum", "mad.lo.u64 %rd1, %a, %a, %c; st.global.u64 [%c], %rd1;"),
    ("halves_stored", "mov.b64 {%r1, %r2}, %a; st.global.v2.u32 [%c], {%r1, %r2};"),
    ("high_half_stored", "mov.b64 {_, %r2}, %a; st.global.u32 [%c], %r2;"),
    ("half_as_an_index", "mov.b64 {%r1, %r2}, %a; and.b32 %r3, %r1, 15; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %c, %rd1; "
     "st.global.u32 [%rd2], 1;"),
    ("half_compared", "cvt.u32.u64 %r1, %a; setp.eq.u32 %p1, %r1, %n; @%p1 st.global.u32 [%c], 1;"),
    ("halves_shuffled", "mov.b64 {%r1, %r2}, %a; shfl.sync.idx.b32 %r3, %r1, 0, 31, -1; st.global.u32 [%c], %r3;"),
    ("halves_permuted", "mov.b64 {%r1, %r2}, %a; prmt.b32 %r3, %r1, %r2, 0x7531; st.global.u32 [%c], %r3;"),
    ("halves_put_together_again", "mov.b64 {%r1, %r2}, %a; mov.b64 %rd1, {%r2, %r1}; st.global.u64 [%c], %rd1;"),
    ("voted_on", "setp.gt.u64 %p1, %a, %b; vote.sync.ballot.b32 %r1, %p1, -1; st.global.u32 [%c], %r1;"),
    ("matched", "match.any.sync.b64 %r1, %a, -1; st.global.u32 [%c], %r1;"),
    ("exchanged_atomically", "atom.global.exch.b64 %rd1, [%c], %a;"),
    ("compared_atomically", "atom.global.cas.b64 %rd1, [%c], %a, 0;"),
    ("added_atomically", "red.global.add.u64 [%c], %a;"),
    ("guarding_another_access", "setp.ne.u64 %p1, %a, %b; @%p1 st.global.u32 [%c], 1;"),
    ("decides_a_branch", "setp.ne.u64 %p1, %a, %b; @%p1 bra E; st.global.u32 [%c], 1; E:"),
    ("low_word_of_the_parameter", "ld.param.u32 %r1, [a]; st.global.u32 [%c], %r1;"),
    ("high_word_of_the_parameter", "ld.param.u32 %r1, [a+4]; st.global.u32 [%c], %r1;"),
    ("vector_of_the_parameter", "ld.param.v2.u32 {%r1, %r2}, [a]; st.global.u32 [%c], %r1;"),
    ("vector_of_parameters", "ld.param.v2.u64 {%rd1, %rd2}, [a]; st.global.u64 [%c], %rd1;"),
    ("byte_of_the_parameter", "ld.param.u8 %rs1, [a+1]; st.global.u8 [%c], %rs1;"),
    ("parameter_as_double", "ld.param.f64 %fd1, [a]; st.global.f64 [%c], %fd1;"),
    ("parameter_by_address", "mov.b64 %rd1, a; ld.param.u64 %rd2, [%rd1]; st.global.u64 [%c], %rd2;"),
    ("parameter_by_generic_address", "mov.b64 %rd1, a; cvta.param.u64 %rd2, %rd1; ld.u64 %rd3, [%rd2]; st.global.u64 [%c], %rd3;"),
    ("half_by_generic_address", "mov.b64 %rd1, a; cvta.param.u64 %rd2, %rd1; ld.u32 %r3, [%rd2]; st.global.u32 [%c], %r3;"),
    ("returned_from_a_function", CALL + "ld.param.b64 %rd1, [q0]; } st.global.u64 [%c], %rd1;"),
    ("returned_in_halves", CALL + "ld.param.v2.b32 {%r1, %r2}, [q0]; } st.global.v2.u32 [%c], {%r1, %r2};"),
    ("as_a_cache_policy", "ld.global.L2::cache_hint.u32 %r1, [%c], %a; st.global.u32 [%c], %r1;"),
    ("in_address_space_test", "isspacep.shared %p1, %a; @!%p1 st.global.u32 [%c], 1;"),
    ("as_an_offset_of_another", "sub.s64 %rd1, %a, %b; add.s64 %rd2, %rd1, %c; st.global.u32 [%rd2], 1;"),
]


@pytest.mark.parametrize(("name", "body"), ESCAPES, ids=[name for name, _ in ESCAPES])
def test_a_pointer_that_escapes_is_pinned_or_the_kernel_given_up(name: str, body: str) -> None:
    kernel = small(f"{USE}{body} ret;", "a:u64 b:u64 c:u64 n:u32", PASS_ON)
    buffers: dict[str, Value] = {"a": words(64), "b": words(64), "c": words(64), "n": 1}
    # Instructions that the interpreter has no memory or mnemonic for are evaluated only.
    runs = name not in ("as_an_offset_of_another", "as_a_cache_policy")
    found = check(kernel, *one(), buffers, run=runs, counting=False)
    assert not found.violations
    assert found.evaluation.opaque is not None or Reason.POINTER_ESCAPES in found.pinned, found.program.escapes


def test_a_pointer_may_be_tested_for_null() -> None:
    """No allocation lies at 0, so a replica's address answers the same."""
    body = "setp.ne.u64 %p1, %a, 0; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%c], %r1; ret;"
    found = sound(small(f"{USE}{body}", "a:u64 b:u64 c:u64 n:u32", PASS_ON), *one(),
                  {"a": words(64), "b": words(64), "c": words(64), "n": 1})
    assert Reason.POINTER_ESCAPES not in found.pinned


def test_an_end_pointer_past_the_buffer_pins() -> None:
    """``for (p = a; p < end; p++)``: the end lies in no allocation, but the pointer compared with it does."""
    body = "mov.u64 %rd1, %a; L: st.global.u32 [%rd1], 0; add.s64 %rd1, %rd1, 4; setp.lt.u64 %p1, %rd1, %b; @%p1 bra L; ret;"
    found = sound(small(body, "a:u64 b:u64"), *one(), {"a": words(64), "b": At("a", 256)})
    assert Reason.POINTER_ESCAPES in found.pinned


SYMBOLS = [
    ("variable_stored", "mov.u64 %rd1, g; st.global.u64 [%c], %rd1;"),
    ("variable_element_stored", "mov.u64 %rd1, g+8; st.global.u64 [%c], %rd1;"),
    ("generic_variable_stored", "mov.u64 %rd1, g; cvta.global.u64 %rd2, %rd1; st.global.u64 [%c], %rd2;"),
    ("variable_compared", "mov.u64 %rd1, g; setp.eq.u64 %p1, %rd1, %c; @!%p1 st.global.u32 [%c], 1;"),
    ("variable_halved", "mov.u64 %rd1, g; mov.b64 {%r1, %r2}, %rd1; st.global.u32 [%c], %r1;"),
    ("variable_aligned", "mov.u64 %rd1, g; and.b64 %rd2, %rd1, 255; st.global.u64 [%c], %rd2;"),
    ("function_stored", "mov.u64 %rd1, f; st.global.u64 [%c], %rd1;"),
    ("selected", "mov.u64 %rd1, g; mov.u64 %rd2, h; setp.eq.u32 %p1, %n, 1; selp.b64 %rd3, %rd1, %rd2, %p1; "
     "st.global.u64 [%c], %rd3;"),
]


@pytest.mark.parametrize(("name", "body"), SYMBOLS, ids=[name for name, _ in SYMBOLS])
def test_the_address_of_a_variable_or_function_kept_as_a_value_pins(name: str, body: str) -> None:
    """Another device's copy of the module has them elsewhere."""
    before = ".global .align 4 .b8 g[16];\n.global .align 4 .b8 h[16];\n.func f() { ret; }"
    found = check(small(f"{body} ret;", "c:u64 n:u32", before), *one(), {"c": words(64), "n": 1}, counting=False)
    assert not found.violations
    assert found.evaluation.opaque is not None or Reason.POINTER_ESCAPES in found.pinned


PRIVATE = [
    ("shared_stored", ".shared .b32 sh[4]; mov.u32 %r1, sh; st.global.u32 [%c], %r1;"),
    ("generic_shared_stored", ".shared .b32 sh[4]; mov.u64 %rd1, sh; cvta.shared.u64 %rd2, %rd1; st.global.u64 [%c], %rd2;"),
    ("local_stored", ".local .b32 lo[4]; mov.u64 %rd1, lo; cvta.local.u64 %rd2, %rd1; st.global.u64 [%c], %rd2;"),
    ("shared_hashed", ".shared .b32 sh[4]; mov.u32 %r1, sh; and.b32 %r2, %r1, 1023; st.global.u32 [%c], %r2;"),
    ("shared_compared", ".shared .b32 sh[4]; mov.u32 %r1, sh; setp.eq.u32 %p1, %r1, 0; selp.u32 %r2, 1, 2, %p1; "
     "st.global.u32 [%c], %r2;"),
]


@pytest.mark.parametrize(("name", "body"), PRIVATE, ids=[name for name, _ in PRIVATE])
def test_where_shared_and_local_memory_lies_depends_on_the_device(name: str, body: str) -> None:
    assert not small(f"{body} ret;", "c:u64").program.device_invariant


HARMLESS = [
    ("element", "mul.wide.u32 %rd1, %n, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;"),
    ("element_of_mad", "mad.wide.u32 %rd1, %n, 4, %a; st.global.u32 [%rd1], 1;"),
    ("converted_space", "cvta.to.global.u64 %rd1, %a; st.global.u32 [%rd1+8], 1;"),
    ("walking", "mov.u64 %rd1, %a; mov.u32 %r1, 0; L: st.global.u32 [%rd1], 0; add.s64 %rd1, %rd1, 4; add.s32 %r1, %r1, 1; "
     "setp.lt.s32 %p1, %r1, 9; @%p1 bra L;"),
    ("selected", "setp.eq.u32 %p1, %n, 1; selp.b64 %rd1, %a, %b, %p1; st.global.u32 [%rd1], 1;"),
    ("passed_to_a_function", CALL + "ld.param.b64 %rd1, [q0]; } st.global.u32 [%rd1], 1;"),
]


@pytest.mark.parametrize(("name", "body"), HARMLESS, ids=[name for name, _ in HARMLESS])
def test_a_pointer_that_is_only_a_base_is_not_pinned(name: str, body: str) -> None:
    found = sound(small(f"{body} ret;", "a:u64 b:u64 n:u32", PASS_ON), *one(), {"a": words(64), "b": words(64), "n": 1})
    assert not found.pinned and 0 in found.evaluation.pointers


def test_a_pointer_in_a_struct_copied_out_whole_is_pinned() -> None:
    body = "ld.param.v2.u64 {%rd1, %rd2}, [s]; st.global.u32 [%rd1], 1; st.global.v2.u64 [%c], {%rd1, %rd2}; ret;"
    kernel = small(body, "s:u64[16] c:u64")
    at = place(kernel, {"a": words(4), "b": words(4), "c": words(8), "s": b""})
    at.parameters = pointers_of(at, "a", "b") + at.parameters[16:]
    found = check(kernel, *one(), {}, placed=at)
    assert not found.violations and Reason.POINTER_ESCAPES in found.pinned
