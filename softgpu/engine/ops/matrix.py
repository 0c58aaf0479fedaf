"""The forms of mma.sync and wmma.mma: which types in which shapes. Source: PTX ISA, the two instructions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops.directed import DIRECTED
from softgpu.engine.ops.fragments import (
    WMMA_MULTIPLICANDS,
    WMMA_SHAPES,
    accumulator,
    multiplicand_a,
    multiplicand_b,
    quad_a,
    quad_accumulator,
    quad_b,
    wmma_fragment,
)
from softgpu.engine.ops.matrix_product import Product, Step
from softgpu.engine.ops.operation import Operation

_FLOAT: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("m16n8k8", ("f16",), ("f16", "f32")),
    ("m16n8k16", ("f16",), ("f16", "f32")),
    ("m16n8k8", ("bf16",), ("f32",)),
    ("m16n8k16", ("bf16",), ("f32",)),
    ("m16n8k4", ("tf32",), ("f32",)),
    ("m16n8k8", ("tf32",), ("f32",)),
    ("m16n8k16", ("e4m3", "e5m2"), ("f16", "f32")),
    ("m16n8k32", ("e4m3", "e5m2"), ("f16", "f32")),
)
"""Shape, types of A and B (in any pairing), types of C and D (the same for both)."""

_INTEGER: tuple[tuple[str, tuple[str, str]], ...] = (
    ("m8n8k16", ("s8", "u8")),
    ("m16n8k16", ("s8", "u8")),
    ("m16n8k32", ("s8", "u8")),
    ("m8n8k32", ("s4", "u4")),
    ("m16n8k32", ("s4", "u4")),
    ("m16n8k64", ("s4", "u4")),
)
_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
"""Types of ``.kind::f8f6f4``, each element in a byte."""

_DOUBLE = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")
_BIT = ("m8n8k128", "m16n8k128", "m16n8k256")
_ROUNDINGS = ("", "rn", "rz", "rm", "rp")
_WORD = 32


def _dimensions(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _directed(builder: Builder, a: Value, b: Value, total: Value, mode: str) -> Value:
    return DIRECTED["fma"](builder, mode, a, b, total)


def _double_step(rounding: str) -> dict[str, Step]:
    """The ``step`` of a product of f64."""
    return {"step": partial(_directed, mode=rounding)} if rounding not in ("", "rn") else {}


def _count(builder: Builder, a: Value, b: Value, total: Value, operation: str) -> Value:
    """Adds the number of ones of a word of single bits."""
    return builder.add(total, builder.intrinsic("llvm.ctpop", "i32", builder.binary(operation, a, b)))


def _mma(shape: str, types: str, kinds: tuple[str, str, str, str], **options: object) -> Product:
    """``types``: the mnemonic behind the layouts; ``kinds``: of D, A, B, C."""
    m, n, k = _dimensions(shape)
    d, a, b, c = kinds
    parts = (multiplicand_a(a, m, k), multiplicand_b(b, k, n), accumulator(c, m, n), accumulator(d, m, n))
    return Product(f"mma.sync.aligned.{shape}.row.col.{types}", *parts, k, **options)  # type: ignore[arg-type]


def _mma_products(grouped: bool) -> Iterator[Product]:
    for shape, multiplicands, accumulators in _FLOAT:
        for a, b, c in product(multiplicands, multiplicands, accumulators):
            yield _mma(shape, f"{c}.{a}.{b}.{c}", (c, a, b, c), grouped=grouped)
    for a, b, c in product(_NARROW, _NARROW, ("f16", "f32")):
        yield _mma("m16n8k32", f"kind::f8f6f4.{c}.{a}.{b}.{c}", (c, a, b, c), grouped=grouped)
    for shape, rounding in product(_DOUBLE, _ROUNDINGS):
        types = f"{rounding}.f64.f64.f64.f64" if rounding else "f64.f64.f64.f64"
        yield _mma(shape, types, ("f64",) * 4, **_double_step(rounding))
    for shape, kinds in _INTEGER:
        for a, b, satfinite in product(kinds, kinds, (False, True)):
            types = f"{'satfinite.' if satfinite else ''}s32.{a}.{b}.s32"
            yield _mma(shape, types, ("s32", a, b, "s32"), satfinite=satfinite)
    for shape, operation in product(_BIT, ("and", "xor")):
        yield _bits(shape, operation)


def _bits(shape: str, operation: str) -> Product:
    """Single bits: words of 32 take the place of the elements, and k counts them."""
    m, n, k = _dimensions(shape)
    words = k // _WORD
    sums = accumulator("s32", m, n)
    return Product(f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc", multiplicand_a("b32", m, words),
                   multiplicand_b("b32", words, n), sums, sums, words, step=partial(_count, operation=operation))


def _quad_products(grouped: bool) -> Iterator[Product]:
    """mma.m8n8k4 of f16."""
    for a, b, (d, c) in product(("row", "col"), ("row", "col"), (("f16", "f16"), ("f32", "f16"), ("f32", "f32"))):
        yield Product(f"mma.sync.aligned.m8n8k4.{a}.{b}.{d}.f16.f16.{c}", quad_a(a), quad_b(b), quad_accumulator(c),
                      quad_accumulator(d), 4, grouped=grouped)


def _wmma_types(shape: str) -> Iterator[tuple[str, str, str, str, dict[str, object]]]:
    """Types in the mnemonic, type of A and B, of C, of D, options."""
    for kind in WMMA_MULTIPLICANDS.get(shape, ("f16", "bf16", "s8", "u8")):
        if kind == "f16":
            for d, c in product(("f16", "f32"), repeat=2):
                yield f"{d}.{c}", kind, c, d, {}
        elif kind in ("s8", "u8"):
            for satfinite in (False, True):
                types = f"s32.{kind}.{kind}.s32{'.satfinite' if satfinite else ''}"
                yield types, kind, "s32", "s32", {"satfinite": satfinite}
        elif kind == "f64":
            types = "f64.f64.f64.f64"
            yield types, kind, kind, kind, {}
            for rounding in _ROUNDINGS[1:]:
                # Behind the shape in the manual; compilers write it last.
                yield f"{rounding}.{types}", kind, kind, kind, {**_double_step(rounding)}
                yield f"{types}.{rounding}", kind, kind, kind, {**_double_step(rounding)}
        else:
            yield f"f32.{kind}.{kind}.f32", kind, "f32", "f32", {}


def _wmma_products(grouped: bool) -> Iterator[Product]:
    for shape, (_, _, k) in WMMA_SHAPES.items():
        for types, kind, c, d, options in _wmma_types(shape):
            parts = (wmma_fragment(kind, "a", shape), wmma_fragment(kind, "b", shape), wmma_fragment(c, "c", shape),
                     wmma_fragment(d, "d", shape))
            if kind in ("f16", "bf16", "tf32"):
                options["grouped"] = grouped
            for a, b in product(("row", "col"), repeat=2):
                yield Product(f"wmma.mma.sync.aligned.{a}.{b}.{shape}.{types}", *parts, k,
                              **options)  # type: ignore[arg-type]


def operations(rounding: int = 0) -> Iterator[Operation]:
    """All of them, as the card of that number sums; ValueError for a number that is not 0 or 1."""
    if rounding not in (0, 1):
        raise ValueError(f"rounding {rounding}: there are cards 0 and 1")
    for products in (_mma_products, _quad_products, _wmma_products):
        for item in products(bool(rounding)):
            yield item.operation()
