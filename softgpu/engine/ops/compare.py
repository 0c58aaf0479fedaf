"""Comparison and selection: setp, set, selp, slct (PTX manual, "Comparison and Selection Instructions" and "Half
Precision Comparison Instructions").
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.operation import TYPES, Operation

_BITS = ("b16", "b32", "b64")
_INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge",
             "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_FLOATING = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
             "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
             "num": "ord", "nan": "uno"}
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_FLOATS = ("f32", "f64", *_HALVES)
_FLUSHABLE = ("f32", "f16", "f16x2")
_BOOLEAN = ("and", "or", "xor")
_ONE = {"f16": 0x3C00, "bf16": 0x3F80}
_SET_RESULTS = {
    "f32": ("u32", "s32", "f32", "f16", "bf16"),
    "f64": ("u32", "s32", "f32", "f16", "bf16"),
    "f16": ("u16", "s16", "u32", "s32", "f16", "bf16"),
    "bf16": ("u16", "s16", "u32", "s32", "bf16"),
    "f16x2": ("f16x2", "u32", "s32"),
    "bf16x2": ("bf16x2", "u32", "s32"),
}
"""Result types of set by a floating-point source type; those of integer sources are the ones of f32."""


def comparisons(kind: str) -> dict[str, str]:
    """PTX's comparison operators of a type, with LLVM's predicate for each."""
    if kind in _FLOATS:
        return _FLOATING
    if kind[0] == "b":
        return {"eq": "eq", "ne": "ne"}
    return _SIGNED if kind[0] == "s" else _UNSIGNED


def _flushed(builder: Builder, a: Value) -> Value:
    """``float`` operands with subnormal numbers as zero; its sign does not matter to a comparison."""
    size = builder.intrinsic("llvm.fabs", "float", a)
    small = builder.fcmp("olt", size, builder.like(2.0**-126, a))
    return builder.select(small, builder.zero(a.type), a)


def _flushed_half(builder: Builder, a: Value) -> Value:
    size = builder.and_(a, builder.like(0x7FFF, a))
    return builder.select(builder.icmp("ult", size, builder.like(0x0400, a)), builder.zero(a.type), a)


def _number(builder: Builder, kind: str, ftz: bool, a: Value) -> Value:
    """A floating-point operand as LLVM compares it: f16 and bf16 come as their bits."""
    if kind == "f16":
        return builder.bitcast(_flushed_half(builder, a) if ftz else a, "half")
    if kind == "bf16":
        wide = builder.zext(a, "i32")
        return builder.bitcast(builder.shl(wide, builder.like(16, wide)), "float")
    return _flushed(builder, a) if ftz else a


def compare(builder: Builder, operator: str, kind: str, ftz: bool, a: Value, b: Value) -> Value:
    """``a operator b`` of a type that is not packed; the result has ``i1`` elements."""
    predicate = comparisons(kind)[operator]
    if kind not in _FLOATS:
        return builder.icmp(predicate, a, b)
    return builder.fcmp(predicate, _number(builder, kind, ftz, a), _number(builder, kind, ftz, b))


def compare_halves(builder: Builder, operator: str, kind: str, ftz: bool, a: Value, b: Value) -> tuple[Value, Value]:
    """The comparisons of the low and of the high halves of a packed type."""
    low = compare(builder, operator, kind[:-2], ftz, builder.trunc(a, "i16"), builder.trunc(b, "i16"))
    upper = [builder.trunc(builder.lshr(v, builder.like(16, v)), "i16") for v in (a, b)]
    return low, compare(builder, operator, kind[:-2], ftz, *upper)


def _combined(builder: Builder, boolean: str, true: Value, other: tuple[Value, ...]) -> Value:
    return builder.binary(boolean, true, other[0]) if boolean else true


_ALONE = ("f16", "bf16")
"""Types whose setp has no second destination."""


def _setp(operator: str, boolean: str, kind: str, ftz: bool, builder: Builder, a: Value, b: Value,
          *other: Value) -> tuple[Value, Value] | Value:
    """p and q: the comparison and its complement, for packed types the low and the high half, each combined. Of f16 and
    bf16 there is p alone."""
    if kind.endswith("x2"):
        first, second = compare_halves(builder, operator, kind, ftz, a, b)
    else:
        first = compare(builder, operator, kind, ftz, a, b)
        if kind in _ALONE:
            return _combined(builder, boolean, first, other)
        second = builder.invert(first)
    return _combined(builder, boolean, first, other), _combined(builder, boolean, second, other)


def _written(builder: Builder, true: Value, result: str) -> Value:
    """What set writes: 1.0 or +0.0 for a floating-point result, all ones or 0 for an integer."""
    kind, count = TYPES[result], lanes(true.type)
    if result == "f32":
        one = builder.constant(1.0, kind, count)
    elif result in _ONE:
        one = builder.constant(_ONE[result], kind, count)
    else:
        return builder.sext(true, kind)
    return builder.select(true, one, builder.zero(one.type))


def _set(operator: str, boolean: str, result: str, kind: str, ftz: bool, builder: Builder, a: Value, b: Value,
         *other: Value) -> Value:
    if not kind.endswith("x2"):
        true = compare(builder, operator, kind, ftz, a, b)
        return _written(builder, _combined(builder, boolean, true, other), result)
    half = result[:-2] if result.endswith("x2") else "u16"
    low, high = (builder.zext(_written(builder, _combined(builder, boolean, true, other), half), "i32")
                 for true in compare_halves(builder, operator, kind, ftz, a, b))
    return builder.or_(low, builder.shl(high, builder.like(16, high)))


def _selp(builder: Builder, a: Value, b: Value, predicate: Value) -> Value:
    return builder.select(predicate, a, b)


def _slct(by: str, ftz: bool, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """a for c >= 0, else b, also for a NaN."""
    return builder.select(compare(builder, "ge", by, ftz, c, builder.zero(c.type)), a, b)


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _setps() -> Iterator[Operation]:
    for kind in (*_BITS, *_INTEGERS, *_FLOATS):
        for ftz in (False, True) if kind in _FLUSHABLE else (False,):
            for operator, boolean in product(comparisons(kind), ("", *_BOOLEAN)):
                mnemonic = _joined("setp", operator, boolean, "ftz" if ftz else "", kind)
                sources = (kind, kind, "pred") if boolean else (kind, kind)
                results = ("pred",) if kind in _ALONE else ("pred", "pred")
                yield Operation(mnemonic, sources, results, partial(_setp, operator, boolean, kind, ftz))


def _sets() -> Iterator[Operation]:
    for kind in (*_BITS, *_INTEGERS, *_FLOATS):
        for result in _SET_RESULTS.get(kind, _SET_RESULTS["f32"]):
            flushes = kind in _FLUSHABLE and result != "bf16"
            for ftz in (False, True) if flushes else (False,):
                for operator, boolean in product(comparisons(kind), ("", *_BOOLEAN)):
                    mnemonic = _joined("set", operator, boolean, "ftz" if ftz else "", result, kind)
                    sources = (kind, kind, "pred") if boolean else (kind, kind)
                    emit = partial(_set, operator, boolean, result, kind, ftz)
                    yield Operation(mnemonic, sources, (result,), emit)


def _selections() -> Iterator[Operation]:
    for kind in (*_BITS, *_INTEGERS, "f32", "f64"):
        yield Operation(f"selp.{kind}", (kind, kind, "pred"), (kind,), _selp)
        for by, ftz in (("s32", False), ("f32", False), ("f32", True)):
            mnemonic = _joined("slct", "ftz" if ftz else "", kind, by)
            yield Operation(mnemonic, (kind, kind, by), (kind,), partial(_slct, by, ftz))


def operations() -> Iterator[Operation]:
    """All of them."""
    yield from _setps()
    yield from _sets()
    yield from _selections()
