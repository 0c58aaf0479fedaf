"""Launches of the corpus kernels made by Triton.

Every kernel has two hidden trailing pointers (scratch memory), null here: the kernels for 8.0 do not use them.
Triton was told that strides and inner sizes are multiples of 16, so they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.launches.case import NULL, LaunchCase, buffer, f32, i32
from tests.launches.registry import Registry
from tests.launches.values import cover, element_counts, floats, sizes, spare, x

register = Registry("corpus", "triton")
HIDDEN = {"global_scratch": NULL, "profile_scratch": NULL}


@register("corpus/ptx/triton_add_kernel_sm80.ptx")
def add_kernel(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 1024, 6000 if large else 2100):
        yield LaunchCase(x(cover(n, 1024, spare(rng))), x(128), {
            "x": buffer(floats(rng, n)), "y": buffer(floats(rng, n)), "out": buffer(floats(rng, n)), "n": i32(n),
            **HIDDEN})


@register("corpus/ptx/triton_softmax_kernel_sm80.ptx")
def softmax_kernel(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 3, 5, high=12 if large else 5), sizes(rng, 1, 1024, 500, 517, high=1024),
                             strict=False):
        pitches = [columns + int(rng.choice([0, 0, 5])) for _ in range(2)]
        yield LaunchCase(x(min(rows, 3) + spare(rng)), x(128), {
            "out": buffer(floats(rng, pitches[1] * (rows - 1) + columns)),
            "x": buffer(floats(rng, pitches[0] * (rows - 1) + columns)), "x_stride": i32(pitches[0]),
            "out_stride": i32(pitches[1]), "rows": i32(rows), "columns": i32(columns), **HIDDEN}, shared=4096 + 16)


@register("corpus/ptx/triton_matmul_kernel_sm80.ptx")
def matmul_kernel(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    most = 20 if large else 12
    for m, n, k in zip(sizes(rng, 8, 1, 9, high=most), sizes(rng, 8, 1, 10, high=most),
                       sizes(rng, 4, 1, 2, 5, high=8), strict=False):
        m, n, k = 16 * m, 16 * n, 16 * k
        yield LaunchCase(x(cover(m, 128) * cover(n, 128)), x(256), {
            "a": buffer(floats(rng, m * k, np.float16)), "b": buffer(floats(rng, k * n, np.float16)),
            "c": buffer(floats(rng, m * n, np.float16)), "M": i32(m), "N": i32(n), "K": i32(k), "stride_am": i32(k),
            "stride_bk": i32(n), "stride_cm": i32(n), **HIDDEN}, shared=32768)


@register("corpus/ptx/triton_flash_kernel_sm80.ptx")
def flash_kernel(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for tiles, heads, batch in zip(sizes(rng, 1, 2, high=2), sizes(rng, 1, 2, high=2),
                                   sizes(rng, 1, high=2 if large else 1), strict=False):
        rows = 128 * tiles
        stride_m = 64 + int(rng.choice([0, 16]))
        stride_h = stride_m * rows
        stride_z = stride_h * heads
        count = batch * stride_z - (stride_m - 64)
        yield LaunchCase((tiles, batch * heads, 1), x(128), {
            **{name: buffer(floats(rng, count, np.float16)) for name in ("q", "k", "v", "o")},
            "stride_z": i32(stride_z), "stride_h": i32(stride_h), "stride_m": i32(stride_m), "scale": f32(0.125),
            "H": i32(heads), "N": i32(rows), **HIDDEN}, shared=49152)


@register("corpus/ptx/triton_tma_matmul_sm90.ptx", refused="tensor memory access and wgmma of compute capability 9.0",
          data_dependent="tensor maps built in memory")
def tma_matmul(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    while True:
        m, n, k = 128, 128, 64
        yield LaunchCase((1, 1, 1), x(256), {
            "a": buffer(floats(rng, m * k, np.float16)), "b": buffer(floats(rng, n * k, np.float16)),
            "c": buffer(floats(rng, m * n, np.float16)), "M": i32(m), "N": i32(n), "K": i32(k),
            "global_scratch": buffer(np.zeros(3 * 128, np.uint8)), "profile_scratch": NULL}, shared=99000)
