"""Approximate functions: inside the manual's error bounds, and the special cases of its tables."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgpu.reference.numerics import FORMATS, OPERATIONS, to_float64
from tests.patterns import patterns

INF = math.inf


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32)


SUBNORMAL = 1e-40

TABLES = {
    "rcp.approx.ftz.f32": [(-INF, -0.0), (-SUBNORMAL, -INF), (-0.0, -INF), (0.0, INF), (SUBNORMAL, INF), (INF, 0.0)],
    "rcp.approx.f32": [(-INF, -0.0), (-0.0, -INF), (0.0, INF), (INF, 0.0)],
    "sqrt.approx.ftz.f32": [(-INF, math.nan), (-1.0, math.nan), (-SUBNORMAL, -0.0), (-0.0, -0.0), (0.0, 0.0),
                            (SUBNORMAL, 0.0), (INF, INF)],
    "sqrt.approx.f32": [(-INF, math.nan), (-1.0, math.nan), (-0.0, -0.0), (0.0, 0.0), (INF, INF)],
    "rsqrt.approx.ftz.f32": [(-INF, math.nan), (-1.0, math.nan), (-SUBNORMAL, -INF), (-0.0, -INF), (0.0, INF),
                             (SUBNORMAL, INF), (INF, 0.0)],
    "rsqrt.approx.f32": [(-INF, math.nan), (-1.0, math.nan), (-0.0, -INF), (0.0, INF), (INF, 0.0)],
    "sin.approx.ftz.f32": [(-INF, math.nan), (-SUBNORMAL, -0.0), (-0.0, -0.0), (0.0, 0.0), (SUBNORMAL, 0.0),
                           (INF, math.nan)],
    "cos.approx.ftz.f32": [(-INF, math.nan), (-SUBNORMAL, 1.0), (-0.0, 1.0), (0.0, 1.0), (SUBNORMAL, 1.0),
                           (INF, math.nan)],
    "lg2.approx.ftz.f32": [(-INF, math.nan), (-1.0, math.nan), (-SUBNORMAL, -INF), (-0.0, -INF), (0.0, -INF),
                           (SUBNORMAL, -INF), (INF, INF)],
    "lg2.approx.f32": [(-INF, math.nan), (-1.0, math.nan), (-0.0, -INF), (0.0, -INF), (INF, INF)],
    "ex2.approx.ftz.f32": [(-INF, 0.0), (-SUBNORMAL, 1.0), (-0.0, 1.0), (0.0, 1.0), (SUBNORMAL, 1.0), (INF, INF)],
    "ex2.approx.f32": [(-INF, 0.0), (-0.0, 1.0), (0.0, 1.0), (INF, INF), (-149.0, 2.0**-149), (128.0, INF)],
    "tanh.approx.f32": [(-INF, -1.0), (-SUBNORMAL, -SUBNORMAL), (-0.0, -0.0), (0.0, 0.0), (SUBNORMAL, SUBNORMAL),
                        (INF, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_special_cases(name: str) -> None:
    for source, wanted in [*TABLES[name], (math.nan, math.nan)]:
        result = OPERATIONS[name](f32(source))[0]
        assert result == (0x7FFFFFFF if math.isnan(wanted) else f32(wanted)[0]), (source, wanted)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_special_cases_of_half_precision(kind: str) -> None:
    ftz = ".ftz" if kind == "bf16" else ""
    form = FORMATS[kind]
    infinity, one = form.infinity_bits, form.one_bits
    sources = np.array([0x8000 | infinity, 0x8000, 0, infinity, form.canonical_nan, 1, 0x8001], np.uint16)
    assert OPERATIONS[f"ex2.approx{ftz}.{kind}"](sources).tolist() == [0, one, one, infinity, 0x7FFF, one, one]
    tanh = OPERATIONS[f"tanh.approx.{kind}"](sources).tolist()
    assert tanh == [0x8000 | one, 0x8000, 0, one, 0x7FFF, 1, 0x8001]


RELATIVE: dict[str, tuple[Callable[[float], float], float]] = {
    "rcp.approx.f32": (lambda x: 1 / x, 2.0**-23),
    "sqrt.approx.f32": (math.sqrt, 2.0**-23),
    "rsqrt.approx.f32": (lambda x: 1 / math.sqrt(x), 2.0**-22.9),
    "ex2.approx.f32": (lambda x: 2.0**x, 2.0**-22),
    "tanh.approx.f32": (math.tanh, 2.0**-11),
    "tanh.approx.f16": (math.tanh, 2.0**-10),
    "ex2.approx.f16": (lambda x: 2.0**x, 2.0**-9.9),
    "ex2.approx.ftz.bf16": (lambda x: 2.0**x, 2.0**-7),
}
ABSOLUTE: dict[str, tuple[Callable[[float], float], float]] = {
    "sin.approx.f32": (math.sin, 2.0**-20.5),
    "cos.approx.f32": (math.cos, 2.0**-20.5),
    "lg2.approx.f32": (math.log2, 2.0**-22),
}


@pytest.mark.parametrize("name", [*RELATIVE, *ABSOLUTE])
def test_error_bounds(name: str) -> None:
    operation = OPERATIONS[name]
    kind = operation.result
    random = np.random.default_rng(5)
    low, high = {"ex2": (-14.0, 14.0), "lg2": (0.5, 2.0), "sin": (-6.2, 6.2), "cos": (-6.2, 6.2)}.get(
        name[:3], (1e-3, 50.0)
    )
    wide = random.uniform(low, high, 4000)
    if kind == "f32":
        sources = wide.astype(np.float32).view(np.uint32)
    elif kind == "f16":
        sources = wide.astype(np.float16).view(np.uint16)
    else:
        sources = (wide.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    function, bound = {**RELATIVE, **ABSOLUTE}[name]
    results = to_float64(operation(sources), kind).tolist()
    for source, result in zip(to_float64(sources, kind).tolist(), results, strict=True):
        exact = function(source)
        scale = abs(exact) if name in RELATIVE else 1.0
        assert abs(result - exact) <= bound * scale


def test_division_forms() -> None:
    div_approx, div_full = OPERATIONS["div.approx.f32"], OPERATIONS["div.full.f32"]
    huge = 2.0**127
    assert div_approx(f32(huge), f32(huge))[0] == f32(0.0)[0]
    assert div_approx(f32(-huge), f32(huge))[0] == f32(-0.0)[0]
    assert div_approx(f32(INF), f32(huge))[0] == 0x7FFFFFFF
    assert div_approx(f32(2.0**126), f32(2.0**126))[0] == f32(1.0)[0]
    assert div_approx(f32(1.0), f32(INF))[0] == f32(0.0)[0]
    assert div_full(f32(huge), f32(huge))[0] == f32(1.0)[0]
    assert div_full(f32(-1.0), f32(0.0))[0] == f32(-INF)[0]
    tiny = OPERATIONS["div.full.ftz.f32"](f32(2.0**-126), f32(4.0))
    assert tiny[0] == 0


@given(st.lists(patterns("f64"), min_size=1, max_size=16))
def test_upper_word_reciprocals(sources: list[int]) -> None:
    bits = np.array(sources, np.uint64)
    reciprocals = OPERATIONS["rcp.approx.ftz.f64"](bits).tolist()
    roots = OPERATIONS["rsqrt.approx.ftz.f64"](bits).tolist()
    for source, reciprocal, root in zip(sources, reciprocals, roots, strict=True):
        assert reciprocal % 2**32 == root % 2**32 == 0
        upper = np.uint64(source >> 32 << 32)
        value = float(upper.view(np.float64))
        if math.isnan(value):
            assert reciprocal == root == 0x7FFFFFFF00000000
            continue
        tiny = abs(value) < 2.0**-1022
        result = float(np.uint64(reciprocal).view(np.float64))
        if tiny or math.isinf(value):
            assert result == math.copysign(INF if tiny else 0.0, value)
        elif abs(value) < 2.0**1022:
            assert abs(result * value - 1) <= 2.0**-20
        else:
            assert abs(result) <= 2.0**-1022
        result = float(np.uint64(root).view(np.float64))
        if tiny:
            assert result == math.copysign(INF, value)
        elif value < 0:
            assert root == 0x7FFFFFFF00000000
        elif value == INF:
            assert result == 0
        else:
            assert abs(result * math.sqrt(value) - 1) <= 2.0**-20


def test_rsqrt_f64() -> None:
    values = np.array([4.0, 2.0, 1e-310, 1e300, 0.0, -0.0, INF, -1.0])
    results = OPERATIONS["rsqrt.approx.f64"](values.view(np.uint64)).view(np.float64)
    wanted = [1 / math.sqrt(value) for value in values[:4]] + [INF, -INF, 0.0]
    assert np.allclose(results[:7], wanted, rtol=2.0**-51, atol=0)
    assert np.isnan(results[7])
