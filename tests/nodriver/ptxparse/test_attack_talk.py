"""Kernels that talk while they run must be pinned; those that are not the same twice must not be called so."""

from __future__ import annotations

import pytest

from ptxparse.program import AccessProgram
from tessera.reasons import Reason
from tests.small_kernels import small

CLUSTER = ".shared .align 8 .b64 sh; mov.u32 %r1, sh; mapa.shared::cluster.u32 %r2, %r1, 1; "


def program(body: str, before: str = "") -> AccessProgram:
    return small(f"{body} ret;", "a:u64 b:u64 n:u32", before).program


def pins(found: AccessProgram) -> set[Reason]:
    return {reason for reason, _ in found.pinned}


TALKING = [
    ("volatile_spin", "L: ld.volatile.global.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", Reason.VOLATILE_ACCESS),
    ("volatile_generic_spin", "L: ld.volatile.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", Reason.VOLATILE_ACCESS),
    ("volatile_spin_with_two_entries", "setp.eq.u32 %p1, %n, 0; @%p1 bra M; H: add.u32 %r1, %r1, 1; "
     "M: ld.volatile.global.u32 %r2, [%a]; setp.eq.u32 %p2, %r2, 1; @%p2 bra H;", Reason.VOLATILE_ACCESS),
    ("volatile_store_in_a_loop", "L: st.volatile.global.u32 [%a], %r1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %n; "
     "@%p1 bra L;", Reason.VOLATILE_ACCESS),
    ("uncached_spin", "L: ld.global.cv.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", Reason.VOLATILE_ACCESS),
    ("acquire_spin", "L: ld.acquire.gpu.global.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", Reason.ACQUIRE_IN_LOOP),
    ("relaxed_spin", "L: ld.relaxed.gpu.global.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", Reason.ACQUIRE_IN_LOOP),
    ("acquire_spin_with_two_entries", "setp.eq.u32 %p1, %n, 0; @%p1 bra M; H: add.u32 %r1, %r1, 1; "
     "M: ld.acquire.gpu.global.u32 %r2, [%a]; setp.eq.u32 %p2, %r2, 1; @%p2 bra H;", Reason.ACQUIRE_IN_LOOP),
    ("atomic_acquire_spin", "L: atom.acquire.gpu.global.or.b32 %r1, [%a], 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;",
     Reason.ACQUIRE_IN_LOOP),
    ("spin_in_a_function", "{ .param .b64 p; st.param.b64 [p], %a; call wait, (p); }", Reason.ACQUIRE_IN_LOOP),
    ("function_called_in_a_loop", "L: { .param .b64 p; .param .b32 q; st.param.b64 [p], %a; call (q), look, (p); "
     "ld.param.b32 %r1, [q]; } setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", Reason.ACQUIRE_IN_LOOP),
    ("system_load", "ld.relaxed.sys.global.u32 %r1, [%a];", Reason.SYSTEM_SCOPE),
    ("system_store", "st.release.sys.global.u32 [%a], 1;", Reason.SYSTEM_SCOPE),
    ("system_atomic", "red.relaxed.sys.global.add.u32 [%a], 1;", Reason.SYSTEM_SCOPE),
    ("system_fence", "st.global.u32 [%a], 1; fence.acq_rel.sys;", Reason.SYSTEM_SCOPE),
    ("system_barrier", "st.global.u32 [%a], 1; membar.sys;", Reason.SYSTEM_SCOPE),
    ("mapped_io", "ld.mmio.relaxed.sys.global.u32 %r1, [%a];", Reason.SYSTEM_SCOPE),
    ("system_asynchronous_store", "st.async.release.sys.global.u32 [%a], %n;", Reason.SYSTEM_SCOPE),
    ("grid_workspace", "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1}; ld.u32 %r3, [%rd1+4];",
     Reason.GRID_SYNC),
    ("cluster_barrier", "barrier.cluster.arrive; barrier.cluster.wait;", Reason.CLUSTER),
    ("cluster_barrier_aligned", "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;", Reason.CLUSTER),
    ("cluster_load", CLUSTER + "ld.shared::cluster.u32 %r3, [%r2]; st.global.u32 [%a], %r3;", Reason.CLUSTER),
    ("cluster_store", CLUSTER + "st.shared::cluster.u32 [%r2], 1;", Reason.CLUSTER),
    ("cluster_atomic", CLUSTER + "atom.shared::cluster.add.u32 %r3, [%r2], 1;", Reason.CLUSTER),
    ("cluster_rank", "mov.u32 %r1, %cluster_ctarank; st.global.u32 [%a], %r1;", Reason.CLUSTER),
    ("cluster_number", "mov.u32 %r1, %clusterid.x; st.global.u32 [%a], %r1;", Reason.CLUSTER),
    ("cluster_asynchronous_store", CLUSTER + "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %n, [%r2];",
     Reason.CLUSTER),
    ("cluster_asynchronous_reduction", CLUSTER + "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
     ".add.u32 [%r2], %n, [%r2];", Reason.CLUSTER),
    ("printf", "{ .param .b64 p0; .param .b64 p1; .param .b32 q; call (q), vprintf, (p0, p1); }", Reason.DEVICE_PRINTF),
    ("malloc", "{ .param .b64 p; .param .b64 q; call (q), malloc, (p); }", Reason.DEVICE_MALLOC),
    ("free", "{ .param .b64 p; call free, (p); }", Reason.DEVICE_MALLOC),
]
FUNCTIONS = """
.extern .func (.param .b32 r) vprintf(.param .b64 x, .param .b64 y);
.extern .func (.param .b64 r) malloc(.param .b64 x);
.extern .func free(.param .b64 x);
.func wait(.param .b64 x) { .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p; ld.param.b64 %rd1, [x];
L: ld.acquire.gpu.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra L; ret; }
.func (.param .b32 r) look(.param .b64 x) { .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.b64 %rd1, [x];
ld.acquire.gpu.u32 %r1, [%rd1]; st.param.b32 [r], %r1; ret; }
"""


