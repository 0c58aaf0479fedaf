"""References of ``atomics.cu``, ``sync.cu`` and ``warp.cu``: what threads do together."""

from __future__ import annotations

import numpy as np

from tests.references.core import Array, Expected, Inputs, quiet, references

atomics = references("atomics")
sync = references("sync")
warp = references("warp")


@atomics()
@quiet
def atomics_int(k: Inputs) -> Expected:
    x, s, u = k.x, k.s, k.u
    v = x.view(np.uint32)
    least, most = [np.append(x, 0), np.append(x, 0)] if not len(x) else [x, x]
    if len(x):
        s = np.array([s[0] + x.sum(dtype=np.int32), s[1] - x.sum(dtype=np.int32), min(s[2], least.min()),
                      max(s[3], most.max())], np.int32)
        u = np.array([
            np.bitwise_and.reduce(v | np.uint32(255)) & u[0], np.bitwise_or.reduce(v) | u[1],
            np.bitwise_xor.reduce(v) ^ u[2], min(u[3], v.min()), max(u[4], v.max())], np.uint32)
    return {"s": s, "u": u}


@atomics()
@quiet
def atomics_long(k: Inputs) -> Expected:
    x, s, u = k.x, k.s, k.u
    if len(x):
        v = x.view(np.uint64)
        s = np.array([min(s[0], x.min()), max(s[1], x.max())])
        u = np.array([u[0] + v.sum(dtype=np.uint64), max(u[1], v.max()), u[2] | np.bitwise_or.reduce(v),
                      u[3] ^ np.bitwise_xor.reduce(v)], np.uint64)
    return {"s": s, "u": u}


@atomics(rtol=1e-4, atol=1e-4, partial=True)
def atomics_float(k: Inputs) -> Expected:
    return {"f": k.f + k.x.sum(dtype=np.float64), "d": k.d + k.x.astype(np.float64).sum()}


@atomics(unordered=True)
def atomics_ticket(k: Inputs) -> Expected:
    counters = [k.n, *(_wrapped(k.n, start, step) for start, step in ((3, 1), (4, -1)))]
    return {"taken": np.arange(k.n), "counters": counters}


def _wrapped(times: int, value: int, step: int) -> int:
    """``atomicInc`` or ``atomicDec`` with limit 9, so many times."""
    for _ in range(times):
        value = (0 if value >= 9 else value + 1) if step > 0 else (9 if value == 0 or value > 9 else value - 1)
    return value


@atomics(partial=True)
def atomics_exchange(k: Inputs) -> Expected:
    """Partial by nature: which value stays is open. What was seen and what stayed are the start and all indices."""
    return {}


@atomics()
def atomics_max_float(k: Inputs) -> Expected:
    return {"most": [max(k.most[0], *k.x)] if k.n else k.most}


@atomics()
@quiet
def atomics_scopes(k: Inputs) -> Expected:
    y, grid = k.y, k.blocks
    for block in range(grid):
        x = k.x[block * 32: block * 32 + 32]
        y[block] += x.sum(dtype=np.int32)
        y[grid] += x.sum(dtype=np.int32)
        y[grid + 1 + block] = x.max(initial=y[grid + 1 + block]) if grid + 1 + block < len(y) else 0
    return {"y": y}


@atomics()
@quiet
def atomics_shared(k: Inputs) -> Expected:
    y = []
    for block in range(k.blocks):
        x = k.x[block * 32: block * 32 + 32]
        bits = np.bitwise_or.reduce(np.uint32(1) << (x & 31).astype(np.uint32)) if len(x) else np.uint32(0)
        wide = int(x.view(np.uint32).astype(np.uint64).sum())
        y += [x.sum(dtype=np.int32), x.max(initial=-2147483647), int(bits), wide >> 3]
    return {"y": np.array(y).astype(np.int64).astype(np.int32)}


@sync()
def chain_scan(k: Inputs) -> Expected:
    return {"prefix": k.x.cumsum(dtype=np.int32), "flag": np.ones(k.blocks, np.int32)}


@sync()
@quiet
def grid_reverse(k: Inputs) -> Expected:
    return {"x": k.x[::-1] + np.int32(1), "y": k.x + np.int32(1)}


