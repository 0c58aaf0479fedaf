"""Attempts to get values past the inliner: calls, their parameters, their results."""

from __future__ import annotations

import pytest

from tessera.reasons import Reason
from tests.small_kernels import STORE, Case, Value, indexed, small, sound, words

BYTES = ".func (.param .b32 r) f(.param .align 8 .b8 x[16]) {{ .reg .b32 %r<9>; .reg .b64 %rd<9>; {} st.param.b32 [r], %r1; ret; }}"


def called(name: str, before: str, body: str, size: int = 64, parameters: str = "a:u64 n:u32", opaque: bool = False,
           **arguments: Value) -> Case:
    """A store to word ``%r99`` after a call; ``n`` is 3 unless given."""
    case = indexed(name, body, size, parameters, before=before, **{"n": 3, **arguments})
    return Case(name, case.body, case.arguments, parameters, before=before, opaque=opaque)


CASES = [
    called("register_parameters", ".func (.reg .u32 r) f(.reg .u32 x) { add.u32 r, x, 5; ret; }",
           "mov.u32 %r99, 0; call (%r99), f, (%n);"),
    called("register_parameters_named_like_the_caller", ".func (.reg .u32 %r99) f(.reg .u32 %n) { add.u32 %r99, %n, 5; ret; }",
           "mov.u32 %r99, 0; call (%r99), f, (9);"),
    called("guarded_call", ".func (.reg .u32 r) f(.reg .u32 x) { mov.u32 r, 5; ret; }",
           "mov.u32 %r99, 40; setp.eq.u32 %p1, %n, 9; @%p1 call (%r99), f, (%n);"),
    called("guarded_call_in_a_loop", ".func (.reg .u32 r) f(.reg .u32 x) { mov.u32 r, 5; ret; }",
           "mov.u32 %r99, 0; mov.u32 %r9, 0; L: setp.eq.u32 %p1, %r9, 0; @%p1 call (%r99), f, (%r9); " + STORE +
           "mov.u32 %r99, 60; add.s32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, %n; @%p1 bra L;"),
    called("negated_guard", ".func (.reg .u32 r) f(.reg .u32 x) { mov.u32 r, 5; ret; }",
           "mov.u32 %r99, 40; setp.eq.u32 %p1, %n, 9; @!%p1 call (%r99), f, (%n);"),
    called("written_narrow_then_wide", BYTES.format("ld.param.b32 %r1, [x];"),
           "mov.u64 %rd5, 7; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b32 [p], 0; st.param.b64 [p], %rd5; "
           "call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("written_wide_then_narrow", BYTES.format("ld.param.b64 %rd1, [x]; cvt.u32.u64 %r1, %rd1;"),
           "mov.u64 %rd5, 7; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b64 [p], %rd5; st.param.b32 [p], 9; "
           "call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("written_in_pieces", BYTES.format("ld.param.b32 %r1, [x];"),
           "mov.u16 %rs1, 7; mov.u16 %rs2, 0; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b32 [p], 1; "
           "st.param.b16 [p], %rs1; st.param.b16 [p+2], %rs2; call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("read_across_two", BYTES.format("ld.param.b32 %r1, [x+4]; shr.u32 %r1, %r1, 28;"),
           "mov.u64 %rd5, -1; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b32 [p+4], 0; st.param.b64 [p], %rd5; "
           "call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("vector_written_scalar_read", BYTES.format("ld.param.b32 %r1, [x+4];"),
           "mov.u32 %r5, 3; mov.u32 %r6, 8; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.v2.b32 [p], {%r5, %r6}; "
           "call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("scalar_written_vector_read", BYTES.format("ld.param.v2.b32 {%r2, %r1}, [x];"),
           "mov.u64 %rd5, 0x900000001; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b64 [p], %rd5; "
           "call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("indexed_parameter", BYTES.format("ld.param.b32 %r2, [x]; mov.b64 %rd1, x; mul.wide.u32 %rd2, %r2, 4; "
                                             "add.s64 %rd3, %rd1, %rd2; ld.param.b32 %r1, [%rd3];"),
           "{ .param .align 8 .b8 p[16]; .param .b32 q; st.param.b32 [p], 2; st.param.b32 [p+4], 5; st.param.b32 [p+8], 9; "
           "call (q), f, (p); ld.param.b32 %r99, [q]; }", opaque=True),
    called("parameter_set_in_one_branch", BYTES.format("ld.param.b32 %r1, [x];"),
           "setp.eq.u32 %p1, %n, 9; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b32 [p], 4; @%p1 bra M; "
           "st.param.b32 [p], 50; M: call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("guarded_store_to_the_parameter", BYTES.format("ld.param.b32 %r1, [x];"),
           "setp.eq.u32 %p1, %n, 3; { .param .align 8 .b8 p[16]; .param .b32 q; st.param.b32 [p], 4; "
           "@%p1 st.param.b32 [p], 50; call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("signed_byte_parameter", ".func (.param .b32 r) f(.param .b8 x) { .reg .b32 %r<3>; ld.param.s8 %r1, [x]; "
           "neg.s32 %r1, %r1; st.param.b32 [r], %r1; ret; }", "mov.u32 %r5, 0xF8; { .param .b8 p; .param .b32 q; "
           "st.param.b8 [p], %r5; call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("result_read_signed", ".func (.param .b16 r) f() { .reg .b16 %rs<3>; mov.u16 %rs1, 0xFFF8; st.param.b16 [r], %rs1; ret; }",
           "{ .param .b16 q; call (q), f, (); ld.param.s16 %r1, [q]; neg.s32 %r99, %r1; }"),
    called("result_written_twice", ".func (.param .b64 r) f() { .reg .b64 %rd<3>; mov.u64 %rd1, 3; st.param.b64 [r], %rd1; "
           "st.param.b32 [r], 9; ret; }",
           "{ .param .b64 q; call (q), f, (); ld.param.b64 %rd5, [q]; cvt.u32.u64 %r99, %rd5; }"),
    called("two_returns", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [x]; "
           "setp.gt.u32 %p, %r1, 9; @%p bra B; st.param.b32 [r], 4; ret; B: st.param.b32 [r], 50; ret; }",
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], 12; call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("guarded_return", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [x]; "
           "st.param.b32 [r], 4; setp.gt.u32 %p, %r1, 9; @!%p ret; st.param.b32 [r], 50; ret; }",
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %n; call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("called_twice", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; "
           "add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }",
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %n; call (q), f, (p); ld.param.b32 %r1, [q]; }"
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), f, (p); ld.param.b32 %r2, [q]; }"
           "add.u32 %r99, %r1, %r2;"),
    called("called_in_a_called_function", ".func (.param .b32 r) g(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; "
           "add.u32 %r1, %r1, 7; st.param.b32 [r], %r1; ret; }\n"
           ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; { .param .b32 x; .param .b32 r; "
           "st.param.b32 [x], %r1; call (r), g, (x); ld.param.b32 %r2, [r]; } add.u32 %r2, %r2, %r1; st.param.b32 [r], %r2; ret; }",
           "{ .param .b32 x; .param .b32 r; st.param.b32 [x], %n; call (r), f, (x); ld.param.b32 %r99, [r]; }"),
    called("parameter_handed_on", ".func (.param .b32 r) g(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; "
           "add.u32 %r1, %r1, 7; st.param.b32 [r], %r1; ret; }\n"
           ".func (.param .b32 r) f(.param .b32 x) { call (r), g, (x); ret; }",
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %n; call (q), f, (p); ld.param.b32 %r99, [q]; }"),
    called("labels_of_the_callee", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [x]; "
           "L: add.u32 %r1, %r1, 3; setp.lt.u32 %p, %r1, 20; @%p bra L; st.param.b32 [r], %r1; ret; }",
           "mov.u32 %r5, 0; L: { .param .b32 p; .param .b32 q; st.param.b32 [p], %r5; call (q), f, (p); ld.param.b32 %r99, [q]; } " +
           STORE + "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %n; @%p1 bra L;"),
    called("exit_in_the_callee", ".func f(.param .b32 x) { .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [x]; "
           "setp.lt.u32 %p, %r1, 2; @%p exit; ret; }",
           "mov.u32 %r99, %n; { .param .b32 p; st.param.b32 [p], %n; call f, (p); }", n=1),
    called("falls_off_the_end", ".func f(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; }",
           "mov.u32 %r99, %n; { .param .b32 p; st.param.b32 [p], %n; call f, (p); }"),
    called("alias", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.u32 %r1, %r1, 7; "
           "st.param.b32 [r], %r1; ret; }\n.visible .func (.param .b32 r) h(.param .b32 x);\n.alias h, f;",
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %n; call (q), h, (p); ld.param.b32 %r99, [q]; }"),
    called("callee_stores_through_the_pointer", ".func f(.param .b64 x) { .reg .b64 %rd<3>; ld.param.b64 %rd1, [x]; "
           "st.global.u32 [%rd1+40], 1; ret; }",
           "mov.u32 %r99, 0; { .param .b64 p; st.param.b64 [p], %a; call f, (p); }"),
    called("callee_stores_to_its_own_variable", ".global .b32 tab[8];\n.func f(.param .b32 x) { .reg .b32 %r<3>; .reg .b64 %rd<3>; "
           "ld.param.b32 %r1, [x]; mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tab; add.s64 %rd1, %rd1, %rd2; "
           "st.global.u32 [%rd1], 1; ret; }",
           "mov.u32 %r99, 0; { .param .b32 p; st.param.b32 [p], %n; call f, (p); }"),
    called("variable_declared_in_the_callee", ".func f(.param .b32 x) { .global .b32 tab[8]; .reg .b32 %r<3>; .reg .b64 %rd<3>; "
           "ld.param.b32 %r1, [x]; mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tab; add.s64 %rd1, %rd1, %rd2; "
           "st.global.u32 [%rd1], 1; ret; }",
           "mov.u32 %r99, 0; { .param .b32 p; st.param.b32 [p], %n; call f, (p); }"),
    *(
        called(f"shadowed_by_{name}", f".global .align 4 .b8 g[16];\n.func f(.param .b32 x) {{ .reg .b64 %rd<3>; {store} ret; }}",
               f"mov.u32 %r99, 0; {own} {{ .param .b32 p; st.param.b32 [p], 1; call f, (p); }}", parameters=f"a:u64 n:u32{more}",
               **values)
        for name, store, own, more, values in (
            ("a_parameter", "mov.u64 %rd1, g; st.global.u32 [%rd1+4], 1;", "", " g:u64", {"g": words(4)}),
            ("a_parameter_directly", "st.global.u32 [g+4], 1;", "", " g:u64", {"g": words(4)}),
            ("a_shared_variable", "st.global.u32 [g+4], 1;", ".shared .b32 g[4]; st.shared.u32 [g], 1;", "", {}),
            ("a_register", "st.global.u32 [g+4], 1;", ".reg .b64 g; mov.u64 g, %a;", "", {}),
        )
    ),
    called("shadowed_by_the_caller's_variable", ".global .align 4 .b8 g[16];\n.func h() { st.global.u32 [g+4], 1; ret; }\n"
           ".func f() { .shared .b32 g[4]; call h, (); st.shared.u32 [g], 1; ret; }", "mov.u32 %r99, 0; call f, ();"),
    called("names_of_the_kernel_in_the_callee", ".func f(.param .b64 a) { .reg .b64 %rd<3>; ld.param.b64 %rd1, [a]; "
           "st.global.u32 [%rd1+4], 1; ret; }", "mov.u32 %r99, 0; { .param .b64 a; st.param.b64 [a], %c; call f, (a); }",
           parameters="a:u64 n:u32 c:u64", c=words(4)),
    called("labels_of_the_kernel_in_the_callee", ".func f(.param .b32 x) { .reg .pred %p; .reg .b32 %r<3>; ld.param.b32 %r1, [x]; "
           "setp.eq.u32 %p, %r1, 3; @%p bra E; ret; E: ret; }", "mov.u32 %r99, 5; { .param .b32 p; st.param.b32 [p], %n; "
           "call f, (p); } setp.eq.u32 %p1, %n, 9; @%p1 bra E; mov.u32 %r99, 40; E:"),
    called("result_of_a_builtin", ".extern .func (.param .b32 r) vprintf(.param .b64 x, .param .b64 y);\n"
           ".global .align 1 .b8 text[3] = {104, 105, 0};\n.func (.param .b32 r) f() { st.param.b32 [r], 5; ret; }",
           "{ .param .b64 p0; .param .b64 p1; .param .b32 q; call (q), f, (); mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; "
           "st.param.b64 [p0], %rd1; st.param.b64 [p1], 0; call (q), vprintf, (p0, p1); ld.param.b32 %r99, [q]; }"),
    called("argument_of_two_calls", ".func (.param .b32 r) g(.param .b32 z) { .reg .b32 %r<3>; ld.param.b32 %r1, [z]; "
           "add.u32 %r1, %r1, 10; st.param.b32 [r], %r1; ret; }\n.func (.param .b32 r) f(.param .b32 x) { { .param .b32 x; "
           "st.param.b32 [x], 20; call (r), g, (x); } ret; }",
           "{ .param .b32 x; .param .b32 q; st.param.b32 [x], 3; call (q), f, (x); call (q), f, (x); ld.param.b32 %r99, [q]; }"),
    called("arguments_exchanged", ".func (.param .b32 r) f(.param .b32 x, .param .b32 y) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; "
           "st.param.b32 [r], %r1; ret; }", "{ .param .b32 x; .param .b32 y; .param .b32 q; st.param.b32 [x], 3; st.param.b32 [y], 40; "
           "call (q), f, (y, x); ld.param.b32 %r99, [q]; }"),
    called("recursive", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [x]; "
           "setp.eq.u32 %p, %r1, 0; @%p bra E; sub.u32 %r1, %r1, 1; { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; "
           "call (q), f, (p); ld.param.b32 %r1, [q]; } add.u32 %r1, %r1, 2; E: st.param.b32 [r], %r1; ret; }",
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %n; call (q), f, (p); ld.param.b32 %r99, [q]; }", opaque=True),
    called("indirect", ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.u32 %r1, %r1, 7; "
           "st.param.b32 [r], %r1; ret; }",
           "mov.u64 %rd5, f; { .param .b32 p; .param .b32 q; st.param.b32 [p], %n; "
           "P: .callprototype (.param .b32 _) _ (.param .b32 _); call (q), %rd5, (p), P; ld.param.b32 %r99, [q]; }", opaque=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stores_around_calls_are_covered(case: Case) -> None:
    case.prove()


def test_one_line_may_be_private_in_one_copy_and_global_in_another() -> None:
    """A device function that reads through a generic pointer, called with shared and with global memory."""
    function = """.func (.param .b32 r) f(.param .b64 x) { .reg .b32 %r<3>;
.reg .b64 %rd<3>;
ld.param.b64 %rd1, [x];
ld.u32 %r1, [%rd1];
st.param.b32 [r], %r1;
ret; }"""
    body = """.shared .b32 sh; mov.u64 %rd1, sh; cvta.shared.u64 %rd1, %rd1;
    { .param .b64 p; .param .b32 q; st.param.b64 [p], %a; call (q), f, (p); ld.param.b32 %r1, [q]; }
    { .param .b64 p; .param .b32 q; st.param.b64 [p], %rd1; call (q), f, (p); ld.param.b32 %r2, [q]; } ret;"""
    found = sound(small(body, "a:u64", function), (1, 1, 1), (1, 1, 1), {"a": words(4)})
    assert found.ranges("a", "R") == [(0, 4)] and found.counts["bytes_read"].high >= 4


def test_two_statements_on_one_line_are_two() -> None:
    body = "st.global.u32 [%a], 1; .shared .b32 sh; mov.u64 %rd1, sh; cvta.shared.u64 %rd1, %rd1; ld.u32 %r1, [%rd1]; ret;"
    sound(small(body, "a:u64", split=False), (1, 1, 1), (1, 1, 1), {"a": words(4)})


PROBLEMS = [
    ("no_body", ".extern .func f();", "call f, ();", Reason.UNDEFINED_CALLEE),
    ("no_declaration", "", "call f, ();", Reason.UNDEFINED_CALLEE),
    ("through_a_register", "", "call %rd1, (), P; P: .callprototype _ ();", Reason.INDIRECT_CALL),
]


@pytest.mark.parametrize(("name", "before", "body", "reason"), PROBLEMS, ids=[p[0] for p in PROBLEMS])
def test_calls_of_the_unknown_are_opaque(name: str, before: str, body: str, reason: Reason) -> None:
    program = small(f"{body} st.global.u32 [%a], 1; ret;", "a:u64", before).program
    assert program.opaque is reason and not program.deterministic and not program.device_invariant
