"""mma.sync of every dense shape and type but m8n8k4 f16 (:mod:`softgpu.reference.tensor.mma_quad`).

Source: PTX ISA, "Multiply-and-Accumulate Instruction: mma". Left out by name: ``.block_scale`` and sparse ``mma.sp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.tensor.fragments import Fragment, fragment_a, fragment_b, fragment_c
from softgpu.reference.tensor.products import bit_products, multiply_add

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class MatrixOperation:
    """A matrix instruction: call it with the registers of a, b, c, each (..., registers, 32); returns those of d."""

    mnemonic: str
    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    compute: Callable[[Array, Array, Array], Array]

    @property
    def bits(self) -> int:
        """Width of the registers: 32, or 64 for f64."""
        return self.d.bits

    @property
    def a_registers(self) -> int:
        return self.a.registers

    @property
    def b_registers(self) -> int:
        return self.b.registers

    @property
    def c_registers(self) -> int:
        return self.c.registers

    @property
    def d_registers(self) -> int:
        return self.d.registers

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> Array:
        values = self.compute(self.a.values(a), self.b.values(b), self.c.values(c))
        return self.d.scatter(np.asarray(values))


def _dimensions(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _operation(
    mnemonic: str, shape: str, kinds: tuple[str, str, str, str], compute: Callable[[Array, Array, Array], Array]
) -> MatrixOperation:
    m, n, k = _dimensions(shape)
    d, a, b, c = kinds
    return MatrixOperation(
        mnemonic, fragment_a(a, m, k), fragment_b(b, k, n), fragment_c(c, m, n), fragment_c(d, m, n), compute
    )


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

_DOUBLE = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")
_BIT = ("m8n8k128", "m16n8k128", "m16n8k256")


def _float_operations() -> Iterator[MatrixOperation]:
    for shape, multiplicands, accumulators in _FLOAT:
        for a, b, c in product(multiplicands, multiplicands, accumulators):
            name = f"mma.sync.aligned.{shape}.row.col.{c}.{a}.{b}.{c}"
            yield _operation(name, shape, (c, a, b, c), partial(multiply_add, d_kind=c))


_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


def _narrow_operations() -> Iterator[MatrixOperation]:
    """``.kind::f8f6f4``: elements of four to eight bits, each in a byte."""
    shape = "m16n8k32"
    for a, b, c in product(_NARROW, _NARROW, ("f16", "f32")):
        name = f"mma.sync.aligned.{shape}.row.col.kind::f8f6f4.{c}.{a}.{b}.{c}"
        yield _operation(name, shape, (c, a, b, c), partial(multiply_add, d_kind=c))


def _double_operations() -> Iterator[MatrixOperation]:
    for shape, rounding in product(_DOUBLE, ("", "rn", "rz", "rm", "rp")):
        name = f"mma.sync.aligned.{shape}.row.col{'.' + rounding if rounding else ''}.f64.f64.f64.f64"
        compute = partial(multiply_add, d_kind="f64", rounding=rounding or "rn")
        yield _operation(name, shape, ("f64",) * 4, compute)


def _integer_operations() -> Iterator[MatrixOperation]:
    for shape, kinds in _INTEGER:
        for a, b, satfinite in product(kinds, kinds, (False, True)):
            name = f"mma.sync.aligned.{shape}.row.col{'.satfinite' if satfinite else ''}.s32.{a}.{b}.s32"
            compute = partial(multiply_add, d_kind="s32", satfinite=satfinite)
            yield _operation(name, shape, ("s32", a, b, "s32"), compute)


def _bit_operations() -> Iterator[MatrixOperation]:
    for shape, operation in product(_BIT, ("and", "xor")):
        name = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
        yield _operation(name, shape, ("s32", "b1", "b1", "s32"), partial(bit_products, operation=operation))


def operations() -> Iterator[MatrixOperation]:
    """Every instruction of this module."""
    yield from _float_operations()
    yield from _narrow_operations()
    yield from _double_operations()
    yield from _integer_operations()
    yield from _bit_operations()
