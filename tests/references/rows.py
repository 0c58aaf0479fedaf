"""References of ``matmul.cu``, ``rows.cu``, ``reduce.cu`` and ``tensor.cu``."""

from __future__ import annotations

import numpy as np

from tests.references.core import Array, Expected, Inputs, from_bf16, quiet, references

matmul = references("matmul")
rows = references("rows")
reduce = references("reduce")
tensor = references("tensor")


@matmul("transpose_naive")
@matmul("transpose_shared")
def transpose(k: Inputs) -> Expected:
    return {"y": k.x.reshape(k.rows, k.columns).T.ravel()}


@matmul("matmul_naive", rtol=1e-4, atol=1e-4)
@matmul("matmul_tiled", rtol=1e-4, atol=1e-4)
def product(k: Inputs) -> Expected:
    return {"c": k.a.reshape(k.m, k.k).astype(np.float64) @ k.b.reshape(k.k, k.n)}


@matmul(rtol=1e-4, atol=1e-4)
def matmul_blocked(k: Inputs) -> Expected:
    return {"c": k.a.reshape(32 * k.grid[1], k.k).astype(np.float64) @ k.b.reshape(k.k, k.n)}


@matmul(rtol=1e-12, atol=1e-12)
def matmul_batched(k: Inputs) -> Expected:
    c = k.c
    for z in range(k.grid[2]):
        a = k.a[z * k.stride_a:][: k.m * k.k].reshape(k.m, k.k)
        b = k.b[z * k.stride_b:][: k.k * k.n].reshape(k.k, k.n)
        c[z * k.stride_c: z * k.stride_c + k.m * k.n] = (a @ b).ravel()
    return {"c": c}


@matmul()
def matmul_int(k: Inputs) -> Expected:
    return {"c": k.a.reshape(k.m, k.k) @ k.b.reshape(k.k, k.n)}


@matmul(rtol=1e-4, atol=1e-4)
def triangular_solve_row(k: Inputs) -> Expected:
    lower = np.zeros((k.n, k.n))
    lower[np.tril_indices(k.n)] = k.l
    return {"y": lower @ k.x.astype(np.float64)}


def softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@rows("softmax_block", rtol=1e-5, atol=1e-7)
@rows("softmax_of_warp", rtol=1e-5, atol=1e-7)
def softmax_rows(k: Inputs) -> Expected:
    return {"y": softmax(k.x.reshape(-1, k.n)).ravel()}


@rows(rtol=1e-4, atol=1e-4)
def layernorm(k: Inputs) -> Expected:
    x = k.x.reshape(-1, k.n).astype(np.float64)
    d = x - x.mean(1, keepdims=True)
    return {"y": (d / np.sqrt((d * d).mean(1, keepdims=True) + k.eps) * k.gain + k.bias).ravel()}


@rows(rtol=1e-5, atol=1e-6)
def rmsnorm(k: Inputs) -> Expected:
    x = k.x.reshape(-1, k.n).astype(np.float64)
    return {"y": (x / np.sqrt((x * x).mean(1, keepdims=True) + k.eps) * k.gain).ravel()}


@rows(rtol=1e-2, atol=1e-3)
def rmsnorm_bfloat162(k: Inputs) -> Expected:
    x = from_bf16(k.x).reshape(-1, 2 * k.n).astype(np.float64)
    return {"y": (x / np.sqrt((x * x).mean(1, keepdims=True) + k.eps) * from_bf16(k.gain)).ravel()}


@rows(rtol=1e-4, atol=1e-4)
def gemv_warp(k: Inputs) -> Expected:
    return {"y": k.a.reshape(k.rows, 4 * k.vectors).astype(np.float64) @ k.x}


@rows()
def argmax_block(k: Inputs) -> Expected:
    return {"where": k.x.reshape(-1, k.n).argmax(1)}


@rows()
def select_largest(k: Inputs) -> Expected:
    x = k.x.reshape(-1, k.n)
    order = np.argsort(-x, axis=1, kind="stable")[:, : k.k]
    used = np.zeros_like(x, np.uint8)
    np.put_along_axis(used, order, 1, axis=1)
    return {"indices": order.ravel(), "values": np.take_along_axis(x, order, 1).ravel(), "used": used.ravel()}


