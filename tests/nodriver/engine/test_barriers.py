"""Threads that wait for one another: barriers of a block, of a grid, flags and locks in memory."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu import engine
from tests.nodriver.engine.tiny import run, same, text_of

START = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4; add.u64 %rd1, %a, %rd0;\n"
STORE = "st.global.u32 [%rd1], %r9;"
SHARED = ".shared .align 16 .b8 s[4096];\n"
WARP = "shr.u32 %r1, %r0, 5;\n"
SLOT = "mov.u32 %r2, s; mad.lo.u32 %r2, %r0, 4, %r2;\n"

BODIES = {
    "exchange with a neighbour": SLOT + "st.shared.u32 [%r2], %r0; bar.sync 0; xor.b32 %r3, %r0, 33; mov.u32 %r4, s; "
        "mad.lo.u32 %r4, %r3, 4, %r4; ld.shared.u32 %r9, [%r4];",
    "a barrier in a loop": SLOT + """
        st.shared.u32 [%r2], %r0; mov.u32 %r9, 0; mov.u32 %r5, 0;
        again: bar.sync 0; add.u32 %r3, %r0, %r5; add.u32 %r3, %r3, 37; rem.u32 %r3, %r3, 96; mov.u32 %r4, s;
        mad.lo.u32 %r4, %r3, 4, %r4; ld.shared.u32 %r6, [%r4]; mad.lo.u32 %r9, %r9, 3, %r6; bar.sync 0;
        st.shared.u32 [%r2], %r9; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 7; @%p1 bra again;""",
    "a tree of sums": SLOT + """
        mad.lo.u32 %r3, %r0, 7, 1; st.shared.u32 [%r2], %r3; mov.u32 %r5, 48;
        again: bar.sync 0; setp.ge.u32 %p1, %r0, %r5; @%p1 bra wait; shl.b32 %r6, %r5, 2; add.u32 %r6, %r6, %r2;
        ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r8, [%r2]; add.u32 %r8, %r8, %r7; st.shared.u32 [%r2], %r8;
        wait: shr.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra again; bar.sync 0; ld.shared.u32 %r9, [s];""",
    "named barriers of parts of a block": WARP + SLOT + """
        setp.eq.u32 %p1, %r1, 2; @%p1 bra alone; mov.u32 %r5, 3; st.shared.u32 [%r2], %r0; bar.sync %r5, 64;
        xor.b32 %r3, %r0, 32; mov.u32 %r4, s; mad.lo.u32 %r4, %r3, 4, %r4; ld.shared.u32 %r9, [%r4]; bra done;
        alone: bar.sync 4, 32; mov.u32 %r9, 77; done: bar.sync 0;""",
    "producer and consumers": WARP + SLOT + """
        mov.u32 %r5, 0; mov.u32 %r9, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra consume;
        produce: bar.sync 2, 96; mad.lo.u32 %r3, %r5, 100, %r0; st.shared.u32 [%r2], %r3; bar.arrive 1, 96;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra produce; bra done;
        consume: bar.arrive 2, 96; bar.sync 1, 96; and.b32 %r3, %r0, 31; mov.u32 %r4, s;
        mad.lo.u32 %r4, %r3, 4, %r4; ld.shared.u32 %r6, [%r4]; mad.lo.u32 %r9, %r9, 5, %r6;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra consume; done:""",
    "votes of a block": """
        setp.lt.u32 %p1, %r0, 50; bar.red.popc.u32 %r3, 0, %p1; setp.lt.u32 %p2, %r0, 96;
        bar.red.and.pred %p3, 0, %p2; bar.red.and.pred %p4, 0, %p1; setp.eq.u32 %p5, %r0, 90;
        bar.red.or.pred %p6, 0, %p5; bar.red.popc.u32 %r4, 0, !%p5; bar.red.or.pred %p7, 0, !%p2;
        selp.u32 %r5, 1, 0, %p3; selp.u32 %r6, 2, 0, %p4; selp.u32 %r7, 4, 0, %p6; selp.u32 %r8, 8, 0, %p7;
        mad.lo.u32 %r9, %r3, 1000, %r4; or.b32 %r5, %r5, %r6; or.b32 %r7, %r7, %r8; or.b32 %r5, %r5, %r7;
        mad.lo.u32 %r9, %r9, 16, %r5;""",
    "votes of a part of a block": WARP + """
        mov.u32 %r9, 5; setp.eq.u32 %p1, %r1, 1; @%p1 bra done; and.b32 %r3, %r0, 3; setp.eq.u32 %p2, %r3, 1;
        bar.red.popc.u32 %r9, 7, 64, %p2; done:""",
    "threads that have ended": "setp.gt.u32 %p1, %r0, 70; @%p1 exit;" + SLOT + """
        st.shared.u32 [%r2], %r0; bar.sync 0; mov.u32 %r4, s; sub.u32 %r3, 70, %r0; mad.lo.u32 %r4, %r3, 4, %r4;
        ld.shared.u32 %r9, [%r4];""",
    "warps that end while others wait": WARP + """
        setp.eq.u32 %p1, %r1, 1; @!%p1 bra wait; mov.u32 %r5, 0; again: add.u32 %r5, %r5, 1;
        setp.lt.u32 %p2, %r5, 1000; @%p2 bra again; exit; wait: bar.sync 0; add.u32 %r9, %r0, 1;""",
    "a barrier in divergent code": SLOT + """
        and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; st.shared.u32 [%r2], %r0; @%p1 bra even; barrier.sync 0;
        ld.shared.u32 %r9, [s+124]; add.u32 %r9, %r9, 1000; bra done; even: barrier.sync 0;
        ld.shared.u32 %r9, [s+364]; done:""",
    "a divergent number of turns": SLOT + """
        mov.u32 %r9, 0; and.b32 %r5, %r0, 7; again: add.u32 %r9, %r9, %r5; sub.u32 %r5, %r5, 1;
        setp.gt.s32 %p1, %r5, 0; @%p1 bra again; bar.sync 0; st.shared.u32 [%r2], %r9; bar.sync 0;
        xor.b32 %r3, %r0, 5; mov.u32 %r4, s; mad.lo.u32 %r4, %r3, 4, %r4; ld.shared.u32 %r9, [%r4];""",
    "all sixteen barriers": """
        mov.u32 %r5, 0; mov.u32 %r9, 0; again: setp.le.u32 %p1, %r0, %r5; bar.red.popc.u32 %r6, %r5, %p1;
        mad.lo.u32 %r9, %r9, 17, %r6; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 16; @%p2 bra again;""",
    "barriers of warps": """
        and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra even; bar.warp.sync 0xaaaaaaaa;
        shfl.sync.down.b32 %r9, %r0, 2, 31, 0xaaaaaaaa; bra done; even: bar.warp.sync 0x55555555;
        shfl.sync.up.b32 %r9, %r0, 2, 0, 0x55555555; done: bar.warp.sync -1; shfl.sync.bfly.b32 %r9, %r9, 1, 31, -1;""",
    "registers over a barrier": """
        mul.wide.u32 %rd2, %r0, 1000003; cvt.rn.f64.u32 %fd1, %r0; cvt.rn.f32.u32 %f1, %r0; cvt.u16.u32 %rs1, %r0;
        setp.gt.u32 %p1, %r0, 40; add.cc.u32 %r3, %r0, 0xffffffc0; bar.sync 0; addc.u32 %r4, 0, 0;
        sqrt.rn.f64 %fd1, %fd1; sqrt.rn.f32 %f1, %f1; bar.sync 0; cvt.rni.u32.f64 %r5, %fd1; cvt.rni.u32.f32 %r6, %f1;
        cvt.u32.u64 %r7, %rd2; cvt.u32.u16 %r8, %rs1; mad.lo.u32 %r9, %r5, 7, %r6; add.u32 %r9, %r9, %r7;
        mad.lo.u32 %r9, %r9, 3, %r8; @%p1 add.u32 %r9, %r9, 11; mad.lo.u32 %r9, %r4, 13, %r9;""",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("any_block", [False, True], ids=["fixed", "any block"])
def test_barriers_like_the_interpreter(name: str, any_block: bool) -> None:
    body = START + BODIES[name] + STORE
    same(text_of(body, before=SHARED), 3, 96, np.zeros(96, np.uint32), any_block=any_block)


@pytest.mark.parametrize("block", [33, 80, 1024])
def test_barriers_of_partial_warps(block: int) -> None:
    body = START + SLOT + """
        mov.u32 %r5, %ntid.x; sub.u32 %r5, %r5, 1; sub.u32 %r5, %r5, %r0; st.shared.u32 [%r2], %r0; bar.sync 0;
        mov.u32 %r4, s; mad.lo.u32 %r4, %r5, 4, %r4; ld.shared.u32 %r9, [%r4];
        setp.gt.u32 %p1, %r0, 30; bar.red.popc.u32 %r6, 1, %p1; mad.lo.u32 %r9, %r9, 5, %r6;""" + STORE
    same(text_of(body, before=SHARED), 2, block, np.zeros(block, np.uint32))


GRID_BARRIER = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %a, %rd2;
    add.u64 %rd2, %rd2, 8; st.volatile.global.u32 [%rd2], %r1; membar.gl; bar.sync 0;
    setp.ne.u32 %p1, %r0, 0; @%p1 bra came; atom.add.acq_rel.gpu.global.u32 %r3, [%a], 1;
    wait: ld.acquire.gpu.global.u32 %r4, [%a]; setp.lt.u32 %p2, %r4, %r2; @%p2 bra wait;
    came: bar.sync 0; sub.u32 %r5, %r2, 1; sub.u32 %r5, %r5, %r1; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %a, %rd3;
    ld.volatile.global.u32 %r9, [%rd3+8]; mad.lo.u32 %r6, %r2, 4, 8; cvt.u64.u32 %rd4, %r6; add.u64 %rd2, %rd2, %rd4;
    add.u64 %rd2, %rd2, -8; @%p1 ret; st.global.u32 [%rd2], %r9;
"""


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("cooperative", [False, True])
def test_a_barrier_of_more_blocks_than_workers(workers: int, cooperative: bool) -> None:
    blocks = 100
    out = np.zeros(2 + 2 * blocks, np.uint32)
    run(text_of(START + GRID_BARRIER), blocks, 64, out, cooperative=cooperative, pool=engine.Pool(workers), deadline=30)
    assert out[0] == blocks and (out[2 + blocks:] == np.arange(blocks)[::-1]).all()


