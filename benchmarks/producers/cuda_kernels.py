"""CUDA C++ by nvcc and by NVRTC: one source, both compilers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.producers import Missing
from tests import compilers
from tests.launches.case import LaunchCase, buffer, f32, i32
from tests.launches.registry import Cases, KernelLaunches, Registry
from tests.launches.values import cover, element_counts, floats, ints, sizes, spare, x

SOURCE = Path(__file__).with_name("kernels.cu")


def conv2d_3x3(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for h, w, channels in zip(sizes(rng, 1, 4, high=10), sizes(rng, 1, 8, 9, high=14), sizes(rng, 1, 2, high=3),
                              strict=False):
        filters = int(rng.integers(1, 3))
        yield LaunchCase((cover(w, 8), cover(h, 4), filters), (8, 4, 1), {
            "y": buffer(floats(rng, filters * h * w)), "x": buffer(floats(rng, channels * h * w)),
            "w": buffer(floats(rng, filters * channels * 9)), "channels": i32(channels), "filters": i32(filters),
            "h": i32(h), "wd": i32(w)})


def batchnorm(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for plane, channels in zip(element_counts(rng, 32, 100, zero=False), sizes(rng, 1, 3, high=4), strict=False):
        batch = int(rng.integers(1, 3))
        per_channel = {name: buffer(np.abs(floats(rng, channels))) for name in ("mean", "var", "gain", "bias")}
        yield LaunchCase((cover(plane, 32), channels, batch), x(32), {
            "y": buffer(floats(rng, batch * channels * plane)), "x": buffer(floats(rng, batch * channels * plane)),
            **per_channel, "channels": i32(channels), "plane": i32(plane), "eps": f32(1e-5)})


def attention_scores(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for rows, size in zip(sizes(rng, 1, 8, 9, high=20), sizes(rng, 4, 1, high=16), strict=False):
        heads = int(rng.integers(1, 3))
        yield LaunchCase((cover(rows, 8), rows, heads), x(8), {
            "s": buffer(floats(rng, heads * rows * rows)), "q": buffer(floats(rng, heads * rows * size)),
            "k": buffer(floats(rng, heads * rows * size)), "rows": i32(rows), "size": i32(size), "scale": f32(0.5)})


def pool_2x2(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for h, w in zip(sizes(rng, 2, 8, low=1, high=9), sizes(rng, 2, 16, low=1, high=10), strict=False):
        h, w, channels = 2 * h, 2 * w, int(rng.integers(1, 3))
        yield LaunchCase((cover(w // 2, 8), cover(h // 2, 4), channels), (8, 4, 1), {
            "y": buffer(floats(rng, channels * h * w // 4)), "x": buffer(floats(rng, channels * h * w)), "h": i32(h),
            "w": i32(w)})


def upsample_nearest(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for h, w, factor in zip(sizes(rng, 1, 3, high=6), sizes(rng, 1, 4, high=6), sizes(rng, 1, 2, high=3), strict=False):
        channels = int(rng.integers(1, 3))
        count = channels * h * w * factor * factor
        yield LaunchCase(x(cover(count, 64, spare(rng))), x(64), {
            "y": buffer(floats(rng, count)), "x": buffer(floats(rng, channels * h * w)), "h": i32(h), "w": i32(w),
            "factor": i32(factor), "channels": i32(channels)})


def adam(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 64, 300):
        state = {name: buffer(np.abs(floats(rng, n))) for name in ("p", "m", "v", "g")}
        yield LaunchCase(x(2), x(32), {
            **state, "rate": f32(1e-3), "b1": f32(0.9), "b2": f32(0.999), "eps": f32(1e-8), "n": i32(n)})


def cross_entropy(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for rows, classes in zip(sizes(rng, 1, 3, high=6), sizes(rng, 1, 32, 40, high=100), strict=False):
        yield LaunchCase(x(rows), x(32), {
            "loss": buffer(floats(rng, rows)), "logits": buffer(floats(rng, rows * classes)),
            "target": buffer(ints(rng, rows, low=0, high=classes)), "classes": i32(classes)})


def column_sums(rng: np.random.Generator, large: bool) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 8, 20, high=30), sizes(rng, 1, 32, 33, high=70), strict=False):
        yield LaunchCase(x(cover(columns, 32)), (32, 8, 1), {
            "y": buffer(floats(rng, columns)), "x": buffer(floats(rng, rows * columns)), "rows": i32(rows),
            "columns": i32(columns)})


KERNELS: dict[Cases, str] = {
    conv2d_3x3: "", batchnorm: "", attention_scores: "", pool_2x2: "", upsample_nearest: "", adam: "",
    cross_entropy: "the logit of the target", column_sums: "",
}


def _registry(producer: str, text: str) -> list[KernelLaunches]:
    register = Registry("compiled", producer)
    for cases, reason in KERNELS.items():
        register.add(f"{producer}_kernels.ptx", cases.__name__, cases, data_dependent=reason, text=text)
    return register.entries


def nvcc_kernels() -> list[KernelLaunches]:
    """The source by nvcc."""
    if compilers.nvcc() is None:
        raise Missing(f"nvcc not found: pip install {compilers.NVCC_PACKAGES}")
    return _registry("nvcc", compilers.compile_cuda(SOURCE.read_text()))


def nvrtc_kernels() -> list[KernelLaunches]:
    """The same source by NVRTC, which has no headers: infinity is defined for it."""
    if compilers.nvrtc() is None:
        raise Missing(f"NVRTC not found: pip install {compilers.NVRTC_PACKAGE}")
    header = "#define INFINITY __int_as_float(0x7f800000)\n"
    return _registry("nvrtc", compilers.compile_nvrtc(header + SOURCE.read_text()))
