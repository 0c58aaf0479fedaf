"""cvt to and from pairs of numbers of at most eight bits: e4m3, e5m2, e3m2, e2m3, e2m1 and ue8m0.

Source: PTX ISA, "cvt". Of two sources the first goes to the upper half of the result. Pairs of e2m1 fill a byte, those
of the others 16 bits, six-bit numbers with two zeros above each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.convert_packed import orders
from softgpu.engine.ops.narrow import PACKED, halves, joined, relu, widened
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import join
from softgpu.engine.ops.small import from_exponent, from_small, to_exponent, to_small

_FLAGS = (False, True)
_REGISTERS = {"e4m3": "e4m3x2", "e5m2": "e5m2x2", "e3m2": "b16", "e2m3": "b16", "e2m1": "b8"}
"""Types of the registers of a pair; the two 8-bit formats have names of their own."""


def _pair(b: Builder, upper: Value, lower: Value, kind: str) -> Value:
    """Two numbers in i8 as one register."""
    if kind == "e2m1":
        return b.or_(b.shl(upper, b.like(4, upper)), lower)
    upper = b.zext(upper, "i16")
    return b.or_(b.shl(upper, b.like(8, upper)), b.zext(lower, "i16"))


def _narrow(b: Builder, x: Value, y: Value, *, kind: str, positive: bool) -> Value:
    return _pair(b, to_small(b, x, kind, positive), to_small(b, y, kind, positive), kind)


def _narrow_packed(b: Builder, x: Value, *, source: str, kind: str, positive: bool) -> Value:
    numbers = widened(b, halves(b, x), PACKED[source])
    return joined(b, to_small(b, numbers, kind, positive), lanes(x.type))


def _widen(b: Builder, x: Value, *, kind: str, positive: bool) -> Value:
    """To f16x2."""
    if kind == "e2m1":
        spread = b.zext(x, "i16")
        x = b.or_(spread, b.shl(spread, b.like(4, spread)))  # the upper one begins its byte; the rest is not read
    result = from_small(b, halves(b, x), kind)
    return joined(b, relu(b, result) if positive else result, lanes(x.type))


def _exponents(b: Builder, x: Value, y: Value, *, mode: str, finite: bool) -> Value:
    return _pair(b, to_exponent(b, x, mode, finite), to_exponent(b, y, mode, finite), "ue8m0")


def _packed_exponents(b: Builder, x: Value, *, mode: str, finite: bool) -> Value:
    return joined(b, to_exponent(b, widened(b, halves(b, x), "bf16"), mode, finite), lanes(x.type))


def _widen_exponents(b: Builder, x: Value) -> Value:
    return joined(b, from_exponent(b, halves(b, x)), lanes(x.type))


def operations() -> Iterator[Operation]:
    for (kind, register), positive in product(_REGISTERS.items(), _FLAGS):
        for order in orders(positive, True):
            narrow = partial(_narrow, kind=kind, positive=positive)
            yield Operation(f"cvt.rn.{order}.{kind}x2.f32", ("f32", "f32"), (register,), narrow)
            for source in PACKED if kind in ("e4m3", "e5m2") else ():
                packed = partial(_narrow_packed, source=source, kind=kind, positive=positive)
                yield Operation(f"cvt.rn.{order}.{kind}x2.{source}", (source,), (register,), packed)
        widen = partial(_widen, kind=kind, positive=positive)
        yield Operation(join("cvt.rn", "relu" if positive else "", f"f16x2.{kind}x2"), (register,), ("f16x2",), widen)
    for mode, finite in product(("rz", "rp"), _FLAGS):
        name = join("cvt", mode, "satfinite" if finite else "", "ue8m0x2")
        pair = partial(_exponents, mode=mode, finite=finite)
        yield Operation(f"{name}.f32", ("f32", "f32"), ("b16",), pair)
        packed = partial(_packed_exponents, mode=mode, finite=finite)
        yield Operation(f"{name}.bf16x2", ("bf16x2",), ("b16",), packed)
    yield Operation("cvt.rn.bf16x2.ue8m0x2", ("b16",), ("bf16x2",), _widen_exponents)
