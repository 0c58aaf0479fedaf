"""Properties of kernels, one instruction at a time: what pins them, what makes them differ, and what does neither."""

from __future__ import annotations

import pytest

from ptxparse.api import analyze, parse
from ptxparse.program import AccessProgram
from tessera.reasons import Reason
from tests.small_kernels import small

PLAIN = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; ld.global.f32 %f1, [%rd2];"
STORE = "st.global.f32 [%rd2], %f2; ret;"


def program(body: str, before: str = "") -> AccessProgram:
    return small(f"{PLAIN} {body} {STORE}", "a:u64 n:u32", before).program


def properties(body: str, before: str = "") -> tuple[bool, bool]:
    """(deterministic, device-invariant) of a kernel with these instructions, which nothing else spoils."""
    found = program(body, before)
    assert found.opaque is None, found.problems
    return found.deterministic, found.device_invariant


BOTH = [
    "mov.f32 %f2, %f1;", "add.rn.f32 %f2, %f1, %f1;", "add.f32 %f2, %f1, %f1;", "mul.f32 %f2, %f1, %f1;",
    "fma.rn.f32 %f2, %f1, %f1, %f1;", "div.rn.f32 %f2, %f1, %f1;", "sqrt.rn.f32 %f2, %f1;", "rcp.rn.f32 %f2, %f1;",
    "max.f32 %f2, %f1, 0f00000000;", "cvt.rn.f16.f32 %rs1, %f1; cvt.f32.f16 %f2, %rs1;", "abs.f32 %f2, %f1;",
    "setp.gt.f32 %p1, %f1, 0f00000000; selp.f32 %f2, %f1, 0f3F800000, %p1;",
    "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; mov.b32 %f2, %r2;", "vote.sync.ballot.b32 %r2, %p1, -1; mov.b32 %f2, %r2;",
    "bar.sync 0; mov.f32 %f2, %f1;", "mov.u32 %r2, %laneid; mov.b32 %f2, %r2;",
    "mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.x; add.u32 %r2, %r2, %r3; mov.b32 %f2, %r2;",
    "red.global.add.u32 [%a], 1; mov.f32 %f2, %f1;", "red.global.max.s32 [%a], %r1; mov.f32 %f2, %f1;",
    "atom.global.add.u32 %r9, [%a], 1; mov.f32 %f2, %f1;",
    "mul.rn.f32 %f3, %f1, %f1; add.f32 %f2, %f3, %f1;", "mul.f32 %f3, %f1, %f1; add.rn.f32 %f2, %f3, %f1;",
    "mul.f32 %f3, %f1, %f1; max.f32 %f2, %f3, %f1;", "mul.f32 %f3, %f1, %f1; add.f32 %f2, %f1, %f1;",
    "mul.lo.s32 %r2, %r1, %r1; add.s32 %r3, %r2, %r1; mov.b32 %f2, %r3;",
]  # fmt: skip
DETERMINISTIC = [
    "ex2.approx.f32 %f2, %f1;", "sin.approx.f32 %f2, %f1;", "div.approx.f32 %f2, %f1, %f1;",
    "div.full.f32 %f2, %f1, %f1;",
    "rsqrt.approx.f32 %f2, %f1;", "sqrt.approx.f32 %f2, %f1;", "rcp.approx.ftz.f32 %f2, %f1;",
    "tanh.approx.f32 %f2, %f1;",
    "mul.f32 %f3, %f1, %f1; add.f32 %f2, %f3, %f1;", "mul.f32 %f3, %f1, %f1; sub.f32 %f2, %f1, %f3;",
    "mul.f32 %f3, %f1, %f1; mov.f32 %f4, %f3; add.f32 %f2, %f4, %f1;",
    "mul.f32 %f3, %f1, %f1; neg.f32 %f4, %f3; add.f32 %f2, %f4, %f1;",
    "mul.f64 %fd1, %fd2, %fd2; add.f64 %fd3, %fd1, %fd2; cvt.rn.f32.f64 %f2, %fd3;",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f2, %f3, %f4, %f5}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
    "{%f2, %f3, %f4, %f5};",
]  # fmt: skip
INVARIANT_ONLY = [
    "atom.global.add.u32 %r2, [%a], 1; mov.b32 %f2, %r2;", "atom.global.exch.b32 %r2, [%a], 1; mov.f32 %f2, %f1;",
    "red.global.add.f32 [%a], %f1; mov.f32 %f2, %f1;", "atom.global.cas.b32 %r2, [%a], 0, 1; mov.f32 %f2, %f1;",
    "activemask.b32 %r2; mov.b32 %f2, %r2;", "ld.volatile.global.f32 %f2, [%a];",
    "ld.relaxed.gpu.global.f32 %f2, [%a];",
]  # fmt: skip
NEITHER = [
    "mov.u32 %r2, %smid; mov.b32 %f2, %r2;", "mov.u32 %r2, %nsmid; mov.b32 %f2, %r2;",
    "mov.u32 %r2, %clock; mov.b32 %f2, %r2;",
    "mov.u64 %rd5, %globaltimer; cvt.u32.u64 %r2, %rd5; mov.b32 %f2, %r2;", "mov.u32 %r2, %warpid; mov.b32 %f2, %r2;",
]  # fmt: skip


@pytest.mark.parametrize("body", BOTH)
def test_deterministic_and_the_same_on_every_device(body: str) -> None:
    assert properties(body) == (True, True)


@pytest.mark.parametrize("body", DETERMINISTIC)
def test_deterministic_but_not_the_same_on_every_device(body: str) -> None:
    assert properties(body) == (True, False)


