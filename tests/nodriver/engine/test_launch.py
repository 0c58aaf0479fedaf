"""Launches from Python: arguments, extents, shared memory, module variables, pools of workers."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from softgpu import engine
from tests.nodriver.engine.tiny import run, same, text_of
from tests.small_kernels import REGISTERS
from tools import native

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
INDEX = "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;\n"
SCALE = text_of(INDEX + """
    setp.ge.s32 %p1, %r0, %count; @%p1 ret;
    mul.wide.u32 %rd0, %r0, 4; add.u64 %rd0, %x, %rd0;
    ld.global.f32 %f1, [%rd0]; mul.f32 %f1, %f1, %factor; st.global.f32 [%rd0], %f1;
""", "x:u64 factor:f32 count:s32").replace(".reg .b32 %factor", ".reg .f32 %factor")
WHERE = text_of("""
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mov.u32 %r6, %ntid.z; mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
    mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y; mov.u32 %r12, %nctaid.z; mov.u32 %r13, %laneid;
    mov.u32 %r14, %warpid; mov.u32 %r15, %nwarpid; mov.u32 %r16, %lanemask_lt; mov.u32 %r17, %lanemask_ge;
    mad.lo.u32 %r20, %r9, %r11, %r8; mad.lo.u32 %r20, %r20, %r10, %r7;
    mul.lo.u32 %r21, %r4, %r5; mul.lo.u32 %r21, %r21, %r6; mul.lo.u32 %r20, %r20, %r21;
    mad.lo.u32 %r22, %r3, %r5, %r2; mad.lo.u32 %r22, %r22, %r4, %r1; add.u32 %r20, %r20, %r22;
    mul.wide.u32 %rd1, %r20, 64; add.u64 %rd1, %a, %rd1;
    activemask.b32 %r18; bar.warp.sync %r18; vote.sync.ballot.b32 %r19, 1, %r18; add.u32 %r19, %r19, %r18;
    st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.u32 [%rd1+8], %r3; st.global.u32 [%rd1+12], %r7;
    st.global.u32 [%rd1+16], %r8; st.global.u32 [%rd1+20], %r9; st.global.u32 [%rd1+24], %r13;
    st.global.u32 [%rd1+28], %r14; st.global.u32 [%rd1+32], %r15; st.global.u32 [%rd1+36], %r16;
    st.global.u32 [%rd1+40], %r17; st.global.u32 [%rd1+44], %r19;
    st.global.v4.u32 [%rd1+48], {%r4, %r5, %r6, %r12};