@pytest.mark.parametrize(("name", "body", "reason"), TALKING, ids=[t[0] for t in TALKING])
def test_kernels_that_talk_are_pinned(name: str, body: str, reason: Reason) -> None:
    found = program(body, FUNCTIONS)
    assert found.opaque is not None or reason in pins(found)


OPAQUE = [
    ("texture", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%a, {%r1}];", Reason.TEXTURE),
    ("texture_query", "txq.width.b32 %r1, [%a];", Reason.TEXTURE),
    ("surface", "suld.b.1d.b32.trap {%r1}, [%a, {%r2}];", Reason.SURFACE),
    ("multimem_load", "multimem.ld_reduce.global.add.u32 %r1, [%a];", Reason.MULTIMEM),
    ("multimem_store", "multimem.st.global.u32 [%a], %r1;", Reason.MULTIMEM),
    ("multimem_reduction", "multimem.red.global.add.u32 [%a], %r1;", Reason.MULTIMEM),
    ("bulk_copy", ".shared .align 16 .b8 sh[64]; mov.u32 %r1, sh; "
     "cp.async.bulk.global.shared::cta.bulk_group [%a], [%r1], %n;", Reason.BULK_COPY),
    ("bulk_reduction", ".shared .align 16 .b8 sh[64]; mov.u32 %r1, sh; "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%r1], %n;", Reason.BULK_COPY),
    ("tensor_map", "tensormap.replace.tile.rank.global.b1024.b32 [%a], 2;", Reason.TENSOR_MAP),
    ("unknown_opcode", "frobnicate.b32 %r1, %r2;", Reason.UNKNOWN_OPCODE),
    ("unknown_modifier", "ld.global.sideways.u32 %r1, [%a];", Reason.UNKNOWN_MODIFIER),
    ("unknown_modifier_of_arithmetic", "add.sideways.u32 %r1, %r1, %r2;", Reason.UNKNOWN_MODIFIER),
    ("stack_pointer", "alloca.u64 %rd1, 16; st.local.u32 [%rd1], 1; st.u32 [%rd1], 1;", Reason.NO_BASE),
    ("loaded_pointer", "ld.global.u64 %rd1, [%a]; st.global.u32 [%rd1], 1;", Reason.POINTER_FROM_MEMORY),
    ("two_pointers", "add.u64 %rd1, g, h; st.global.u32 [%rd1], 1;".replace("add.u64 %rd1, g, h;",
     "mov.u64 %rd2, g; mov.u64 %rd3, h; add.u64 %rd1, %rd2, %rd3;"), Reason.TWO_BASES),
    ("doubled_pointer", "add.u64 %rd1, %a, %a; st.global.u32 [%rd1], 1;", Reason.NO_BASE),
    ("undefined_label", "bra NOWHERE; st.global.u32 [%a], 1;", Reason.UNKNOWN_BRANCH),
    ("undefined_register", "st.global.u32 [%rd9], 1;", Reason.NO_BASE),
    ("absolute_address", "st.global.u32 [4096], 1;", Reason.NO_BASE),
]


