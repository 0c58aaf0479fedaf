"""References of corpus kernels, where their operator is known: from the CUDA sources, and from what Triton and numba
kernels of these names do."""

from __future__ import annotations

import numpy as np

from tests.references.core import Array, Expected, Inputs, from_bf16, quiet, references
from tests.references.rows import softmax
from tests.references.tables import attention

saxpy_file = references("nvcc_k01_saxpy_sm80")
sgemm_file = references("nvcc_k02_sgemm_sm80")
softmax_file = references("nvcc_k03_softmax_sm80")
norm_file = references("nvcc_k04_norm_sm80")
paged_file = references("nvcc_k06_paged_sm80")
embed_file = references("nvcc_k07_embed_sm80")
argmax_file = references("nvcc_k08_argmax_sm80")
silu_file = references("nvcc_k10_silu_sm80")
global_file = references("nvcc_k12_devglobal_sm80")
mma_file = references("nvcc_k14_mma_sm80")
coop_file = references("nvcc_k15_coop_sm80")


@saxpy_file("saxpy", rtol=2e-6, atol=1e-6)
@saxpy_file("saxpy_gs", rtol=2e-6, atol=1e-6)
@quiet
def saxpy(k: Inputs) -> Expected:
    return {"y": (np.float64(k.a) * k.x + k.y).astype(np.float32)}


@saxpy_file()
def add_vec4(k: Inputs) -> Expected:
    return {"y": k.x + k.z}


@sgemm_file("sgemm_tiled", rtol=1e-4, atol=1e-4)
@sgemm_file("sgemm_rb", rtol=1e-4, atol=1e-4)
def sgemm(k: Inputs) -> Expected:
    return {"C": k.A.reshape(k.M, k.K).astype(np.float64) @ k.B.reshape(k.K, k.N)}


@softmax_file("softmax_row", rtol=1e-5, atol=1e-7)
@softmax_file("softmax_warp", rtol=1e-5, atol=1e-7)
def softmax_rows(k: Inputs) -> Expected:
    return {"y": softmax(k.x.reshape(-1, k.n)).ravel()}


def rms(x: Array, weight: Array, eps: float) -> Array:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(1, keepdims=True) + eps) * weight


@norm_file(rtol=1e-5, atol=1e-6)
def rmsnorm_f32(k: Inputs) -> Expected:
    return {"o": rms(k.x.reshape(-1, k.n), k.w, k.eps).ravel()}


@norm_file(rtol=1e-2, atol=1e-3)
def rmsnorm_bf16(k: Inputs) -> Expected:
    return {"o": rms(from_bf16(k.x).reshape(-1, k.n), from_bf16(k.w), k.eps).ravel()}


@norm_file(rtol=1e-2, atol=1e-2)
def layernorm_h2(k: Inputs) -> Expected:
    x = k.x.reshape(-1, 2 * k.n2).astype(np.float64)
    d = x - x.mean(1, keepdims=True)
    return {"o": (d / np.sqrt((d * d).mean(1, keepdims=True) + k.eps) * k.g + k.b).ravel()}


@paged_file(rtol=1e-3, atol=1e-4)
def paged_attn_decode(k: Inputs) -> Expected:
    caches = [a.reshape(-1, k.bs, k.nkv, k.hd) for a in (k.kc, k.vc)]
    q = k.q.reshape(len(k.len), k.nh, k.hd).astype(np.float64)
    return {"out": attention(q, *caches, k.bt, k.len, k.scale).ravel()}


@paged_file()
def kv_write(k: Inputs) -> Expected:
    cache = k.kc.reshape(-1, k.row) if k.row else np.zeros((99, 0))
    kept = k.slot >= 0
    cache[k.slot[kept]] = k.k.reshape(len(kept), k.row)[kept].astype(np.float16)
    return {"kc": cache.ravel()}


@paged_file(rtol=1e-5, atol=1e-6)
def batched_ptr_axpy(k: Inputs) -> Expected:
    return {y: y.data + np.float64(k.a) * x.data for y, x in zip(k.ys.values, k.xs.values, strict=True)}


@embed_file()
def embed(k: Inputs) -> Expected:
    return {"o": k.tab.reshape(-1, 2 * k.d2)[k.ids].ravel() if k.d2 else k.o}


@embed_file()
def transpose32(k: Inputs) -> Expected:
    return {"o": k.x.reshape(k.R, k.C).T.ravel()}


@argmax_file()
def argmax_atomic(k: Inputs) -> Expected:
    if not k.n:
        return {"best": [0]}
    at = int(k.x.argmax())
    bits = int(k.x.view(np.uint32)[at])
    ordered = bits ^ 0xFFFFFFFF if bits >> 31 else bits | 1 << 31
    return {"best": np.array([ordered << 32 | (~at & 0xFFFFFFFF)], np.uint64)}


@argmax_file(rtol=1e-5)
def hist(k: Inputs) -> Expected:
    return {"h": k.h + np.bincount(k.x & 255, minlength=256), "sum": k.sum + k.x.sum(dtype=np.float64)}


@argmax_file(rtol=1e-4, atol=1e-4)
def lastblock(k: Inputs) -> Expected:
    owner = np.arange(k.n) // 256 % k.blocks
    part = np.bincount(owner, k.x, k.blocks)
    return {"part": part, "out": [part.sum()]}