def test_blocks_hand_on_a_value() -> None:
    """Block n waits for block n - 1 (and block 0 for the last but itself never), whichever runs first."""
    body = START + """
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1; sub.u32 %r1, %r2, %r1;
        setp.ne.u32 %p1, %r0, 0; @%p1 ret; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %a, %rd2; mov.u32 %r4, 1;
        setp.eq.u32 %p2, %r1, 0; @%p2 bra go;
        wait: ld.LOAD.global.u32 %r4, [%rd2+-4]; setp.eq.u32 %p3, %r4, 0; @%p3 bra wait; add.u32 %r4, %r4, 3;
        go: st.STORE.global.u32 [%rd2], %r4;"""
    for load, store in (("volatile", "volatile"), ("acquire.gpu", "release.gpu"), ("relaxed.sys", "relaxed.sys")):
        out = np.zeros(50, np.uint32)
        run(text_of(body.replace("LOAD", load).replace("STORE", store)), 50, 32, out, deadline=30)
        assert out.tolist() == list(range(1, 151, 3))


LOCK = """
    wait: atom.global.cas.b32 %r1, [%a], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra wait;
    ld.volatile.global.u32 %r2, [%a+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a+4], %r2; membar.gl;
    atom.global.exch.b32 %r3, [%a], 0;
"""
LOCK_INSIDE = """
    mov.u32 %r4, 0;
    wait: atom.global.cas.b32 %r1, [%a], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra next;
    ld.volatile.global.u32 %r2, [%a+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a+4], %r2; membar.gl;
    atom.global.exch.b32 %r3, [%a], 0; mov.u32 %r4, 1;
    next: setp.eq.u32 %p2, %r4, 0; @%p2 bra wait;
"""