@sync()
def barrier_votes(k: Inputs) -> Expected:
    positive = np.zeros(k.blocks * k.threads, bool)
    positive[: k.n] = k.x > 0
    p = positive.reshape(k.blocks, k.threads)
    return {"y": p.sum(1) * 4 + p.all(1) * 2 + p.any(1)}


@sync()
@quiet
def barrier_named(k: Inputs) -> Expected:
    return {"y": (k.x * np.int32(2)).reshape(-1, 32)[:, ::-1].ravel()}


@sync()
def hand_over(k: Inputs) -> Expected:
    values = 3 * np.arange(k.threads)
    return {"data": values, "y": values, "flag": [1]}


@sync()
def tiles_of_eight(k: Inputs) -> Expected:
    return {"y": k.x.reshape(-1, 8).sum(1, dtype=np.int32)}


def lanes(x: Array) -> Array:
    """One row a warp."""
    return x.reshape(-1, 32)


@warp()
def shuffles(k: Inputs) -> Expected:
    x, lane = lanes(k.x), np.arange(32)
    sources = [
        (lane * 7 + 3) & 31, np.where(lane < 3, lane, lane - 3), np.where(lane + 5 > 31, lane, lane + 5), lane ^ 9,
        np.where(lane % 8 + 2 > 7, lane, lane + 2), lane // 4 * 4 + 1]
    return {"y": np.stack([x[:, s] for s in sources], axis=2).ravel()}


@warp()
def shuffle_wide(k: Inputs) -> Expected:
    x, lane = lanes(k.x), np.arange(32)
    return {"y": (x[:, lane ^ 1] + x[:, np.where(lane % 16 == 0, lane, lane - 1)]).ravel()}


@warp()
def votes(k: Inputs) -> Expected:
    x = lanes(k.x)
    ballot = ((x > 0) << np.arange(32)).sum(1).astype(np.uint32)[:, None] * np.ones(32, np.uint32)
    before = (ballot & ((np.uint32(1) << np.arange(32, dtype=np.uint32)) - np.uint32(1)))
    agreement = ((x > 100).any(1) * 2 + (x > -100).all(1))[:, None] * np.ones(32, np.uint32)
    active = np.where(x > 0, ballot, 0)
    return {"y": np.stack([ballot, agreement, np.bitwise_count(before), active], axis=2).astype(np.uint32).ravel()}


@warp()
def matches(k: Inputs) -> Expected:
    def same(x: Array) -> Array:
        return ((x[:, :, None] == x[:, None, :]) << np.arange(32)).sum(2).astype(np.uint32)

    x = lanes(k.x)
    uniform = (x == x[:, :1]).all(1, keepdims=True)
    everyone = np.where(uniform, np.uint32(0xFFFFFFFE), np.uint32(0)) * np.ones(32, np.uint32)
    return {"y": np.stack([same(x), everyone, same(lanes(k.w))], axis=2).astype(np.uint32).ravel()}


@warp()
@quiet
def redux(k: Inputs) -> Expected:
    x = lanes(k.x)
    v = x.view(np.uint32)
    parts = [
        x.sum(1, dtype=np.int32), x.min(1), v.max(1).view(np.int32), np.bitwise_and.reduce(x, axis=1),
        np.bitwise_or.reduce(x, 1), np.bitwise_xor.reduce(x, 1)]
    return {"y": np.repeat(np.stack(parts, axis=1), 32, axis=0).ravel()}


@warp()
def shuffle_partial(k: Inputs) -> Expected:
    y = np.full(len(k.y), -1)
    for start in range(0, len(y), 32):
        y[start: start + 16] = k.x[start: start + 16].max()
    return {"y": y}


@warp(unordered=True)
def compact(k: Inputs) -> Expected:
    kept = k.x[k.x >= 0]
    return {"y": kept, "count": [len(kept)]}


@warp()
def lane_registers(k: Inputs) -> Expected:
    lane = np.tile(np.arange(k.threads, dtype=np.uint64) % 32, k.blocks)
    bit = np.uint64(1) << lane
    parts = [lane, bit - np.uint64(1), bit, np.uint64(1 << 32) - bit]
    return {"y": np.stack(parts, axis=1).astype(np.uint32).ravel()}
