"""Matrix products of the engine (ops/matrix.py) and fragments (ops/fragments.py) against the interpreter's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgpu.engine.ops import Operation, collect, matrix
from softgpu.engine.ops.fragments import Fragment, ldmatrix_source, movmatrix_source, wmma_accesses, wmma_fragment
from softgpu.reference.numerics import FORMATS, to_float64
from softgpu.reference.tensor import LDMATRIX, MMA, WMMA, WMMA_ACCESS, MatrixOperation
from softgpu.reference.tensor.fragments import Fragment as ReferenceFragment
from tests.nodriver.engine.evaluate import Function, compiled
from tests.nodriver.engine.float_samples import undefined_symbols

Array = npt.NDArray[Any]

TABLES = [collect(matrix.operations(rounding)) for rounding in (0, 1)]
REFERENCE: dict[str, MatrixOperation] = {**MMA, **WMMA}
FLOATS = ("f16", "bf16", "tf32", "f32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
INTEGER_BITS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}


def elements(kind: str, shape: tuple[int, int], random: np.random.Generator, spread: bool) -> Array:
    """Bit patterns of a matrix: small integers, or with ``spread`` any finite numbers of moderate size."""
    if kind in INTEGER_BITS:
        return random.integers(0, 1 << INTEGER_BITS[kind], shape, np.uint64)
    small = random.integers(-2, 3, shape).astype(np.float64)
    if spread and kind in ("f16", "bf16", "tf32", "f32", "f64"):
        small = random.normal(size=shape) * 2.0 ** random.integers(-6, 7, shape)
    if kind == "f64":
        return small.view(np.uint64)
    if kind in ("tf32", "f32", "bf16"):
        bits = small.astype(np.float32).view(np.uint32).astype(np.uint64)
        return bits >> np.uint64(16) if kind == "bf16" else bits
    if kind == "f16":
        return small.astype(np.float16).view(np.uint16).astype(np.uint64)
    if spread:
        patterns = random.integers(0, 1 << 8, shape, np.uint64)
        if kind in ("e4m3", "e5m2"):
            finite = np.isfinite(to_float64(patterns.astype(FORMATS[kind].container), kind))
            return np.where(finite, patterns, np.uint64(0))
        return patterns & np.uint64(0x3C if kind == "e2m1" else 0x3F)
    one = {"e4m3": 0x38, "e5m2": 0x3C, "e3m2": 0x0C, "e2m3": 0x08, "e2m1": 0x08}[kind]
    two = {"e4m3": 0x40, "e5m2": 0x40, "e3m2": 0x10, "e2m3": 0x10, "e2m1": 0x10}[kind]
    sign = np.where(small < 0, 0x80 if kind in ("e4m3", "e5m2") else 0x20, 0)
    return (np.choose(np.abs(small).astype(np.int64), [0, one, two]) | sign).astype(np.uint64)


def scatter(fragment: Fragment, bits: Array) -> list[Array]:
    """A matrix of bit patterns as registers of the engine's fragment."""
    registers = []
    for held in fragment.positions:
        register = np.zeros(32, np.uint64)
        for element, lanes in enumerate(held):
            rows, columns = np.array(lanes).T
            register |= bits[rows, columns].astype(np.uint64) << np.uint64(element * (32 // len(held)))
        registers.append(register.astype(np.uint64 if fragment.kind == "f64" else np.uint32))
    return registers


def gather(fragment: Fragment, registers: Sequence[Array], shape: tuple[int, int]) -> Array:
    """Registers as a matrix of bit patterns."""
    matrix_bits = np.zeros(shape, np.uint64)
    for held, register in zip(fragment.positions, registers, strict=True):
        width = (64 if fragment.kind == "f64" else 32) // len(held)
        for element, lanes in enumerate(held):
            rows, columns = np.array(lanes).T
            part = register.astype(np.uint64) >> np.uint64(element * width)
            matrix_bits[rows, columns] = part & np.uint64((1 << width) - 1)
    return matrix_bits


def both(operation: Operation, function: Function, matrices: Sequence[Array]) -> tuple[Array, Array]:
    """The matrix D of the engine and that of the interpreter, as bit patterns."""
    reference = REFERENCE[operation.mnemonic]
    parts = (reference.a, reference.b, reference.c)
    packed = [part.scatter(bits.astype(part.register_type)) for part, bits in zip(parts, matrices, strict=True)]
    expected = reference.d.gather(reference(*packed))
    if operation.mnemonic in MMA:
        have = np.stack(function(*[register for registers in packed for register in registers]))
        return reference.d.gather(have), expected
    shape = operation.mnemonic.split(".")[6]
    kinds = [part.kind for part in (*parts, reference.d)]
    fragments = [wmma_fragment(kind, name, shape) for kind, name in zip(kinds, "abcd", strict=True)]
    given = [register for part, bits in zip(fragments[:3], matrices, strict=True) for register in scatter(part, bits)]
    return gather(fragments[3], function(*given), reference.d.shape), expected


def numbers(kind: str, bits: Array) -> Array:
    return to_float64(bits.astype(FORMATS[kind].container), kind)


def tolerance(reference: MatrixOperation, matrices: Sequence[Array]) -> Array:
    """What the order of a sum of K products and C may change: K + 2 roundings to f32 of at most the sum of the
    magnitudes, then one rounding to the type of D (half a unit of it on both sides)."""
    a, b, c = (np.abs(part.values(part.scatter(bits.astype(part.register_type))))
               for part, bits in zip((reference.a, reference.b, reference.c), matrices, strict=True))
    size = np.asarray(a.astype(np.float64)) @ np.asarray(b.astype(np.float64)) + c
    narrow = 2.0**-10 if reference.d.kind == "f16" else 0.0
    return np.asarray(size * ((reference.a.shape[1] + 2) * 2.0**-24 + narrow) + 2.0**-24)


def check(table: Sequence[Operation], cpu: str, seed: int, optimize: bool = False) -> list[str]:
    """Mnemonics that fail: exact numbers bit for bit, then others within the tolerance."""
    failed = []
    for operation, function in zip(table, compiled(table, cpu, optimize), strict=True):
        reference = REFERENCE[operation.mnemonic]
        random = np.random.default_rng(seed)
        parts = (reference.a, reference.b, reference.c)
        exact = [elements(part.kind, part.shape, random, False) for part in parts]
        have, want = both(operation, function, exact)
        if not np.array_equal(have, want):
            failed.append(f"{operation.mnemonic}: {np.count_nonzero(have != want)} differ")
        spread = [elements(part.kind, part.shape, random, True) for part in parts]
        have, want = both(operation, function, spread)
        if reference.d.kind in ("f64", "s32"):
            same = np.array_equal(have, want)
        elif "m8n8k4" in operation.mnemonic:
            same = np.allclose(numbers(reference.d.kind, have), numbers(reference.d.kind, want), rtol=2e-3, atol=1e-2)
        else:
            with np.errstate(invalid="ignore"):  # infinities of f16
                difference = np.abs(numbers(reference.d.kind, have) - numbers(reference.d.kind, want))
            same = bool(((difference <= tolerance(reference, spread)) | (have == want)).all())
        if not same:
            failed.append(f"{operation.mnemonic}: too far from the interpreter")
    return failed


def ordinary(table: dict[str, Operation]) -> list[Operation]:
    """All but the forms of wmma that differ by the layout in memory only."""
    return [item for name, item in table.items() if name in MMA or ".row.row." in name]


def test_the_tables_have_the_mnemonics_of_the_interpreter() -> None:
    for table in TABLES:
        assert set(table) == {*MMA, *WMMA}


@pytest.mark.parametrize("rounding", (0, 1))
def test_products_agree_with_the_interpreter(rounding: int) -> None:
    assert check(ordinary(TABLES[rounding])[rounding::4], "host", 1 + rounding) == []


def test_products_on_the_smallest_cpu() -> None:
    assert check(ordinary(TABLES[0])[1::12], "x86-64-v3", 3, optimize=True) == []


@pytest.mark.long
@pytest.mark.parametrize("cpu", ("host", "x86-64-v3"))
@pytest.mark.parametrize("rounding", (0, 1))
@pytest.mark.parametrize("part", range(4))
def test_all_products_agree_with_the_interpreter(part: int, rounding: int, cpu: str) -> None:
    for seed in range(3):
        assert check(list(TABLES[rounding].values())[part::4], cpu, seed, optimize=bool(seed % 2)) == []


def _registers(operation: Operation, random: np.random.Generator) -> list[Array]:
    reference = REFERENCE[operation.mnemonic]
    parts = (reference.a, reference.b, reference.c)
    packed = [part.scatter(elements(part.kind, part.shape, random, True).astype(part.register_type)) for part in parts]
    return [register for registers in packed for register in registers]


def test_cards_differ_and_machines_do_not() -> None:
    names = ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
             "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"]
    results = []
    for cpu in ("host", "x86-64-v3"):
        for table in TABLES:
            random = np.random.default_rng(4)
            functions = compiled([table[name] for name in names], cpu)
            results.append([np.stack(f(*_registers(f.operation, random))) for f in functions])
    for host, other in ((0, 2), (1, 3)):
        assert all(np.array_equal(a, b) for a, b in zip(results[host], results[other], strict=True))
    assert all((a != b).any() for a, b in zip(results[0], results[1], strict=True))


def test_infinities_and_nans() -> None:
    """An infinity or NaN in a row of A reaches all columns of that row, and f16 results have the canonical NaN."""
    name = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
    for table in TABLES:
        function = compiled([table[name]])[0]
        a, b, c = (np.full(shape, 0x3C00, np.uint64) for shape in ((16, 16), (16, 8), (16, 8)))
        a[3, 5], a[7, 15], b[0, 2] = 0x7C00, 0x7E01, 0xFC00
        have, _ = both(table[name], function, (a, b, c))
        assert (have[7] == 0x7FFF).all()
        assert have[3].tolist() == [0x7C00 if column != 2 else 0x7FFF for column in range(8)]
        assert have[0].tolist() == [0x4C40 if column != 2 else 0xFC00 for column in range(8)]


def test_integers_wrap_and_saturate() -> None:
    for name in ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
                 "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"):
        function = compiled([TABLES[0][name]])[0]
        for a_byte, start in ((0x7F, 0x7FFFFFF0), (0x80, 0x80000010)):
            a, b = np.full((16, 32), a_byte, np.uint64), np.full((32, 8), 255, np.uint64)
            have, want = both(TABLES[0][name], function, (a, b, np.full((16, 8), start, np.uint64)))
            assert np.array_equal(have, want)