@pytest.mark.parametrize("body", [LOCK, LOCK_INSIDE], ids=["spin", "try"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_lock_between_the_lanes_of_a_warp(body: str, workers: int) -> None:
    out = np.zeros(2, np.uint32)
    run(text_of(START + body), 8, 96, out, pool=engine.Pool(workers), deadline=30)
    assert out.tolist() == [0, 768]


def test_a_lane_waits_for_a_later_one() -> None:
    body = START + """
        setp.eq.u32 %p1, %r0, 31; @%p1 bra last;
        wait: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p2, %r1, 0; @%p2 bra wait; bra done;
        last: st.volatile.shared.u32 [s], 9; mov.u32 %r1, 4; done: add.u32 %r9, %r1, %r0;""" + STORE
    out = np.zeros(32, np.uint32)
    run(text_of(body, before=SHARED), 1, 32, out, deadline=30)
    assert out.tolist() == [*range(9, 40), 35]


def test_a_warp_waits_for_a_later_one() -> None:
    body = START + WARP + """
        setp.eq.u32 %p1, %r1, 3; @%p1 bra last;
        wait: atom.shared.or.b32 %r2, [s], 0; setp.eq.u32 %p2, %r2, 0; @%p2 bra wait; bra done;
        last: st.shared.u32 [s], 9; mov.u32 %r2, 4; done: add.u32 %r9, %r2, %r0;""" + STORE
    out = np.zeros(128, np.uint32)
    run(text_of(body, before=SHARED), 2, 128, out, deadline=30)
    assert out.tolist() == [*range(9, 105), *range(100, 132)]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_last_block_sums_up(workers: int) -> None:
    body = START + SLOT + """
        mov.u32 %r1, %ctaid.x; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r1, 64, %r0; mul.wide.u32 %rd2, %r1, 4;
        add.u64 %rd2, %a, %rd2; setp.eq.u32 %p1, %r0, 0; @%p1 st.volatile.global.u32 [%rd2+8], %r4; membar.gl;
        @!%p1 bra came; atom.global.inc.u32 %r5, [%a], 0x7fffffff; st.shared.u32 [s], %r5;
        came: bar.sync 0; ld.shared.u32 %r5, [s]; add.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, %r3; @%p2 ret;
        setp.ge.u32 %p3, %r0, %r3; @%p3 ret; add.u64 %rd3, %rd1, 8; ld.volatile.global.u32 %r6, [%rd3];
        red.global.add.u32 [%a+4], %r6;"""
    out = np.zeros(2 + 60, np.uint32)
    run(text_of(body, before=SHARED), 60, 64, out, pool=engine.Pool(workers))
    assert out[0] == 60 and out[1] == 64 * 59 * 60 // 2
