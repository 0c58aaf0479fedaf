"""mma.sync against numpy on matrices scattered by the manual's formulas, written out here lane by lane."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from softgpu.reference.numerics import FORMATS, from_float64
from softgpu.reference.tensor import FAMILIES, MMA, MatrixOperation

# PTX ISA, "Matrix Fragments for ...": (lane, element) -> (row, column), g = groupID, t = threadID_in_group.
Layout = Callable[[int, int, int], tuple[int, int]]

A: dict[str, Layout] = {
    "m16n8k16 16": lambda g, t, i: (g if i in (0, 1, 4, 5) else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
    "m16n8k8 16": lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    "m16n8k8 32": lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    "m16n8k4 32": lambda g, t, i: (g if i == 0 else g + 8, t),
    "m8n8k4 64": lambda g, t, i: (g, t),
    "m16n8k4 64": lambda g, t, i: (g if i == 0 else g + 8, t),
    "m16n8k8 64": lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    "m16n8k16 64": lambda g, t, i: (g if i % 2 == 0 else g + 8, i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
    "m8n8k16 8": lambda g, t, i: (g, t * 4 + i),
    "m16n8k16 8": lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    "m16n8k32 8": lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
    "m8n8k32 4": lambda g, t, i: (g, t * 8 + i),
    "m16n8k32 4": lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    "m16n8k64 4": lambda g, t, i: (g if i < 8 or 16 <= i < 24 else g + 8, t * 8 + (i & 7) + (0 if i < 16 else 32)),
    "m8n8k128 1": lambda g, t, i: (g, t * 32 + i),
    "m16n8k128 1": lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 31)),
    "m16n8k256 1": lambda g, t, i: (g if i < 32 or 64 <= i < 96 else g + 8, t * 32 + (i & 31) + (0 if i < 64 else 128)),
}
B: dict[str, Layout] = {
    "m16n8k16 16": lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    "m16n8k8 16": lambda g, t, i: (t * 2 + i, g),
    "m16n8k8 32": lambda g, t, i: (t if i == 0 else t + 4, g),
    "m16n8k4 32": lambda g, t, i: (t, g),
    "m8n8k4 64": lambda g, t, i: (t, g),
    "m16n8k4 64": lambda g, t, i: (t, g),
    "m16n8k8 64": lambda g, t, i: (t if i == 0 else t + 4, g),
    "m16n8k16 64": lambda g, t, i: (t + i * 4, g),
    "m8n8k16 8": lambda g, t, i: (t * 4 + i, g),
    "m16n8k16 8": lambda g, t, i: (t * 4 + i, g),
    "m16n8k32 8": lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    "m8n8k32 4": lambda g, t, i: (t * 8 + i, g),
    "m16n8k32 4": lambda g, t, i: (t * 8 + (i & 7), g),
    "m16n8k64 4": lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
    "m8n8k128 1": lambda g, t, i: (t * 32 + i, g),
    "m16n8k128 1": lambda g, t, i: (t * 32 + i, g),
    "m16n8k256 1": lambda g, t, i: (t * 32 + (i & 31) + (0 if i < 32 else 128), g),
}


def accumulator(g: int, t: int, i: int) -> tuple[int, int]:
    return (g if i < 2 else g + 8, t * 2 + (i & 1))


WIDTHS = {
    "e4m3": 8, "e5m2": 8, "e2m1": 8, "e2m3": 8, "e3m2": 8,
    "s4": 4, "u4": 4, "b1": 1, "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64,
}


IN_BYTES = {
    "e2m1": {0: 0, 1: 0x08, 2: 0x10, 3: 0x14, 4: 0x18, -1: 0x28, -2: 0x30, -3: 0x34, -4: 0x38},
    "e2m3": {0: 0, 1: 0x08, 2: 0x10, 3: 0x14, 4: 0x18, -1: 0x28, -2: 0x30, -3: 0x34, -4: 0x38},
    "e3m2": {0: 0, 1: 0x0C, 2: 0x10, 3: 0x12, 4: 0x14, -1: 0x2C, -2: 0x30, -3: 0x32, -4: 0x34},
}
"""Small integers in formats of four and six bits, in a byte each: e2m1 in bits 5 to 2, the others in the lower six."""


def width(kind: str) -> int:
    return WIDTHS.get(kind) or int(kind[1:])


def encode(matrix: np.ndarray, kind: str) -> np.ndarray:
    """Small integers as elements of a type."""
    if kind == "f64":
        return matrix.astype(np.float64).view(np.uint64)
    if kind in IN_BYTES:
        return np.array([IN_BYTES[kind][number] for number in matrix.reshape(-1)], np.uint64).reshape(matrix.shape)
    if kind in FORMATS:
        return from_float64(matrix.astype(np.float64), kind).astype(np.uint64)
    return matrix.astype(np.int64).view(np.uint64) & np.uint64((1 << width(kind)) - 1)


def scatter(matrix: np.ndarray, kind: str, layout: Layout) -> np.ndarray:
    """Registers (n, 32) that hold the elements of an encoded matrix where the manual says."""
    register_bits = 64 if kind == "f64" else 32
    per_register = register_bits // width(kind)
    count = matrix.size // 32 // per_register
    registers = [[0] * 32 for _ in range(count)]
    for lane in range(32):
        for i in range(count * per_register):
            row, column = layout(lane >> 2, lane % 4, i)
            registers[i // per_register][lane] |= int(matrix[row, column]) << (i % per_register * width(kind))
    return np.array(registers, np.dtype(f"uint{register_bits}"))


def parse(name: str) -> tuple[str, tuple[int, int, int], tuple[str, str, str, str]]:
    match = re.search(
        r"\.(m(\d+)n(\d+)k(\d+))\.row\.col(?:\.(?:rn|rz|rm|rp|satfinite|kind::f8f6f4))?"
        r"\.(\w+)\.(\w+)\.(\w+)\.(\w+)", name
    )
    assert match is not None
    return match[1], (int(match[2]), int(match[3]), int(match[4])), (match[5], match[6], match[7], match[8])


def random_matrix(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    low, high = {"b1": (0, 2), "u4": (0, 16), "s4": (-8, 8), "u8": (0, 256), "s8": (-128, 128)}.get(kind, (-4, 5))
    return random.integers(low, high, shape)


DENSE = [name for name in MMA if not re.search(r"m8n8k4\.\w+\.\w+\.f(16|32)\.f16", name)]


@pytest.mark.parametrize("name", DENSE)
def test_dense_product(name: str) -> None:
    shape, (m, n, k), (d, a, b, c) = parse(name)
    random = np.random.default_rng(len(name))
    matrices = [random_matrix(random, kind, size) for kind, size in ((a, (m, k)), (b, (k, n)), (c, (m, n)))]
    operation = MMA[name]
    key = f"{shape} {width(a)}"
    registers = [
        scatter(encode(matrix, kind), kind, layout)
        for matrix, kind, layout in zip(matrices, (a, b, c), (A[key], B[key], accumulator), strict=True)
    ]
    assert [len(part) for part in registers] == [operation.a_registers, operation.b_registers, operation.c_registers]
    left, right, addend = matrices
    if name.endswith(".popc"):
        operator = np.logical_and if ".and." in name else np.logical_xor
        wanted = operator(left[:, :, None], right[None]).sum(axis=1) + addend
    else:
        wanted = left @ right + addend
    result = operation(*registers)
    assert result.dtype == registers[2].dtype and len(result) == operation.d_registers
    if d == "f64":  # as numbers: with .rm a sum that cancels is -0
        assert np.array_equal(operation.d.gather(result).view(np.float64), wanted)
    else:
        assert np.array_equal(result, scatter(encode(wanted, d), d, accumulator))


# PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type"
def quad_a(layout: str, lane: int, i: int) -> tuple[int, int]:
    high = 0 if lane < 16 else 4
    return (lane % 4 + high, i) if layout == "row" else (i % 4 + high, lane % 4)


def quad_b(layout: str, lane: int, i: int) -> tuple[int, int]:
    high = 0 if lane < 16 else 4
    return (lane % 4, i + high) if layout == "row" else (i, lane % 4 + high)


def quad_c(kind: str, lane: int, i: int) -> tuple[int, int]:
    high = 0 if lane < 16 else 4
    if kind == "f16":
        return (lane % 4 + high, i)
    return ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))


@pytest.mark.parametrize("name", sorted(set(MMA) - set(DENSE)))
def test_four_quad_products(name: str) -> None:
    *_, a_layout, b_layout, d, _, _, c = name.split(".")
    random = np.random.default_rng(1)
    a, b, sums = random.integers(-4, 5, (4, 8, 4)), random.integers(-4, 5, (4, 4, 8)), random.integers(-9, 9, (4, 8, 8))

    def fill(matrices: np.ndarray, kind: str, place: Callable[[int, int], tuple[int, int]], count: int) -> np.ndarray:
        per_register = 32 // width(kind)
        registers = np.zeros((count // per_register, 32), np.uint32)
        for lane in range(32):
            for i in range(count):
                row, column = place(lane, i)
                element = int(encode(matrices[lane % 16 // 4], kind)[row, column])
                registers[i // per_register, lane] |= np.uint32(element << (i % per_register * width(kind)))
        return registers

    result = MMA[name](
        fill(a, "f16", lambda lane, i: quad_a(a_layout, lane, i), 4),
        fill(b, "f16", lambda lane, i: quad_b(b_layout, lane, i), 4),
        fill(sums, c, lambda lane, i: quad_c(c, lane, i), 8),
    )
    assert np.array_equal(result, fill(a @ b + sums, d, lambda lane, i: quad_c(d, lane, i), 8))


def operands(operation: MatrixOperation, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    parts = []
    for fragment in (operation.a, operation.b, operation.c):
        values = random.standard_normal(fragment.shape) * 2.0 ** random.integers(-6, 6, fragment.shape)
        parts.append(fragment.scatter(from_float64(values, fragment.kind)))
    return parts


@pytest.mark.parametrize("name", [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
])  # fmt: skip
def test_order_and_rounding_are_the_documented_ones(name: str) -> None:
    """c, then the products from left to right in float64, then one rounding: in Python floats, which are float64."""
    operation = MMA[name]
    a, b, c = operands(operation, 7)
    left, right, addend = operation.a.values(a), operation.b.values(b), operation.c.values(c)
    totals = np.empty(operation.d.shape)
    for row, column in np.ndindex(*totals.shape):
        total = float(addend[row, column])
        for k in range(left.shape[1]):
            total += float(left[row, k]) * float(right[k, column])
        totals[row, column] = total
    assert np.array_equal(operation.d.gather(operation(a, b, c)), from_float64(totals, operation.d.kind))


def test_the_addend_comes_first() -> None:
    """c + 2**120 - 2**120 from left to right loses a small c; any other order would keep it."""
    operation = MMA["mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"]
    left = np.zeros((16, 8))
    left[:, 0], left[:, 1] = 2.0**60, -(2.0**60)
    right = np.full((8, 8), 2.0**60)
    a, b = operation.a.scatter(from_float64(left, "bf16")), operation.b.scatter(from_float64(right, "bf16"))
    c = operation.c.scatter(from_float64(np.ones((16, 8)), "f32"))
    assert np.all(operation(a, b, c) == 0)


def test_tf32_ignores_the_low_bits_of_its_registers() -> None:
    operation = MMA["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"]
    a, b, c = operands(operation, 9)
    assert np.array_equal(operation(a | np.uint32(0x1FFF), b | np.uint32(0x1234), c), operation(a, b, c))


def test_integer_overflow_wraps_or_saturates() -> None:
    name = "mma.sync.aligned.m16n8k32.row.col{}.s32.u8.u8.s32"
    a, b = np.full((4, 32), 0xFFFFFFFF, np.uint32), np.full((2, 32), 0xFFFFFFFF, np.uint32)
    c = np.full((4, 32), 0x7FFFFFFF, np.uint32)
    assert np.all(MMA[name.format("")](a, b, c) == (0x7FFFFFFF + 32 * 255 * 255) % 2**32)
    assert np.all(MMA[name.format(".satfinite")](a, b, c) == 0x7FFFFFFF)


def test_infinity_and_nan() -> None:
    operation = MMA["mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"]
    a, b, c = (np.zeros((count, 32), np.uint32) for count in (2, 1, 4))
    a[0, 0], b[:] = 0x7C00, 0x3C003C00  # infinity in row 0
    c[1, 4] = 0xFF800001  # a NaN in row 1
    result = operation(a, b, c)
    assert np.all(result[:2, :4] == 0x7F800000)
    assert result[1, 4] == 0x7FFFFFFF and np.all(result[2:] == 0)


def test_f64_rounding_mode() -> None:
    down, up = (MMA[f"mma.sync.aligned.m8n8k4.row.col.{mode}.f64.f64.f64.f64"] for mode in ("rm", "rp"))
    a = np.full((1, 32), 0.1).view(np.uint64)
    c = np.full((2, 32), 1.0).view(np.uint64)
    low, high = down(a, a, c).view(np.float64), up(a, a, c).view(np.float64)
    assert np.all(low < high) and np.allclose(low, 1.04) and np.allclose(high, 1.04)


def test_several_warps_at_once() -> None:
    operation = MMA["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    first, second = operands(operation, 1), operands(operation, 2)
    both = operation(*(np.stack(pair) for pair in zip(first, second, strict=True)))
    assert np.array_equal(both[0], operation(*first)) and np.array_equal(both[1], operation(*second))


def test_wrong_register_count_is_refused() -> None:
    operation = MMA["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    with pytest.raises(ValueError, match=r"4 x 32 registers"):
        operation(np.zeros((2, 32), np.uint32), np.zeros((2, 32), np.uint32), np.zeros((4, 32), np.uint32))


def test_family_list() -> None:
    assert FAMILIES["mma"] == tuple(MMA)
