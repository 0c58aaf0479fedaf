"""All kernels with launches: the engine leaves what the interpreter leaves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ptxparse.model import Instruction
from softgpu import engine
from softgpu.engine.flatten import flatten
from softgpu.engine.options import Options
from tests.engine_compare import run_both
from tests.launches.catalog import all_kernels
from tests.launches.expectations import UNORDERED
from tests.launches.place import Placed, entry_of, module_of, place, text_of
from tests.launches.registry import KernelLaunches
from tests.material import require_material
from tests.nodriver.engine.tiny import text_of as tiny

REFUSED = {
    "bulk_sm90:bulk_copy": ("mbarrier", "cp", "fence"),
    "bulk_sm90:bulk_store": ("cp", "fence"),
    "triton_tma_matmul_sm90:tma_matmul": ("mbarrier", "cp", "fence", "wgmma", "tensormap"),
}
"""Kernels that are not compiled, and the opcodes of what the engine does not know; the error names one of those."""

SLOW = frozenset({
    "gather:paged_attention", "tensor:wmma_half", "tensor:wmma_bfloat16", "nvcc_k02_sgemm_sm80:sgemm_rb",
    "nvcc_k03_softmax_sm80:softmax_warp", "nvcc_k03_softmax_sm80:softmax_row", "nvcc_k14_mma_sm80:hgemm_cpasync",
    "nvcc_k14_mma_sm80:wmma_gemm", "nvcc_k06_paged_sm80:paged_attn_decode", "triton_flash_kernel_sm80:flash_kernel",
    "triton_matmul_kernel_sm80:matmul_kernel", "triton_softmax_kernel_sm80:softmax_kernel", "rows:softmax_of_warp",
    "calls:call_table_divergent",
    *(f"tinygrad_{by}_{name}_sm80:{name}" for by in ("ptx", "cuda") for name in (
        "r_4_2_32_4_2_2_4_4_16_2", "r_8_4_32_4_2_2_4_4_64", "r_8_2_16_4_4_64_4")),
})
"""Kernels that take more than a second to compile or to interpret: not in the sample of the normal run."""

KERNELS = {kernel.name: kernel for kernel in all_kernels() if kernel.name not in REFUSED}
SAMPLE = [name for name in KERNELS if name not in SLOW][::3]

TOLERANCE = {np.dtype(np.float32): 2.0**-19, np.dtype(np.float64): 2.0**-19, np.dtype(np.float16): 2.0**-10}
"""By type of a buffer of a kernel with approximate functions or matrix products: the largest difference, relative to
the buffer's largest value. A function's error is below 2**-21 of its result; a sum of n such terms, the largest here
has some hundred, adds up to a small multiple of that. Halves are rounded to 11 bits at the end, so that two results
on both sides of a rounding differ by a unit of 2**-10."""

BFLOATS = {
    "rows:rmsnorm_bfloat162": "rsqrt.approx before the results are rounded to bfloat16",
    "nvcc_k04_norm_sm80:rmsnorm_bf16": "rsqrt.approx before the results are rounded to bfloat16",
    "nvcc_k10_silu_sm80:silu_mul": "ex2.approx and rcp.approx before the results are rounded to bfloat16",
}
"""Kernels whose 16-bit integers are bfloat16 numbers, and why those may differ: by a unit of 8 bits, 2**-7."""

FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")


def is_inexact(instruction: Instruction) -> bool:
    """Approximate functions, and matrix products of numbers that are not integers."""
    modifiers = instruction.modifiers
    return ("approx" in modifiers or "full" in modifiers or instruction.opcode == "mma"
            or (instruction.opcode == "wmma" and "mma" in modifiers))


@cache
def inexact(kernel: KernelLaunches) -> bool:
    return any(is_inexact(i) for i in flatten(module_of(kernel), entry_of(kernel)).instructions)


@cache
def pool_of(workers: int) -> engine.Pool:
    return engine.Pool(workers)


def compared(kernel: KernelLaunches, placed: Placed, **options: Any) -> dict[int, bytes]:
    """Run a case in both; the contents of those buffers in the engine that differ within the tolerance, by address."""
    case = placed.case
    pool = pool_of(1 if kernel.name in UNORDERED else 3)
    outcome = run_both(placed.memory, placed.loaded, text_of(kernel), placed.entry.name, case.grid, case.block,
                       placed.parameters, shared=case.shared, cooperative=case.cooperative, pool=pool, deadline=60.0,
                       **options)
    if outcome.expected_error is not None:
        assert outcome.error is not None, outcome.expected_error
        assert outcome.error.line == getattr(outcome.expected_error, "line", 0), (
            outcome.error, outcome.expected_error)
        return {}
    assert outcome.error is None, outcome.error
    assert outcome.result is not None and outcome.expected is not None
    assert outcome.result.output == outcome.expected.output
    found = {}
    for address, theirs, mine in outcome.differing:
        name, dtype = _buffer_at(placed, address)
        assert inexact(kernel), f"{name} differs: {theirs[:64]}, {mine[:64]}"
        assert _close(theirs, mine, dtype, kernel), f"{name} is too far off"
        found[address] = mine.tobytes()
    return found


def _buffer_at(placed: Placed, address: int) -> tuple[str, np.dtype[Any]]:
    for buffer in placed.case.buffers():
        if placed.addresses[buffer.name] == address and isinstance(buffer.data, np.ndarray):
            return buffer.name, buffer.data.dtype
    return f"{address:#x}", np.dtype(np.uint8)


def _close(theirs: npt.NDArray[np.uint8], mine: npt.NDArray[np.uint8], dtype: np.dtype[Any],
           kernel: KernelLaunches) -> bool:
    tolerance = TOLERANCE.get(dtype)
    expected, found = [part.view(dtype).astype(np.float64) for part in (theirs, mine)]
    if kernel.name in BFLOATS and dtype == np.uint16:
        tolerance = 2.0**-7
        expected, found = [(part.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
                           for part in (theirs, mine)]
    if tolerance is None:
        return False
    finite = np.isfinite(expected)
    if not np.array_equal(expected[~finite], found[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return False
    if not finite.any():
        return True
    difference = np.abs(expected[finite] - found[finite]).max()
    return bool(difference <= tolerance * np.abs(expected[finite]).max())


def check(name: str, count: int, seed: int = 0, **options: Any) -> list[dict[int, bytes]]:
    kernel = KERNELS[name]
    return [compared(kernel, place(kernel, case), **options) for case in kernel.first(count, seed)]


def check_families(name: str, count: int, seed: int = 0) -> bool:
    """Check for both families of cards; whether they differ."""
    first = check(name, count, seed, rounding=0)
    return inexact(KERNELS[name]) and check(name, count, seed, rounding=1) != first


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_agrees_with_the_interpreter(name: str) -> None:
    check_families(name, 2)


@pytest.mark.parametrize("name", SAMPLE[::4])
def test_code_for_any_block_agrees(name: str) -> None:
    check(name, 1, any_block=True)


@pytest.mark.long
@pytest.mark.parametrize("name", KERNELS)
def test_all_kernels_agree(name: str) -> None:
    check_families(name, 6, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("name", KERNELS)
def test_all_kernels_agree_for_any_block(name: str) -> None:
    check(name, 3, seed=2, any_block=True)


@pytest.mark.parametrize("name", ["math:approximate", "rope:rope_angles", "tensor:mma_f16", "tensor:mma_tf32"])
def test_families_of_cards_differ(name: str) -> None:
    assert check_families(name, 2)


def test_every_kernel_is_compared_or_refused() -> None:
    names = [kernel.name for kernel in all_kernels()]
    assert len(names) == len(set(names))
    assert all(name in KERNELS or name.startswith("nvcc") for name in BFLOATS)
    assert all(kernel.name in REFUSED for kernel in all_kernels() if kernel.refused)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_kernels_name_the_instruction(name: str) -> None:
    found = [kernel for kernel in all_kernels() if kernel.name == name]
    if not found:
        require_material()
    (kernel,) = found
    assert _refused(text_of(kernel), entry_of(kernel).name).partition(".")[0] in REFUSED[name]


def _refused(text: str, kernel: str) -> str:
    """The mnemonic for which a kernel is refused; the error names it and its line."""
    module = engine.LoadedModule(text, engine.Memory())
    with pytest.raises(engine.UnsupportedKernel) as caught:
        module.kernel(kernel, Options((32, 1, 1)))
    error = caught.value
    assert error.mnemonic in text.splitlines()[error.line - 1]
    assert str(error).startswith(f"line {error.line}: the engine does not compile {error.mnemonic}")
    return error.mnemonic


INSTRUCTIONS: Sequence[tuple[str, str]] = [
    ("mbarrier.init.shared::cta.b64", "[s], 1"), ("mbarrier.arrive.shared::cta.b64", "%rd1, [s]"),
    ("mbarrier.try_wait.parity.shared::cta.b64", "%p1, [s], %r1"), ("wgmma.fence.sync.aligned", ""),
    ("wgmma.commit_group.sync.aligned", ""), ("wgmma.wait_group.sync.aligned", "0"),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
     "{%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0"),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "[s], [%a], 16, [s]"),
    ("cp.async.bulk.commit_group", ""), ("cp.async.mbarrier.arrive.shared::cta.b64", "[s]"),
    ("prefetch.tensormap", "[%a]"), ("fence.proxy.tensormap::generic.release.gpu", ""),
    ("barrier.cluster.arrive.aligned", ""), ("barrier.cluster.wait.aligned", ""),
    ("mapa.shared::cluster.u32", "%r1, %r2, 0"), ("getctarank.shared::cluster.u32", "%r1, %r2"),
    ("ld.shared::cluster.u32", "%r1, [%r2]"), ("multimem.ld_reduce.global.add.f32", "%f1, [%a]"),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32", "[%r1], %r2, [%r3]"),
    ("tex.1d.v4.f32.s32", "{%f1, %f2, %f3, %f4}, [%a, {%r1}]"), ("suld.b.1d.b32.trap", "%r1, [%a, {%r2}]"),
    ("sust.b.1d.b32.trap", "[%a, {%r2}], %r1"), ("txq.width.b32", "%r1, [%a]"), ("vote.ballot.b32", "%r1, %p1"),
    ("shfl.up.b32", "%r1, %r2, 1, 0"), ("alloca.u64", "%rd1, 16"), ("stacksave.u64", "%rd1"),
    ("vadd.s32.s32.s32", "%r1, %r2, %r3"), ("add.rz.s32", "%r1, %r2, %r3"), ("mul.lo.f32", "%f1, %f2, %f3"),
    ("ld.global.weird.u32", "%r1, [%a]"), ("atom.global.mul.u32", "%r1, [%a], 2"), ("frobnicate.u32", "%r1"),
]


@pytest.mark.parametrize(("mnemonic", "operands"), INSTRUCTIONS, ids=[m for m, _ in INSTRUCTIONS])
def test_refused_instructions_are_named(mnemonic: str, operands: str) -> None:
    assert _refused(tiny(f"{mnemonic} {operands};", before=".shared .align 16 .b8 s[64];\n"), "k") == mnemonic