""")


def test_arrays_are_worked_on_in_place() -> None:
    x = np.arange(1000, dtype=np.float32)
    run(SCALE, 8, 128, x, np.float32(2), 1000)
    assert (x == 2 * np.arange(1000)).all()


def test_arguments_of_all_kinds() -> None:
    text = text_of("st.global.u64 [%a], %b; st.global.u32 [%a+8], %c; st.global.u16 [%a+12], %d; st.global.u8 [%a+14], "
                   "%e; ld.param.u32 %r1, [f+8]; st.global.u32 [%a+16], %r1;",
                   "a:u64 b:u64 c:u32 d:u16 e:u8 f:u32[12]").replace(
                       ".reg .b32 %f;\nld.param.u32 %f, [f];\n", "")
    out = np.zeros(24, np.uint8)
    run(text, 1, 1, out, np.float64(1.5), -1, np.int16(-2), 200, bytes(range(12)))
    assert out.tobytes() == struct.pack("<dIhBxIxxxx", 1.5, 0xFFFFFFFF, -2, 200, 0x0B0A0908)


def test_the_parameter_block_may_be_given_as_bytes() -> None:
    x = np.ones(4, np.float32)
    memory = engine.Memory()
    module = engine.LoadedModule(SCALE, memory)
    engine.launch(module, "k", 1, 4, struct.pack("<Qfi", memory.adopt(x), 3.0, 4))
    assert (x == 3).all()
    with pytest.raises(engine.LaunchError, match="kernel k: 8 bytes of parameters; it takes 16"):
        engine.launch(module, "k", 1, 4, struct.pack("<Q", memory.adopt(x)))


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "k takes 3 parameters, not 0"),
    ((np.zeros(4, np.float32), np.float32(1)), "k takes 3 parameters, not 2"),
    ((np.zeros(4, np.float32), np.float64(1), 4), "k: 8 bytes for parameter factor of 4"),
    ((b"1234", np.float32(1), 4), "k: 4 bytes for parameter x of 8"),
    ((np.zeros((4, 4), np.float32)[:, 0], np.float32(1), 4), "must be contiguous"),
    ((np.frombuffer(bytes(16), np.float32), np.float32(1), 4), "and writable"),
])
def test_arguments_that_do_not_fit(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(engine.EngineError, match=message):
        run(SCALE, 1, 4, *arguments)


@pytest.mark.parametrize(("grid", "block", "message"), [
    (0, 1, "grid 0,1,1: extents must lie between 1 and"), (1, 0, "block 0,1,1: extents must lie between 1 and"),
    (-1, 1, "grid .-1,.: extents must be positive"), (1, (1, 1, 1, 1), "block .1, 1, 1, 1.: one to three extents"),
    ((), 1, "one to three extents"), (1, 1025, "block 1025,1,1: extents must lie between 1 and 1024,1024,64"),
    (1, (32, 33), "block 32,33,1: 1056 threads, more than 1024"), (1, (1, 1, 65), "block 1,1,65: extents"),
    ((1, 65536), 1, "grid 1,65536,1: extents"), (1 << 31, 1, "grid 2147483648,1,1: extents"),
    (1 << 32, 1, "extents must be positive"),
])
def test_extents_that_do_not_exist(grid: object, block: object, message: str) -> None:
    with pytest.raises(engine.LaunchError, match=message):
        run(SCALE, grid, block, np.zeros(4, np.float32), np.float32(1), 4)  # type: ignore[arg-type]


def test_a_kernel_that_is_not_there() -> None:
    with pytest.raises(engine.LaunchError, match="the module has no kernel missing"):
        run(SCALE, 1, 1, kernel="missing")


def test_required_and_largest_blocks() -> None:
    text = HEADER + ".visible .entry k() .reqntid 32, 2 { ret; }\n.visible .entry m() .maxntid 64 { ret; }\n"
    run(text, 1, (32, 2))
    run(text, 1, (4, 16), kernel="m")
    with pytest.raises(engine.LaunchError, match="kernel k: block 64,1,1: it requires 32,2,1"):
        run(text, 1, 64)
    with pytest.raises(engine.LaunchError, match="kernel m: block 65,1,1: it allows at most 64 threads"):
        run(text, 1, 65, kernel="m")


@pytest.mark.parametrize("block", [1, 31, 33, 1023, (7, 5, 3), (3, 1, 64), (16, 4), (2, 16, 2)], ids=str)
@pytest.mark.parametrize("any_block", [False, True], ids=["fixed", "any block"])
def test_indices(block: int | tuple[int, ...], any_block: bool) -> None:
    grid = (3, 2, 2)
    same(WHERE, grid, block, np.zeros((12 * int(np.prod(block)), 16), np.uint32), any_block=any_block)


@pytest.mark.parametrize("grid", [1, 1000, (1, 1000), (1, 1, 1000), (5, 7, 11)], ids=str)
def test_grids(grid: int | tuple[int, ...]) -> None:
    same(WHERE, grid, 3, np.zeros((3 * int(np.prod(grid)), 16), np.uint32))


MOST = 232448


def test_the_most_shared_memory() -> None:
    text = text_of("""
        mov.u32 %r1, d; add.u32 %r2, %r1, %size; ld.shared.u32 %r3, [%r2+-4]; add.u32 %r3, %r3, 7;
        st.shared.u32 [%r2+-4], %r3; ld.shared.u32 %r4, [%r2+-4]; mov.u32 %r5, %dynamic_smem_size;
        mov.u32 %r6, %total_smem_size;
        st.global.v4.u32 [%a], {%r4, %r5, %r6, %r1};
    """, "a:u64 size:u64", before=".extern .shared .align 16 .b8 d[];\n").replace("%r2, %r1, %size", "%r2, %r1, %r9")
    text = text.replace("mov.u32 %r1, d;", "mov.u32 %r1, d;\ncvt.u32.u64 %r9, %size;", 1)
    out = np.zeros(4, np.uint32)
    run(text, 3, 1, out, MOST, shared=MOST)
    assert out.tolist() == [7, MOST, MOST, 0]
    with pytest.raises(engine.LaunchError, match="232452 bytes of shared memory, more than 232448"):
        run(text, 1, 1, out, MOST, shared=MOST + 4)
    with pytest.raises(engine.LaunchError, match="-1 bytes of dynamic shared memory"):
        run(text, 1, 1, out, MOST, shared=-1)
    with pytest.raises(engine.MemoryFault, match="outside the 0 bytes of shared memory"):
        run(text, 1, 1, out, 0)


def test_static_and_dynamic_shared_memory() -> None:
    text = text_of("""
        mov.u32 %r1, s; mov.u32 %r2, d; mov.u32 %r3, t; st.shared.u32 [s], 1; st.shared.u8 [t], 2; st.shared.u32 [d], 3;
        ld.shared.u32 %r4, [s]; ld.shared.u8 %r5, [t]; ld.shared.u32 %r6, [d+8]; add.u32 %r4, %r4, %r5;
        st.global.v4.u32 [%a], {%r1, %r2, %r3, %r4}; st.global.u32 [%a+16], %r6;
    """, before=".shared .align 4 .b8 s[20];\n.shared .b8 t[3];\n.extern .shared .align 32 .b8 d[];\n")
    same(text, 2, 1, np.zeros(5, np.uint32), shared=64)


VARIABLES = HEADER + """
.visible .global .align 4 .u32 table[5] = {1, 2, 0xfffffff0, -1};
.visible .global .align 8 .u64 pointers[3] = {table, generic(table)+8, limit};
.visible .const .align 4 .f32 limit = 0f3FC00000;
.visible .const .align 8 .f64 wide[2] = {1.5, 0d4000000000000000};
.visible .global .align 2 .b16 half[3] = {0x3C00, 7};
.visible .global .align 8 .b8 bytes[12] = {0xFF(table), 0xFF00(table), 0xFF0000(table), 0xFF000000(table),
    0xFF00000000(table), 0xFF0000000000(table), 0xFF000000000000(table), 0xFF00000000000000(table), 9, 8};
