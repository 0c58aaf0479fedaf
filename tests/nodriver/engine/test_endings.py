"""How a launch ends other than well: traps, assertions, deadlocks, the deadline, undefined behaviour."""

from __future__ import annotations

import time

import numpy as np
import pytest

from softgpu import engine, reference
from tests.nodriver.engine.tiny import both, run, text_of

START = "mov.u32 %r0, %tid.x;\n"
SHARED = ".shared .align 16 .b8 s[512];\n"
SPIN = "spin: ld.volatile.global.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra spin;"

MESSAGE = """.global .align 1 .b8 message[9] = {112, 111, 115, 105, 116, 105, 118, 101, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
.global .align 1 .b8 fun[4] = {102, 117, 110, 0};
.global .align 1 .b8 format[5] = {60, 37, 117, 62, 0};
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
"""
ASSERT = """{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
    mov.u64 %rd1, message; cvta.global.u64 %rd1, %rd1; st.param.b64 [m], %rd1;
    mov.u64 %rd1, file; cvta.global.u64 %rd1, %rd1; st.param.b64 [f], %rd1;
    mov.u64 %rd1, fun; cvta.global.u64 %rd1, %rd1; st.param.b64 [n], %rd1;
    st.param.b32 [l], 42; st.param.b64 [s], 1;
    call.uni __assertfail, (m, f, l, n, s); }"""
PRINT = """.local .align 8 .b8 values[8];
{ .param .b64 f; .param .b64 v; .param .b32 r;
    st.local.u32 [values], %r0; mov.u64 %rd1, values; cvta.local.u64 %rd1, %rd1; st.param.b64 [v], %rd1;
    mov.u64 %rd1, format; cvta.global.u64 %rd1, %rd1; st.param.b64 [f], %rd1;
    call.uni (r), vprintf, (f, v); }"""

