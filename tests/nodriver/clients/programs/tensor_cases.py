"""Tensor programs for tinygrad by name, each with what numpy makes of the same numbers where that is short to say.

A case is a function that returns tensors. Its numbers come from ``numbers``, so that they are the same on all devices.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.dtype import DType

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Case:
    """``loose``: how much more its floating-point results may differ than those of one operation of their type."""

    name: str
    make: Callable[[], list[Tensor]]
    expected: Callable[[], Arrays] | None = None
    loose: float = 1.0


CASES: dict[str, Case] = {}


def case(name: str, make: Callable[[], Tensor | list[Tensor]], expected: Callable[[], object] | None = None,
         loose: float = 1.0) -> None:
    """Add a case; a single tensor or array stands for a list of one."""
    assert name not in CASES
    CASES[name] = Case(name, lambda: listed(make()), None if expected is None else lambda: listed(expected()), loose)


def listed(found: object) -> list:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def numbers(name: str, *shape: int) -> np.ndarray:
    """Normally distributed numbers, the same for the same name and shape."""
    return generator(f"{name}{shape}").standard_normal(shape).astype(np.float32)


def counts(name: str, low: int, high: int, *shape: int) -> np.ndarray:
    """Integers from ``low`` to ``high``, without the latter."""
    return generator(f"{name}{shape}").integers(low, high, shape).astype(np.int32)


def both(name: str, of_tensor: Callable[..., Tensor], of_array: Callable[..., object] | None, *inputs: np.ndarray,
         loose: float = 1.0) -> None:
    """A case that does the same to tensors and to arrays."""
    expected = None if of_array is None else lambda: of_array(*inputs)
    case(name, lambda: of_tensor(*[Tensor(array) for array in inputs]), expected, loose)


X = numbers("x", 33, 65)
Y = numbers("y", 33, 65)
CLEAR = np.where(np.abs(X - np.round(X * 2) / 2) < 0.01, X + 0.05, X)  # clear of the places where a rounding jumps
POSITIVE = np.abs(X) + 0.1
erf = np.vectorize(math.erf, otypes=[np.float32])


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# One operation on each element.
both("exponentials", lambda x: [x.exp(), x.exp2(), x.sigmoid(), x.tanh(), x.softplus(), (-x.square()).exp()],
     lambda x: [np.exp(x), np.exp2(x), 1 / (1 + np.exp(-x)), np.tanh(x), np.log1p(np.exp(x)), np.exp(-x * x)], X)
both("logarithms", lambda x: [x.log(), x.log2(), x.sqrt(), x.rsqrt(), x.reciprocal(), x.pow(0.3), x.pow(3)],
     lambda x: [np.log(x), np.log2(x), np.sqrt(x), 1 / np.sqrt(x), 1 / x, x**0.3, x**3], POSITIVE, loose=4)
both("angles", lambda x: [x.sin(), x.cos(), (x * 1000).sin(), x.tan(), x.clip(-0.9, 0.9).asin(), x.atan()],
     lambda x: [np.sin(x), np.cos(x), np.sin(x * np.float32(1000)), np.tan(x), np.arcsin(np.clip(x, -0.9, 0.9)),
                np.arctan(x)], X * 0.4, loose=20)
both("roundings", lambda x: [x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), x.abs()],
     lambda x: [np.floor(x), np.ceil(x), np.round(x), np.trunc(x), np.sign(x), np.abs(x)], CLEAR)
both("activations", lambda x: [x.relu(), x.gelu(), x.silu(), x.elu(), x.leaky_relu(), x.hardtanh(), x.mish()], None, X)
both("erf", lambda x: x.erf(), erf, X)
both("special values", lambda x: [x.exp(), x.log(), x.sqrt(), x.isnan(), x.isinf(), 1 / x, x.sin()],
     None, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-38, -1e-38, 3e38, -1.0], np.float32))
both("two operands", lambda x, y: [x + y, x - y, x * y, x / y, x.maximum(y), x.minimum(y), (x < y).where(x, y * 2)],
     lambda x, y: [x + y, x - y, x * y, x / y, np.maximum(x, y), np.minimum(x, y), np.where(x < y, x, y * 2)], X, Y)
both("comparisons", lambda x, y: [x < y, x == y, x != y, x >= y, (x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0)],
     lambda x, y: [x < y, x == y, x != y, x >= y, (x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0)],
     np.round(X), np.round(Y))
both("broadcast", lambda x, y: [x[:, :1] + y[:1], x.reshape(1, 33, 65) * y.reshape(33, 65, 1)[:1, :1]],
     lambda x, y: [x[:, :1] + y[:1], x.reshape(1, 33, 65) * y.reshape(33, 65, 1)[:1, :1]], X, Y)
both("polynomial of one million", lambda x: (x * x * 0.5 + x - 1) * x, lambda x: (x * x * np.float32(0.5) + x - 1) * x,
     numbers("million", 1 << 20))
both("power of a tensor", lambda x, y: x.pow(y), lambda x, y: x**y, POSITIVE, np.round(Y * 2) / 2, loose=8)

# Every type of element.
INTEGERS = {dtypes.int8: np.int8, dtypes.uint8: np.uint8, dtypes.int16: np.int16, dtypes.uint16: np.uint16,
            dtypes.int32: np.int32, dtypes.uint32: np.uint32, dtypes.int64: np.int64, dtypes.uint64: np.uint64}
FLOATS = {dtypes.float16: np.float16, dtypes.float32: np.float32, dtypes.float64: np.float64}
SMALL = {dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2}  # numpy has none of them
EVERY_TYPE = (*INTEGERS, *FLOATS, dtypes.bfloat16, dtypes.bool)
NARROW = counts("casts", 0, 15, 77)
INTEGER_A, INTEGER_B = counts("a", 1, 100, 501), counts("b", 1, 7, 501)


def of_integers(a: Tensor, b: Tensor) -> list[Tensor]:
    return [a + b, a * b, a - b * 2, a // b, a % b, a & b, a | b, a ^ b, a << 1, a >> 1, a.maximum(b * 9), a < b * 9,
            (a > 50).where(a, b)]


def of_integer_arrays(a: np.ndarray, b: np.ndarray) -> Arrays:
    one, two, nine, fifty = (a.dtype.type(n) for n in (1, 2, 9, 50))
    return [a + b, a * b, a - b * two, a // b, a % b, a & b, a | b, a ^ b, a << one, a >> one,
            np.maximum(a, b * nine), a < b * nine, np.where(a > fifty, a, b)]


def of_floats(a: Tensor, b: Tensor) -> list[Tensor]:
    return [a + b, a * b, a / b, a.maximum(b * 9), a < b * 9, (a > 50).where(a, b), -a]


def of_float_arrays(a: np.ndarray, b: np.ndarray) -> Arrays:
    nine = a.dtype.type(9)
    return [a + b, a * b, a / b, np.maximum(a, b * nine), a < b * nine, np.where(a > 50, a, b), -a]


def together(results: list[Tensor]) -> list[Tensor]:
    """All results in one kernel, in the type of the first."""
    return [Tensor.stack(*[result.cast(results[0].dtype) for result in results])]


def stacked(results: Arrays) -> Arrays:
    return [np.stack([result.astype(results[0].dtype) for result in results])]


def typed(kind: DType) -> tuple[Tensor, Tensor]:
    return Tensor(INTEGER_A).cast(kind), Tensor(INTEGER_B).cast(kind)


def reductions(kind: DType) -> list[Tensor]:
    a = Tensor(INTEGER_A[:500].reshape(20, 25)).cast(kind)
    return [a.sum(), a.sum(0), a.max(1), a.min(), a.argmax(1), a.cumsum(1)[:, :6]]


def reduced(kind: type) -> Arrays:
    a = INTEGER_A[:500].reshape(20, 25).astype(kind)
    wide = {np.int8: np.int32, np.int16: np.int32, np.uint8: np.uint32, np.uint16: np.uint32}.get(kind, kind)
    return [a.sum(dtype=wide), a.sum(0, dtype=wide), a.max(1), a.min(), a.argmax(1), a.cumsum(1, dtype=wide)[:, :6]]


def conversions(kind: DType) -> list[Tensor]:
    """Conversions from one type to all others, of numbers that all of them have, in one kernel."""
    source = Tensor(NARROW).cast(kind)
    return [Tensor.stack(*[source.cast(other).cast(dtypes.int32) for other in EVERY_TYPE])]


def converted(kind: DType) -> Arrays:
    numbers = (NARROW != 0).astype(np.int32) if kind == dtypes.bool else NARROW
    return [np.stack([(numbers != 0).astype(np.int32) if other == dtypes.bool else numbers for other in EVERY_TYPE])]


for tensor_kind, array_kind in INTEGERS.items():
    case(f"arithmetic in {tensor_kind.name}", lambda k=tensor_kind: together(of_integers(*typed(k))),
         lambda k=array_kind: stacked(of_integer_arrays(INTEGER_A.astype(k), INTEGER_B.astype(k))))
    case(f"reductions in {tensor_kind.name}", lambda k=tensor_kind: reductions(k), lambda k=array_kind: reduced(k))
case("arithmetic in int, each by itself", lambda: of_integers(*typed(dtypes.int32)),
     lambda: of_integer_arrays(INTEGER_A, INTEGER_B))
for tensor_kind, array_kind in FLOATS.items():
    case(f"arithmetic in {tensor_kind.name}", lambda k=tensor_kind: together(of_floats(*typed(k))),
         lambda k=array_kind: stacked(of_float_arrays(INTEGER_A.astype(k), INTEGER_B.astype(k))))
    case(f"reductions in {tensor_kind.name}", lambda k=tensor_kind: reductions(k), loose=4)
for tensor_kind in SMALL - {dtypes.bfloat16}:
    case(f"arithmetic in {tensor_kind.name}", lambda k=tensor_kind: together(of_floats(*[t.clip(1, 12) for t in typed(k)])))
case("arithmetic in bfloat16", lambda: together(of_floats(*typed(dtypes.bfloat16))))
case("reductions in bfloat16", lambda: reductions(dtypes.bfloat16), loose=4)
for tensor_kind in EVERY_TYPE:
    case(f"conversions from {tensor_kind.name}", lambda k=tensor_kind: conversions(k), lambda k=tensor_kind: converted(k))
both("conversions to integers truncate", lambda x: [(x * 10).cast(k) for k in (dtypes.int8, dtypes.int32, dtypes.int64)],
     lambda x: [(x * np.float32(10)).astype(k) for k in (np.int8, np.int32, np.int64)], X)
both("halves of every exponent", lambda x: [x.cast(dtypes.half), x.cast(dtypes.half).float() * 2, x.cast(dtypes.bfloat16)],
     None, np.ldexp(numbers("mantissas", 42), np.arange(-26, 16)).astype(np.float32))
both("bits of a number", lambda x: [x.bitcast(dtypes.int32), x.half().bitcast(dtypes.uint16), x.double().bitcast(dtypes.int64)],
     lambda x: [x.view(np.int32), x.astype(np.float16).view(np.uint16), x.astype(np.float64).view(np.int64)], X)
WIDE = POSITIVE.astype(np.float64)
both("doubles", lambda x: [x + 1e-12, x * x / 3, x.floor()], lambda x: [x + 1e-12, x * x / 3, np.floor(x)], WIDE, loose=8)
both("functions of doubles", lambda x: [(x * 1e10).sin(), x.exp(), x.log2(), x.sqrt()],
     lambda x: [np.sin(x * 1e10), np.exp(x), np.log2(x), np.sqrt(x)], WIDE, loose=8)
both("products of 64 bits", lambda a: [a * a, a // 12345, a % 997, (a * 3) >> 5],
     lambda a: [a * a, a // 12345, a % 997, (a * 3) >> 5], counts("wide", 1, 1 << 30, 300).astype(np.int64))
