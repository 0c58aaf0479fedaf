"""wmma: load, multiply, store through a memory array; register counts are those of the manual's tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from softgpu.reference.numerics import FORMATS, from_float64
from softgpu.reference.tensor import WMMA, WMMA_ACCESS, MatrixAccess

SHAPES = {
    "m16n16k16": (16, 16, 16),
    "m8n32k16": (8, 32, 16),
    "m32n8k16": (32, 8, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}
WIDE = ("m16n16k16", "m8n32k16", "m32n8k16")


def to_memory(matrix: np.ndarray, kind: str, layout: str, stride: int) -> np.ndarray:
    """Bytes of a matrix in row or column order with a leading dimension of ``stride`` elements; 0xAA between."""
    if kind in FORMATS:
        bits = matrix.astype(np.float64).view(np.uint64) if kind == "f64" else from_float64(matrix.astype(float), kind)
    else:
        bits = matrix.astype(np.int64).astype(np.dtype(f"uint{kind[1:]}"))
    lines = bits if layout == "row" else bits.T
    padded = np.full((lines.shape[0], stride * bits.itemsize), 0xAA, np.uint8).view(bits.dtype)
    padded[:, : lines.shape[1]] = lines
    return padded.reshape(-1).view(np.uint8)


def load(access: MatrixAccess, memory: np.ndarray, stride: int) -> np.ndarray:
    offsets = access.offsets(stride)
    element = np.dtype(f"uint{8 * access.element_bytes}")
    parts = memory[offsets[..., None] + np.arange(access.element_bytes)]
    return access.pack(np.ascontiguousarray(parts).view(element)[..., 0])


def store(access: MatrixAccess, memory: np.ndarray, registers: np.ndarray, stride: int) -> None:
    element = np.dtype(f"uint{8 * access.element_bytes}")
    values = access.unpack(registers).astype(element)
    offsets = access.offsets(stride)
    memory[offsets[..., None] + np.arange(access.element_bytes)] = values[..., None].view(np.uint8)


def matrix(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    return random.integers(0 if kind == "u8" else -4, 5, shape)


def cases() -> list[tuple[str, str, str, str, str]]:
    """(shape, types in the mnemonic, multiplicand, c, d)"""
    found = []
    for shape in WIDE:
        found += [(shape, f"{d}.{c}", "f16", c, d) for d, c in product(("f16", "f32"), repeat=2)]
        found.append((shape, "f32.bf16.bf16.f32", "bf16", "f32", "f32"))
        found += [(shape, f"s32.{kind}.{kind}.s32", kind, "s32", "s32") for kind in ("s8", "u8")]
    found.append(("m16n16k8", "f32.tf32.tf32.f32", "tf32", "f32", "f32"))
    found.append(("m8n8k4", "f64.f64.f64.f64", "f64", "f64", "f64"))
    return found


@pytest.mark.parametrize(("a_layout", "b_layout", "c_layout"), list(product(("row", "col"), repeat=3)))
@pytest.mark.parametrize(("shape", "types", "kind", "c", "d"), cases())
def test_product(
    shape: str, types: str, kind: str, c: str, d: str, a_layout: str, b_layout: str, c_layout: str
) -> None:
    m, n, k = SHAPES[shape]
    random = np.random.default_rng(m + n)
    left, right, addend = (matrix(random, kind, (m, k)), matrix(random, kind, (k, n)), matrix(random, c, (m, n)))
    stride = 40
    registers = [
        load(WMMA_ACCESS[f"wmma.load.{part}.sync.aligned.{layout}.{shape}.{element}"],
             to_memory(values, element, layout, stride), stride)
        for part, layout, element, values in (
            ("a", a_layout, kind, left), ("b", b_layout, kind, right), ("c", c_layout, c, addend))
    ]  # fmt: skip
    result = WMMA[f"wmma.mma.sync.aligned.{a_layout}.{b_layout}.{shape}.{types}"](*registers)
    wanted = to_memory(left @ right + addend, d, c_layout, stride)
    memory = np.full(wanted.size, 0xAA, np.uint8)
    store(WMMA_ACCESS[f"wmma.store.d.sync.aligned.{c_layout}.{shape}.{d}"], memory, result, stride)
    assert np.array_equal(memory, wanted)


# PTX ISA, "Matrix Fragments for WMMA": registers of A, of B
COUNTS = {
    ("f16", "m16n16k16"): (8, 8), ("f16", "m8n32k16"): (8, 8), ("f16", "m32n8k16"): (8, 8),
    ("bf16", "m16n16k16"): (4, 4), ("bf16", "m8n32k16"): (2, 8), ("bf16", "m32n8k16"): (8, 2),
    ("s8", "m16n16k16"): (2, 2), ("s8", "m8n32k16"): (1, 4), ("s8", "m32n8k16"): (4, 1),
    ("u8", "m16n16k16"): (2, 2), ("u8", "m8n32k16"): (1, 4), ("u8", "m32n8k16"): (4, 1),
    ("tf32", "m16n16k8"): (4, 4), ("f64", "m8n8k4"): (1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "shape"), COUNTS)
def test_register_counts(kind: str, shape: str) -> None:
    for part, count in zip("ab", COUNTS[kind, shape], strict=True):
        for layout in ("row", "col"):
            assert WMMA_ACCESS[f"wmma.load.{part}.sync.aligned.{layout}.{shape}.{kind}"].registers == count
    for shape in WIDE:
        assert WMMA_ACCESS[f"wmma.load.c.sync.aligned.row.{shape}.f16"].registers == 4
        assert WMMA_ACCESS[f"wmma.store.d.sync.aligned.row.{shape}.f32"].registers == 8
    assert WMMA_ACCESS["wmma.load.c.sync.aligned.col.m8n8k4.f64"].registers == 2


@pytest.mark.parametrize("name", WMMA_ACCESS)
def test_offsets_touch_each_element_of_the_matrix(name: str) -> None:
    access = WMMA_ACCESS[name]
    rows, columns = access.fragment.shape
    stride = access.default_stride
    assert stride == (columns if access.layout == "row" else rows)
    offsets = access.offsets()
    assert offsets.shape == (access.registers, access.bits // (8 * access.element_bytes), 32)
    assert set(offsets.reshape(-1).tolist()) == set(
        range(0, rows * columns * access.element_bytes, access.element_bytes)
    )
    assert np.array_equal(access.offsets(np.full(32, stride)), offsets)
    if access.is_store:  # nothing is written twice
        assert np.unique(offsets).size == offsets.size


def test_integer_saturation() -> None:
    a = np.full((2, 32), 0xFFFFFFFF, np.uint32)
    c = np.full((8, 32), 0x7FFFFFFF, np.uint32)
    name = "wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.u8.s32"
    assert np.all(WMMA[name](a, a, c) == (0x7FFFFFFF + 16 * 255 * 255) % 2**32)
    assert np.all(WMMA[name + ".satfinite"](a, a, c) == 0x7FFFFFFF)


def test_elementwise_use_of_fragments() -> None:
    """Scaling every register of an accumulator scales the matrix, whatever the layout."""
    part = WMMA_ACCESS["wmma.load.c.sync.aligned.col.m32n8k16.f32"]
    values = np.arange(256).reshape(32, 8)
    registers = load(part, to_memory(values, "f32", "col", 32), 32)
    scaled = (registers.view(np.float32) * np.float32(3)).view(np.uint32)
    memory = np.zeros(1024, np.uint8)
    store(WMMA_ACCESS["wmma.store.d.sync.aligned.row.m32n8k16.f32"], memory, scaled, 8)
    assert np.array_equal(memory.view(np.float32).reshape(32, 8), values * 3)