@silu_file(rtol=1e-2, atol=1e-3)
def silu_mul(k: Inputs) -> Expected:
    g, u = from_bf16(k.gu).reshape(-1, 2, k.d).astype(np.float64).transpose(1, 0, 2)
    return {"o": (g / (1 + np.exp(-g)) * u).ravel()}


@silu_file(rtol=1e-4, atol=1e-5)
def gelu_tanh(k: Inputs) -> Expected:
    v = k.x.astype(np.float64)
    return {"x": 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))}


@global_file(rtol=1e-4, atol=1e-4)
def use_call(k: Inputs) -> Expected:
    def helper(start: int, count: int) -> float:
        return float(k.x[start: start + count].astype(np.float64) @ np.arange(count))

    return {"o": [helper(0, i) + helper(k.n, i) for i in range(k.threads * k.blocks)]}


@global_file()
def use_indirect_call(k: Inputs) -> Expected:
    return {"o": k.o * np.float32(2) if k.k else k.o + np.float32(1)}


@global_file()
def use_printf_assert(k: Inputs) -> Expected:
    return {"o": np.full(k.threads, k.n, np.float32)}


@mma_file(rtol=1e-3, atol=1e-3)
def wmma_gemm(k: Inputs) -> Expected:
    return {"C": k.A.reshape(k.M, k.K).astype(np.float64) @ k.B.reshape(k.N, k.K).T}


@mma_file(rtol=1e-3, atol=1e-3)
def hgemm_cpasync(k: Inputs) -> Expected:
    return {"C": k.A.reshape(k.M, k.K).astype(np.float64) @ k.B.reshape(k.K, k.N)}


@coop_file(rtol=1e-4, atol=1e-4)
def cg_reduce(k: Inputs) -> Expected:
    return {"out": k.out + k.x.sum(dtype=np.float64)}


@coop_file()
def cg_grid(k: Inputs) -> Expected:
    return {"y": k.x * np.float32(2), "x": k.x[::-1] * np.float32(2)}


@coop_file(unordered=True)
def cg_coalesced(k: Inputs) -> Expected:
    kept = k.x[k.x > 0]
    return {"out": kept, "cnt": [len(kept)]}


@references("triton_add_kernel_sm80")()
def add_kernel(k: Inputs) -> Expected:
    return {"out": k.x + k.y}


@references("triton_softmax_kernel_sm80")(rtol=1e-5, atol=1e-7)
def softmax_kernel(k: Inputs) -> Expected:
    out = k.out
    for r in range(k.rows):
        row = k.x[r * k.x_stride: r * k.x_stride + k.columns]
        out[r * k.out_stride: r * k.out_stride + k.columns] = softmax(row[None])[0]
    return {"out": out}


@references("triton_matmul_kernel_sm80")(rtol=2e-3, atol=2e-3)
def matmul_kernel(k: Inputs) -> Expected:
    return {"c": k.a.reshape(k.M, k.K).astype(np.float64) @ k.b.reshape(k.K, k.N)}


@references("triton_flash_kernel_sm80")(rtol=1e-2, atol=5e-3)
def flash_kernel(k: Inputs) -> Expected:
    heads = k.grid[1]
    shape, strides = (heads, k.N, 64), (2 * k.stride_h, 2 * k.stride_m, 2)
    q, key, value = (
        np.lib.stride_tricks.as_strided(t, shape, strides).astype(np.float64) for t in (k.q, k.k, k.v))
    score = np.where(np.tri(k.N, dtype=bool), q @ key.transpose(0, 2, 1) * k.scale, -np.inf)
    weight = np.exp2(score - score.max(2, keepdims=True))  # the caller folds log2(e) into the scale
    out = k.o
    np.lib.stride_tricks.as_strided(out, shape, strides)[:] = weight @ value / weight.sum(2, keepdims=True)
    return {"o": out}


def numba_array(k: Inputs, name: str) -> tuple[Array, Array]:
    """A copy of the buffer behind a numba array argument, and the array as a view of it."""
    data = k.case.arguments[f"{name}.data"]
    buffer = getattr(k, f"{name}.data")
    start = getattr(data, "offset", 0) // 4
    dimensions = 2 if f"{name}.shape1" in k.case.arguments else 1
    shape, strides = ([getattr(k, f"{name}.{word}{d}") for d in range(dimensions)] for word in ("shape", "stride"))
    return buffer, np.lib.stride_tricks.as_strided(buffer[start:], shape, strides)


def numba_values(k: Inputs, name: str) -> Array:
    """The values of a numba array argument, float64."""
    return numba_array(k, name)[1].astype(np.float64)


def numba_result(k: Inputs, name: str, value: Array) -> Expected:
    """The whole buffer behind an array argument after ``value`` was stored to the array."""
    buffer, target = numba_array(k, name)
    target[...] = value
    return {f"{name}.data": buffer}


@references("numba_saxpy_sm80")("saxpy", rtol=2e-6, atol=1e-6)
def numba_saxpy(k: Inputs) -> Expected:
    return numba_result(k, "y", k.a * numba_values(k, "x") + numba_values(k, "y"))


@references("numba_red_sm80")("red", rtol=1e-4, atol=1e-4)
def numba_red(k: Inputs) -> Expected:
    return numba_result(k, "out", numba_values(k, "out") + numba_values(k, "x").sum())


@references("numba_mm_sm80")("mm", rtol=1e-4, atol=1e-4)
def numba_mm(k: Inputs) -> Expected:
    return numba_result(k, "c", numba_values(k, "a") @ numba_values(k, "b"))