@pytest.mark.parametrize(("name", "body", "reason"), OPAQUE, ids=[t[0] for t in OPAQUE])
def test_kernels_of_which_nothing_can_be_said_are_opaque(name: str, body: str, reason: Reason) -> None:
    found = program(body, ".global .b32 g; .global .b32 h;")
    assert reason in {r for r, _ in found.problems}


CHANGING = [
    ("clock", "mov.u64 %rd1, %clock64; st.global.u64 [%a], %rd1;"),
    ("clock_32", "mov.u32 %r1, %clock; st.global.u32 [%a], %r1;"),
    ("timer", "mov.u64 %rd1, %globaltimer; st.global.u64 [%a], %rd1;"),
    ("performance_counter", "mov.u32 %r1, %pm0; st.global.u32 [%a], %r1;"),
    ("multiprocessor", "mov.u32 %r1, %smid; st.global.u32 [%a], %r1;"),
    ("warp_number", "mov.u32 %r1, %warpid; st.global.u32 [%a], %r1;"),
    ("grid_number", "mov.u64 %rd1, %gridid; st.global.u64 [%a], %rd1;"),
    ("active_lanes", "activemask.b32 %r1; st.global.u32 [%a], %r1;"),
    ("vote_of_old", "vote.ballot.b32 %r1, %p1; st.global.u32 [%a], %r1;"),
    ("shuffle_of_old", "shfl.idx.b32 %r1, %n, 0, 31; st.global.u32 [%a], %r1;"),
    ("atomic_result", "atom.global.add.u32 %r1, [%a], 1; st.global.u32 [%b], %r1;"),
    ("atomic_result_decides", "atom.global.add.u32 %r1, [%a], 1; setp.eq.u32 %p1, %r1, 3; @%p1 st.global.u32 [%b], 1;"),
    ("atomic_result_in_a_vector", "atom.global.exch.b128 %q, [%a], %q; st.global.b128 [%b], %q;"),
    ("shared_atomic_result", ".shared .b32 sh; atom.shared.inc.u32 %r1, [sh], 9; st.global.u32 [%a], %r1;"),
    ("float_sum", "red.global.add.f32 [%a], %f1;"),
    ("double_sum", "red.global.add.f64 [%a], %fd1;"),
    ("half_sum", "red.global.add.noftz.f16x2 [%a], %r1;"),
    ("vector_sum", "red.global.add.v2.f32 [%a], {%f1, %f2};"),
    ("shared_float_sum", ".shared .b32 sh; red.shared.add.f32 [sh], %f1;"),
    ("exchange", "atom.global.exch.b32 %r1, [%a], %n;"),
    ("compare_and_swap", "atom.global.cas.b32 %r1, [%a], 0, %n;"),
    ("increment", "red.global.inc.u32 [%a], 9;"),
    ("volatile_read", "ld.volatile.global.u32 %r1, [%a]; st.global.u32 [%b], %r1;"),
    ("uncached_read_in_a_loop", "L: ld.global.cv.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; st.global.u32 [%b], %r1;"),
    ("acquiring_read", "ld.acquire.gpu.global.u32 %r1, [%a]; st.global.u32 [%b], %r1;"),
    ("barrier_object", ".shared .b64 sh; mov.u32 %r1, sh; mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; "
     "@%p1 st.global.u32 [%a], 1;"),
]


@pytest.mark.parametrize(("name", "body"), CHANGING, ids=[t[0] for t in CHANGING])
def test_kernels_that_may_differ_from_run_to_run_are_not_deterministic(name: str, body: str) -> None:
    assert not program(f".reg .b128 %q; {body}").deterministic


