"""The cvt of the engine (ops/convert*.py) against the interpreter's numbers."""

from __future__ import annotations

import pytest

from softgpu.engine.ops import (
    collect,
    convert_float,
    convert_from_integer,
    convert_integer,
    convert_packed,
    convert_small,
    convert_to_integer,
)
from tests.nodriver.engine.float_samples import disagreements, undefined_symbols, whitelist

TABLE = collect(
    convert_integer.operations(), convert_from_integer.operations(), convert_to_integer.operations(),
    convert_float.operations(), convert_packed.operations(), convert_small.operations(),
)
OPERATIONS = list(TABLE.values())


def test_the_table_has_the_mnemonics_of_the_interpreter() -> None:
    assert whitelist(("cvt",)) == set(TABLE)


def test_operations_agree_with_the_interpreter() -> None:
    """All of them in plain code for this machine, some in optimised code for the smallest CPU."""
    assert disagreements(OPERATIONS, 500, 1, "host", optimize=False) == []
    assert disagreements(OPERATIONS[::8], 500, 1, "x86-64-v3", optimize=True) == []


@pytest.mark.long
@pytest.mark.parametrize("optimize", (False, True))
@pytest.mark.parametrize("cpu", ("host", "x86-64-v4", "x86-64-v3"))
@pytest.mark.parametrize("part", range(4))
def test_many_operands_agree_with_the_interpreter(part: int, cpu: str, optimize: bool) -> None:
    assert disagreements(OPERATIONS[part::4], 20000, 2 + part, cpu, optimize) == []


def test_nothing_is_called_from_outside(long_run: bool) -> None:
    assert undefined_symbols(OPERATIONS if long_run else OPERATIONS[::12]) == set()
