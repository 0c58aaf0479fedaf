"""prmt: bytes of two registers chosen into one (PTX manual, "Data Movement: prmt").

A constant selector, the usual case, is one shuffle of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from softgpu.engine.ir import Builder, Value, lanes
from softgpu.engine.ops.constants import integer_of
from softgpu.engine.ops.operation import Operation

MODES: dict[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""By mode, the selector of the plain form that each value of the two selector bits stands for (table of the manual)."""


def permuted(builder: Builder, a: Value, b: Value, selector: int) -> Value:
    """The plain form with a constant selector: nibble k chooses byte k, bit 3 of it the sign of that byte instead."""
    nibbles = [selector >> 4 * k & 0xF for k in range(4)]
    words = lanes(a.type) or 1
    octets = f"<{4 * words} x i8>"
    low, high = builder.reinterpret(a, octets), builder.reinterpret(b, octets)
    chosen = builder.shuffle(low, high, [_source(word, nibble & 7, words) for word in range(words)
                                         for nibble in nibbles])
    if any(nibble & 8 for nibble in nibbles):
        signs = builder.ashr(chosen, builder.like(7, chosen))
        order = [i + 4 * words if nibbles[i % 4] & 8 else i for i in range(4 * words)]
        chosen = builder.shuffle(chosen, signs, order)
    return builder.reinterpret(chosen, a.type)


def _source(word: int, octet: int, words: int) -> int:
    """Where byte ``octet`` (0 to 3 of a, 4 to 7 of b) of a lane is in the bytes of all lanes of a, then of b."""
    return 4 * word + octet if octet < 4 else 4 * words + 4 * word + octet - 4


def _prmt(builder: Builder, a: Value, b: Value, selector: Value) -> Value:
    known = integer_of(selector)
    if known is not None:
        return permuted(builder, a, b, known & 0xFFFF)
    parts = [_octet(builder, a, b, selector, k) for k in range(4)]
    return builder.or_(builder.or_(parts[0], parts[1]), builder.or_(parts[2], parts[3]))


def _octet(builder: Builder, a: Value, b: Value, selector: Value, k: int) -> Value:
    """Byte ``k`` of the result, at its place."""

    def constant(number: int) -> Value:
        return builder.like(number, a)

    def bit(index: int) -> Value:
        masked = builder.and_(selector, constant(1 << 4 * k + index))
        return builder.icmp("ne", masked, builder.zero(a.type))

    word = builder.select(bit(2), b, a)
    at = builder.lshr(selector, constant(4 * k)) if k else selector
    amount = builder.shl(builder.and_(at, constant(3)), constant(3))
    # The byte goes to the top first: an arithmetic shift from there spreads its sign.
    top = builder.shl(builder.lshr(word, amount), constant(24))
    chosen = builder.select(bit(3), builder.ashr(top, constant(31)), top)
    if k == 3:
        return builder.and_(chosen, constant(0xFF << 24))
    place = builder.lshr(chosen, constant(24 - 8 * k))
    return builder.and_(place, constant(0xFF << 8 * k))


def _mode(selectors: tuple[int, int, int, int], builder: Builder, a: Value, b: Value, selector: Value) -> Value:
    known = integer_of(selector)
    if known is not None:
        return permuted(builder, a, b, selectors[known & 3])
    results = [permuted(builder, a, b, plain) for plain in selectors]

    def bit(index: int) -> Value:
        return builder.icmp("ne", builder.and_(selector, builder.like(1 << index, a)), builder.zero(a.type))

    odd = bit(0)
    return builder.select(bit(1), builder.select(odd, results[3], results[2]),
                          builder.select(odd, results[1], results[0]))


def operations() -> Iterator[Operation]:
    """prmt in all modes."""
    kinds = ("b32", "b32", "b32")
    yield Operation("prmt.b32", kinds, ("b32",), _prmt)
    for mode, selectors in MODES.items():
        yield Operation(f"prmt.b32.{mode}", kinds, ("b32",), partial(_mode, selectors))
