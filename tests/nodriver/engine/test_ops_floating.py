"""f32 and f64 arithmetic of the engine, abs, neg, min, max, copysign and testp, against the interpreter's numbers."""

from __future__ import annotations

import pytest

from softgpu.engine.ops import collect, floating, half, magnitude
from tests.nodriver.engine.float_samples import disagreements, undefined_symbols, whitelist

MAGNITUDES = ("abs", "neg", "min", "max", "copysign", "testp")
TABLE = collect(floating.operations(), magnitude.operations())
OPERATIONS = list(TABLE.values())


def test_the_table_has_the_mnemonics_of_the_interpreter() -> None:
    families = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", *MAGNITUDES)
    assert whitelist(families) == set(TABLE) | {operation.mnemonic for operation in half.operations()}


def test_operations_agree_with_the_interpreter() -> None:
    """All of them in plain code for this machine, some in optimised code for the smallest CPU."""
    assert disagreements(OPERATIONS, 1500, 1, "host", optimize=False) == []
    assert disagreements(OPERATIONS[::5], 1500, 1, "x86-64-v3", optimize=True) == []


@pytest.mark.long
@pytest.mark.parametrize("optimize", (False, True))
@pytest.mark.parametrize("cpu", ("host", "x86-64-v4", "x86-64-v3"))
@pytest.mark.parametrize("part", range(4))
def test_many_operands_agree_with_the_interpreter(part: int, cpu: str, optimize: bool) -> None:
    assert disagreements(OPERATIONS[part::4], 20000, 2 + part, cpu, optimize) == []


def test_nothing_is_called_from_outside(long_run: bool) -> None:
    assert undefined_symbols(OPERATIONS if long_run else OPERATIONS[::9]) == set()
