"""References of ``gather.cu``, ``calls.cu`` and ``control.cu``."""

from __future__ import annotations

import numpy as np

from tests.launches.case import NULL, Buffer, Packed, Pointer
from tests.references.core import Array, Expected, Inputs, quiet, references

gather = references("gather")
calls = references("calls")
control = references("control")


@gather()
def embedding(k: Inputs) -> Expected:
    return {"y": k.table.reshape(-1, k.width)[k.ids].ravel() if k.width else k.y}


@gather()
def gather_int32(k: Inputs) -> Expected:
    return {"y": k.x[k.index]}


@gather(rtol=1e-4, atol=1e-5)
def scatter_add(k: Inputs) -> Expected:
    y = k.y.astype(np.float64)
    np.add.at(y, k.index, k.x)
    return {"y": y}


@gather()
def cache_write(k: Inputs) -> Expected:
    kept = k.slots >= 0
    found = {}
    for cache, fresh in (("keys", k.k), ("values", k.v)):
        lines = getattr(k, cache).reshape(-1, k.width) if k.width else np.zeros((99, 0))
        lines[k.slots[kept]] = fresh.reshape(len(kept), k.width)[kept]
        found[cache] = lines.ravel()
    return found


@gather()
def cache_write_at(k: Inputs) -> Expected:
    keys = k.keys.reshape(k.heads, k.capacity, k.size)
    keys[:, k.position] = k.k.reshape(k.heads, k.size)
    return {"keys": keys}


