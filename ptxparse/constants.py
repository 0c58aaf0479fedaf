"""Constant expressions (PTX manual, section 4.5): integers and floating-point constants, by value or by bits."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from ptxparse.model import FloatImmediate
from ptxparse.source import Source, integer

_FLOAT_BITS = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
_FLOAT_DECIMAL = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_FLOAT = 1000
_DEEPEST = 64
_MASK = (1 << 64) - 1

_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))),
    "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, lambda a, b: a | b),
    "^": (4, lambda a, b: a ^ b),
    "&": (5, lambda a, b: a & b),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    ">": (7, lambda a, b: int(a > b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: (a << (b & 63)) & _MASK),
    ">>": (8, lambda a, b: a >> (b & 63)),
    "+": (9, lambda a, b: a + b),
    "-": (9, lambda a, b: a - b),
    "*": (10, lambda a, b: a * b),
    "/": (10, lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    "%": (10, lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1)),
}


def float_constant(token: str) -> FloatImmediate | None:
    """A floating-point constant by its bits, or None. Decimal forms are double precision (manual, section 4.5.2)."""
    found = _FLOAT_BITS.fullmatch(token)
    if found is not None:
        if found.group(1):
            return FloatImmediate(int(found.group(1), 16), 32)
        return FloatImmediate(int(found.group(2), 16), 64)
    if len(token) <= _LONGEST_FLOAT and _FLOAT_DECIMAL.fullmatch(token) and not token.isdigit():
        return FloatImmediate(int.from_bytes(struct.pack("<d", float(token)), "little"), 64)
    return None


def constant(source: Source, level: int = 0, depth: int = 0) -> int | FloatImmediate:
    """A constant expression at the reading position; ``level`` is the lowest operator precedence it may hold."""
    if depth > _DEEPEST:
        source.fail(f"an expression nested at most {_DEEPEST} deep")
    left = _unary(source, depth)
    while True:
        operator = source.peek()
        if operator[:1] == "%":
            operator = "%"  # what follows without a blank looks like the rest of a register's name
        found = _BINARY.get(operator)
        if found is None or found[0] < max(level, 1) or isinstance(left, FloatImmediate):
            break
        source.position = source.skip_blanks() + len(operator)
        start = source.skip_blanks()
        right = constant(source, found[0] + 1, depth + 1)
        if isinstance(right, FloatImmediate):
            source.fail("an integer constant", start)
        if operator in "/%" and not right:
            source.fail("a divisor other than 0", start)
        left = _in_64_bits(found[1](left, right))
    if level == 0 and source.peek() == "?" and isinstance(left, int):
        source.take()
        chosen = constant(source, 0, depth + 1)
        source.expect(":")
        other = constant(source, 0, depth + 1)
        return chosen if left else other
    return left


def _in_64_bits(value: int) -> int:
    """A value as 64-bit arithmetic leaves it: negative ones stay negative, larger ones lose their upper bits."""
    return value if -_MASK >> 1 <= value <= _MASK else value & _MASK


def _unary(source: Source, depth: int) -> int | FloatImmediate:
    start = source.skip_blanks()
    token = source.take()
    if token == "(":
        if source.peek() in (".s64", ".u64"):
            source.take()
            source.expect(")")
            return _unary(source, depth + 1) if depth < _DEEPEST else source.fail("a shallower expression", start)
        value = constant(source, 0, depth + 1)
        source.expect(")")
        return value
    if token in ("-", "+", "~", "!"):
        if depth > _DEEPEST:
            source.fail(f"an expression nested at most {_DEEPEST} deep", start)
        value = _unary(source, depth + 1)
        if isinstance(value, FloatImmediate):
            if token == "-":
                return FloatImmediate(value.bits ^ 1 << (value.width - 1), value.width)
            if token != "+":
                source.fail("an integer constant", start)
            return value
        return {"-": -value, "+": value, "~": ~value, "!": int(not value)}[token]
    number = integer(token)
    if number is not None:
        return number
    floating = float_constant(token)
    if floating is not None:
        return floating
    if token == "WARP_SZ":
        return 32
    source.fail("a constant of at most 64 bits" if token[:1].isdigit() else "a constant", start)
