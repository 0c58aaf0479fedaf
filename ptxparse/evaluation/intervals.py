"""Interval arithmetic for the operations of the value graph: bounds of the result from bounds of the operands."""

from __future__ import annotations

from typing import Any

from ptxparse.values import INFINITY

Box = tuple[int, int]


def multiply(a: Box, b: Box) -> Box:
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return max(min(corners), -INFINITY), min(max(corners), INFINITY)


def apply(node: tuple[Any, ...], a: list[Box]) -> Box:
    """Bounds of ``node`` from those of its operands, in the order of ``rewrite.arguments``."""
    kind = node[0]
    if kind == "wrap":
        return _wrap(a[0], node[2], node[3])
    if kind == "shift_right":
        return a[0][0] >> node[2], a[0][1] >> node[2]
    if kind == "low_bits":
        low, high = a[0]
        unit = 1 << node[2]
        base = low - low % unit
        return (low - base, high - base) if high - base < unit else (0, unit - 1)
    if kind == "divide":
        return _divide(a[0], a[1])
    if kind == "remainder":
        return _remainder(a[0], a[1])
    if kind == "minimum":
        return min(a[0][0], a[1][0]), min(a[0][1], a[1][1])
    if kind == "multiply":
        return multiply(a[0], a[1])
    if kind in ("and", "or", "xor"):
        return _bitwise(kind, a[0], a[1])
    if kind == "lt":
        return int(a[0][1] < a[1][0]), int(a[0][0] < a[1][1])
    if kind == "eq":
        return int(a[0] == a[1] and a[0][0] == a[0][1]), int(a[0][0] <= a[1][1] and a[1][0] <= a[0][1])
    if kind == "power":
        return 1 << max(min(a[0][0], 64), 0), 1 << max(min(a[0][1], 64), 0)
    if kind == "shift":
        return min(a[0][0], 0), max(a[0][1], 0)
    return -INFINITY, INFINITY


def _wrap(a: Box, bits: int, signed: bool) -> Box:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    # An interval that does not cross a multiple of 2^bits moves as a whole.
    turn = (a[0] - low) >> bits << bits
    if a[1] - turn <= high:
        return a[0] - turn, a[1] - turn
    return low, high


def _divide(a: Box, b: Box) -> Box:
    if b[0] <= 0 <= b[1]:
        # A divisor of zero gives any value.
        return -INFINITY, INFINITY
    quotients = [_truncated(x, y) for x in a for y in b]
    if a[0] <= 0 <= a[1]:
        quotients.append(0)
    return min(quotients), max(quotients)


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b > 0) else -quotient


def _remainder(a: Box, b: Box) -> Box:
    if b[0] <= 0 <= b[1]:
        return -INFINITY, INFINITY
    most = max(abs(b[0]), abs(b[1])) - 1
    if b[0] == b[1] and a[0] >= 0:
        quotient = a[0] // abs(b[0])
        if a[1] // abs(b[0]) == quotient:
            return a[0] - quotient * abs(b[0]), a[1] - quotient * abs(b[0])
    return max(-most, min(a[0], 0)), min(most, max(a[1], 0))


def _bitwise(kind: str, a: Box, b: Box) -> Box:
    if a[0] < 0 or b[0] < 0:
        return -INFINITY, INFINITY
    if a[0] == a[1] and b[0] == b[1]:
        value = {"and": a[0] & b[0], "or": a[0] | b[0], "xor": a[0] ^ b[0]}[kind]
        return value, value
    if kind == "and":
        return 0, min(a[1], b[1])
    most = (1 << max(a[1], b[1]).bit_length()) - 1
    return (max(a[0], b[0]) if kind == "or" else 0), most