def test_fragments_of_mma_are_those_of_the_interpreter() -> None:
    """By the products above; here that the registers have the types and numbers of the manual."""
    for table in TABLES:
        for name, operation in table.items():
            reference = REFERENCE[name]
            counts = [part.registers for part in (reference.a, reference.b, reference.c)]
            if name in MMA:
                assert len(operation.sources) == sum(counts), name
            assert len(operation.results) == reference.d.registers, name


def _kinds(part: ReferenceFragment) -> tuple[str, int]:
    return part.kind, part.registers


def test_fragments_of_wmma_hold_every_element() -> None:
    accesses = {access.mnemonic: access for access in wmma_accesses()}
    assert set(accesses) == set(WMMA_ACCESS)
    for name, access in accesses.items():
        reference = WMMA_ACCESS[name]
        assert _kinds(reference.fragment) == (access.fragment.kind, access.fragment.registers), name
        assert (reference.is_store, reference.element_bytes, reference.default_stride) == (
            access.is_store, access.element_bytes, access.default_stride)
        held = [position for register in access.fragment.positions for lanes in register for position in lanes]
        rows, columns = reference.fragment.shape
        assert sorted(set(held)) == [(row, column) for row in range(rows) for column in range(columns)]
        assert not access.is_store or len(held) == rows * columns


