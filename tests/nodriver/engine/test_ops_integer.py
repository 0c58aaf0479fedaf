"""Integer arithmetic of the engine (ops/integer.py, divide.py, wide.py) against the interpreter and exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ptxparse.parser import parse
from softgpu.engine.ops import Operation, bits, collect, compare, integer, wide
from softgpu.engine.ops.operation import TYPES
from tests.material import ROOT, require_material
from tests.nodriver.engine.evaluate import Form, compiled, evaluate, stored
from tests.nodriver.engine.second_opinion import differences, disagreements, interpreted, operands

TABLE = collect(integer.operations(), wide.operations())
ALL = collect(integer.operations(), wide.operations(), bits.operations(), compare.operations())
DIVISIONS = [name for name in TABLE if name.split(".")[0] in ("div", "rem")]


def test_every_operation_agrees_with_the_interpreter() -> None:
    assert disagreements([Form(operation) for operation in TABLE.values()], 2048, seed=1) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_many_operands(seed: int) -> None:
    forms = [Form(operation) for operation in TABLE.values()]
    given = operands(1 << 16, seed)
    expected = interpreted(forms, given)
    for cpu, optimize in product(("host", "x86-64-v3", "x86-64-v4"), (False, True)):
        assert differences(forms, given, expected, cpu, optimize) == []


def test_a_wrong_operation_is_noticed() -> None:
    wrong = Operation("add.u32", ("u32", "u32"), ("u32",), TABLE["sub.u32"].emit)
    assert len(disagreements([Form(wrong)], 64, seed=0)) == 2


def _divided(name: str, a: int, b: int, width: int) -> int:
    """Quotient rounded toward zero or remainder of the sign of the dividend; all ones and ``a`` for b = 0."""
    if name == "div":
        return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1)


def _grid(kind: str) -> list[tuple[int, int]]:
    """Pairs near the limits, near multiples and near powers of two."""
    width, signed = int(kind[1:]), kind[0] == "s"
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    near = {v + d for v in (0, low, high, high // 2, high // 3, 1 << width // 2, 1 << width - 2) for d in range(-2, 3)}
    values = sorted({v for v in near if low <= v <= high} | {3, 5, 7, 10, 641, 255})
    products = [(a * b + d, b) for a in values for b in values for d in (-1, 0, 1) if low <= a * b + d <= high]
    return [*product(values, values), *products]


@pytest.mark.parametrize("optimize", (False, True))
def test_divisions_near_limits_and_multiples(optimize: bool) -> None:
    for mnemonic, function in zip(DIVISIONS, compiled([TABLE[m] for m in DIVISIONS], optimize=optimize), strict=True):
        name, kind = mnemonic.split(".")
        pairs = _grid(kind)
        mask = (1 << int(kind[1:])) - 1
        a, b = (np.array([pair[i] & mask for pair in pairs], stored(kind)) for i in (0, 1))
        expected = np.array([_divided(name, x, y, int(kind[1:])) & mask for x, y in pairs], stored(kind))
        wrong = np.flatnonzero(function(a, b)[0] != expected)
        assert not len(wrong), (mnemonic, pairs[int(wrong[0])])


def test_constant_divisors() -> None:
    divisors = (0, 1, 7, 641, 0x7FFF, -1, -7, -32768)
    forms = [Form(TABLE[name], {1: divisor}) for name in DIVISIONS for divisor in divisors]
    given = operands(512, seed=3)
    for form, function in zip(forms, compiled(forms), strict=True):
        kind = form.operation.sources[0]
        dividends = given[f"b{kind[1:]}_0"]
        expected = evaluate(form.operation, dividends, [form.constants[1]])
        assert np.array_equal(function(dividends)[0], expected[0]), (form.operation.mnemonic, form.constants)


@pytest.mark.long
def test_quotients_of_all_16_bit_dividends() -> None:
    everything = np.arange(1 << 16, dtype=np.uint16)
    divide, signed = compiled([TABLE["div.u16"], TABLE["div.s16"]])
    for b in range(1, 1 << 16, 149):
        divisor = np.array([b], np.uint16)
        assert np.array_equal(divide(everything, divisor)[0], everything // divisor)
        by = int(divisor.view(np.int16)[0])
        exact = np.trunc(everything.view(np.int16) / by).astype(np.int32).astype(np.uint16)
        assert np.array_equal(signed(everything, divisor)[0], exact)


def test_values_of_the_manual() -> None:
    def value(mnemonic: str, *sources: int) -> list[int]:
        arrays = [np.array([v & (1 << 64) - 1], np.uint64).astype(stored(kind))
                  for v, kind in zip(sources, TABLE[mnemonic].sources, strict=True)]
        return [int(result[0]) for result in evaluate(TABLE[mnemonic], *arrays)]

    assert value("add.sat.s32", 0x7FFFFFFF, 1) == [0x7FFFFFFF]
    assert value("sub.sat.s32", 0x80000000, 1) == [0x80000000]
    assert value("mul.wide.s16", -1, 3) == [0xFFFFFFFD]
    assert value("mul24.hi.u32", 0xFF123456, 0x10000) == [0x123456]
    assert value("mul24.lo.s32", 0xFFFFFF, 5) == [0xFFFFFFFB]
    assert value("mad.hi.sat.s32", 0x40000000, 0x40000000, 0x7FFFFFFF) == [0x7FFFFFFF]
    assert value("sad.u32", 3, 10, 100) == [107]
    assert value("abs.s32", 0x80000000) == [0x80000000]
    assert value("div.s32", 0x80000000, -1) == [0x80000000]
    assert value("rem.s32", 0x80000000, -1) == [0]
    assert value("add.cc.u32", 0xFFFFFFFF, 1) == [0, 1]
    assert value("addc.cc.u32", 0xFFFFFFFF, 0xFFFFFFFF, 1) == [0xFFFFFFFF, 1]
    assert value("subc.cc.u64", 0, 0xFFFFFFFFFFFFFFFF, 1) == [0, 1]
    assert value("max.relu.s16x2", 0x8000FFFF, 0x80000001) == [0x00000001]


def _integer_mnemonics(path: Path) -> Iterator[str]:
    """Instructions of a file whose opcode is in the tables and whose type is one of theirs."""
    opcodes = {name.split(".")[0] for name in ALL}
    for function in parse(path.read_text()).functions:
        for instruction in function.instructions or ():
            opcode, *modifiers = instruction.mnemonic.split(".")
            types = [m for m in modifiers if m in TYPES]
            floating = any(TYPES[m] in ("float", "double") or "f16" in m for m in types)
            if opcode in opcodes and (not floating or opcode in ("set", "setp", "selp", "slct")):
                yield instruction.mnemonic


@pytest.mark.parametrize("place", ("corpus", "fixtures"))
def test_every_integer_instruction_of_the_corpus_is_known(place: str) -> None:
    folder = ROOT / "tests" / "fixtures" / "ptx" if place == "fixtures" else require_material() / "corpus" / "ptx"
    found = {mnemonic for path in sorted(folder.glob("*.ptx")) for mnemonic in _integer_mnemonics(path)}
    assert len(found) > 50
    assert sorted(found - set(ALL)) == []
