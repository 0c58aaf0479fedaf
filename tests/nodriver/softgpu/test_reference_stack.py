"""alloca, stacksave and stackrestore in the interpreter; calls around them."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.reference import MemoryFault, UndefinedBehaviour, UnsupportedInstruction
from tests.reference_kernels import HEADER, REGISTERS, Run, evaluate, one

LANES = [("u32", list(range(32)))]


def test_each_thread_has_memory_of_its_own_size() -> None:
    body = """add.u32 %r1, %a, 1; mul.wide.u32 %rd1, %r1, 4; alloca.u64 %rd2, %rd1; mov.u32 %r2, 0; mov.u64 %rd3, %rd2;
        $L: mul.lo.u32 %r3, %r2, %a; st.local.u32 [%rd3], %r3; add.u64 %rd3, %rd3, 4; add.u32 %r2, %r2, 1;
        setp.lt.u32 %p0, %r2, %r1; @%p0 bra $L;
        ld.local.u32 %x, [%rd3+-4]; cvta.local.u64 %rd4, %rd2; ld.u32 %y, [%rd4];"""
    last, first = evaluate(body, LANES, ["u32", "u32"])
    assert last.tolist() == [n * n for n in range(32)]
    assert first.tolist() == [0] * 32


def test_alignment_and_no_overlap() -> None:
    body = """.local .align 4 .b8 fixed[12]; mov.u64 %rd9, fixed; alloca.u64 %rd1, 3, 64; alloca.u64 %rd2, 8;
        alloca.u64 %rd3, 1, 1; sub.u64 %rd4, %rd2, %rd1; cvt.u32.u64 %x, %rd4; and.b64 %rd5, %rd1, 63;
        and.b64 %rd6, %rd2, 7; or.b64 %rd5, %rd5, %rd6; and.b64 %rd6, %rd3, 7; or.b64 %rd5, %rd5, %rd6;
        cvt.u32.u64 %y, %rd5; sub.u64 %rd4, %rd1, %rd9; cvt.u32.u64 %z, %rd4;"""
    distance, misaligned, behind = evaluate(body, [("u32", [0])], ["u32", "u32", "u32"])
    assert distance[0] >= 3 and misaligned[0] == 0 and behind[0] >= 12


def test_restoring_the_stack_gives_the_memory_back() -> None:
    body = """stacksave.u64 %rd1; alloca.u64 %rd2, 16; stackrestore.u64 %rd1; alloca.u64 %rd3, 16;
        setp.eq.u64 %p0, %rd2, %rd3; selp.u32 %x, 1, 0, %p0;"""
    assert one(body, LANES, "u32").tolist() == [1] * 32


def test_a_loop_that_restores_needs_no_more_memory() -> None:
    body = """mov.u32 %r1, 0; $L: stacksave.u64 %rd1; alloca.u64 %rd2, 65536; st.local.u32 [%rd2], %r1;
        stackrestore.u64 %rd1; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 100; @%p0 bra $L; mov.u32 %x, %r1;"""
    assert one(body, [("u32", [0])], "u32").tolist() == [100]


def test_the_stack_ends_in_a_fault() -> None:
    body = """mov.u32 %r1, 0; $L: alloca.u64 %rd2, 65536; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 100; @%p0 bra $L;
        mov.u32 %x, %r1;"""
    with pytest.raises(MemoryFault, match="stack"):
        one(body, [("u32", [0])], "u32")


def test_memory_of_a_caller_lies_below_what_it_calls() -> None:
    text = f"""{HEADER}
        .func (.param .b32 o) factorial (.param .b32 n) {{ .reg .b32 %r<9>; .reg .pred %p; .reg .b64 %d<5>;
            ld.param.b32 %r1, [n]; setp.le.u32 %p, %r1, 1; mov.u32 %r2, 1; @%p bra D;
            alloca.u64 %d1, 4, 16; st.local.u32 [%d1], %r1; sub.u32 %r3, %r1, 1;
            {{ .param .b32 q; .param .b32 z; st.param.b32 [q], %r3; call.uni (z), factorial, (q);
               ld.param.b32 %r4, [z]; }}
            ld.local.u32 %r5, [%d1]; mul.lo.u32 %r2, %r4, %r5;
            D: st.param.b32 [o], %r2; ret; }}
        .visible .entry k(.param .u64 out) {{ {REGISTERS}
            ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
            and.b32 %r2, %r1, 7;
            {{ .param .b32 q; .param .b32 z; st.param.b32 [q], %r2; call.uni (z), factorial, (q);
               ld.param.b32 %r3, [z]; }}
            st.global.u32 [%rd1], %r3; ret; }}"""
    run = Run(text)
    out = run.buffer(128)
    run.launch("k", 1, 32, out)
    assert run.read(out, 32).tolist() == [1, 1, 2, 6, 24, 120, 720, 5040] * 4


def test_what_a_function_allocated_is_gone_when_it_is_called_again() -> None:
    text = f"""{HEADER}
        .func (.param .b64 o) place () {{ .reg .b64 %d<5>; alloca.u64 %d1, 1024; st.param.b64 [o], %d1; ret; }}
        .visible .entry k(.param .u64 out) {{ {REGISTERS}
            ld.param.u64 %rd1, [out];
            {{ .param .b64 z; call.uni (z), place; ld.param.b64 %rd2, [z]; }}
            {{ .param .b64 z; call.uni (z), place; ld.param.b64 %rd3, [z]; }}
            st.global.u64 [%rd1], %rd2; st.global.u64 [%rd1+8], %rd3; ret; }}"""
    run = Run(text)
    out = run.buffer(16)
    run.launch("k", 1, 1, out)
    first, second = run.read(out, 2, np.uint64).tolist()
    assert first == second


@pytest.mark.parametrize("text", ["alloca.u64 %rd1, %rd2, 3;", "alloca.b64 %rd1, %rd2;", "stacksave.b32 %r1;",
                                  "alloca.u64 %rd1, %rd2, 16777216;"])
def test_forms_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        one(text + " mov.u32 %x, 0;", LANES, "u32")


def test_restoring_what_was_not_saved_is_undefined() -> None:
    body = ".local .b8 fixed[64]; mov.u64 %rd9, fixed; stackrestore.u64 0; mov.u32 %x, 0;"
    with pytest.raises(UndefinedBehaviour, match="stackrestore"):
        one(body, LANES, "u32")