def attention(q: Array, keys: Array, values: Array, pages: Array, lengths: Array, scale: float) -> Array:
    """``q`` (sequences, heads, size); caches (frames, page, key heads, size). One query a sequence."""
    out = np.empty(q.shape)
    group = q.shape[1] // keys.shape[2]
    for s, length in enumerate(lengths):
        lines = [(a.astype(np.float64)[pages[s]].reshape(-1, *a.shape[2:])[:length]) for a in (keys, values)]
        for h in range(q.shape[1]):
            score = lines[0][:, h // group] @ q[s, h] * scale
            weight = np.exp(score - score.max())
            out[s, h] = weight @ lines[1][:, h // group] / weight.sum()
    return out


@gather(rtol=1e-4, atol=1e-5)
def paged_attention(k: Inputs) -> Expected:
    caches = [a.reshape(-1, k.page, k.key_heads, k.size) for a in (k.keys, k.values)]
    q = k.q.reshape(len(k.lengths), k.heads, k.size).astype(np.float64)
    return {"out": attention(q, *caches, k.pages, k.lengths, k.scale).ravel()}


@gather(rtol=1e-5, atol=1e-5)
def sparse_rows(k: Inputs) -> Expected:
    products = k.values.astype(np.float64) * k.x[k.columns]
    return {"y": np.array([products[a:b].sum() for a, b in zip(k.starts, k.starts[1:], strict=False)])}


@gather(rtol=1e-5, atol=1e-6)
def pointer_table(k: Inputs) -> Expected:
    pairs = zip(k.ys.values, k.xs.values, strict=True)
    return {y: y.data + np.float64(k.a) * x.data for y, x in pairs}


@gather()
def two_level(k: Inputs) -> Expected:
    i = np.arange(k.n)
    frame = i // k.page
    table = k.directory[frame // k.fan]
    return {"y": k.data[k.tables[table * k.fan + frame % k.fan] * k.page + i % k.page]}


@gather()
def list_sum(k: Inputs) -> Expected:
    sums = []
    for node in k.heads.values:
        total = 0
        while isinstance(node, Pointer) and node is not NULL:
            assert isinstance(node.buffer, Buffer) and isinstance(node.buffer.data, Packed)
            node, value = node.buffer.data.values
            total += value
        sums.append(total)
    return {"y": np.array(sums, np.int32)}


@gather()
def bisect(k: Inputs) -> Expected:
    return {"y": np.searchsorted(k.sorted, k.wanted)}


@calls("call_once", rtol=1e-5, atol=1e-5)
def weighted(k: Inputs) -> Expected:
    total = k.x.reshape(k.n, k.width).astype(np.float64) @ np.arange(1, k.width + 1)
    return {"y": total}


@calls(rtol=1e-5, atol=1e-5)
def call_nested(k: Inputs) -> Expected:
    return {"y": np.asarray(weighted(k)["y"]) * 0.5}


@calls()
def call_recursive(k: Inputs) -> Expected:
    sums = np.zeros(max(k.size, k.threads), np.int64)
    sums[: k.size] = k.tree
    for node in range(k.size - 1, 0, -1):
        sums[(node - 1) // 2] += sums[node]
    return {"y": sums[: k.threads].astype(np.int32)}


@calls()
def call_struct_result(k: Inputs) -> Expected:
    x = k.x.reshape(-1, k.width)
    return {"y": np.stack([x.min(1), x.max(1)], axis=1).ravel()}


OPERATIONS = (np.add, np.multiply, np.fmax)


@calls()
def call_table(k: Inputs) -> Expected:
    return {"y": OPERATIONS[k.which](k.a, k.b)}


@calls()
def call_table_divergent(k: Inputs) -> Expected:
    return {"y": np.choose(np.arange(len(k.y)) % 3, [f(k.a, k.b) for f in OPERATIONS])}


@calls()
def assert_positive(k: Inputs) -> Expected:
    return {"y": np.float32(1) / k.x.astype(np.float32)}


@control()
def switch_dense(k: Inputs) -> Expected:
    x, y = k.x, k.y
    arms = [x * x, x ^ 0x5555, x >> 2, x[::-1], -x, y + 1, x * 17 - 4, np.bitwise_count(x).astype(np.int32), x * 0 + 8]
    return {"y": np.choose(x % 9, arms)}


@control()
def early_exit(k: Inputs) -> Expected:
    y = k.y
    for i, v in enumerate(k.x.tolist()):
        if v < 0:
            continue
        for _ in range(8):
            v = (v * 5 + 1 + 2**31) % 2**32 - 2**31
            if int(np.fmod(v, 7)) == 3:
                y[i] = v
                break
    return {"y": y}


@control()
def while_data(k: Inputs) -> Expected:
    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v = 3 * v + 1 if v % 2 else v // 2
            count += 1
        return count

    return {"y": np.array([steps(v) for v in k.x.tolist()], np.int32)}


@control()
def until_zero(k: Inputs) -> Expected:
    y = k.y.reshape(-1, k.width) if k.width else k.y
    for row, x in zip(y, k.x.reshape(-1, k.width) if k.width else y, strict=True):
        stop = np.flatnonzero(x == 0)[0] if (x == 0).any() else len(x)
        row[:stop] = x[:stop] + 1
    return {"y": y.ravel()}


@control(rtol=1e-6, atol=1e-6)
def loop_down(k: Inputs) -> Expected:
    x, y, s = k.x.reshape(k.n, k.threads), np.empty((k.n, k.threads)), np.zeros(k.threads)
    for step in range(k.n - 1, -1, -1):
        s = s * 0.5 + x[step]
        y[step] = s
    return {"y": y.ravel()}


@control()
def loop_triangle(k: Inputs) -> Expected:
    i, j = np.triu_indices(k.n)
    return {"y": i * 1000 + j}


@control()
def loop_step(k: Inputs) -> Expected:
    y = k.y
    for r in range(k.rows):
        for c in range(0, k.columns, k.step):
            y[r * k.columns + c] = r + c
    return {"y": y}


@control()
def loop_double(k: Inputs) -> Expected:
    y, at = k.y, 1
    while at < k.n:
        y[at] = at
        at *= 2
    return {"y": y}


@control()
@quiet
def loop_pointers(k: Inputs) -> Expected:
    x = k.x.reshape(-1, k.n)
    return {"y": (x - x[:, ::-1]).ravel()}


@control()
def block_3d(k: Inputs) -> Expected:
    (gx, gy, gz), (bx, by, bz) = k.grid, k.block
    y = np.zeros((gz, gy, gx, bz, by, bx), np.int32)
    y += k.a * np.arange(bz).reshape(bz, 1, 1)
    y += (k.b * np.arange(gy)).reshape(gy, 1, 1, 1, 1)
    return {"y": y}


@control()
def assembly_scopes(k: Inputs) -> Expected:
    bits = np.array([int(v).bit_length() for v in k.x], np.uint32)
    return {"y": 5 * bits + k.x.astype(np.uint32) + bits}


@control(rtol=1e-6, atol=1e-6)
def stencil(k: Inputs) -> Expected:
    x = k.x.astype(np.float64)
    padded = np.pad(x, 1, mode="wrap" if k.wrap else "edge") if k.n else np.zeros(2)
    return {"y": 0.25 * padded[:-2] + 0.5 * x + 0.25 * padded[2:]}
