"""Launches of the corpus kernels made by nvcc; what is legal stands in their CUDA sources."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.launches.case import Buffer, LaunchCase, buffer, f32, i32, pointers, u64
from tests.launches.registry import Registry
from tests.launches.values import bfloats, blocks, cover, element_counts, floats, ints, sizes, spare, x

register = Registry("corpus", "nvcc")


def path(stem: str) -> str:
    return f"corpus/ptx/nvcc_{stem}_sm80.ptx"


def limit(large: bool) -> int:
    return 4000 if large else 300


@register(path("k01_saxpy"))
def saxpy(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, limit(large)):
        yield LaunchCase(x(cover(n, 64, spare(rng))), x(64), {
            "n": i32(n), "a": f32(2.5), "x": buffer(floats(rng, n, special=True)), "y": buffer(floats(rng, n))})


@register(path("k01_saxpy"))
def saxpy_gs(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, grid in zip(element_counts(rng, 64, limit(large) * 2), blocks(1, 2, 3), strict=False):
        yield LaunchCase(x(grid), x(64), {
            "n": i32(n), "a": f32(2.5), "x": buffer(floats(rng, n)), "y": buffer(floats(rng, n))})


@register(path("k01_saxpy"))
def add_vec4(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 32, limit(large) // 2):
        yield LaunchCase(x(cover(n, 32, spare(rng))), x(32), {
            "n": u64(n), **{name: buffer(floats(rng, 4 * n)) for name in ("x", "z", "y")}})


@register(path("k02_sgemm"))
def sgemm_tiled(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    most = 50 if large else 20
    for m, n, k in zip(sizes(rng, 1, 16, 17, high=most), sizes(rng, 1, 16, 20, high=most),
                       sizes(rng, 1, 16, 0, 33, high=40), strict=False):
        yield LaunchCase((cover(n, 16, spare(rng) if large else 0), cover(m, 16), 1), (16, 16, 1), {
            "M": i32(m), "N": i32(n), "K": i32(k), "A": buffer(floats(rng, m * k)), "B": buffer(floats(rng, k * n)),
            "C": buffer(floats(rng, m * n))})


@register(path("k02_sgemm"))
def sgemm_rb(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for gx, gy, steps in zip(sizes(rng, 1, 2, high=2), sizes(rng, 1, high=2), sizes(rng, 1, 2, 0, high=3),
                             strict=False):
        m, n, k = 64 * gy, 64 * gx, 16 * steps
        yield LaunchCase((gx, gy, 1), x(256), {
            "M": i32(m), "N": i32(n), "K": i32(k), "A": buffer(floats(rng, m * k)), "B": buffer(floats(rng, k * n)),
            "C": buffer(floats(rng, m * n))})


def rows(rng: np.random.Generator, large: bool) -> Iterator[tuple[int, int, int]]:
    """Number of rows, length of a row, threads of a block."""
    lengths = sizes(rng, 1, 32, 64, 65, 100, high=900 if large else 150)
    return zip(sizes(rng, 1, 3, high=6 if large else 3), lengths, blocks(64, 32, 96, 128), strict=False)


@register(path("k03_softmax"))
def softmax_row(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n, b in rows(rng, large):
        yield LaunchCase(x(count), x(b), {"x": buffer(floats(rng, count * n)), "y": buffer(floats(rng, count * n)),
            "n": i32(n)})


@register(path("k03_softmax"))
def softmax_warp(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n, b in rows(rng, large):
        yield LaunchCase(x(cover(count, b // 32, spare(rng))), x(b), {
            "x": buffer(floats(rng, count * n)), "y": buffer(floats(rng, count * n)), "rows": i32(count), "n": i32(n)})


@register(path("k04_norm"))
def rmsnorm_f32(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n, b in rows(rng, large):
        yield LaunchCase(x(count), x(b), {
            "o": buffer(floats(rng, count * n)), "x": buffer(floats(rng, count * n)), "w": buffer(floats(rng, n)),
            "n": i32(n), "eps": f32(1e-5)})


@register(path("k04_norm"))
def rmsnorm_bf16(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n, b in rows(rng, large):
        yield LaunchCase(x(count), x(b), {
            "o": buffer(bfloats(rng, count * n)), "x": buffer(bfloats(rng, count * n)), "w": buffer(bfloats(rng, n)),
            "n": i32(n), "eps": f32(1e-5)})


@register(path("k04_norm"))
def layernorm_h2(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n, b in rows(rng, large):
        half = np.float16
        yield LaunchCase(x(count), x(b), {
            "o": buffer(floats(rng, 2 * count * n, half)), "x": buffer(floats(rng, 2 * count * n, half)),
            "g": buffer(floats(rng, 2 * n, half)), "b": buffer(floats(rng, 2 * n, half)), "n2": i32(n),
            "eps": f32(1e-5)})


@register(path("k06_paged"), data_dependent="pages by block table")
def paged_attn_decode(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for sequences, key_heads, page in zip(sizes(rng, 1, 2, high=3), sizes(rng, 1, 2, high=2), blocks(4, 16, 8),
                                          strict=False):
        heads, size = key_heads * int(rng.integers(1, 3)), int(rng.choice([4, 8, 16]))
        lengths = rng.integers(1, 200 if large else 40, sequences).astype(np.int32)
        most = int(-(-lengths.max() // page)) + 1
        frames = int(sum(-(-n // page) for n in lengths)) + 2
        pages = rng.integers(0, frames, (sequences, most)).astype(np.int32)
        cache = frames * page * key_heads * size
        yield LaunchCase((sequences, heads, 1), x(128), {
            "out": buffer(floats(rng, sequences * heads * size)), "q": buffer(floats(rng, sequences * heads * size)),
            "kc": buffer(floats(rng, cache, np.float16)), "vc": buffer(floats(rng, cache, np.float16)),
            "bt": buffer(pages), "len": buffer(lengths), "nh": i32(heads), "nkv": i32(key_heads), "hd": i32(size),
            "bs": i32(page), "maxb": i32(most), "scale": f32(size ** -0.5)}, shared=4 * int(lengths.max()))


@register(path("k06_paged"), data_dependent="slots of the cache")
def kv_write(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for tokens, row in zip(sizes(rng, 1, 5, high=8), sizes(rng, 1, 32, 40, 0, high=100), strict=False):
        slots = tokens + 3
        chosen = rng.permutation(slots)[:tokens].astype(np.int64)
        chosen[rng.random(tokens) < 0.2] = -1
        yield LaunchCase(x(tokens), x(32), {
            "kc": buffer(floats(rng, slots * row, np.float16)), "k": buffer(floats(rng, tokens * row)),
            "slot": buffer(chosen), "row": i32(row)})


@register(path("k06_paged"), data_dependent="pointers in memory")
def batched_ptr_axpy(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n in zip(sizes(rng, 1, 3, high=5), sizes(rng, 1, 32, 33, 0, high=80), strict=False):
        yield LaunchCase((cover(n, 32, spare(rng)), count, 1), x(32), {
            "ys": Buffer(pointers(*(buffer(floats(rng, n)) for _ in range(count)))),
            "xs": Buffer(pointers(*(buffer(floats(rng, n)) for _ in range(count)))), "n": i32(n), "a": f32(0.5)})


@register(path("k07_embed"), data_dependent="rows by token id")
def embed(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for tokens, width in zip(sizes(rng, 1, 5, high=8), sizes(rng, 1, 32, 40, 0, high=100), strict=False):
        vocabulary = int(rng.integers(1, 40))
        yield LaunchCase(x(tokens), x(32), {
            "o": buffer(bfloats(rng, 2 * tokens * width)), "tab": buffer(bfloats(rng, 2 * vocabulary * width)),
            "ids": buffer(ints(rng, tokens, low=0, high=vocabulary)), "d2": i32(width)})


@register(path("k07_embed"))
def transpose32(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    most = 100 if large else 66
    for r, c in zip(sizes(rng, 1, 32, 33, 5, high=most), sizes(rng, 1, 32, 20, 64, high=most), strict=False):
        yield LaunchCase((cover(c, 32), cover(r, 32), 1), (32, 8, 1), {
            "o": buffer(floats(rng, r * c)), "x": buffer(floats(rng, r * c)), "R": i32(r), "C": i32(c)})


@register(path("k08_argmax"))
def argmax_atomic(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, grid in zip(element_counts(rng, 64, limit(large)), blocks(1, 2, 3), strict=False):
        yield LaunchCase(x(grid), x(64), {
            "x": buffer(floats(rng, n)), "n": i32(n), "best": buffer([0], np.uint64)})


@register(path("k08_argmax"))
def hist(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, limit(large)):
        yield LaunchCase(x(cover(n, 64, spare(rng))), x(64), {
            "x": buffer(ints(rng, n, low=0, high=1000)), "n": i32(n), "h": buffer(ints(rng, 256, low=0, high=9)),
            "sum": buffer(floats(rng, 1))})


@register(path("k08_argmax"))
def lastblock(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, grid in zip(element_counts(rng, 256, limit(large) * 3), blocks(1, 3, 2), strict=False):
        yield LaunchCase(x(grid), x(256), {
            "x": buffer(floats(rng, n)), "part": buffer(floats(rng, grid)), "out": buffer(floats(rng, 1)),
            "cnt": buffer([0], np.uint32), "n": i32(n)})


@register(path("k10_silu"))
def silu_mul(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for count, n, b in rows(rng, large):
        yield LaunchCase(x(count), x(b), {
            "o": buffer(bfloats(rng, count * n)), "gu": buffer(bfloats(rng, 2 * count * n)), "d": i32(n)})


@register(path("k10_silu"))
def gelu_tanh(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, limit(large)):
        yield LaunchCase(x(cover(n, 64)), x(64), {"x": buffer(floats(rng, n)), "n": i32(n)})


@register(path("k12_devglobal"), data_dependent="a pointer variable of the module")
def use_globals(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, limit(large)):
        yield LaunchCase(x(cover(n, 64)), x(64), {
            "o": buffer(floats(rng, n)), "x": buffer(ints(rng, n, np.uint8)), "n": i32(n)}, globals={
            "lut": floats(rng, 256), "g_state": floats(rng, 1024), "g_ptr": pointers(buffer(floats(rng, n)))})


@register(path("k12_devglobal"))
def use_call(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for b, grid in zip(blocks(8, 32, 1), blocks(1, 2), strict=False):
        threads, n = b * grid, int(rng.integers(0, 20))
        # helper(x, i) reads x[0..i-1] and helper(x + n, i) x[n..n+i-1]
        yield LaunchCase(x(grid), x(b), {
            "o": buffer(floats(rng, threads)), "x": buffer(floats(rng, max(threads - 1 + n, 0))), "n": i32(n)})


@register(path("k12_devglobal"))
def use_indirect_call(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for b, k in zip(blocks(32, 1, 40), blocks(0, 1), strict=False):
        yield LaunchCase(x(1), x(b), {"o": buffer(floats(rng, b)), "k": i32(k)})


@register(path("k12_devglobal"))
def use_printf_assert(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for b, n in zip(blocks(4, 1, 12), sizes(rng, 100, 1, 0, high=12), strict=False):
        yield LaunchCase(x(1), x(b), {"o": buffer(floats(rng, b)), "n": i32(n)})


@register(path("k14_mma"))
def wmma_gemm(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    # warps along x take rows of tiles, threadIdx.y takes columns of tiles
    for warps, columns, steps in zip(sizes(rng, 1, 2, high=2), sizes(rng, 1, 2, high=2), sizes(rng, 1, 2, 0, high=3),
                                     strict=False):
        grid_x, grid_y = int(rng.integers(1, 3)), int(rng.integers(1, 3))
        m, n, k = 16 * warps * grid_x, 16 * columns * grid_y, 16 * steps
        yield LaunchCase((grid_x, grid_y, 1), (32 * warps, columns, 1), {
            "A": buffer(floats(rng, m * k, np.float16)), "B": buffer(floats(rng, k * n, np.float16)),
            "C": buffer(floats(rng, m * n)), "M": i32(m), "N": i32(n), "K": i32(k)})


@register(path("k14_mma"))
def hgemm_cpasync(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for gx, gy, steps in zip(sizes(rng, 1, 2, high=2), sizes(rng, 1, high=2), sizes(rng, 1, 2, 3, high=3),
                             strict=False):
        m, n, k = 64 * gy, 64 * gx, 32 * steps
        yield LaunchCase((gx, gy, 1), x(128), {
            "A": buffer(floats(rng, m * k, np.float16)), "B": buffer(floats(rng, k * n, np.float16)),
            "C": buffer(floats(rng, m * n)), "M": i32(m), "N": i32(n), "K": i32(k)})


@register(path("k15_coop"))
def cg_reduce(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, grid in zip(element_counts(rng, 64, limit(large)), blocks(1, 2), strict=False):
        yield LaunchCase(x(grid), x(64), {"x": buffer(floats(rng, n)), "out": buffer(floats(rng, 1)), "n": i32(n)})


@register(path("k15_coop"))
def cg_grid(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n, grid in zip(element_counts(rng, 64, limit(large)), blocks(1, 2, 3), strict=False):
        yield LaunchCase(x(grid), x(32), {
            "x": buffer(floats(rng, n)), "y": buffer(floats(rng, n)), "n": i32(n)}, cooperative=True)


@register(path("k15_coop"), data_dependent="the place comes from a counter")
def cg_coalesced(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, limit(large)):
        values = ints(rng, n, low=-4, high=5)
        yield LaunchCase(x(cover(n, 64)), x(64), {
            "x": buffer(values), "out": buffer(ints(rng, int((values > 0).sum()))), "cnt": buffer([0], np.int32),
            "n": i32(n)})
