"""Accesses that must not be made: the error says where, nothing else is touched, and the process goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from softgpu import engine
from softgpu.reference import MemoryFault
from tests.nodriver.engine.tiny import both, run, same, text_of

GUARD = 0xA5
OFFSET = (1 << 48) - 1
"""What is left of an address without the window of its state space."""


@dataclass(frozen=True)
class Fault:
    """A kernel with a buffer of ``size`` bytes at %a that faults; %r0 is tid.x, %rd1 is %a + 4 tid."""

    name: str
    body: str
    size: int = 128
    block: int | tuple[int, ...] = 32
    before: str = ""
    constant: bool = False
    shared: int = 0


START = """
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd0, %r0, 4;
add.u64 %rd1, %a, %rd0;
"""
SHARED = ".shared .align 16 .b8 s[64];\n"
DYNAMIC = ".extern .shared .align 16 .b8 d[];\n"
VARIABLE = ".const .align 8 .b32 fixed[4] = {1, 2, 3, 4};\n"
LOCAL = ".local .align 16 .b8 l[16];\n"
ROWS = "mov.u32 %r1, %tid.y; mad.lo.u32 %r1, %r1, 48, %r0; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %a, %rd2;"

FAULTS = [
    Fault("a word past the end", "st.global.u32 [%rd1+4], 7;"),
    Fault("a word before the start", "ld.global.u32 %r1, [%rd1+-4];"),
    Fault("far behind the buffer", "ld.global.u32 %r1, [%rd1+1000000];"),
    Fault("between buffers", "st.global.u32 [%rd1+4096], 7;"),
    Fault("null", "mov.u64 %rd2, 0; ld.global.u32 %r1, [%rd2];"),
    Fault("null written", "mov.u64 %rd2, 0; st.u32 [%rd2], 1;"),
    Fault("one address past the end", "ld.global.u32 %r1, [%a+128];"),
    Fault("one address, the last byte outside", "ld.global.u32 %r1, [%a+124];", size=127),
    Fault("neighbours, the last byte outside", "ld.global.u32 %r1, [%rd1];", size=127),
    Fault("neighbours stored, the last byte outside", "st.global.u32 [%rd1], %r0;", size=127),
    Fault("half words, the last byte outside",
          "mul.wide.u32 %rd2, %r0, 2; add.u64 %rd2, %a, %rd2; ld.global.u16 %rs1, [%rd2];", size=63),
    Fault("vectors of four, the last byte outside",
          "mul.wide.u32 %rd2, %r0, 16; add.u64 %rd2, %a, %rd2; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];",
          size=511),
    Fault("vectors of two stored, the last byte outside",
          "mul.wide.u32 %rd2, %r0, 8; add.u64 %rd2, %a, %rd2; st.global.v2.u32 [%rd2], {%r0, %r0};", size=255),
    Fault("every second word, the last byte outside",
          "mul.wide.u32 %rd2, %r0, 8; add.u64 %rd2, %a, %rd2; ld.global.u32 %r1, [%rd2];", size=251),
    Fault("every second word stored, the last byte outside",
          "mul.wide.u32 %rd2, %r0, 8; add.u64 %rd2, %a, %rd2; st.global.u32 [%rd2], %r0;", size=251),
    Fault("backwards, the last byte outside",
          "sub.u32 %r1, 31, %r0; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %a, %rd2; ld.global.u32 %r2, [%rd2];",
          size=127),
    Fault("rows, the last byte outside", ROWS + "ld.global.u32 %r2, [%rd2];", size=255, block=(16, 2)),
    Fault("rows stored, the last byte outside", ROWS + "st.global.u32 [%rd2], %r0;", size=255, block=(16, 2)),
    Fault("pairs that share a word, the last byte outside",
          "shr.u32 %r1, %r0, 1; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %a, %rd2; ld.global.u32 %r2, [%rd2];",
          size=63),
    Fault("misaligned", "ld.global.u32 %r1, [%rd1+2];", size=256),
    Fault("misaligned by one", "st.global.u16 [%rd1+1], %rs1;", size=256),
    Fault("misaligned vector", "ld.global.v2.u32 {%r1, %r2}, [%rd1+4];", size=256),
    Fault("misaligned lanes", "mad.lo.u32 %r1, %r0, 6, 0; cvt.u64.u32 %rd2, %r1; add.u64 %rd2, %a, %rd2; "
          "ld.global.u32 %r2, [%rd2];", size=256),
    Fault("one wild lane", "setp.eq.u32 %p1, %r0, 13; selp.u64 %rd2, 123456789012, %rd1, %p1; "
          "ld.global.u32 %r1, [%rd2];"),
    Fault("one wild lane stores", "setp.eq.u32 %p1, %r0, 13; selp.u64 %rd2, 123456789012, %rd1, %p1; "
          "st.global.u32 [%rd2], %r0;"),
    Fault("an address without meaning", "setp.eq.u32 %p1, %r0, 17; selp.u64 %rd2, 0x4000000000000000, %rd1, %p1; "
          "ld.global.u32 %r1, [%rd2];"),
    Fault("the highest address", "mov.u64 %rd2, -4; ld.global.u32 %r1, [%rd2];"),
    Fault("scattered words", "mul.lo.u32 %r1, %r0, 2654435761; and.b32 %r1, %r1, 0xfffffffc; cvt.u64.u32 %rd2, %r1; "
          "add.u64 %rd2, %a, %rd2; ld.global.u32 %r2, [%rd2];"),
    Fault("the last partial warp", "ld.global.u32 %r1, [%rd1];", size=159, block=40),
    Fault("a later warp", "st.global.u32 [%rd1], %r0;", size=300, block=96),
    Fault("in divergent code", "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra even; "
          "ld.global.u32 %r2, [%rd1+4]; bra done; even: ld.global.u32 %r2, [%rd1]; done: "
          "st.global.u32 [%a], %r2;"),
    Fault("in a loop", "mov.u32 %r1, 0; again: mul.wide.u32 %rd2, %r1, 128; add.u64 %rd2, %rd1, %rd2; "
          "ld.global.u32 %r2, [%rd2]; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra again;", size=384),
    Fault("under a guard", "setp.gt.u32 %p1, %r0, 20; @%p1 st.global.u32 [%rd1], %r0;", size=124),
    Fault("atom", "atom.global.add.u32 %r1, [%rd1], 1;", size=127),
    Fault("atom on one address", "atom.global.add.u32 %r1, [%a+128], 1;"),
    Fault("red on one address", "red.global.add.u32 [%a+128], 1;"),
    Fault("red misaligned", "red.global.add.u32 [%a+2], 1;"),
    Fault("atom of 64 bits misaligned", "atom.global.add.u64 %rd2, [%a+4], 1;"),
    Fault("atom of floats", "red.global.add.f32 [%rd1], 1.0;", size=127),
    Fault("compare and swap", "atom.global.cas.b32 %r1, [%rd1+4], 0, 1;"),
    Fault("shared memory", "mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1; st.shared.u32 [%r1], 1;", before=SHARED),
    Fault("shared memory, the last byte outside",
          "mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 2, %r1; ld.shared.u8 %rs1, [%r1+2];", before=SHARED),
    Fault("before shared memory", "mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+-4];", before=SHARED),
    Fault("shared memory, wrapped around", "mov.u32 %r1, 0xfffffffc; ld.shared.u32 %r2, [%r1];", before=SHARED),
    Fault("shared memory, 64-bit address", "mov.u64 %rd2, 4096; ld.shared.u32 %r2, [%rd2];", before=SHARED),
    Fault("shared memory misaligned", "mov.u32 %r1, s; st.shared.u32 [%r1+2], 1;", before=SHARED),
    Fault("dynamic shared memory", "mov.u32 %r1, d; mad.lo.u32 %r1, %r0, 4, %r1; st.shared.u32 [%r1], 1;",
          before=DYNAMIC, shared=124),
    Fault("atom in shared memory", "mov.u32 %r1, s; atom.shared.add.u32 %r2, [%r1+64], 1;", before=SHARED),
    Fault("local memory", LOCAL + "mov.u64 %rd2, l; ld.local.u32 %r1, [%rd2+16];"),
    Fault("local memory, one lane", LOCAL + "setp.eq.u32 %p1, %r0, 9; selp.u32 %r1, 16, 0, %p1; mov.u32 %r2, l; "
          "add.u32 %r1, %r1, %r2; st.local.u32 [%r1], 1;"),
    Fault("local memory misaligned", LOCAL + "mov.u64 %rd2, l; ld.local.u64 %rd3, [%rd2+4];"),
    Fault("parameters", "mov.u64 %rd2, a; ld.param.u32 %r1, [%rd2+8];"),
    Fault("a constant buffer", "st.global.u32 [%rd1], 1;", constant=True),
    Fault("a constant buffer, generic", "st.u32 [%rd1], 1;", constant=True),
    Fault("atom on a constant buffer", "atom.global.add.u32 %r1, [%rd1], 1;", constant=True),
    Fault("a constant variable", "mov.u64 %rd2, fixed; cvta.const.u64 %rd2, %rd2; st.u32 [%rd2], 1;", before=VARIABLE),
    Fault("past a constant variable", "ld.const.u32 %r1, [fixed+16];", before=VARIABLE),
    Fault("generic shared", "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2+64], 1;", before=SHARED),
    Fault("generic local", LOCAL + "mov.u64 %rd2, l; cvta.local.u64 %rd2, %rd2; ld.u32 %r1, [%rd2+16];"),
    Fault("generic before shared", "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; ld.u32 %r1, [%rd2+-4];",
          before=SHARED),
    Fault("generic parameter", "mov.u64 %rd2, a; cvta.param.u64 %rd2, %rd2; ld.u32 %r1, [%rd2+8];"),
    Fault("a written parameter", "mov.u64 %rd2, a; cvta.param.u64 %rd2, %rd2; st.u32 [%rd2], 1;"),
    Fault("generic mixture", "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; setp.lt.u32 %p1, %r0, 16; "
          "selp.u64 %rd3, %rd2, %rd1, %p1; add.u64 %rd3, %rd3, %rd0; ld.u32 %r1, [%rd3];", before=SHARED),
    Fault("asynchronous copy from outside", "mov.u32 %r1, s; cp.async.ca.shared.global [%r1], [%a+128], 16;",
          before=SHARED),
    Fault("asynchronous copy to outside", "mov.u32 %r1, s; cp.async.ca.shared.global [%r1+64], [%a], 16; "
          "cp.async.wait_all;", before=SHARED),
    Fault("asynchronous copy misaligned", "mov.u32 %r1, s; cp.async.ca.shared.global [%r1], [%a+4], 16;",
          before=SHARED),
    Fault("part of an asynchronous copy", "mov.u32 %r1, s; mov.u32 %r2, 9; "
          "cp.async.ca.shared.global [%r1], [%a+112], 16, %r2;", size=120, before=SHARED),
    Fault("row of a matrix", "mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 16, %r1; "
          "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];", before=SHARED),
    Fault("row of a matrix misaligned", "mov.u32 %r1, s; "
          "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1+8];", before=SHARED),
    Fault("row of a stored matrix", "mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 16, %r1; "
          "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0};", before=SHARED),
    Fault("discard past the end", "discard.global.L2 [%a+128], 128;", size=192),
    Fault("discard misaligned", "discard.global.L2 [%a+64], 128;", size=256),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_like_the_interpreter(fault: Fault) -> None:
    text = text_of(START + fault.body, before=fault.before)
    outcome = both(text, 1, fault.block, np.zeros(fault.size, np.uint8), constant=0 if fault.constant else -1,
                   shared=fault.shared)
    expected, error = outcome.expected_error, outcome.error
    assert isinstance(expected, MemoryFault), expected
    assert isinstance(error, engine.MemoryFault), error
    both_say = (str(expected), str(error))
    assert error.line == expected.line, both_say
    if fault.name == "part of an asynchronous copy":  # the engine looks at the first and at the last byte
        assert (error.width, error.address) == (1, expected.address + expected.width - 1), both_say
    else:
        assert error.width == expected.width, both_say
        assert error.address & OFFSET == expected.address & OFFSET, both_say
    message = str(error)
    assert message.startswith(f"kernel k, line {error.line}: ") and f"{error.address:#x}" in message, message
    assert _thread(message, fault.block) == expected.thread, both_say


def _thread(message: str, block: int | tuple[int, ...]) -> str:
    """Block and linear thread of a message, as the interpreter writes them."""
    found = re.search(r"\(block (\d+),0,0 thread (\d+),(\d+),0\)$", message)
    assert found is not None, message
    number, x, y = [int(word) for word in found.groups()]
    width = block if isinstance(block, int) else block[0]
    return f"block {number} thread {x + width * y}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_outside_is_touched(fault: Fault) -> None:
    whole = np.full(16384, GUARD, np.uint8)
    start = 4096 + -(whole.ctypes.data + 4096) % 256
    part = whole[start:start + fault.size]
    memory = engine.Memory()
    memory.adopt(part, constant=fault.constant)
    module = engine.LoadedModule(text_of(START + fault.body, before=fault.before), memory)
    with pytest.raises(engine.MemoryFault):
        engine.launch(module, "k", 1, fault.block, [part], shared=fault.shared)
    whole[start:start + fault.size] = GUARD
    assert (whole == GUARD).all()
    variables = {name: memory.read(*place) for name, place in module.globals.items()}
    assert all(data == np.array([1, 2, 3, 4], np.uint32).tobytes() for data in variables.values())


def test_later_launches_work() -> None:
    text = text_of(START + "st.global.u32 [%rd1], %r0;")
    module = engine.LoadedModule(text, engine.Memory())
    small, fine = np.zeros(31, np.uint32), np.zeros(32, np.uint32)
    where = f"{small.ctypes.data + 124:#x}.*block 0,0,0 thread 31,0,0"
    for _ in range(3):
        with pytest.raises(engine.MemoryFault, match=f"line 22: st.global.u32 writes 4 bytes at {where}"):
            engine.launch(module, "k", 1, 32, [small])
        fine[:] = 0
        engine.launch(module, "k", 1, 32, [fine])
        assert (fine == np.arange(32)).all()


def test_the_block_and_thread_are_named() -> None:
    text = text_of("""
        mov.u32 %r1, %ctaid.y; mov.u32 %r2, %tid.z; setp.eq.u32 %p1, %r1, 2; setp.eq.and.u32 %p2, %r2, 1, %p1;
        @%p2 st.global.u32 [%a+8], %r1;""")
    with pytest.raises(engine.MemoryFault, match=r"\(block [01],2,0 thread 0,0,1\)"):
        run(text, (2, 3), (5, 3, 2), np.zeros(2, np.uint32))


def test_freed_memory_faults() -> None:
    memory = engine.Memory()
    module = engine.LoadedModule(text_of("ld.global.u32 %r1, [%a];"), memory)
    address = memory.allocate(64)
    engine.launch(module, "k", 1, 32, [np.uint64(address)])
    memory.free(address)
    with pytest.raises(engine.MemoryFault):
        engine.launch(module, "k", 1, 32, [np.uint64(address)])


LEGAL = {
    "masked lanes": "setp.lt.u32 %p1, %r0, 16; @%p1 ld.global.u32 %r1, [%rd1]; @%p1 st.global.u32 [%rd1], %r0;",
    "masked lanes with wild addresses": "setp.lt.u32 %p1, %r0, 16; mul.lo.u32 %r1, %r0, 2654435761; "
        "cvt.u64.u32 %rd2, %r1; shl.b64 %rd2, %rd2, 30; selp.u64 %rd2, %rd1, %rd2, %p1; "
        "@%p1 ld.global.u32 %r1, [%rd2]; @%p1 st.global.u32 [%rd2], %r1;",
    "masked lanes in divergent code": "setp.ge.u32 %p1, %r0, 16; @%p1 bra done; add.u32 %r2, %r0, 5; "
        "st.global.u32 [%rd1], %r2; done: ret;",
    "masked atomics": "setp.lt.u32 %p1, %r0, 16; @%p1 red.global.add.u32 [%rd1], %r0; "
        "@%p1 atom.global.add.u32 %r1, [%rd1], 3;",
    "no lane at all": "setp.gt.u32 %p1, %r0, 100; mov.u64 %rd2, 0; @%p1 ld.global.u32 %r1, [%rd2]; "
        "@%p1 st.global.u32 [%rd2], 1; @%p1 red.global.add.u32 [%rd2], 1;",
    "a misaligned lane that is masked": "setp.lt.u32 %p1, %r0, 16; @!%p1 add.u64 %rd1, %rd1, 1; "
        "@%p1 st.global.u32 [%rd1], 9;",
    "masked asynchronous copies": "setp.lt.u32 %p1, %r0, 16; mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1; "
        "@%p1 cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.wait_all; @%p1 ld.shared.u32 %r2, [%r1]; "
        "@%p1 add.u32 %r2, %r2, 1; @%p1 st.global.u32 [%rd1], %r2;",
    "an asynchronous copy of no bytes": "mov.u32 %r1, s; mov.u32 %r2, 0; mov.u64 %rd2, 0; "
        "cp.async.ca.shared.global [%r1], [%rd2], 16, %r2; cp.async.wait_all;",
    "the prefetch of an address": "mov.u64 %rd2, 4096; prefetch.global.L2 [%rd2];",
}


@pytest.mark.parametrize("name", LEGAL)
def test_lanes_that_do_not_access_never_fault(name: str) -> None:
    same(text_of(START + LEGAL[name], before=SHARED), 1, 32, np.arange(16, dtype=np.uint32))