VARYING = [
    ("approximate_exponential", "ex2.approx.f32 %f1, %f2; st.global.f32 [%a], %f1;"),
    ("approximate_division", "div.full.f32 %f1, %f2, %f3; st.global.f32 [%a], %f1;"),
    ("approximate_root", "rsqrt.approx.f32 %f1, %f2; st.global.f32 [%a], %f1;"),
    ("tanh", "tanh.approx.f32 %f1, %f2; st.global.f32 [%a], %f1;"),
    ("multiprocessors", "mov.u32 %r1, %nsmid; st.global.u32 [%a], %r1;"),
    ("warps_of_the_device", "mov.u32 %r1, %nwarpid; st.global.u32 [%a], %r1;"),
    ("shared_bytes_of_the_device", "mov.u32 %r1, %total_smem_size; st.global.u32 [%a], %r1;"),
    ("elected_lane", "elect.sync %r1|%p1, -1; @%p1 st.global.u32 [%a], 1;"),
    ("contracted", "mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5; st.global.f32 [%a], %f4;"),
    ("contracted_difference", "mul.f32 %f1, %f2, %f3; sub.f32 %f4, %f5, %f1; st.global.f32 [%a], %f4;"),
    ("contracted_halves", "mul.f16 %rs1, %rs2, %rs3; add.f16 %rs4, %rs1, %rs5; st.global.b16 [%a], %rs4;"),
    ("contracted_doubles", "mul.f64 %fd1, %fd2, %fd3; add.f64 %fd4, %fd1, %fd5; st.global.f64 [%a], %fd4;"),
    ("contracted_after_a_move", "mul.f32 %f1, %f2, %f3; mov.b32 %r1, %f1; mov.b32 %f4, %r1; add.f32 %f5, %f4, %f6; "
     "st.global.f32 [%a], %f5;"),
    ("contracted_in_a_loop", "L: add.f32 %f4, %f1, %f5; mul.f32 %f1, %f2, %f4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %n; "
     "@%p1 bra L; st.global.f32 [%a], %f4;"),
    ("contracted_after_negation", "mul.f32 %f1, %f2, %f3; neg.f32 %f4, %f1; add.f32 %f5, %f4, %f6; st.global.f32 [%a], %f5;"),
    ("contracted_after_selection", "mul.f32 %f1, %f2, %f3; selp.f32 %f4, %f1, %f6, %p1; add.f32 %f5, %f4, %f6; "
     "st.global.f32 [%a], %f5;"),
    ("contracted_through_a_call", "{ .param .f32 p; .param .f32 q; mul.f32 %f1, %f2, %f3; st.param.f32 [p], %f1; "
     "call (q), same, (p); ld.param.f32 %f4, [q]; } add.f32 %f5, %f4, %f6; st.global.f32 [%a], %f5;"),
    ("contracted_through_local_memory", ".local .f32 lo; mul.f32 %f1, %f2, %f3; st.local.f32 [lo], %f1; ld.local.f32 %f4, [lo]; "
     "add.f32 %f5, %f4, %f6; st.global.f32 [%a], %f5;"),
    ("matrix_product", ".reg .b32 %w<9>; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, "
     "{%w0, %w1, %w2, %w3}, {%w4, %w5}, {%f1, %f2, %f3, %f4}; st.global.f32 [%a], %f1;"),
    ("matrix_fragment", ".reg .b32 %w<8>; wmma.load.a.sync.aligned.row.m16n16k16.global.f16 "
     "{%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}, [%a]; st.global.u32 [%b], %w0;"),
]
SAME = ".func (.param .f32 r) same(.param .f32 x) { .reg .f32 %f<3>; ld.param.f32 %f1, [x]; st.param.f32 [r], %f1; ret; }"


@pytest.mark.parametrize(("name", "body"), VARYING, ids=[t[0] for t in VARYING])
def test_kernels_that_may_differ_between_devices_are_not_device_invariant(name: str, body: str) -> None:
    assert not program(body, SAME).device_invariant


PLAIN = [
    ("rounded", "mul.rn.f32 %f1, %f2, %f3; add.rn.f32 %f4, %f1, %f5; div.rn.f32 %f4, %f4, %f3; sqrt.rn.f32 %f4, %f4; "
     "st.global.f32 [%a], %f4;"),
    ("fused", "fma.rn.f32 %f1, %f2, %f3, %f4; st.global.f32 [%a], %f1;"),
    ("integer_sum", "red.global.add.u32 [%a], 1;"),
    ("atomic_result_not_used", "atom.global.max.s32 %r1, [%a], 1;"),
    ("block_barrier", ".shared .b32 sh; st.shared.u32 [sh], 1; bar.sync 0; ld.shared.u32 %r1, [sh]; st.global.u32 [%a], %r1;"),
    ("shuffle", "shfl.sync.idx.b32 %r1, %n, 0, 31, -1; st.global.u32 [%a], %r1;"),
    ("block_fence", "st.global.u32 [%a], 1; membar.gl;"),
]


@pytest.mark.parametrize(("name", "body"), PLAIN, ids=[t[0] for t in PLAIN])
def test_plain_kernels_are_neither_pinned_nor_doubted(name: str, body: str) -> None:
    found = program(body)
    assert found.opaque is None and not found.pinned and found.deterministic and found.device_invariant
