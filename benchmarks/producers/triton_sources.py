"""Triton kernels; imported only where Triton is installed."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def fused_multiply_add(out, a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, inside) * tl.load(b + at, inside) + tl.load(c + at, inside), inside)


@triton.jit
def row_norm(out, x, gain, bias, columns, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * stride + at, inside, other=0.0)
    mean = tl.sum(v, 0) / columns
    d = tl.where(inside, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / columns + eps)
    tl.store(out + row * stride + at, d * r * tl.load(gain + at, inside) + tl.load(bias + at, inside), inside)


@triton.jit
def transposed_copy(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], inside)
    tl.store(out + c[None, :] * rows + r[:, None], v, inside)


@triton.jit
def gather_rows(out, table, ids, columns, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    row = tl.load(ids + token)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    tl.store(out + token * columns + at, tl.load(table + row * columns + at, inside), inside)


@triton.jit
def column_sum(out, x, rows, columns, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = c < columns
    s = tl.zeros((BLOCK,), tl.float32)
    for r in range(rows):
        s += tl.load(x + r * columns + c, inside, other=0.0)
    tl.store(out + c, s, inside)


@triton.jit
def small_dot(out, a, b, k, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    s = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        at = start + i
        s += tl.dot(tl.load(a + i[:, None] * k + at[None, :]), tl.load(b + at[:, None] * BLOCK + i[None, :]))
    tl.store(out + i[:, None] * BLOCK + i[None, :], s)


@triton.jit
def sum_atomic(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, other=0.0), 0))
