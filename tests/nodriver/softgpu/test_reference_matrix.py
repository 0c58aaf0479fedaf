"""Matrix instructions and asynchronous copies in whole kernels, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.reference import MemoryFault, Schedule, UndefinedBehaviour, UnsupportedInstruction
from tests.reference_kernels import HEADER, REGISTERS, Run, checked

START = """
    mov.u32 %r0, %tid.x; mov.u32 %r1, %laneid; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u64 %rd3, [o];
    mov.u32 %r2, s;
"""


def kernel(body: str) -> Run:
    run = Run(f"""{HEADER}
.visible .entry k(.param .u64 p, .param .u64 q, .param .u64 o)
{{{REGISTERS} .shared .align 16 .b8 s[8192];{START}{body}
}}""")
    checked(run.loaded, "k")
    return run


@pytest.mark.parametrize("warps", [1, 3])
def test_mma_from_ldmatrix(warps: int) -> None:
    """D = A B of 16 x 16 x 8 halves in every warp: A by ldmatrix.x4, B by ldmatrix.x2.trans from row-major B."""
    run = kernel("""
        shr.u32 %r3, %r0, 5; mad.lo.u32 %r2, %r3, 1024, %r2; mul.wide.u32 %rd10, %r3, 512; add.s64 %rd1, %rd1, %rd10;
        mul.wide.u32 %rd11, %r3, 256; add.s64 %rd2, %rd2, %rd11;
        mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd5];
        mad.lo.u32 %r8, %r1, 16, %r2; st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};
        mul.wide.u32 %rd6, %r1, 8; add.s64 %rd7, %rd2, %rd6; ld.global.v2.u32 {%r4, %r5}, [%rd7];
        mad.lo.u32 %r9, %r1, 8, %r2; st.shared.v2.u32 [%r9+512], {%r4, %r5}; bar.sync 0;
        and.b32 %r10, %r1, 15; shr.u32 %r11, %r1, 4; mad.lo.u32 %r12, %r10, 32, %r2; mad.lo.u32 %r12, %r11, 16, %r12;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r12];
        mad.lo.u32 %r13, %r10, 16, %r2; ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r24, %r25}, [%r13+512];
        mov.f32 %f0, 0f00000000;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r20, %r21, %r22, %r23}, {%r24, %r25},
            {%f0, %f0, %f0, %f0};
        shr.u32 %r30, %r1, 2; and.b32 %r31, %r1, 3; mad.lo.u32 %r32, %r30, 8, 0; mad.lo.u32 %r32, %r31, 2, %r32;
        mad.lo.u32 %r32, %r3, 128, %r32; mul.wide.u32 %rd8, %r32, 4; add.s64 %rd8, %rd8, %rd3;
        st.global.v2.f32 [%rd8], {%f1, %f2}; st.global.v2.f32 [%rd8+256], {%f3, %f4};
    """)
    random = np.random.default_rng(11)
    a = random.integers(-4, 5, (warps, 16, 16)).astype(np.float16)
    b = random.integers(-4, 5, (warps, 16, 8)).astype(np.float16)
    out = run.buffer(warps * 512)
    run.launch("k", 1, 32 * warps, run.buffer(a), run.buffer(b), out)
    got = run.read(out, warps * 128, np.float32).reshape(warps, 16, 8)
    assert (got == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_wmma_through_global_memory_is_logged_element_by_element() -> None:
    run = kernel("""
        .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .f32 %c<8>; mov.u32 %r5, 16; mov.f32 %f0, 0f3f800000;
        wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%rd1], %r5;
        wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, [%rd2], 16;
        wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7},
            {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7},
            {%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0};
        wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd3], {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, 20;
    """)
    random = np.random.default_rng(12)
    a, b = (random.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    out = run.buffer(16 * 20 * 4)
    first, second = run.buffer(a), run.buffer(b)
    log = run.launch("k", 1, 32, first, second, out).log
    got = run.read(out, 320, np.float32).reshape(16, 20)
    assert (got[:, :16] == a.astype(np.float32) @ b.astype(np.float32).T + 1).all()
    assert (got[:, 16:] == 0).all()
    entries = log.entries
    reads = np.unique(entries["address"][entries["kind"] == b"R"])
    assert reads.tolist() == [first + 2 * i for i in range(256)] + [second + 2 * i for i in range(256)]
    writes = np.unique(entries["address"][entries["kind"] == b"W"])
    assert writes.tolist() == [out + 80 * r + 4 * c for r in range(16) for c in range(16)]


def test_stmatrix() -> None:
    run = kernel("""
        mul.lo.u32 %r3, %r1, 0x00020002; add.u32 %r3, %r3, 0x00010000; and.b32 %r4, %r1, 7;
        mad.lo.u32 %r5, %r4, 16, %r2;
        stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3}; bar.warp.sync -1;
        mad.lo.u32 %r6, %r1, 4, %r2; ld.shared.u32 %r7, [%r6]; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd4, %rd3;
        st.global.u32 [%rd4], %r7;
    """)
    out = run.buffer(128)
    run.launch("k", 1, 32, 0, 0, out)
    assert run.read(out, 64, np.uint16).tolist() == list(range(64))


def test_matrix_instructions_need_whole_warps() -> None:
    run = kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];")
    with pytest.raises(UndefinedBehaviour, match="32 threads"):
        run.launch("k", 1, 24, 0, 0, 0)
    with pytest.raises(UnsupportedInstruction):
        kernel("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r4, %r5}, [%r2];").launch("k", 1, 32, 0, 0, 0)
    with pytest.raises(UnsupportedInstruction):
        kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2}, {%r1}, {%r2}, {%f1};").launch(
            "k", 1, 32, 0, 0, 0)


COPY = """
    mad.lo.u32 %r3, %r0, 16, %r2; mul.wide.u32 %rd4, %r0, 16; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd3, %rd4;
    st.shared.v4.u32 [%r3], {9, 9, 9, 9};