@pytest.mark.parametrize("matrices", (1, 2, 4))
@pytest.mark.parametrize("trans", (False, True))
def test_ldmatrix(matrices: int, trans: bool) -> None:
    rows = np.random.default_rng(5).integers(0, 1 << 16, (matrices, 8, 8)).astype(np.uint16)
    move = LDMATRIX[f"ldmatrix.sync.aligned.m8n8.x{matrices}{'.trans' if trans else ''}.b16"]
    by_lane = rows.reshape(-1, 8)
    have = [[sum(int(by_lane[lane, offset // 2]) << 16 * half for half, (lane, offset) in enumerate(halves))
             for halves in register] for register in ldmatrix_source(matrices, trans)]
    assert np.array_equal(np.array(have, np.uint32), move.load(rows))
    with pytest.raises(ValueError, match="8-bit"):
        ldmatrix_source(matrices, trans, 8)


def test_movmatrix() -> None:
    """A register of a matrix, as ldmatrix gives it, becomes that of the transposed one."""
    rows = np.random.default_rng(6).integers(0, 1 << 16, (1, 8, 8)).astype(np.uint16)
    source = LDMATRIX["ldmatrix.sync.aligned.m8n8.x1.b16"].load(rows)[0]
    wanted = LDMATRIX["ldmatrix.sync.aligned.m8n8.x1.trans.b16"].load(rows)[0]
    have = [sum(int(source[lane] >> np.uint32(16 * half) & np.uint32(0xFFFF)) << 16 * to
                for to, (lane, half) in enumerate(halves)) for halves in movmatrix_source()]
    assert have == wanted.tolist()


def test_unknown_cards_are_refused() -> None:
    with pytest.raises(ValueError, match="rounding 2"):
        list(matrix.operations(2))


def test_nothing_is_called_from_outside(long_run: bool) -> None:
    assert undefined_symbols(ordinary(TABLES[0])[::1 if long_run else 20]) == set()
