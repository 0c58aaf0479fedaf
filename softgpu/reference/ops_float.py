"""Floating-point arithmetic and conversions: the table of ``numerics`` is the whitelist, by full mnemonic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.numerics import OPERATIONS, THREE_INPUTS
from softgpu.reference.program import Value
from softgpu.reference.ptx_types import is_float

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue


def fresh(result: Value, operand: Value) -> Value:
    """``result``, copied if it may share memory with ``operand`` (which may be a register itself)."""
    if result is operand or (result.base is not None and np.may_share_memory(result, operand)):
        return result.copy()
    return result


def by_mnemonic(d: Decoder) -> None:
    """Decode an instruction that ``numerics`` has by its full mnemonic, with one scalar result."""
    operation = THREE_INPUTS.get(d.name) if len(d.operands) == 4 else None
    operation = operation or OPERATIONS.get(d.name)
    if operation is None:
        d.fail("not in the table of supported mnemonics")
    d.modifiers.clear()
    count = len(operation.sources)
    d.done(1 + count)
    wide = operation.family == "cvt"
    write = d.destination(0, operation.result, wide)
    reads = [d.source(1 + i, kind, wide) for i, kind in enumerate(operation.sources)]
    function = operation.function
    if count == 1:
        first = reads[0]

        def run_one(x: Issue) -> None:
            value = first(x)
            write(x, fresh(function(value), value))

        d.plain(run_one)
        return
    if count == 2:
        first, second = reads

        def run_two(x: Issue) -> None:
            a, b = first(x), second(x)
            write(x, fresh(fresh(function(a, b), a), b))

        d.plain(run_two)
        return

    def run(x: Issue) -> None:
        values = [read(x) for read in reads]
        result = function(*values)
        for value in values:
            result = fresh(result, value)
        write(x, result)

    d.plain(run)


def float_or(integer: Decode) -> Decode:
    """A decoder for an opcode that both integers and floating-point numbers have: by the last modifier."""

    def decode(d: Decoder) -> None:
        if d.modifiers and is_float(d.modifiers[-1]):
            by_mnemonic(d)
        else:
            integer(d)

    return decode


_OPCODES = ("fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "copysign", "testp", "cvt")
TABLE: dict[str, Decode] = dict.fromkeys(_OPCODES, by_mnemonic)
