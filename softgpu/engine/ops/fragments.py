"""Where the elements of matrices lie in the registers of the 32 lanes of a warp.

Sources: PTX ISA, "Matrix Fragments for mma.m8n8k4" to "mma.m16n8k256", ldmatrix, stmatrix and movmatrix. With group =
lane / 4 and thread = lane % 4, and p elements in a register:

* A (m x k): a register covers columns ``p thread`` to ``p thread + p - 1`` of row ``group`` of a block of 8 rows;
  registers go through the blocks of 8 rows (of 16 at most) first, then through steps of 4 p columns;
* B (k x n): the same with rows and columns exchanged, one block of 8 columns;
* C and D (m x n): columns ``2 thread`` and ``2 thread + 1`` of row ``group`` of every block of 8 rows.

wmma leaves the layout open. Ours is that of mma, put side by side: 16 x 16 accumulators are those of two m16n8
products, 32 rows of A are two blocks of 16, and so on. Where wmma has more registers than the matrix needs (f16
multiplicands), the registers are repeated: each copy is complete. It does not depend on row or column order in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

WARP = 32

BITS = {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8,
        "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "b32": 32, "f64": 64}
"""Width of an element in its register by type, padding included; b32: a word of single bits."""

Position = tuple[int, int]
"""Row and column."""


@dataclass(frozen=True)
class Fragment:
    """One operand of a matrix instruction: ``positions[register][element][lane]`` is a row and a column of the matrix;
    elements count from the low end of the register."""

    kind: str
    positions: tuple[tuple[tuple[Position, ...], ...], ...]

    @property
    def registers(self) -> int:
        return len(self.positions)

    @property
    def per_register(self) -> int:
        """Elements in a register of 32 bits, or of 64 for f64."""
        return len(self.positions[0])

    @property
    def register_type(self) -> str:
        """PTX type of the registers in which the engine hands them over."""
        return {"f32": "f32", "f64": "f64", "s32": "s32"}.get(self.kind, "b32")

    def position(self, register: int, element: int, lane: int) -> Position:
        return self.positions[register][element][lane]


def elements_in_register(kind: str) -> int:
    return max(32, BITS[kind]) // BITS[kind]


def _lanes(position: Iterator[Position]) -> tuple[Position, ...]:
    return tuple(position)


@cache
def multiplicand_a(kind: str, m: int, k: int) -> Fragment:
    """A of an mma or wmma, m x k, m = 8, 16 or 32."""
    p = elements_in_register(kind)
    return Fragment(kind, tuple(
        tuple(_lanes((top + half + lane // 4, step + p * (lane % 4) + element) for lane in range(WARP))
              for element in range(p))
        for top in range(0, m, 16) for step in range(0, k, 4 * p) for half in range(0, min(m, 16), 8)))


@cache
def multiplicand_b(kind: str, k: int, n: int) -> Fragment:
    """B, k x n, n a multiple of 8."""
    p = elements_in_register(kind)
    return Fragment(kind, tuple(
        tuple(_lanes((step + p * (lane % 4) + element, left + lane // 4) for lane in range(WARP))
              for element in range(p))
        for left in range(0, n, 8) for step in range(0, k, 4 * p)))


@cache
def accumulator(kind: str, m: int, n: int) -> Fragment:
    """C and D, m x n."""
    p = elements_in_register(kind)
    columns = [tuple(range(first, first + p)) for first in range(0, 2, p)]
    return Fragment(kind, tuple(
        tuple(_lanes((top + half + lane // 4, left + 2 * (lane % 4) + column) for lane in range(WARP))
              for column in together)
        for top in range(0, m, 16) for left in range(0, n, 8) for half in range(0, min(m, 16), 8)
        for together in columns))


# mma.m8n8k4 of f16: four products, one for each pair of quads: lanes 4 q to 4 q + 3 and 4 q + 16 to 4 q + 19 have
# number q. Its rows and columns are numbered 8 q to 8 q + 7 here, in all matrices.


def _first(lane: int) -> int:
    """The first row and column of the product that the lane takes part in."""
    return 8 * (lane % 16 // 4)


def _across(lane: int) -> int:
    """The first of the four rows or columns that the lane's quad holds."""
    return _first(lane) + 4 * (lane // 16)


@cache
def quad_a(layout: str) -> Fragment:
    """A of mma.m8n8k4.f16; ``row``: a row in a lane, ``col``: a column of four rows."""
    return Fragment("f16", tuple(
        tuple(_lanes((_across(lane) + lane % 4, part + element) if layout == "row"
                     else (_across(lane) + part + element, lane % 4) for lane in range(WARP)) for element in range(2))
        for part in (0, 2)))


@cache
def quad_b(layout: str) -> Fragment:
    """B of mma.m8n8k4.f16."""
    return Fragment("f16", tuple(
        tuple(_lanes((part + element, _across(lane) + lane % 4) if layout == "col"
                     else (lane % 4, _across(lane) + part + element) for lane in range(WARP)) for element in range(2))
        for part in (0, 2)))


@cache
def quad_accumulator(kind: str) -> Fragment:
    """C and D of mma.m8n8k4.f16, f16 or f32."""
    if kind == "f16":
        return Fragment("f16", tuple(
            tuple(_lanes((_across(lane) + lane % 4, _first(lane) + part + element) for lane in range(WARP))
                  for element in range(2))
            for part in range(0, 8, 2)))
    return Fragment("f32", tuple(
        (_lanes((_across(lane) + (lane & 1) + (x & 2), _first(lane) + (x & 4) + (lane & 2) + (x & 1))
                for lane in range(WARP)),)
        for x in range(8)))


# wmma.

WMMA_SHAPES = {"m16n16k16": (16, 16, 16), "m8n32k16": (8, 32, 16), "m32n8k16": (32, 8, 16), "m16n16k8": (16, 16, 8),
               "m8n8k4": (8, 8, 4)}
WMMA_MULTIPLICANDS = {"m16n16k8": ("tf32",), "m8n8k4": ("f64",)}
WMMA_ACCUMULATORS = {"m16n16k8": ("f32",), "m8n8k4": ("f64",)}
_WIDE_MULTIPLICANDS = ("f16", "bf16", "s8", "u8")
_WIDE_ACCUMULATORS = ("f16", "f32", "s32")
_F16_REGISTERS = 8


@cache
def wmma_fragment(kind: str, matrix: str, shape: str) -> Fragment:
    """The fragment of matrix ``a``, ``b``, ``c`` or ``d`` of a shape of wmma."""
    m, n, k = WMMA_SHAPES[shape]
    if matrix in "cd":
        return accumulator(kind, m, n)
    fragment = multiplicand_a(kind, m, k) if matrix == "a" else multiplicand_b(kind, k, n)
    if kind == "f16":
        return Fragment(kind, fragment.positions * (_F16_REGISTERS // fragment.registers))
    return fragment


@dataclass(frozen=True)
class Access:
    """wmma.load or wmma.store: register r, element e of lane l is the element of memory at row and column
    ``fragment.position(r, e, l)``. ``layout``: with ``row`` that is ``row * stride + column`` elements of
    ``element_bytes`` from the address of the matrix, with ``col`` ``column * stride + row``. ``default_stride``: in
    elements, when there is no stride operand."""

    mnemonic: str
    is_store: bool
    layout: str
    fragment: Fragment
    element_bytes: int
    default_stride: int


def _access(mnemonic: str, layout: str, kind: str, matrix: str, shape: str) -> Access:
    m, n, k = WMMA_SHAPES[shape]
    rows, columns = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    stride = columns if layout == "row" else rows
    fragment = wmma_fragment(kind, matrix, shape)
    return Access(mnemonic, mnemonic.startswith("wmma.store"), layout, fragment, BITS[kind] // 8, stride)


def wmma_accesses() -> Iterator[Access]:
    """Every wmma.load and wmma.store, by mnemonics without state space."""
    for shape, layout in product(WMMA_SHAPES, ("row", "col")):
        for matrix, kind in product("ab", WMMA_MULTIPLICANDS.get(shape, _WIDE_MULTIPLICANDS)):
            yield _access(f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{kind}", layout, kind, matrix, shape)
        for kind in WMMA_ACCUMULATORS.get(shape, _WIDE_ACCUMULATORS):
            yield _access(f"wmma.load.c.sync.aligned.{layout}.{shape}.{kind}", layout, kind, "c", shape)
            yield _access(f"wmma.store.d.sync.aligned.{layout}.{shape}.{kind}", layout, kind, "d", shape)


# ldmatrix, stmatrix, movmatrix: 8 x 8 matrices of 16-bit elements; a lane has elements (row, column) and (row, column +
# 1) of each in the halves of one register, row = lane / 4, column = 2 (lane % 4); of the transposed one with .trans.

ROW_BYTES = 16
"""A row of a matrix in memory: contiguous, at the address that one lane gives."""

Half = tuple[int, int]


def ldmatrix_source(matrices: int, trans: bool, element_bits: int = 16) -> tuple[tuple[tuple[Half, Half], ...], ...]:
    """For each destination register and lane, for its low and high 16 bits: (the lane whose address operand is that of
    the row, bytes from that address). ``matrices``: 1, 2 or 4.

    stmatrix has the same mapping, from registers to memory. ValueError for elements that are not 16 bits.
    """
    if element_bits != 16:
        raise ValueError(f"ldmatrix of {element_bits}-bit elements")

    def place(matrix: int, row: int, column: int) -> Half:
        return (8 * matrix + column, 2 * row) if trans else (8 * matrix + row, 2 * column)

    return tuple(tuple((place(matrix, lane // 4, 2 * (lane % 4)), place(matrix, lane // 4, 2 * (lane % 4) + 1))
                       for lane in range(WARP)) for matrix in range(matrices))


def movmatrix_source() -> tuple[tuple[Half, Half], ...]:
    """For each lane of the destination of movmatrix.m8n8.trans, for its low and high 16 bits: (source lane, 0 for the
    low and 1 for the high half of its register)."""

    def place(row: int, column: int) -> Half:
        return 4 * column + row // 2, row % 2

    return tuple((place(lane // 4, 2 * (lane % 4)), place(lane // 4, 2 * (lane % 4) + 1)) for lane in range(WARP))
