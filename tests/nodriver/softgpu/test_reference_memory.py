"""Loads, stores, state spaces, addresses, faults and the access log."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from softgpu.reference import InterpreterError, Memory, MemoryFault, UnsupportedInstruction
from tests.reference_kernels import HEADER, REGISTERS, Run, checked, one

THREAD = "mov.u32 %r0, %tid.x; cvt.u64.u32 %rd0, %r0;"


def kernel(body: str, parameters: str = ".param .u64 p, .param .u64 q", declarations: str = "") -> Run:
    run = Run(f"{HEADER}{declarations}\n.visible .entry k({parameters})\n{{{REGISTERS}{body}\nret;\n}}")
    checked(run.loaded, "k")
    return run


def test_buffers_are_apart_and_deterministic() -> None:
    first, second = Memory(), Memory()
    addresses = [first.allocate(n) for n in (1, 300, 0, 5)]
    assert addresses == [second.allocate(n) for n in (1, 300, 0, 5)]
    assert all(b - a > 300 for a, b in itertools.pairwise(addresses))
    assert first.allocate(10, 4096) % 4096 == 0
    first.write(addresses[1], np.arange(75, dtype=np.float32))
    assert first.read(addresses[1] + 4, 4) == np.float32(1).tobytes()
    first.free(addresses[1])
    with pytest.raises(InterpreterError):
        first.read(addresses[1], 4)
    with pytest.raises(InterpreterError):
        first.free(addresses[1])
    with pytest.raises(InterpreterError):
        first.view(addresses[0], 2)
    with pytest.raises(InterpreterError):
        first.allocate(4, 3)


@pytest.mark.parametrize("qualifiers", [
    "global", "volatile.global", "relaxed.gpu.global", "acquire.sys.global", "weak.global", "global.ca", "global.cg",
    "global.cs", "global.lu", "global.cv", "global.nc", "global.ca.nc", "global.L1::evict_last",
    "global.nc.L1::no_allocate", "global.L1::no_allocate.L2::128B", "global.L2::256B", "", "volatile",
    "relaxed.cta", "acquire.cluster",
    "mmio.relaxed.sys.global", "global.nc.L1::evict_first.L2::64B",
])
def test_every_way_to_load(qualifiers: str) -> None:
    dots = f".{qualifiers}" if qualifiers else ""
    run = kernel(f"ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];"
                 f"ld{dots}.u32 %r1, [%rd1+4]; st.global.u32 [%rd2], %r1;")
    out = run.buffer(4)
    run.launch("k", 1, 1, run.buffer(np.array([5, 6], np.uint32)), out)
    assert run.read(out, 1).tolist() == [6]


@pytest.mark.parametrize("qualifiers", [
    "global", "volatile.global", "relaxed.gpu.global", "release.sys.global", "global.wb", "global.cg", "global.cs",
    "global.wt", "global.L1::evict_first", "", "weak", "release.cta", "mmio.relaxed.sys",
])
def test_every_way_to_store(qualifiers: str) -> None:
    dots = f".{qualifiers}" if qualifiers else ""
    run = kernel(f"ld.param.u64 %rd1, [p]; st{dots}.u32 [%rd1+-4], 77;")
    out = run.buffer(8)
    run.launch("k", 1, 1, out + 4, 0)
    assert run.read(out, 2).tolist() == [77, 0]


@pytest.mark.parametrize("text", [
    "ld.global.foo.u32 %r1, [%rd1];", "ld.relaxed.global.u32 %r1, [%rd1];", "st.global.nc.u32 [%rd1], %r1;",
    "st.const.u32 [%rd1], %r1;", "ld.global.v3.u32 {%r1, %r2, %r3}, [%rd1];", "ld.global.v2.u32 {%r1}, [%rd1];",
    "st.async.shared::cluster.u32 [%rd1], %r1, [%rd2];", "ld.shared.u32 %r1, [p];", "ld.global.u32 %h1, [%rd1];",
    "ld.global.pred %p1, [%rd1];", "cvta.foo.u64 %rd1, %rd1;", "ld.global.u32 %r1, [%h1];",
])
def test_forms_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        kernel(text).launch("k", 1, 1, 0, 0)


def test_narrow_loads_extend_and_narrow_stores_truncate() -> None:
    run = kernel("""
        ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
        ld.global.s8 %r1, [%rd1]; ld.global.u8 %r2, [%rd1]; ld.global.s16 %rd3, [%rd1]; ld.global.b16 %r4, [%rd1];
        ld.global.s8 %h1, [%rd1]; cvt.u32.u16 %r5, %h1;
        st.global.v4.u32 [%rd2], {%r1, %r2, %r4, %r5}; st.global.u64 [%rd2+16], %rd3;
        st.global.u8 [%rd2+24], %r1; st.global.u16 [%rd2+26], %rd3;
    """)
    out = run.buffer(28)
    run.launch("k", 1, 1, run.buffer(np.array([0x80, 0xFF], np.uint8)), out)
    assert run.read(out, 4).tolist() == [2**32 - 128, 0x80, 0xFF80, 0xFF80]
    assert run.read(out + 16, 1, np.int64).tolist() == [-128]
    assert run.read(out + 24, 4, np.uint8).tolist() == [0x80, 0, 0x80, 0xFF]


def test_vectors_move_whole_and_are_one_access() -> None:
    run = kernel(f"""
        {THREAD} ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mad.lo.s64 %rd1, %rd0, 32, %rd1;
        mad.lo.s64 %rd2, %rd0, 32, %rd2;
        ld.global.v2.f64 {{%fd1, %fd2}}, [%rd1]; ld.global.v4.b16 {{%h1, _, %h3, %h4}}, [%rd1+16];
        ld.global.v2.u32 {{%r1, %r2}}, [%rd1+24];
        st.global.v2.f64 [%rd2], {{%fd2, %fd1}}; st.global.v4.b16 [%rd2+16], {{%h4, %h3, %h1, 7}};
        st.global.v2.b32 [%rd2+24], {{%r2, %r1}};
    """)
    data = np.arange(64, dtype=np.uint32) * 0x01010101
    source, out = run.buffer(data), run.buffer(data.nbytes)
    result = run.launch("k", 1, 8, source, out)
    got, want = run.read(out, 64).reshape(8, 8), data.reshape(8, 8)
    assert (got[:, :4] == want[:, [2, 3, 0, 1]]).all()
    assert (got[:, 6:] == want[:, [7, 6]]).all()
    assert got.view(np.uint16).reshape(8, 16)[:, 8:12].tolist() == [
        [row[11], row[10], row[8], 7] for row in want.view(np.uint16).reshape(8, 16).tolist()]
    entries = result.log.entries
    assert sorted({(int(e["width"]), bytes(e["kind"])) for e in entries}) == [
        (8, b"R"), (8, b"W"), (16, b"R"), (16, b"W")]
    assert len(entries) == 6 * 8


def test_eight_element_and_128_bit_accesses() -> None:
    run = kernel("""
        .reg .b128 %q; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
        ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];
        st.global.v8.b32 [%rd2], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1};
        ld.global.b128 %q, [%rd1+16]; st.global.b128 [%rd2+32], %q;
    """)
    out = run.buffer(48)
    run.launch("k", 1, 1, run.buffer(np.arange(1, 9, dtype=np.uint32)), out)
    assert run.read(out, 12).tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 5, 6, 7, 8]


def test_load_into_its_own_address_register() -> None:
    run = kernel("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.global.v2.u64 {%rd1, %rd3}, [%rd1];"
                 "st.global.v2.u64 [%rd2], {%rd1, %rd3};")
    out = run.buffer(16)
    run.launch("k", 1, 1, run.buffer(np.array([11, 12], np.uint64)), out)
    assert run.read(out, 2, np.uint64).tolist() == [11, 12]


def test_log_says_what_was_really_accessed() -> None:
    run = kernel(f"""
        {THREAD} mov.u32 %r1, %ctaid.x; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
        setp.lt.u32 %p0, %r0, 3; mad.lo.s64 %rd1, %rd0, 8, %rd1;
        @%p0 ld.global.u32 %r2, [%rd1];
        prefetch.global.L2 [%rd1];
        @!%p0 red.global.add.u32 [%rd2], 1;
    """)
    source, counter = run.buffer(64), run.buffer(4)
    entries = run.launch("k", (1, 2), 5, source, counter).log.entries
    line = {k: {int(e["line"]) for e in entries if e["kind"] == k} for k in (b"R", b"A")}
    assert all(len(lines) == 1 for lines in line.values())
    reads = entries[entries["kind"] == b"R"]
    assert sorted((int(e["block"]), int(e["thread"]), int(e["address"]) - source) for e in reads) == [
        (b, t, 8 * t) for b in (0, 1) for t in range(3)]
    assert set(reads["width"]) == {4}
    atomics = entries[entries["kind"] == b"A"]
    assert sorted((int(e["block"]), int(e["thread"])) for e in atomics) == [(b, t) for b in (0, 1) for t in (3, 4)]
    assert run.read(counter, 1).tolist() == [4]
    assert len(run.launch("k", 2, 5, source, counter, log=False).log) == 0


def test_shared_memory_is_per_block_and_generic_addresses_reach_it() -> None:
    run = kernel(f"""
        .shared .align 8 .b8 s[40]; .shared .align 4 .u32 t;
        {THREAD} mov.u32 %r1, %ctaid.x; ld.param.u64 %rd1, [p];
        mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2; mov.u32 %r2, s;
        mad.lo.u32 %r3, %r0, 4, %r2; st.shared.u32 [%r3], %r1; st.shared.u32 [t], 1000; bar.sync 0;
        mad.lo.s64 %rd4, %rd0, 4, %rd3; ld.u32 %r4, [%rd4]; ld.shared.u32 %r5, [t]; ld.shared.u32 %r8, [s+4];
        mad.lo.u32 %r6, %r1, 8, %r0; mul.wide.u32 %rd5, %r6, 4; add.s64 %rd5, %rd5, %rd1;
        add.u32 %r7, %r4, %r5; add.u32 %r7, %r7, %r8; st.u32 [%rd5], %r7;
    """)
    out = run.buffer(4 * 8 * 3)
    result = run.launch("k", 3, 8, out, 0)
    assert run.read(out, 24).tolist() == [1000 + 2 * b for b in range(3) for _ in range(8)]
    assert len(result.log) == 24


def test_dynamic_shared_memory_follows_the_static_one() -> None:
    run = kernel(f"""
        .shared .align 4 .b8 fixed[20];
        {THREAD} ld.param.u64 %rd1, [p]; mov.u64 %rd2, dyn; mov.u64 %rd3, other;
        mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %total_smem_size;
        st.shared.u32 [fixed+16], 9; st.shared.u32 [dyn+4], 5; ld.shared.u32 %r3, [other+4];
        st.global.v2.u64 [%rd1], {{%rd2, %rd3}}; st.global.v4.u32 [%rd1+16], {{%r1, %r2, %r3, 0}};
    """, declarations=".extern .shared .align 16 .b8 dyn[]; .extern .shared .align 4 .b8 other[];")
    out = run.buffer(32)
    run.launch("k", 1, 1, out, 0, shared=64)
    assert run.read(out, 2, np.uint64).tolist() == [32, 32]
    assert run.read(out + 16, 3).tolist() == [64, 96, 5]
    with pytest.raises(MemoryFault, match="shared"):
        run.launch("k", 1, 1, out, 0, shared=4)


def test_local_memory_is_per_thread() -> None:
    run = kernel(f"""
        .local .align 8 .b8 depot[32];
        {THREAD} ld.param.u64 %rd1, [p]; mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2;
        and.b32 %r1, %r0, 3; mul.wide.u32 %rd4, %r1, 8; add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd3, %rd4;
        st.local.u32 [%rd5], %r0; st.local.u32 [%rd5+4], %r0; ld.u64 %rd7, [%rd6];
        st.u32 [%rd6], 1; ld.local.u32 %r2, [%rd5];
        mad.lo.s64 %rd8, %rd0, 16, %rd1; st.global.u64 [%rd8], %rd7; st.global.u32 [%rd8+8], %r2;
    """)
    out = run.buffer(16 * 40)
    result = run.launch("k", 1, 40, out, 0)
    got = run.read(out, 160).reshape(40, 4)
    assert (got[:, 0] == np.arange(40)).all() and (got[:, 1] == np.arange(40)).all() and (got[:, 2] == 1).all()
    assert len(result.log) == 80


def test_parameters_by_value_with_computed_index() -> None:
    run = kernel(f"""
        {THREAD} ld.param.u64 %rd1, [p]; mov.b64 %rd2, block; and.b32 %r1, %r0, 3; mul.wide.u32 %rd3, %r1, 8;
        add.s64 %rd3, %rd3, %rd2; ld.param.u32 %r2, [%rd3+4];
        cvta.param.u64 %rd4, %rd3; ld.u32 %r3, [%rd4]; ld.param.u32 %r4, [block+24];
        mad.lo.s64 %rd5, %rd0, 16, %rd1; st.global.v4.u32 [%rd5], {{%r2, %r3, %r4, 0}};
    """, ".param .u64 p, .param .align 8 .b8 block[32]")
    out = run.buffer(16 * 5)
    words = [0x1_0000_0064, 0x2_0000_00C8, 0x3_0000_012C, 0x4_0000_0190]
    run.launch("k", 1, 5, out, *words)
    got = run.read(out, 20).reshape(5, 4)
    assert got[:, 0].tolist() == [1, 2, 3, 4, 1]
    assert got[:, 1].tolist() == [100, 200, 300, 400, 100]
    assert got[:, 2].tolist() == [400] * 5


GLOBALS = """
.global .align 4 .u32 counter = 41;
.global .align 8 .u64 pointers[3] = {counter, generic(table)+8, 7};
.const .align 4 .f32 table[4] = {0f3f800000, 2.5, 0f40400000, -1.0};
.global .align 1 .b8 text[] = {104, 105, 0};
.global .align 8 .b8 packed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xFF(counter), 0xFF00(counter), 0xFF0000(counter),
 0xFF000000(counter), 0xFF00000000(counter), 0xFF0000000000(counter), 0xFF000000000000(counter),
 0xFF00000000000000(counter)};
