"""Logic and bits of the engine (ops/bits.py and the families it collects) against the interpreter."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from softgpu.engine.ops import bits, collect
from softgpu.engine.ops.permute import MODES
from tests.nodriver.engine.evaluate import Form, compiled, stored
from tests.nodriver.engine.second_opinion import arguments, differences, disagreements, interpreted, operands

TABLE = collect(bits.operations())
SHIFTED = ("shl", "shr", "shf", "bfe", "bfi", "bmsk", "szext")
"""Opcodes whose amounts, positions and lengths may be constants with code of their own."""

AMOUNTS = (0, 1, 31, 32, 63, 64, 256, 0xFFFFFFFF)


def forms() -> list[Form]:
    """All operations, with the majority as the function of lop3, but without fns, whose base may be at most 31."""
    return [Form(operation, {3: 0xE8} if "imm" in operation.sources else {}) for operation in TABLE.values()
            if operation.mnemonic != "fns.b32"]


def test_every_operation_agrees_with_the_interpreter() -> None:
    assert disagreements(forms(), 2048, seed=2) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_many_operands(seed: int) -> None:
    given = operands(1 << 16, seed)
    expected = interpreted(forms(), given)
    for cpu, optimize in product(("host", "x86-64-v3", "x86-64-v4"), (False, True)):
        assert differences(forms(), given, expected, cpu, optimize) == []


def test_every_table_of_lop3() -> None:
    table_forms = [Form(TABLE["lop3.b32"], {3: table}) for table in range(256)]
    a, b, c = (np.array([pattern], np.uint32) for pattern in (0xF0, 0xCC, 0xAA))
    for table, function in enumerate(compiled(table_forms)):
        # Bit i of the operands has the i-th combination of the three, so the result has the table in its low byte.
        assert int(function(a, b, c)[0][0]) & 0xFF == table


def _constant_forms() -> list[Form]:
    found = []
    for operation in TABLE.values():
        if operation.mnemonic.split(".")[0] in SHIFTED:
            last = len(operation.sources) - 1
            found += [Form(operation, {last: amount}) for amount in AMOUNTS]
            if operation.mnemonic[:3] in ("bfe", "bfi"):
                found += [Form(operation, {last - 1: amount, last: 9}) for amount in AMOUNTS]
    return found


def test_constant_amounts() -> None:
    constant = _constant_forms()
    given = operands(256, seed=4)
    assert differences(constant, given, interpreted(constant, given)) == []


def test_constant_selectors_of_prmt() -> None:
    selectors = [0x0000, 0x3210, 0x7654, 0x5410, 0x7632, 0x3340, 0x0123, 0x8888, 0xBA98, 0xFEDC, 0x9911, 0xF3210]
    selectors += [int(v) for v in np.random.default_rng(5).integers(0, 1 << 16, 40)]
    constant = [Form(TABLE["prmt.b32"], {2: selector}) for selector in selectors]
    constant += [Form(TABLE[f"prmt.b32.{mode}"], {2: selector}) for mode in MODES for selector in range(5)]
    given = operands(128, seed=6)
    assert differences(constant, given, interpreted(constant, given)) == []


def test_every_selector_of_prmt() -> None:
    """The plain form chooses each byte by its own nibble, so all nibbles in all places are all there is."""
    cases = product(range(16), range(4), range(16))
    selectors = np.array([v * 0x1111 & ~(0xF << 4 * k) | n << 4 * k for v, k, n in cases], np.uint32)
    function = compiled([TABLE["prmt.b32"]], "x86-64-v3")[0]
    octets = [0x80, 0x11, 0xF2, 0x33, 0x44, 0xD5, 0x66, 0xE7]
    expected = [sum(_octet(octets, selector >> 4 * k & 15) << 8 * k for k in range(4))
                for selector in selectors.tolist()]
    a, b = (np.array(octets[i:i + 4], np.uint8).view(np.uint32) for i in (0, 4))
    assert function(a, b, selectors)[0].tolist() == expected


def _octet(octets: list[int], nibble: int) -> int:
    octet = octets[nibble & 7]
    return octet if nibble < 8 else 0xFF * (octet >> 7)


def test_find_nth_set() -> None:
    """By the loop of the manual, which for an undefined base above 31 ends at once."""
    random = np.random.default_rng(7)
    mask = random.integers(0, 1 << 32, 4096, np.uint64).astype(np.uint32) & random.integers(0, 1 << 32, 4096, np.uint32)
    base = random.integers(0, 34, 4096).astype(np.uint32)
    offset = random.integers(-20, 20, 4096).astype(np.int32)
    expected = [_nth(*row) for row in zip(mask.tolist(), base.tolist(), offset.tolist(), strict=True)]
    function = compiled([TABLE["fns.b32"]])[0]
    assert function(mask, base, offset.view(np.uint32))[0].tolist() == expected


def _nth(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    step = 1 if offset > 0 else -1
    left, position = abs(offset), base
    while 0 <= position < 32:
        left -= mask >> position & 1
        if left == 0:
            return position
        position += step
    return 0xFFFFFFFF


def test_operands_match_the_types() -> None:
    """The operands of the tests have the containers of their types."""
    given = operands(64, seed=0)
    for form in forms():
        for array, kind in zip(arguments(form, given), (k for k in form.operation.sources if k != "imm"), strict=True):
            assert array.dtype == stored(kind)
