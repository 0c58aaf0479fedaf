"""Triton for compute capability 8.0: no GPU is needed to compile. Two hidden pointers trail the parameters."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.producers import Missing
from tests.launches.case import NULL, LaunchCase, buffer, f32, i32
from tests.launches.registry import KernelLaunches, Registry
from tests.launches.values import cover, element_counts, floats, ints, sizes, spare, x

HIDDEN = {"global_scratch": NULL, "profile_scratch": NULL}
CASES: dict[str, tuple[dict[str, str], dict[str, int], str, Callable[..., Iterator[LaunchCase]]]] = {}
"""By kernel: signature, constants, why addresses depend on data, the generator (which is given threads and shared)."""


def case(signature: str, reason: str = "", **constants: int) -> Callable[[Any], Any]:
    """Registers a generator; ``signature`` is ``name:type`` pairs in order, as Triton's."""

    def register(cases: Any) -> Any:
        types = dict(pair.split(":") for pair in signature.split())
        CASES[cases.__name__] = ({**types, **dict.fromkeys(constants, "constexpr")}, constants, reason, cases)
        return cases

    return register


@case("out:*fp32 a:*fp32 b:*fp32 c:*fp32 n:i32", BLOCK=256)
def fused_multiply_add(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 256, 700):
        yield LaunchCase(x(cover(n, 256, spare(rng))), x(threads), {
            **{name: buffer(floats(rng, n)) for name in ("out", "a", "b", "c")}, "n": i32(n), **HIDDEN}, shared=shared)


@case("out:*fp32 x:*fp32 gain:*fp32 bias:*fp32 columns:i32 stride:i32 eps:fp32", BLOCK=256)
def row_norm(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 3, high=4), sizes(rng, 1, 256, 200, high=256), strict=False):
        stride = columns + int(rng.choice([0, 3]))
        count = stride * (rows - 1) + columns
        yield LaunchCase(x(rows), x(threads), {
            "out": buffer(floats(rng, count)), "x": buffer(floats(rng, count)), "gain": buffer(floats(rng, columns)),
            "bias": buffer(floats(rng, columns)), "columns": i32(columns), "stride": i32(stride), "eps": f32(1e-5),
            **HIDDEN}, shared=shared)


@case("out:*fp32 x:*fp32 rows:i32 columns:i32", R=16, C=32)
def transposed_copy(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 16, 20, high=40), sizes(rng, 1, 32, 33, high=70), strict=False):
        yield LaunchCase((cover(rows, 16), cover(columns, 32), 1), x(threads), {
            "out": buffer(floats(rng, rows * columns)), "x": buffer(floats(rng, rows * columns)), "rows": i32(rows),
            "columns": i32(columns), **HIDDEN}, shared=shared)


@case("out:*fp16 table:*fp16 ids:*i32 columns:i32", "rows by index", BLOCK=128)
def gather_rows(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for tokens, columns in zip(sizes(rng, 1, 3, high=5), sizes(rng, 1, 128, 100, high=128), strict=False):
        rows = int(rng.integers(1, 30))
        yield LaunchCase(x(tokens), x(threads), {
            "out": buffer(floats(rng, tokens * columns, np.float16)),
            "table": buffer(floats(rng, rows * columns, np.float16)),
            "ids": buffer(ints(rng, tokens, low=0, high=rows)), "columns": i32(columns), **HIDDEN}, shared=shared)


@case("out:*fp32 x:*fp32 rows:i32 columns:i32", BLOCK=128)
def column_sum(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for rows, columns in zip(sizes(rng, 1, 4, 0, high=8), sizes(rng, 1, 128, 129, high=300), strict=False):
        yield LaunchCase(x(cover(columns, 128)), x(threads), {
            "out": buffer(floats(rng, columns)), "x": buffer(floats(rng, rows * columns)), "rows": i32(rows),
            "columns": i32(columns), **HIDDEN}, shared=shared)


@case("out:*fp32 a:*fp16 b:*fp16 k:i32", BLOCK=16)
def small_dot(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for steps in sizes(rng, 1, 2, 0, high=5):
        k = 16 * steps
        yield LaunchCase(x(1), x(threads), {
            "out": buffer(floats(rng, 256)), "a": buffer(floats(rng, 16 * k, np.float16)),
            "b": buffer(floats(rng, 16 * k, np.float16)), "k": i32(k), **HIDDEN}, shared=shared)


@case("out:*fp32 x:*fp32 n:i32", BLOCK=256)
def sum_atomic(rng: np.random.Generator, threads: int, shared: int) -> Iterator[LaunchCase]:
    for n in element_counts(rng, 256, 700):
        yield LaunchCase(x(cover(n, 256)), x(threads), {
            "out": buffer(floats(rng, 1)), "x": buffer(floats(rng, n)), "n": i32(n), **HIDDEN}, shared=shared)


def _compiled(sources: ModuleType, name: str) -> tuple[str, int, int]:
    """PTX text, threads of a block, bytes of dynamic shared memory."""
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # what this release does anyway, with a warning
    import triton  # type: ignore[import-not-found, unused-ignore]
    from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found, unused-ignore]

    signature, constants, _, _ = CASES[name]
    source = triton.compiler.ASTSource(getattr(sources, name), signature, constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32))
    text: str = compiled.asm["ptx"]
    threads = re.search(r"\.reqntid (\d+)", text)
    return text, int(threads[1]) if threads else 32 * compiled.metadata.num_warps, compiled.metadata.shared


def kernels() -> list[KernelLaunches]:
    """All kernels of :mod:`triton_sources`."""
    if importlib.util.find_spec("triton") is None:
        raise Missing("triton not found: pip install triton==3.9.0")
    from benchmarks.producers import triton_sources

    register = Registry("compiled", "triton")
    for name, (_, _, reason, cases) in CASES.items():
        text, threads, shared = _compiled(triton_sources, name)

        def bound(
            rng: np.random.Generator, large: bool, cases: Any = cases, threads: int = threads, shared: int = shared
        ) -> Iterator[LaunchCase]:
            found: Iterator[LaunchCase] = cases(rng, threads, shared)
            return found

        register.add(f"triton_sources_{name}.ptx", name, bound, data_dependent=reason, text=text)
    return register.entries