"""


def test_module_variables_and_initialisers() -> None:
    run = kernel(f"""
        {THREAD} ld.param.u64 %rd1, [p]; mad.lo.s64 %rd1, %rd0, 16, %rd1;
        ld.global.u64 %rd2, [pointers]; ld.global.u32 %r1, [%rd2];
        mov.u64 %rd3, table; and.b32 %r2, %r0, 3; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd4, %rd3;
        ld.const.f32 %f1, [%rd4]; cvta.const.u64 %rd5, %rd4; ld.f32 %f2, [%rd5]; ld.global.u64 %rd6, [pointers+8];
        ld.f32 %f3, [%rd6]; st.global.u32 [%rd1], %r1; st.global.f32 [%rd1+4], %f1; st.global.f32 [%rd1+8], %f2;
        st.global.f32 [%rd1+12], %f3; st.global.u32 [counter], 42;
    """, declarations=GLOBALS)
    out = run.buffer(16 * 4)
    result = run.launch("k", 1, 4, out, 0)
    got = run.read(out, 16).reshape(4, 4)
    assert got[:, 0].tolist() == [41] * 4
    for column in (1, 2):
        assert got[:, column].copy().view(np.float32).tolist() == [1, 2.5, 3, -1]
    assert got[:, 3].copy().view(np.float32).tolist() == [3] * 4
    address, size = run.loaded.globals["counter"]
    assert (size, run.read(address, 1).tolist()) == (4, [42])
    assert run.memory.read(run.loaded.globals["text"][0], 3) == b"hi\0"
    packed = run.read(run.loaded.globals["packed"][0], 2, np.uint64)
    assert packed.tolist() == [0x0807060504030201, address]
    table, size = run.loaded.globals["table"]
    inside = (result.log["address"] >= table) & (result.log["address"] < table + size)
    assert not inside.any(), "constant memory does not belong in the log"


def test_isspacep() -> None:
    body = """
        .shared .u32 s; .local .u32 l; mov.u64 %rd0, s; cvta.shared.u64 %rd0, %rd0; mov.u64 %rd1, l;
        cvta.local.u64 %rd1, %rd1; ld.param.u64 %rd2, [p]; mov.u64 %rd3, c; cvta.const.u64 %rd3, %rd3; mov.u32 %r0, 0;
    """
    for space in ("shared", "local", "global", "const"):
        for register in range(4):
            body += f"isspacep.{space} %p0, %rd{register}; selp.b32 %r1, 1, 0, %p0; mad.lo.u32 %r0, %r0, 2, %r1;"
    run = kernel(body + "st.global.u32 [%rd2], %r0;", declarations=".const .u32 c = 1;")
    out = run.buffer(4)
    run.launch("k", 1, 1, out, 0)
    assert f"{run.read(out, 1)[0]:016b}" == "1000" "0100" "0010" "0001"


@pytest.mark.parametrize(("access", "space", "reason"), [
    ("ld.global.u32 %r1, [%rd1+8];", "global", "outside"),
    ("st.global.u32 [%rd1+-4], 0;", "global", "outside"),
    ("ld.global.u32 %r1, [%rd1+2];", "global", "aligned"),
    ("ld.global.v2.u32 {%r1, %r2}, [%rd1+4];", "global", "aligned"),
    ("ld.global.u64 %rd3, [%rd1+8];", "global", "outside"),
    ("ld.u32 %r1, [0];", "global", "outside"),
    ("ld.shared.u32 %r1, [s+8];", "shared", "outside"),
    ("st.shared.u32 [s+2], 1;", "shared", "aligned"),
    ("ld.local.u32 %r1, [l+4];", "local", "outside"),
    ("st.global.u32 [c], 1;", "", ""),
    ("mov.u64 %rd3, c; st.u32 [%rd3], 1;", "global", "constant"),
    ("mov.u64 %rd3, p; cvta.param.u64 %rd3, %rd3; st.u32 [%rd3], 1;", "param", "written"),
    ("mov.u64 %rd3, 0x7fffffffffffffff; st.u8 [%rd3], 1;", "global", "outside"),
])
def test_faults_name_line_thread_and_address(access: str, space: str, reason: str) -> None:
    run = kernel(f".shared .align 4 .b8 s[8]; .local .align 4 .b8 l[4];\nld.param.u64 %rd1, [p];\n\n{access}",
                 declarations=".const .u32 c = 1;\n")
    error: type[InterpreterError] = MemoryFault if space else UnsupportedInstruction
    with pytest.raises(error) as caught:
        run.launch("k", 1, 1, run.buffer(8), 0)
    if isinstance(caught.value, MemoryFault):
        line = [i.line for i in run.loaded.module.entries[0].instructions or ()][-2]
        assert (caught.value.space, caught.value.line) == (space, line)
        assert reason in str(caught.value) and "block 0 thread 0" in str(caught.value)


def test_fault_names_the_thread_that_did_it() -> None:
    run = kernel(f"{THREAD} ld.param.u64 %rd1, [p]; mad.lo.s64 %rd1, %rd0, 4, %rd1; ld.global.u32 %r1, [%rd1];")
    buffer = run.buffer(4 * 37)
    with pytest.raises(MemoryFault, match="block 0 thread 37") as caught:
        run.launch("k", 2, 40, buffer, 0)
    assert (caught.value.address, caught.value.width) == (buffer + 4 * 37, 4)


def test_accesses_that_spread_over_buffers() -> None:
    """One load of a warp that reads two global buffers and shared memory at once, through generic addresses."""
    run = kernel(f"""
        .shared .align 4 .b8 s[256]; {THREAD} ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
        mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; mad.lo.s64 %rd5, %rd0, 4, %rd3; add.u32 %r5, %r0, 500;
        st.shared.u32 [%rd5], %r5;
        and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1; mov.u64 %rd6, %rd1;
        selp.b64 %rd6, %rd2, %rd6, %p0; selp.b64 %rd6, %rd4, %rd6, %p1; mad.lo.s64 %rd6, %rd0, 4, %rd6;
        ld.u32 %r2, [%rd6]; add.u32 %r2, %r2, 1; st.u32 [%rd6], %r2; ld.u32 %r3, [%rd6];
        mad.lo.s64 %rd7, %rd0, 4, %rd1; st.global.u32 [%rd7], %r3;
    """)
    first = run.buffer(np.arange(100, 132, dtype=np.uint32))
    second = run.buffer(np.arange(200, 232, dtype=np.uint32))
    run.launch("k", 1, 32, first, second)
    assert run.read(first, 32).tolist() == [{0: 201, 1: 501}.get(i % 4, 101) + i for i in range(32)]


def test_the_last_thread_wins_where_several_store_to_one_place() -> None:
    run = kernel(f"{THREAD} ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r0; st.global.u32 [%rd1+4], 5;")
    out = run.buffer(8)
    run.launch("k", 1, 32, out, 0)
    assert run.read(out, 2).tolist() == [31, 5]


def test_hints_change_nothing_and_discard_is_a_write() -> None:
    run = kernel("""
        ld.param.u64 %rd1, [p]; createpolicy.fractional.L2::evict_last.b64 %rd2, 1.0;
        ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2; add.u32 %r1, %r1, 1;
        st.global.L2::cache_hint.u32 [%rd1], %r1, %rd2; prefetchu.L1 [%rd1];
        applypriority.global.L2::evict_normal [%rd1], 128;
        discard.global.L2 [%rd1+128], 128;
    """)
    out = run.buffer(np.full(64, 9, np.uint32))
    entries = run.launch("k", 1, 1, out, 0).log.entries
    assert run.read(out, 2).tolist() == [10, 9]
    assert [(bytes(e["kind"]), int(e["width"]), int(e["address"]) - out) for e in entries] == [
        (b"R", 4, 0), (b"W", 4, 0), (b"W", 128, 128)]


def test_special_registers() -> None:
    body = """
        mov.u32 %r1, %laneid; mov.u32 %r2, %warpid; mov.u32 %r3, %lanemask_lt; mov.u32 %r4, %lanemask_ge;
        mad.lo.u32 %r5, %r2, 32, %r1; add.u32 %r5, %r5, %r3; xor.b32 %x, %r5, %r4;
    """
    got = one(body, [("u32", range(64))], "u32", block=64)
    want = [(i + ((1 << i % 32) - 1)) & 0xFFFFFFFF ^ (0xFFFFFFFF << i % 32 & 0xFFFFFFFF) for i in range(64)]
    assert got.tolist() == want
    body = "mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %cluster_nctarank; mad.lo.u32 %x, %r1, %r2, %r3;"
    assert set(one(body, [("u32", range(96))], "u32", block=32).tolist()) == {97}


def test_three_dimensional_indices() -> None:
    run = kernel("""
        ld.param.u64 %rd1, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
        mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;
        mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mov.u32 %r8, %ntid.z; mov.u32 %r9, %nctaid.x;
        mov.u32 %r10, %nctaid.y;
        mad.lo.u32 %r11, %r5, %r10, %r4; mad.lo.u32 %r11, %r11, %r9, %r3; mad.lo.u32 %r11, %r11, %r8, %r2;
        mad.lo.u32 %r11, %r11, %r7, %r1; mad.lo.u32 %r11, %r11, %r6, %r0;
        mul.wide.u32 %rd2, %r11, 4; add.s64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r11;
    """)
    count = (2 * 3 * 4) * (3 * 2 * 5)
    out = run.buffer(4 * count)
    log = run.launch("k", (3, 2, 5), (2, 3, 4), out, 0).log
    assert run.read(out, count).tolist() == list(range(count))
    order = np.argsort(log["address"])
    assert (log["block"][order] * 24 + log["thread"][order] == np.arange(count)).all()


def test_clocks_advance() -> None:
    body = "mov.u64 %rd1, %clock64; mov.u64 %rd2, %globaltimer; mov.u64 %rd3, %clock64; sub.s64 %rd3, %rd3, %rd1;" \
           "setp.gt.s64 %x, %rd3, 0;"
    assert one(body, [("u32", [0])], "pred").tolist() == [1]
    wait = "mov.u64 %rd1, %globaltimer; $L: nanosleep.u32 20; mov.u64 %rd2, %globaltimer; sub.s64 %rd2, %rd2, %rd1;" \
           "setp.lt.s64 %p0, %rd2, 5000; @%p0 bra $L; mov.u32 %x, 1;"
    assert one(wait, [("u32", range(33))], "u32", block=33).tolist() == [1] * 33
