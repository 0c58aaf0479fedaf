"""Exchange within a warp: shuffles, votes, matches, reductions, and how threads come together for them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from softgpu.reference import DeadlockError, Schedule, UndefinedBehaviour, UnsupportedInstruction
from tests.reference_kernels import HEADER, REGISTERS, Run, checked, evaluate, one

LANES = list(range(64))


def shuffled(mode: str, values: list[int], b: int, c: int) -> tuple[list[int], list[int]]:
    """The pseudo-code of the PTX manual (shfl.sync), for whole warps."""
    result, inside = [], []
    for i in range(len(values)):
        lane, base = i % 32, i - i % 32
        bval, cval, mask = b & 31, c & 31, c >> 8 & 31
        highest = lane & mask | cval & ~mask & 31
        j = {"up": lane - bval, "down": lane + bval, "bfly": lane ^ bval, "idx": lane & mask | bval & ~mask & 31}[mode]
        valid = j >= highest if mode == "up" else j <= highest
        inside.append(int(valid))
        result.append(values[base + (j if valid else lane)])
    return result, inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("c", [31, 0, 0x181F, 0x1F00, 0x1C07, 0x1000, 7])
def test_shuffles_of_whole_warps(mode: str, c: int) -> None:
    values = [random.Random(7).getrandbits(32) + i & 0xFFFFFFFF for i in LANES]
    for b in (0, 1, 3, 16, 31, 33):
        got, p = evaluate(f"shfl.sync.{mode}.b32 %x|%y, %a, {b}, {c}, -1;", [("b32", values)], ["b32", "pred"])
        want, inside = shuffled(mode, values, b, c)
        assert p.tolist() == inside
        assert got.tolist() == want


def test_shuffle_with_operands_in_registers_and_no_predicate() -> None:
    values, by = [3 * i for i in LANES], [(5 * i + 1) % 32 for i in LANES]
    got = one("shfl.sync.idx.b32 %x, %a, %b, 31, -1;", [("b32", values), ("b32", by)], "b32")
    assert got.tolist() == [values[i - i % 32 + by[i]] for i in LANES]
    body = "shfl.sync.idx.b32 _|%x, %a, 40, 31, -1;"
    assert set(one(body, [("b32", values)], "pred").tolist()) == {1}


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(quantum=3), Schedule(quantum=5, warps="apart")])
def test_divergent_halves_shuffle_among_themselves(schedule: Schedule) -> None:
    body = """
        setp.lt.u32 %p0, %b, 16; @%p0 bra $L;
        shfl.sync.down.b32 %x, %a, 1, 0x1f, 0xffff0000; bra $J;
    $L: shfl.sync.up.b32 %x, %a, 1, 0, 0x0000ffff;
    $J:
    """
    values = [10 * i for i in LANES]
    got = one(body, [("u32", values), ("u32", [i % 32 for i in LANES])], "u32", schedule=schedule)
    want = [values[i - 1] if 0 < i % 32 < 16 else values[i] if i % 32 in (0, 31) else values[i + 1] for i in LANES]
    assert got.tolist() == want


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(quantum=3), Schedule("reverse", warps="apart")])
def test_one_shuffle_called_from_both_arms_waits_for_everybody(schedule: Schedule) -> None:
    """The same mask at two places of the program: threads meet by operation and mask, not by place."""
    body = """
        and.b32 %r0, %a, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra $E;
        add.u32 %r1, %a, 100; shfl.sync.bfly.b32 %x, %r1, 1, 31, -1; bra $J;
    $E: add.u32 %r2, %a, 500; shfl.sync.bfly.b32 %x, %r2, 1, 31, -1;
    $J: activemask.b32 %y;
    """
    got, mask = evaluate(body, [("u32", LANES)], ["u32", "b32"], schedule=schedule)
    assert got.tolist() == [(i ^ 1) + (500 if i & 1 else 100) for i in LANES]
    assert set(mask.tolist()) == {0xFFFFFFFF}


def test_shuffles_do_not_wait_for_exited_threads() -> None:
    run = Run(f"""{HEADER}.visible .entry k(.param .u64 p)
{{{REGISTERS}
    mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 20; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd1, %rd1, %rd2; @%p0 bra $W; shfl.sync.down.b32 %r1|%p1, %r0, 1, 31, -1; st.global.u32 [%rd1], %r1; ret;
$W: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 30; @%p2 bra $W;
}}""")
    checked(run.loaded, "k")
    out = run.buffer(128)
    run.launch("k", 1, 32, out)
    got = run.read(out, 32).tolist()
    assert got[:19] == list(range(1, 20))
    assert got[20:] == [0] * 12


def test_guarded_shuffle_with_a_mask_of_the_guarded() -> None:
    body = "setp.lt.u32 %p0, %a, 8; mov.u32 %x, 99; @%p0 shfl.sync.bfly.b32 %x, %a, 7, 31, 0xff;"
    assert one(body, [("u32", range(32))], "u32").tolist() == [7 - i for i in range(8)] + [99] * 24


def test_masks_that_leave_out_the_thread_or_wait_for_nobody() -> None:
    with pytest.raises(UndefinedBehaviour, match="member mask"):
        one("shfl.sync.idx.b32 %x, %a, 0, 31, 0xf0;", [("u32", range(32))], "u32")
    with pytest.raises(DeadlockError, match="line"):
        one("setp.lt.u32 %p0, %a, 8; @%p0 shfl.sync.idx.b32 %x, %a, 0, 31, -1; $L: @!%p0 bar.sync 1;",
            [("u32", range(32))], "u32")
    with pytest.raises(DeadlockError):
        body = "setp.lt.u32 %p0, %a, 8; @%p0 shfl.sync.idx.b32 %x, %a, 0, 31, -1;" \
               "@!%p0 vote.sync.ballot.b32 %x, %p0, -1;"
        one(body, [("u32", range(32))], "u32")


def test_warp_barrier() -> None:
    body = """
        .shared .align 4 .b8 s[256]; mov.u32 %r1, s; mad.lo.u32 %r2, %a, 4, %r1; and.b32 %r3, %a, 1;
        setp.eq.u32 %p0, %r3, 0; @%p0 bra $E; st.shared.u32 [%r2], %a; bar.warp.sync 0xffffffff; bra $J;
    $E: st.shared.u32 [%r2], %a; bar.warp.sync -1;
    $J: xor.b32 %r4, %a, 31; mad.lo.u32 %r4, %r4, 4, %r1; ld.shared.u32 %x, [%r4];
    """
    assert one(body, [("u32", LANES)], "u32", block=64).tolist() == [i ^ 31 for i in LANES]


def test_votes() -> None:
    flags = [int(i % 3 == 0) for i in range(32)] + [1] * 32
    ballots = [sum(f << i for i, f in enumerate(flags[w:w + 32])) for w in (0, 32)]
    columns = [("pred", flags)]
    assert one("vote.sync.ballot.b32 %x, %a, -1;", columns, "b32", block=64).tolist() == [
        ballots[i // 32] for i in LANES]
    for mode, want in (("all", [0, 1]), ("any", [1, 1]), ("uni", [0, 1])):
        assert one(f"vote.sync.{mode}.pred %x, %a, -1;", columns, "pred", block=64).tolist() == [
            want[i // 32] for i in LANES]
    assert one("vote.sync.uni.pred %x, !%a, -1;", columns, "pred", block=64).tolist() == [0] * 32 + [1] * 32
    body = "mov.u32 %x, 0; setp.gt.u32 %p0, %b, 3; @%p0 vote.sync.ballot.b32 %x, !%a, 0xfffffff0;"
    got = one(body, [("pred", flags[:32]), ("u32", range(32))], "b32")
    assert got.tolist() == [0] * 4 + [~ballots[0] & 0xFFFFFFF0] * 28


def test_votes_of_two_masks_at_one_place() -> None:
    masks = [0x0000FFFF] * 16 + [0xFFFF0000] * 16
    got = one("vote.sync.ballot.b32 %x, %a, %b;", [("pred", [i % 2 for i in range(32)]), ("b32", masks)], "b32")
    assert got.tolist() == [0x0000AAAA] * 16 + [0xAAAA0000] * 16


def test_match() -> None:
    values = [i % 5 for i in range(32)] + [7] * 32
    want = [sum(1 << j for j in range(32) if values[i - i % 32 + j] == values[i]) for i in LANES]
    assert one("match.any.sync.b32 %x, %a, -1;", [("b32", values)], "b32", block=64).tolist() == want
    wide = [v << 40 for v in values]
    assert one("match.any.sync.b64 %x, %a, -1;", [("b64", wide)], "b32", block=64).tolist() == want
    lanes, agreed = evaluate("match.all.sync.b32 %x|%y, %a, -1;", [("b32", values)], ["b32", "pred"], block=64)
    assert lanes.tolist() == [0] * 32 + [0xFFFFFFFF] * 32
    assert agreed.tolist() == [0] * 32 + [1] * 32


@pytest.mark.parametrize(("operation", "kind"), [
    ("add", "u32"), ("add", "s32"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"),
    ("and", "b32"), ("or", "b32"), ("xor", "b32"),
])
def test_redux(operation: str, kind: str) -> None:
    chosen = random.Random(operation)
    values = [chosen.getrandbits(32) for _ in LANES]
    masks = [0xFFFFFFFF] * 32 + [0x0F0F0F0F if i & 4 == 0 else 0xF0F0F0F0 for i in range(32)]
    got = one(f"redux.sync.{operation}.{kind} %x, %a, %b;", [(kind, values), ("b32", masks)], kind, block=64)
    for i in LANES:
        members = [values[i - i % 32 + j] for j in range(32) if masks[i] >> j & 1]
        if kind == "s32":
            members = [m - 2**32 if m >> 31 else m for m in members]
        total = members[0]
        for m in members[1:]:
            total = {"add": total + m, "min": min(total, m), "max": max(total, m), "and": total & m, "or": total | m,
                     "xor": total ^ m}[operation]
        assert got[i] == total & 0xFFFFFFFF


def test_coalesced_group_idiom() -> None:
    """One atomic for all active lanes, as cooperative groups compile it."""
    run = Run(f"""{HEADER}.visible .entry k(.param .u64 p, .param .u64 q, .param .u64 c)
{{{REGISTERS}
    mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u64 %rd3, [c];
    mul.wide.u32 %rd4, %r0, 4; add.s64 %rd4, %rd4, %rd1; ld.global.u32 %r1, [%rd4]; setp.lt.s32 %p0, %r1, 1;
    @%p0 bra $D;
    activemask.b32 %r2; mov.u32 %r3, %lanemask_lt; and.b32 %r4, %r3, %r2; setp.ne.s32 %p1, %r4, 0; @%p1 bra $S;
    popc.b32 %r5, %r2; atom.global.add.u32 %r6, [%rd3], %r5;
$S: brev.b32 %r7, %r2; bfind.shiftamt.u32 %r8, %r7; shfl.sync.idx.b32 %r9|%p2, %r6, %r8, 31, %r2;
    popc.b32 %r10, %r4; add.u32 %r11, %r10, %r9; mul.wide.u32 %rd5, %r11, 4; add.s64 %rd5, %rd5, %rd2;
    st.global.u32 [%rd5], %r1;
$D: ret;
}}""")
    data = np.random.default_rng(3).integers(-5, 5, 256).astype(np.int32)
    out, counter = run.buffer(data.nbytes), run.buffer(4)
    run.launch("k", 1, 256, run.buffer(data), out, counter)
    kept = data[data > 0]
    assert run.read(counter, 1)[0] == len(kept)
    assert run.read(out, len(kept), np.int32).tolist() == kept.tolist()


@pytest.mark.parametrize("text", [
    "shfl.sync.bfly.b64 %x, %a, 1, 31, -1;", "shfl.bfly.b32 %x, %a, 1, 31;", "shfl.sync.left.b32 %x, %a, 1, 31, -1;",
    "vote.sync.most.pred %x, %a, -1;", "vote.ballot.b32 %x, %a;", "redux.sync.add.b32 %x, %a, -1;",
    "redux.sync.add.f32 %x, %a, -1;", "redux.sync.min.abs.s32 %x, %a, -1;",
    "match.any.sync.b32 %x|%p0, %a, -1;", "elect.sync %x, -1;", "activemask.b64 %x;",
])
def test_forms_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        one(text, [("b32", [1])], "b32")
