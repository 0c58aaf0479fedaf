"""cvt from integers to floating-point types, in all roundings.

Source: PTX ISA, "cvt". Integers of up to 32 bits are exact in f64. One of 64 bits is the sum of two halves that are,
which gives its error; bf16 is then reached by rounding to odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, bits, element
from softgpu.engine.ops.convert_integer import INTEGERS
from softgpu.engine.ops.narrow import narrowed
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import ROUNDINGS, directed, join, odd, saturate, single, wide

_FLAGS = (False, True)


def _number(b: Builder, x: Value, signed: bool, kind: str) -> Value:
    """``float`` or ``double`` nearest to an integer."""
    if bits(x.type) < 32:
        x, signed = b.resize(x, "i32", signed), True
    return b.cast("sitofp" if signed else "uitofp", x, kind)


def _split(b: Builder, x: Value, signed: bool) -> tuple[Value, Value]:
    """A 64-bit integer as two ``double`` numbers: its upper half, times 2**32, and its lower half."""
    shift = b.like(32, x)
    upper = b.trunc(b.ashr(x, shift) if signed else b.lshr(x, shift), "i32")
    high = b.cast("sitofp" if signed else "uitofp", upper, "double")
    return b.binary("fmul", high, b.like(2.0**32, high)), b.cast("uitofp", b.trunc(x, "i32"), "double")


def _double(b: Builder, x: Value, signed: bool, mode: str) -> Value:
    """f64 of any integer; mode ``odd`` rounds to odd."""
    if mode == "rn" or bits(x.type) < 64:
        return _number(b, x, signed, "double")
    high, low = _split(b, x, signed)
    total = b.binary("fadd", high, low)
    error = b.binary("fsub", low, b.binary("fsub", total, high))
    return odd(b, total, error) if mode == "odd" else directed(b, total, error, mode)


def _single(b: Builder, x: Value, signed: bool, mode: str) -> Value:
    nearest = _number(b, x, signed, "float")
    if mode == "rn" or bits(x.type) < 32:
        return nearest
    if bits(x.type) == 32:
        return directed(b, nearest, b.binary("fsub", _number(b, x, signed, "double"), wide(b, nearest)), mode)
    high, low = _split(b, x, signed)
    return directed(b, nearest, b.binary("fadd", b.binary("fsub", high, wide(b, nearest)), low), mode)


def _bounded(b: Builder, x: Value, signed: bool) -> Value:
    """As i32, what is out of the range of f16 replaced by another such integer, which f32 holds exactly."""
    x = b.intrinsic("llvm.smin" if signed else "llvm.umin", element(x.type), x, b.like(1 << 17, x))
    if signed:
        x = b.intrinsic("llvm.smax", element(x.type), x, b.like(-(1 << 17), x))
    return b.trunc(x, "i32")


def _emit(b: Builder, x: Value, *, source: str, to: str, mode: str, sat: bool) -> Value:
    signed = source[0] == "s"
    if to == "f64":
        value = _double(b, x, signed, mode)
    elif to == "f32":
        value = _single(b, x, signed, mode)
    elif bits(x.type) < 32:
        value = _number(b, x, signed, "float")
    elif to == "f16":
        value = _number(b, _bounded(b, x, signed), True, "float")
    else:
        value = single(b, _double(b, x, signed, "odd"), "odd")
    if sat:  # before a narrowing, which keeps 0 and 1
        value = saturate(b, value)
    return value if to in ("f32", "f64") else narrowed(b, value, to, mode, canonical=False)


def operations() -> Iterator[Operation]:
    for to, source, mode in product(("f16", "bf16", "f32", "f64"), INTEGERS, ROUNDINGS):
        for ftz, sat in product(_FLAGS if to == "f32" else (False,), _FLAGS if to != "bf16" else (False,)):
            # No integer becomes a subnormal number: .ftz changes nothing.
            mnemonic = join("cvt", mode, "ftz" if ftz else "", "sat" if sat else "", to, source)
            emit = partial(_emit, source=source, to=to, mode=mode, sat=sat)
            yield Operation(mnemonic, (source,), (to,), emit)