@pytest.mark.parametrize("body", INVARIANT_ONLY)
def test_dependent_on_the_order_of_threads(body: str) -> None:
    assert properties(body) == (False, True)


@pytest.mark.parametrize("body", NEITHER)
def test_dependent_on_the_device_and_the_moment(body: str) -> None:
    assert properties(body) == (False, False)


def test_what_is_never_reached_does_not_count() -> None:
    found = program("mov.f32 %f2, %f1; bra END; ex2.approx.f32 %f2, %f1; frobnicate.f32 %f2; bar.sync 0; END:")
    assert found.deterministic and found.device_invariant and found.opaque is None


def pins(body: str, before: str = "") -> dict[Reason, int]:
    """Why a kernel is pinned, and where."""
    return dict(program(f"mov.f32 %f2, %f1; {body}", before).pinned)


NOT_PINNED = [
    "ld.volatile.global.u32 %r2, [%a];", "ld.acquire.gpu.global.u32 %r2, [%a];", "fence.acq_rel.gpu;", "membar.gl;",
    "membar.cta;", "ld.volatile.shared.u32 %r2, [%r3];",
    "L: ld.volatile.shared.u32 %r2, [%r3]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;",
    "L: ld.global.u32 %r2, [%a]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;", "red.relaxed.gpu.global.add.u32 [%a], 1;",
    "L: st.release.gpu.global.u32 [%a], 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra L;", "bar.sync 0;",
    "mov.u32 %r2, %smid;", "red.release.cta.global.add.u32 [%a], 1;",
]  # fmt: skip


@pytest.mark.parametrize("body", NOT_PINNED)
def test_ordinary_kernels_are_not_pinned(body: str) -> None:
    assert not pins(body)


PINNED = {
    "L: ld.volatile.global.u32 %r2, [%a]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;": Reason.VOLATILE_ACCESS,
    "L: ld.acquire.gpu.global.u32 %r2, [%a]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;": Reason.ACQUIRE_IN_LOOP,
    "ld.acquire.sys.global.u32 %r2, [%a];": Reason.SYSTEM_SCOPE,
    "fence.sc.sys;": Reason.SYSTEM_SCOPE,
    "mov.u32 %r2, %envreg1;": Reason.GRID_SYNC,
    "barrier.cluster.arrive;": Reason.CLUSTER,
    "mov.u32 %r2, %cluster_ctaid.x;": Reason.CLUSTER,
    "{ .param .b64 x; st.param.b64 [x], 5; .param .b64 y; call (y), malloc, (x); }": Reason.DEVICE_MALLOC,
}


@pytest.mark.parametrize("body", PINNED)
def test_pinned_for_one_reason_at_one_line(body: str) -> None:
    found = pins(body, ".extern .func (.param .b64 r) malloc(.param .b64 x);")
    assert list(found) == [PINNED[body]]
    # The body stands behind the header, the parameters and the plain part, one statement a line.
    text = small(f"{PLAIN} mov.f32 %f2, %f1; {body} {STORE}", "a:u64 n:u32",
                 ".extern .func (.param .b64 r) malloc(.param .b64 x);").text.splitlines()
    words = ("volatile", "acquire", "fence", "envreg", "barrier.cluster", "cluster_ctaid", "call")
    first = next(word for word in words if word in body)
    assert first in text[found[PINNED[body]] - 1]


OPAQUE = {
    "frobnicate.b32 %r2, %r1;": Reason.UNKNOWN_OPCODE,
    "ld.global.sideways.u32 %r2, [%a];": Reason.UNKNOWN_MODIFIER,
    "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd7, {%f1, %f1}];": Reason.TEXTURE,
    "suld.b.2d.b32.trap %r2, [%rd7, {%r1, %r1}];": Reason.SURFACE,
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a], 64, [%r2];": Reason.BULK_COPY,
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.tile [%r1], [%a, {%r2}], [%r3];":
        Reason.TENSOR_MAP,
    "multimem.ld_reduce.global.add.u32 %r2, [%a];": Reason.MULTIMEM,
    "call nothing;": Reason.UNDEFINED_CALLEE,
}


@pytest.mark.parametrize("body", OPAQUE)
def test_opaque_for_what_is_not_bounded(body: str) -> None:
    found = program(f"mov.f32 %f2, %f1; {body}")
    assert found.opaque is OPAQUE[body]
    text = small(f"{PLAIN} mov.f32 %f2, %f1; {body} {STORE}", "a:u64 n:u32").text.splitlines()
    assert body.split(maxsplit=1)[0] in text[found.opaque_line - 1]


@pytest.mark.parametrize("body", ["frobnicate.b32 %r2, %r1;", "ld.global.sideways.u32 %r2, [%a];", "call nothing;"])
def test_what_is_not_understood_is_neither_deterministic_nor_invariant(body: str) -> None:
    found = program(f"mov.f32 %f2, %f1; {body}")
    assert not found.deterministic and not found.device_invariant


def test_a_kernel_of_clusters_is_pinned_by_its_directive() -> None:
    header = ".visible .entry k(.param .u64 a)"
    text = small("ret;").text.replace(header, f"{header}\n.reqnctapercluster 2, 1, 1")
    (found,) = analyze(parse(text))
    assert [reason for reason, _ in found.pinned] == [Reason.CLUSTER]


@pytest.mark.parametrize("size", [32, 64])
def test_modules_with_32_bit_addresses_are_opaque(size: int) -> None:
    (found,) = analyze(parse(small("ret;").text.replace(".address_size 64", f".address_size {size}")))
    assert found.opaque is (Reason.ADDRESS_SIZE_32 if size == 32 else None)
