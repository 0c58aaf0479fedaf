"""Comparison and selection: setp, set, selp, slct (PTX manual, section 9.7.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import Operand, Register
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.numerics import OPERATIONS, compare, compare2, set2_result, set_result
from softgpu.reference.program import Read, Write
from softgpu.reference.ptx_types import BITS, INTEGERS, is_float, is_signed

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue

Bools = npt.NDArray[np.bool_]
Compare = Callable[["Issue"], Bools]

_SIGNED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}
_UNSIGNED = {**_SIGNED, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
_BOOLEAN: dict[str, Callable[[Bools, Bools], Bools]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}
_SELECTED = (*BITS, *INTEGERS, "f32", "f64")


def _comparison(d: Decoder, op: str, kind: str) -> Compare:
    """The integer comparison of operands 1 and 2."""
    table = _UNSIGNED if kind[0] == "u" else _SIGNED
    if op not in table or (kind[0] == "b" and op not in ("eq", "ne")):
        d.fail(f"comparison .{op} of .{kind}")
    function = table[op]
    take = d.signed if is_signed(kind) else d.source
    a, b = take(1, kind), take(2, kind)

    def true(x: Issue) -> Bools:
        result: Bools = function(a(x), b(x))
        return result

    return true


def _boolean(d: Decoder) -> str:
    """Consume the operator after the comparison."""
    if len(d.modifiers) > 1 and d.modifiers[1] in _BOOLEAN:
        return d.modifiers.pop(1)
    return ""


def _setp(d: Decoder) -> None:
    boolean = _boolean(d)
    first, second = d.pair(0)
    third = _third(d, boolean)
    if d.modifiers and is_float(d.modifiers[-1]):
        operation = OPERATIONS.get(".".join(("setp", *d.modifiers)))
        if operation is None:
            d.fail("not in the table of supported mnemonics")
        if second is not None and operation.sources[0] in ("f16", "bf16"):
            d.fail("a single number of half precision has one predicate result")
        d.modifiers.clear()
        a, b = d.source(1, operation.sources[0]), d.source(2, operation.sources[1])
        function = operation.function
        if operation.result == "pred2":
            _write_halves(d, first, second, lambda x: function(a(x), b(x)), boolean, third)
            return
        _write_predicates(d, first, second, lambda x: function(a(x), b(x)), boolean, third)
        return
    op = d.modifiers.pop(0) if d.modifiers else ""
    kind = d.need(*BITS, *INTEGERS)
    d.done(4 if boolean else 3)
    _write_predicates(d, first, second, _comparison(d, op, kind), boolean, third)


def _third(d: Decoder, boolean: str) -> Read | None:
    if not boolean:
        return None
    if len(d.operands) != 4:
        d.fail(f"{len(d.operands)} operands, expected 4")
    return d.predicate(d.operands[3])


def _predicate_writer(d: Decoder, operand: Operand | None) -> Write | None:
    if operand is None or operand == Register("_"):
        return None
    return d.write(operand, "pred")


def _write_predicates(d: Decoder, first: Operand, second: Operand | None, comparison: Compare, boolean: str,
                      third: Read | None) -> None:
    """p = comparison (op) c; q = !comparison (op) c."""
    write_p, write_q = _predicate_writer(d, first), _predicate_writer(d, second)
    combine = _BOOLEAN[boolean] if boolean else None

    def run(x: Issue) -> None:
        true = comparison(x)
        false = ~true if write_q is not None else true
        if combine is not None and third is not None:
            other = third(x)
            true, false = combine(true, other), combine(false, other)
        if write_p is not None:
            write_p(x, true)
        if write_q is not None:
            write_q(x, false)

    d.plain(run)


def _write_halves(d: Decoder, first: Operand, second: Operand | None, compare_halves: Callable[[Issue], Any],
                  boolean: str, third: Read | None) -> None:
    """Packed types: p from the low halves, q from the high ones."""
    writers = (_predicate_writer(d, first), _predicate_writer(d, second))
    combine = _BOOLEAN[boolean] if boolean else None

    def run(x: Issue) -> None:
        halves = compare_halves(x)
        if combine is not None and third is not None:
            other = third(x)
            halves = tuple(combine(half, other) for half in halves)
        for write, half in zip(writers, halves, strict=True):
            if write is not None:
                write(x, half)

    d.plain(run)


def _set(d: Decoder) -> None:
    boolean = _boolean(d)
    third = _third(d, boolean)
    combine = _BOOLEAN[boolean] if boolean else None
    if len(d.modifiers) < 3:
        d.fail("a comparison and two types expected")
    if is_float(d.modifiers[-1]):
        _set_float(d, third, combine)
        return
    op, result, kind = d.modifiers[0], d.modifiers[1], d.modifiers[2]
    d.modifiers = d.modifiers[3:]
    d.done(4 if boolean else 3)
    if result not in ("u32", "s32", "f32", "f16", "bf16") or kind not in (*BITS, *INTEGERS):
        d.fail(f"a .{result} result of comparing .{kind}")
    comparison = _comparison(d, op, kind)
    write = d.destination(0, result)

    def run(x: Issue) -> None:
        true = comparison(x)
        if combine is not None and third is not None:
            true = combine(true, third(x))
        write(x, set_result(true, result))

    d.plain(run)


def _set_float(d: Decoder, third: Read | None, combine: Callable[[Bools, Bools], Bools] | None) -> None:
    operation = OPERATIONS.get(".".join(("set", *d.modifiers)))
    if operation is None:
        d.fail("not in the table of supported mnemonics")
    op, ftz = d.modifiers[0], "ftz" in d.modifiers
    d.modifiers.clear()
    write = d.destination(0, operation.result)
    kind = operation.sources[0]
    a, b = d.source(1, kind), d.source(2, kind)
    if combine is None or third is None:
        d.done(3)
        d.plain(lambda x: write(x, operation.function(a(x), b(x))))
        return
    boolean, other = combine, third
    if kind.endswith("x2"):

        def run_two(x: Issue) -> None:
            low, high = compare2(op, a(x), b(x), kind, ftz)
            c = other(x)
            write(x, set2_result(boolean(low, c), boolean(high, c), operation.result))

        d.plain(run_two)
        return

    def run(x: Issue) -> None:
        true = boolean(compare(op, a(x), b(x), kind, ftz), other(x))
        write(x, set_result(true, operation.result))

    d.plain(run)


def _selp(d: Decoder) -> None:
    kind = d.need(*_SELECTED)
    d.done(4)
    write = d.destination(0, kind)
    a, b, p = d.source(1, kind), d.source(2, kind), d.predicate(d.operands[3])
    d.plain(lambda x: write(x, np.where(p(x), a(x), b(x))))


def _slct(d: Decoder) -> None:
    ftz = d.flag("ftz")
    kind = d.need(*_SELECTED)
    by = d.need("f32") if ftz else d.need("s32", "f32")
    d.done(4)
    write = d.destination(0, kind)
    a, b, c = d.source(1, kind), d.source(2, kind), d.source(3, by)

    def run(x: Issue) -> None:
        value = c(x)
        if by == "s32":
            chosen = value.view(np.int32) >= 0
        else:
            chosen = compare("ge", value, np.zeros(1, np.uint32), "f32", ftz)
        write(x, np.where(chosen, a(x), b(x)))

    d.plain(run)


TABLE: dict[str, Decode] = {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct}