ENDINGS: dict[str, tuple[str, type[reference.InterpreterError], type[engine.LaunchError], str]] = {
    "trap": ("trap;", reference.KernelTrap, engine.KernelTrap, "trap .block 0,0,0 thread 0,0,0."),
    "trap of one thread": ("setp.eq.u32 %p1, %r0, 45; @%p1 trap;", reference.KernelTrap, engine.KernelTrap,
                           "thread 45,0,0"),
    "breakpoint": ("brkpt;", reference.KernelTrap, engine.KernelTrap, "breakpoint"),
    "assertion": ("setp.ne.u32 %p1, %r0, 7; @%p1 bra fine; " + ASSERT + " fine: ret;", reference.KernelTrap,
                  engine.KernelTrap, "assertion `positive` failed in fun, a.cu:42 .block 0,0,0 thread 7,0,0"),
    "a barrier that others never reach": ("setp.lt.u32 %p1, %r0, 32; @%p1 bra first; bar.sync 1; ret; "
                                          "first: bar.sync 2; ret;", reference.DeadlockError, engine.DeadlockError,
                                          r"no thread of block 0,0,0 can go on; warp 0 lanes 0xffffffff at line \d+ "
                                          r".barrier 2.*; warp 1 .* at line \d+"),
    "a barrier with too few": ("bar.sync 3, 96;", reference.DeadlockError, engine.DeadlockError,
                               "barrier 3, 64 of 96 threads came"),
    "half a warp at each barrier": ("and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra even; barrier.sync 1; ret; "
                                    "even: barrier.sync 2; ret;", reference.DeadlockError, engine.DeadlockError,
                                    "lanes 0x55555555 at line .* lanes 0xaaaaaaaa at line"),
    "not its own member": ("vote.sync.ballot.b32 %r1, 1, 1;", reference.UndefinedBehaviour, engine.UndefinedBehaviour,
                           "vote.sync.ballot.b32: the thread is not in its own member mask .*thread 1,0,0"),
    "not its own member, shfl": ("shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xfffffff7;", reference.UndefinedBehaviour,
                                 engine.UndefinedBehaviour, "member mask .*thread 3,0,0"),
    "branch index": ("labels: .branchtargets l0, l1; brx.idx %r0, labels; l0: ret; l1: ret;",
                     reference.UndefinedBehaviour, engine.UndefinedBehaviour, "past the end of the list"),
    "matrix in part of a warp": ("setp.eq.u32 %p1, %r0, 3; @%p1 ret; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;",
                                 reference.UndefinedBehaviour, engine.UndefinedBehaviour,
                                 "not all threads of the warp"),
    "a copy that reads too much": ("mov.u32 %r1, s; mov.u32 %r2, 17; cp.async.ca.shared.global [%r1], [%a], 16, %r2;",
                                   reference.UndefinedBehaviour, engine.UndefinedBehaviour,
                                   "more bytes than it writes"),
    "a call of no function": ("add.u64 %rd1, %a, 1; proto: .callprototype _ (); call %rd1, (), proto;",
                              reference.InterpreterError, engine.UndefinedBehaviour, "no function of the module"),
    "barrier number": ("mov.u32 %r1, 16; bar.sync %r1;", reference.InterpreterError, engine.UndefinedBehaviour,
                       "barrier 16 does not exist"),
    "barrier count": ("mov.u32 %r1, 33; bar.sync 1, %r1;", reference.InterpreterError, engine.UndefinedBehaviour,
                      "33 is not a positive multiple"),
    "barriers that differ": ("and.b32 %r1, %r0, 1; barrier.sync %r1;", reference.DeadlockError,
                             engine.UndefinedBehaviour, "different barriers"),
    "counts that differ": ("shr.u32 %r1, %r0, 5; setp.ne.u32 %p1, %r1, 0; @%p1 bra other; bar.sync 1, 64; ret; "
                           "other: bar.sync 1, 32; ret;", reference.InterpreterError, engine.UndefinedBehaviour,
                           "barrier 1 expects"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_endings_like_the_interpreter(name: str) -> None:
    body, expected, wanted, message = ENDINGS[name]
    outcome = both(text_of(START + body, before=SHARED + MESSAGE), 1, 64, np.zeros(64, np.uint32))
    assert isinstance(outcome.expected_error, expected), outcome.expected_error
    with pytest.raises(wanted, match=message) as caught:
        raise outcome.error or AssertionError("the launch succeeded")
    assert str(caught.value).startswith("kernel k")
    line = getattr(outcome.expected_error, "line", 0)
    assert caught.value.line == line or not line, (str(outcome.expected_error), str(caught.value))


def test_output_before_a_failed_assertion_is_kept() -> None:
    body = PRINT + " setp.ne.u32 %p1, %r0, 7; @%p1 bra fine; " + ASSERT + " fine: ret;"
    with pytest.raises(engine.KernelTrap, match="positive") as caught:
        run(text_of(START + body, before=MESSAGE), 1, 32, np.zeros(1, np.uint32))
    assert caught.value.output == b"".join([f"<{n}>".encode() for n in range(32)])


@pytest.mark.parametrize("loop", [SPIN, "spin: bra spin;", "spin: add.u32 %r1, %r1, 1; bar.sync 0; bra spin;",
                                  "setp.eq.u32 %p1, %r0, 5; spin: @%p1 bra spin;"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_deadline_ends_endless_loops(loop: str, workers: int) -> None:
    text = text_of(START + loop)
    started = time.monotonic()
    with pytest.raises(engine.DeadlineError, match="not done after 150 ms, its deadline; . of 3 blocks had started"):
        run(text, 3, 64, np.zeros(1, np.uint32), deadline=0.15, pool=engine.Pool(workers))
    assert time.monotonic() - started < 5
    module = engine.LoadedModule(text_of("st.global.u32 [%a], 5;"), engine.Memory())
    after = np.zeros(1, np.uint32)
    engine.launch(module, "k", 1, 1, [after])
    assert after[0] == 5


def test_a_meeting_that_lanes_miss() -> None:
    body = START + "setp.lt.u32 %p1, %r0, 4; @%p1 bra out; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; out: bar.sync 0; "
    with pytest.raises(engine.LaunchError) as caught:
        run(text_of(body), 1, 32, np.zeros(1, np.uint32))
    assert isinstance(caught.value, engine.UndefinedBehaviour | engine.DeadlockError)
    assert caught.value.line