.visible .global .align 8 .u64 codes[2] = {twice, triple};
.func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %r1; ld.param.b32 %r1, [x]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) triple(.param .b32 x)
{ .reg .b32 %r1; ld.param.b32 %r1, [x]; mul.lo.u32 %r1, %r1, 3; st.param.b32 [r], %r1; ret; }
.visible .entry k(.param .u64 a)
{
""" + REGISTERS + """
    ld.param.u64 %rd9, [a];
    mov.u32 %r9, %tid.x;
    and.b32 %r8, %r9, 1;
    ld.global.u64 %rd1, [pointers+8];
    ld.u32 %r1, [%rd1];
    ld.global.u64 %rd2, [pointers+16];
    cvta.const.u64 %rd2, %rd2;
    ld.u32 %r2, [%rd2];
    ld.const.f64 %fd1, [wide+8];
    mov.b64 %rd5, %fd1;
    shr.u64 %rd5, %rd5, 32;
    cvt.u32.u64 %r3, %rd5;
    mul.wide.u32 %rd3, %r8, 8;
    mov.u64 %rd4, codes;
    add.u64 %rd3, %rd3, %rd4;
    ld.global.u64 %rd3, [%rd3];
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    { .param .b32 given; .param .b32 taken;
      st.param.b32 [given], %r9; call (taken), %rd3, (given), proto; ld.param.b32 %r4, [taken]; }
    mul.wide.u32 %rd6, %r9, 16;
    add.u64 %rd6, %rd6, %rd9;
    st.global.v4.u32 [%rd6], {%r1, %r2, %r3, %r4};
    atom.global.add.u32 %r5, [table], 1;
    ret;
}
"""


def test_module_variables_and_their_initial_values() -> None:
    out = np.zeros((40, 4), np.uint32)
    same(VARIABLES, 1, 40, out)
    assert (out[:, 0] == 0xFFFFFFF0).all() and (out[:, 1] == 0x3FC00000).all() and (out[:, 2] == 0x40000000).all()
    assert (out[:, 3] == np.arange(40) * np.where(np.arange(40) % 2, 3, 2)).all()


def test_modules_have_variables_of_their_own() -> None:
    memory = engine.Memory()
    out = np.zeros((32, 4), np.uint32)
    first, second = [engine.LoadedModule(VARIABLES, memory) for _ in range(2)]
    engine.launch(first, "k", 1, 32, [out])
    tables = [np.frombuffer(memory.read(*module.globals["table"]), np.uint32) for module in (first, second)]
    assert [table[0] for table in tables] == [33, 1]
    again = engine.LoadedModule(VARIABLES, engine.Memory())
    engine.launch(again, "k", 1, 32, [out])
    assert np.frombuffer(again.memory.read(*again.globals["table"]), np.uint32)[0] == 33


def test_one_memory_serves_two_modules() -> None:
    memory = engine.Memory()
    x = np.ones(8, np.float32)
    for text, number in ((SCALE, np.float32(3)), (SCALE.replace("mul.f32 %f1", "add.f32 %f1"), np.float32(1))):
        engine.launch(engine.LoadedModule(text, memory), "k", 1, 8, [x, number, 8])
    assert (x == 4).all()


PRINT = """.global .align 1 .b8 format[17] = {37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 120, 32, 37, 115, 37, 37, 0};
.global .align 1 .b8 word[4] = {97, 98, 10, 0};
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
"""


def test_printed_text() -> None:
    text = text_of("""
        .local .align 8 .b8 values[32];
        mov.u32 %r0, %tid.x; sub.u32 %r1, %r0, 3; cvt.rn.f64.u32 %fd1, %r0; mul.f64 %fd1, %fd1, 0.375;
        mov.u64 %rd3, word; cvta.global.u64 %rd3, %rd3;
        st.local.u32 [values], %r1; st.local.f64 [values+8], %fd1; st.local.u32 [values+16], %r0;
        st.local.u64 [values+24], %rd3; setp.eq.u32 %p1, %r0, 9; @%p1 bra out;
        { .param .b64 f; .param .b64 v; .param .b32 r;
          mov.u64 %rd1, values; cvta.local.u64 %rd1, %rd1; st.param.b64 [v], %rd1;
          mov.u64 %rd1, format; cvta.global.u64 %rd1, %rd1; st.param.b64 [f], %rd1;
          call.uni (r), vprintf, (f, v); ld.param.b32 %r2, [r]; }
        mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %a, %rd2; st.global.u32 [%rd2], %r2; out: ret;
    """, before=PRINT)
    outcome = same(text, 1, 40, np.zeros(40, np.uint32))
    assert outcome.result is not None
    assert outcome.result.output.startswith(b"-3  0.00 0 ab\n%-2  0.38 1 ab\n%")


WORK = text_of(INDEX + """
    mul.wide.u32 %rd0, %r0, 4; add.u64 %rd1, %a, %rd0; ld.global.f32 %f1, [%rd1]; mov.u32 %r3, 0;
    again: fma.rn.f32 %f1, %f1, 0f3F7D70A4, 0f3DCCCCCD; sin.approx.f32 %f2, %f1; add.f32 %f1, %f1, %f2;
    shfl.sync.down.b32 %r4, %r5, 1, 31, -1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 50; @%p1 bra again;
    bar.sync 0; st.global.f32 [%rd1], %f1;
