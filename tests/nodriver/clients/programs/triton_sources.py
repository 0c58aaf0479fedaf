"""The Triton kernels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(out, a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


@triton.jit
def softmax(out, x, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * stride + at, inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + at, e / tl.sum(e, 0), inside)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    left, right = a + rows[:, None] * k + inner[None, :], b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(left, (rows[:, None] < m) & (inner[None, :] + start < k), other=0.0)
        y = tl.load(right, (inner[:, None] + start < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
        left += K
        right += K * n
    tl.store(c + rows[:, None] * n + columns[None, :], total, (rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def attention(q, k, v, out, scale, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    rows, width = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    base = tl.program_id(1) * length * D
    query = tl.load(q + base + rows[:, None] * D + width[None, :])
    most = tl.full((M,), -float("inf"), tl.float32)
    sums = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    last = (tl.program_id(0) + 1) * M if CAUSAL else length
    for start in range(0, last, N):
        columns = start + tl.arange(0, N)
        key = tl.load(k + base + columns[None, :] * D + width[:, None])
        scores = tl.dot(query, key) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        e = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        sums = sums * shrink + tl.sum(e, 1)
        value = tl.load(v + base + columns[:, None] * D + width[None, :])
        total = tl.dot(e.to(tl.float16), value, total * shrink[:, None])
        most = new
    tl.store(out + base + rows[:, None] * D + width[None, :], total / sums[:, None])


@triton.jit
def counted(out, ids, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(out + tl.load(ids + at, inside, other=0), 1, inside)
