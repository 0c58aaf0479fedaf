"""lop3: any function of three bits by its table (PTX manual, "Logic and Shift Instructions: lop3").

Each of the 256 functions is written with the fewest and, or, xor and not; LLVM puts these into single instructions
where the CPU has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops.operation import Operation

_INPUTS = (0xF0, 0xCC, 0xAA)
"""The tables of the functions a, b and c."""

_GATES = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


@cache
def _formulas() -> dict[int, tuple[str, int, int]]:
    """For each table but constants and inputs: a gate and the tables of its operands, with the fewest gates in all.

    Functions are found in the order of their number of gates. ``not`` is a xor with the constant function 0xFF.
    """
    by_cost: list[list[int]] = [[*_INPUTS, 0xFF]]
    found: dict[int, tuple[str, int, int]] = {}
    known = {*_INPUTS, 0x00, 0xFF}
    while len(known) < 256:
        cost = len(by_cost)
        by_cost.append([])
        for first in range((cost - 1) // 2 + 1):
            for f in by_cost[first]:
                for g in by_cost[cost - 1 - first]:
                    for gate, function in _GATES.items():
                        table = function(f, g)
                        if table not in known:
                            known.add(table)
                            by_cost[cost].append(table)
                            found[table] = (gate, f, g)
    return found


def logic(builder: Builder, a: Value, b: Value, c: Value, table: int) -> Value:
    """The function of ``table``: its bit 4a + 2b + c is the result for bits a, b, c."""
    values = dict(zip(_INPUTS, (a, b, c), strict=True))
    values[0x00], values[0xFF] = builder.zero(a.type), builder.like(-1, a)

    def value(of: int) -> Value:
        if of not in values:
            gate, f, g = _formulas()[of]
            values[of] = builder.binary(gate, value(f), value(g))
        return values[of]

    return value(table)


def _lop3(builder: Builder, a: Value, b: Value, c: Value, table: int) -> Value:
    return logic(builder, a, b, c, table & 0xFF)


def _lop3_predicate(gate: str, builder: Builder, a: Value, b: Value, c: Value, table: int, q: Value) -> Any:
    result = _lop3(builder, a, b, c, table)
    return result, builder.binary(gate, builder.icmp("ne", result, builder.zero(result.type)), q)


def operations() -> Iterator[Operation]:
    """lop3, with and without a predicate ``p = (d != 0) BoolOp q``."""
    sources = ("b32", "b32", "b32", "imm")
    yield Operation("lop3.b32", sources, ("b32",), _lop3)
    for gate in ("and", "or"):
        emit = partial(_lop3_predicate, gate)
        yield Operation(f"lop3.{gate}.b32", (*sources, "pred"), ("b32", "pred"), emit)
