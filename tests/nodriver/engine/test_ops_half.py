"""Half-precision arithmetic of the engine (ops/half.py) against the interpreter's numbers."""

from __future__ import annotations

import pytest

from softgpu.engine.ops import collect, half
from tests.nodriver.engine.float_samples import disagreements, undefined_symbols, whitelist

TABLE = collect(half.operations())
OPERATIONS = list(TABLE.values())


def test_the_table_has_the_mnemonics_of_the_interpreter() -> None:
    kinds = {"f16", "f16x2", "bf16", "bf16x2"}
    named = whitelist(("add", "sub", "mul", "fma"))
    assert {name for name in named if name.split(".")[-1] in kinds and ".f32." not in name} == set(TABLE)


def test_operations_agree_with_the_interpreter() -> None:
    """All of them in plain code for this machine, some in optimised code for the smallest CPU."""
    assert disagreements(OPERATIONS, 2000, 1, "host", optimize=False) == []
    assert disagreements(OPERATIONS[::3], 2000, 1, "x86-64-v3", optimize=True) == []


@pytest.mark.long
@pytest.mark.parametrize("optimize", (False, True))
@pytest.mark.parametrize("cpu", ("host", "x86-64-v4", "x86-64-v3"))
@pytest.mark.parametrize("part", range(4))
def test_many_operands_agree_with_the_interpreter(part: int, cpu: str, optimize: bool) -> None:
    assert disagreements(OPERATIONS[part::4], 20000, 2 + part, cpu, optimize) == []


def test_nothing_is_called_from_outside(long_run: bool) -> None:
    assert undefined_symbols(OPERATIONS if long_run else OPERATIONS[::3]) == set()
