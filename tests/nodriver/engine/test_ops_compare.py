"""Comparison and selection of the engine (ops/compare.py) against the interpreter and its number formats."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.engine.ops import Operation, collect, compare
from softgpu.reference.numerics import OPERATIONS, compare2, set2_result, set_result
from tests.nodriver.engine.evaluate import Form, compiled, evaluate
from tests.nodriver.engine.second_opinion import differences, disagreements, interpreted, operands

TABLE = collect(compare.operations())
BOOLEANS = ("and", "or", "xor")


def _parts(operation: Operation) -> tuple[str, str, str, str, bool]:
    """Comparison, boolean operator, result type, source type, ftz of a set."""
    modifiers = operation.mnemonic.split(".")[1:]
    boolean = modifiers[1] if modifiers[1] in BOOLEANS else ""
    return modifiers[0], boolean, modifiers[-2], modifiers[-1], "ftz" in modifiers


def _beyond_the_interpreter(operation: Operation) -> bool:
    """What the manual has and the interpreter refuses: set with f16 or bf16 results of integers, and with a boolean
    operator on packed types."""
    if not operation.mnemonic.startswith("set."):
        return False
    _, boolean, result, kind, _ = _parts(operation)
    integer = "f" not in kind
    return (integer and result in ("f16", "bf16")) or (bool(boolean) and kind.endswith("x2"))


KNOWN = [operation for operation in TABLE.values() if not _beyond_the_interpreter(operation)]
OTHERS = [operation for operation in TABLE.values() if _beyond_the_interpreter(operation)]


def test_operations_agree_with_the_interpreter() -> None:
    """Every setp without a boolean operator for this machine, and some of all for both kinds of it: all together they
    are thousands."""
    plain = [Form(operation) for operation in KNOWN if operation.mnemonic.startswith("setp.")
             and "pred" not in operation.sources]
    assert len(plain) > 150
    given = operands(2048, seed=8)
    assert differences(plain, given, interpreted(plain, given)) == []
    assert disagreements([Form(operation) for operation in KNOWN[::67]], 2048, seed=8) == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_every_operation_agrees_with_the_interpreter(part: int) -> None:
    assert disagreements([Form(operation) for operation in KNOWN[part::8]], 1 << 14, seed=part) == []


def test_the_interpreter_has_no_other_comparison_of_floating_point() -> None:
    named = {name for name in OPERATIONS if name.split(".")[0] in ("setp", "set")}
    assert named <= set(TABLE)


@pytest.mark.parametrize("boolean", ("", *BOOLEANS))
def test_what_the_interpreter_refuses(boolean: str) -> None:
    given = operands(512, seed=9)
    chosen = [operation for operation in OTHERS if _parts(operation)[1] == boolean][::5]
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    for operation, function in zip(chosen, compiled(chosen), strict=True):
        operator, _, result, kind, ftz = _parts(operation)
        width = 32 if kind.endswith("x2") else int(kind.lstrip("bus"))
        a, b, c = given[f"b{width}_0"], given[f"b{width}_1"], given["pred"]
        if kind.endswith("x2"):
            halves = [combine[boolean](half, c) for half in compare2(operator, a, b, kind, ftz)]
            expected = set2_result(halves[0], halves[1], result)
        else:
            true = evaluate(TABLE[f"setp.{operator}.{kind}"], a, b)[0]
            expected = set_result(combine[boolean](true, c) if boolean else true, result)
        assert np.array_equal(function(a, b, *([c] if boolean else []))[0], expected), operation.mnemonic


def test_selection_keeps_every_bit_of_a_nan() -> None:
    nan, other = np.array([0x7F800001], np.uint32), np.array([0xFFC12345], np.uint32)
    for take in (True, False):
        assert int(evaluate(TABLE["selp.f32"], nan, other, [take])[0][0]) == int((nan if take else other)[0])
    assert int(evaluate(TABLE["slct.f32.f32"], nan, other, nan)[0][0]) == int(other[0])
    assert int(evaluate(TABLE["slct.f32.f32"], nan, other, np.array([0x80000000], np.uint32))[0][0]) == int(nan[0])


def test_code_of_larger_cpus_agrees() -> None:
    given = operands(256, seed=10)
    chosen = [Form(operation) for operation in KNOWN[::40]]
    assert differences(chosen, given, interpreted(chosen, given), "x86-64-v4") == []