@rows(rtol=2e-3, atol=1e-4)
def silu_gate(k: Inputs) -> Expected:
    x = k.x.reshape(-1, 2, k.n).astype(np.float64)
    return {"y": (x[:, 1] * x[:, 0] / (1 + np.exp(-x[:, 0]))).ravel()}


@reduce(rtol=1e-12, atol=1e-12)
def sum_blocks_f64(k: Inputs) -> Expected:
    owner = np.arange(k.n) // k.threads % k.blocks
    return {"part": np.bincount(owner, k.x, k.blocks)}


@reduce(rtol=1e-4, atol=1e-4)
def dot_atomic(k: Inputs) -> Expected:
    return {"y": k.y + k.a.astype(np.float64) @ k.b}


@reduce()
def histogram(k: Inputs) -> Expected:
    return {"bins": k.bins + np.bincount(k.x >> 2, minlength=64)}


@reduce()
def scan_rows(k: Inputs) -> Expected:
    return {"y": k.x.reshape(k.blocks, k.n).cumsum(1).ravel()}


@reduce()
def scan_tree(k: Inputs) -> Expected:
    x = k.x.reshape(k.blocks, -1)
    return {"y": (x.cumsum(1) - x).ravel()}


@reduce()
def segment_extent(k: Inputs) -> Expected:
    info = np.iinfo(np.int32)
    parts = np.split(k.x, k.ends[:-1]) if k.segments else []
    return {"y": np.array([v for p in parts for v in (p.min(initial=info.max), p.max(initial=info.min))], np.int32)}


@reduce()
def sum_last_block(k: Inputs) -> Expected:
    owner = np.arange(k.n) // 64 % k.blocks
    part = np.zeros(k.blocks, np.int32)
    np.add.at(part, owner, k.x)
    return {"part": part, "total": [part.sum(dtype=np.int32)], "ticket": [0]}


def to_tf32(x: Array) -> Array:
    """Rounded to the nearest tf32, ties away from zero."""
    return ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


@tensor("mma_f16", rtol=1e-4, atol=1e-4)
@tensor("ldmatrix_f16", rtol=1e-4, atol=1e-4)
def mma_halves(k: Inputs) -> Expected:
    return {"c": k.a.reshape(16, 16).astype(np.float64) @ k.b.reshape(16, 8)}


@tensor(rtol=1e-4, atol=1e-4)
def mma_bf16(k: Inputs) -> Expected:
    start = np.tile([[1.0, 2.0]], (16, 4))
    start[8:] += 2
    return {"c": start + from_bf16(k.a).reshape(16, 16).astype(np.float64) @ from_bf16(k.b).reshape(16, 8)}


@tensor(rtol=1e-4, atol=1e-4)
def mma_tf32(k: Inputs) -> Expected:
    return {"c": to_tf32(k.a).reshape(16, 8).astype(np.float64) @ to_tf32(k.b).reshape(8, 8)}


@tensor()
def mma_s8(k: Inputs) -> Expected:
    return {"c": k.a.reshape(16, 32).astype(np.int32) @ k.b.reshape(8, 32).T.astype(np.int32)}


@tensor(rtol=2e-2, atol=3e-2)
def wmma_half(k: Inputs) -> Expected:
    return {"c": k.a.reshape(16 * k.grid[1], k.k).astype(np.float64) @ k.b.reshape(k.k, k.n)}


@tensor(rtol=1e-4, atol=1e-4)
def wmma_bfloat16(k: Inputs) -> Expected:
    product = from_bf16(k.a).reshape(32, 16).astype(np.float64) @ from_bf16(k.b).reshape(8, 16).T
    return {"c": k.c.reshape(32, 8) + product}


@tensor(rtol=1e-5, atol=1e-5)
def async_pipeline(k: Inputs) -> Expected:
    x = k.x.reshape(k.blocks, k.tiles, 4, 32)
    return {"y": x.sum((1, 2), dtype=np.float64).ravel()}


@tensor()
@quiet
def async_zero_fill(k: Inputs) -> Expected:
    padded = np.zeros(64 * k.blocks, np.float32)
    padded[: min(k.n, len(padded))] = k.x[: len(padded)]
    return {"y": padded.reshape(-1, 64)[:, ::-1].ravel()}