""")


def test_results_do_not_depend_on_workers() -> None:
    module = engine.LoadedModule(WORK, engine.Memory())
    given = np.random.default_rng(1).standard_normal(64 * 96).astype(np.float32)
    results = []
    for workers in (1, 2, 5):
        pool = engine.Pool(workers)
        for _ in range(3):
            x = given.copy()
            engine.launch(module, "k", 64, 96, [x], pool=pool)
            results.append(x.tobytes())
            module.memory.free(x.ctypes.data)
    assert len(set(results)) == 1


def test_threads_launch_at_once() -> None:
    pool = engine.Pool(2)
    memory = engine.Memory()
    module = engine.LoadedModule(SCALE, memory)
    arrays = [np.full(512, n + 1, np.float32) for n in range(6)]
    for array in arrays:
        memory.adopt(array)
    failures = []

    def work(array: np.ndarray) -> None:
        try:
            for _ in range(20):
                engine.launch(module, "k", 4, 128, [array, np.float32(-1), 512], pool=pool)
        except engine.EngineError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert all((array == n + 1).all() for n, array in enumerate(arrays))


def test_a_cooperative_launch_has_a_workspace() -> None:
    text = text_of("mov.b32 %r1, %envreg1; mov.b32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1}; st.global.u64 [%a], %rd1; "
                   "ld.u32 %r3, [%rd1]; cvt.u64.u32 %rd2, %r3; st.global.u64 [%a+8], %rd2;")
    out = np.ones(2, np.uint64)
    result = run(text, 4, 32, out, cooperative=True)
    assert result.workspace and out.tolist() == [result.workspace, 0]
    assert run(text.replace("ld.u32 %r3, [%rd1];", ""), 1, 1, out).workspace == 0


def test_launches_count_time() -> None:
    result = run(SCALE, 1, 4, np.ones(4, np.float32), np.float32(1), 4)
    assert 0 < result.nanoseconds < 10**10
    assert (result.work, result.instructions, len(result.read), result.output) == ({}, {}, 0, b"")


REINTERPRETED = {
    "a NaN made wider": "cvt.rn.f64.u32 %fd1, %r0; sub.f64 %fd1, %fd1, 0d402E000000000000; sqrt.rn.f64 %fd1, %fd1; "
        "cvt.rn.f32.f64 %f1, %fd1; cvt.f64.f32 %fd2, %f1; add.f32 %f2, %f1, %f1; cvt.f64.f32 %fd3, %f2; "
        "mov.b64 {%r7, %r8}, %fd2; mov.b64 {%r5, %r6}, %fd3; add.u32 %r9, %r7, %r8; mad.lo.u32 %r9, %r9, 3, %r6; "
        "add.u32 %r9, %r9, %r5;",
    "indices as floats": "mov.b32 %f1, %r0; add.f32 %f2, %f1, 0f3F800000; mov.b32 %r9, %f2;",
    "an index register in a conversion": "cvt.f64.f32 %rd2, %r0; mov.b64 {%r8, %r9}, %rd2;",
    "a multiple of an index as a float": "mul.lo.u32 %r3, %r0, 8388608; abs.f32 %f1, %r3; max.f32 %f1, %f1, %r3; "
        "mov.b32 %r9, %f1;",
    "a uniform register as a float": "mov.u32 %r3, %ntid.x; mov.b32 %f1, %r3; mul.f32 %f1, %f1, 0f7E000000; "
        "mov.b32 %r9, %f1;",
    "an address as a double": "mul.wide.u32 %rd2, %r0, 16; mov.b64 %fd1, %rd2; neg.f64 %fd1, %fd1; mov.b64 %rd2, %fd1; "
        "shr.u64 %rd2, %rd2, 4; cvt.u32.u64 %r9, %rd2;",
    "an index as two halves": "mov.b32 {%rs1, %rs2}, %r0; add.f16 %rs1, %rs1, %rs1; mov.b32 %r9, {%rs2, %rs1};",
    "an index selected with a float": "setp.gt.u32 %p1, %r0, 20; mov.f32 %f1, 0f40490FDB; selp.f32 %f1, %f1, %r0, %p1; "
        "mov.b32 %r9, %f1;",
}


@pytest.mark.parametrize("name", REINTERPRETED)
@pytest.mark.parametrize("any_block", [False, True], ids=["fixed", "any block"])
def test_integers_of_known_shape_read_as_floats(name: str, any_block: bool) -> None:
    store = " mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %a, %rd1; st.global.u32 [%rd1], %r9;"
    body = INDEX + REINTERPRETED[name] + store
    same(text_of(body), 2, 50, np.zeros(100, np.uint32), any_block=any_block)


MODES = """
#include <xmmintrin.h>
unsigned modes(void) { return _mm_getcsr(); }
void set_modes(unsigned value) { _mm_setcsr(value); }
"""
FLUSHING, DOWNWARD = 0x8040, 0x2000
"""Bits of MXCSR: subnormal operands and results are zero; rounding down."""


def test_the_host_programs_floating_point_modes_do_not_matter(tmp_path: Path) -> None:
    """A library that was built with -ffast-math sets them for the thread that loads it, and so for all it starts."""
    source, made = tmp_path / "modes.c", tmp_path / "modes.so"
    source.write_text(MODES)
    subprocess.run([native.compiler(), "-shared", "-fPIC", source, "-o", made], check=True, timeout=60)
    library = ctypes.CDLL(str(made))
    start = np.full(1 << 16, 1e-38, np.float32)
    start[::2] = 1 + 2**-23
    expected, found = start.copy(), start.copy()
    factor = np.float32(0.7)  # 1e-38 * 0.7 is subnormal, (1 + 2**-23) * 0.7 must be rounded
    run(SCALE, 512, 128, expected, factor, len(expected))
    assert (expected == start * factor).all() and expected[1] != 0
    before = library.modes()
    library.set_modes(before | FLUSHING | DOWNWARD)
    try:
        run(SCALE, 512, 128, found, factor, len(found), pool=engine.Pool(2))
        after = library.modes()
    finally:
        library.set_modes(before)
    assert (found.view(np.uint32) == expected.view(np.uint32)).all()
    assert after & ~0x3F == before & ~0x3F | FLUSHING | DOWNWARD