"""


def test_asynchronous_copies_arrive_at_the_wait_and_not_before() -> None:
    run = kernel(COPY + """
        cp.async.cg.shared.global [%r3], [%rd5], 16; cp.async.commit_group;
        cp.async.ca.shared.global [%r3+4], [%rd2], 4; cp.async.commit_group;
        ld.shared.u32 %r4, [%r3];
        cp.async.wait_group 1; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3];
        cp.async.wait_all; ld.shared.u32 %r9, [%r3+4];
        st.global.v4.u32 [%rd6], {%r4, %r5, %r6, %r9};
    """)
    data = np.arange(256, dtype=np.uint32) + 100
    out = run.buffer(1024)
    result = run.launch("k", 1, 64, run.buffer(data), run.buffer(np.array([77], np.uint32)), out)
    got = run.read(out, 256).reshape(64, 4)
    assert (got[:, 0] == 9).all(), "read before the wait: the old contents"
    assert (got[:, 1] == data[::4]).all() and (got[:, 2] == data[1::4]).all()
    assert (got[:, 3] == 77).all()
    reads = result.log.entries[result.log["kind"] == b"R"]
    assert sorted(set(reads["width"].tolist())) == [4, 16] and len(reads) == 128


def test_groups_of_diverged_threads_are_their_own() -> None:
    run = kernel(COPY + """
        and.b32 %r10, %r0, 1; setp.eq.u32 %p0, %r10, 0;
        @%p0 cp.async.ca.shared.global [%r3], [%rd5], 8; @%p0 cp.async.commit_group;
        cp.async.ca.shared::cta.global.L2::128B [%r3+8], [%rd5+8], 8; cp.async.commit_group; cp.async.wait_group 1;
        ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3]; st.global.v4.u32 [%rd6], {%r4, %r5, %r6, %r7};
    """)
    data = np.arange(256, dtype=np.uint32) + 100
    out = run.buffer(1024)
    run.launch("k", 1, 64, run.buffer(data), 0, out, schedule=Schedule(quantum=3))
    got = run.read(out, 256).reshape(64, 4)
    want = data.reshape(64, 4).copy()
    want[1::2, :2] = 9
    want[:, 2:] = 9
    assert got.tolist() == want.tolist()


def test_short_sources_are_filled_with_zeros_and_not_read() -> None:
    run = kernel(COPY + """
        min.u32 %r4, %r0, 16; setp.gt.u32 %p0, %r0, 40; @%p0 bra $I;
        cp.async.cg.shared.global [%r3], [%rd5], 16, %r4; bra $J;
    $I: setp.gt.u32 %p1, %r0, 50; cp.async.cg.shared.global [%r3], [%rd5], 16, %p1;
    $J: cp.async.wait_all; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3]; st.global.v4.u32 [%rd6], {%r4, %r5, %r6, %r7};
    """)
    data = np.random.default_rng(2).integers(1, 255, 51 * 16, dtype=np.uint8)
    out = run.buffer(1024)
    source = run.buffer(data)
    log = run.launch("k", 1, 64, source, 0, out).log
    got = run.read(out, 1024, np.uint8).reshape(64, 16)
    for i in range(64):
        size = min(i, 16) if i <= 40 else 16 if i <= 50 else 0
        assert got[i, :size].tolist() == data[16 * i:16 * i + size].tolist()
        assert (got[i, size:] == 0).all()
    reads = log.entries[log["kind"] == b"R"]
    assert {int(e["thread"]): int(e["width"]) for e in reads} == {
        i: min(i, 16) if i <= 40 else 16 for i in range(1, 51)}


def test_copies_check_both_addresses() -> None:
    with pytest.raises(MemoryFault, match="shared"):
        kernel("cp.async.ca.shared.global [%r2+8190], [%rd1], 4;").launch("k", 1, 1, 0, 0, 0)
    run = kernel("cp.async.cg.shared.global [%r2], [%rd1+8], 16;")
    with pytest.raises(MemoryFault, match="aligned"):
        run.launch("k", 1, 1, run.buffer(64), 0, 0)
    with pytest.raises(UnsupportedInstruction):
        kernel("cp.async.cg.shared.global [%r2], [%rd1], 8;").launch("k", 1, 1, 0, 0, 0)
    with pytest.raises(UnsupportedInstruction):
        kernel("cp.async.bulk.commit_group;").launch("k", 1, 1, 0, 0, 0)
