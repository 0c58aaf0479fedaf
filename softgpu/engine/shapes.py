"""What is known of a register's 32 values in a warp: the same in all lanes, a fixed pattern, or anything.

A shape says that value[l] = base[l // group] + offsets[l] modulo the register's width, with offsets that are known when
the kernel is compiled. ``group`` 32 with zero offsets is a uniform value; group 32 with other offsets a pattern (thread
indices, contiguous addresses): both are kept as one scalar, the value of lane 0. ``sure`` False: the pattern holds
unless an index wraps around on the way; it is worth looking for at run time.

Every group's base is ``residue`` modulo ``align`` (a power of two). ``low`` and ``high`` bound all values, as numbers
whose sign bit is clear; None when nothing is known. ``root`` is the parameter a pointer comes from, only a hint.
``origin`` (key, distance) says that lane 0's value is that of the value ``key`` plus a known distance; the difference
of two values with one key is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

WARP = 32
ZEROS = (0,) * WARP
LARGEST_ALIGN = 1 << 20


@dataclass(frozen=True, slots=True)
class Shape:
    group: int = 1
    offsets: tuple[int, ...] = ZEROS
    sure: bool = True
    align: int = 1
    residue: int = 0
    low: int | None = None
    high: int | None = None
    root: int | None = None
    origin: tuple[int, int] | None = None

    @property
    def uniform(self) -> bool:
        """The same value in all lanes, for certain."""
        return self.group == WARP and self.sure and self.offsets == ZEROS

    @property
    def scalar(self) -> bool:
        """Uniform or a certain pattern: lane 0 says all."""
        return self.group == WARP and self.sure

    @property
    def constant(self) -> int | None:
        """The value, if it is known and the same everywhere."""
        return self.low if self.low is not None and self.low == self.high else None

    @property
    def stays(self) -> bool:
        """Adding the offsets to the bases cannot wrap around, in signed or unsigned arithmetic."""
        if self.offsets is ZEROS or self.low is not None or self.offsets == ZEROS:
            return True
        return all(0 <= self.residue + offset < self.align for offset in self.offsets)


DIVERGENT = Shape()
UNIFORM = Shape(WARP)


def constant(value: int, width: int) -> Shape:
    """The shape of a number in a register of ``width`` bits."""
    value &= (1 << width) - 1
    small = value < 1 << (width - 1)
    return Shape(WARP, align=LARGEST_ALIGN, residue=value % LARGEST_ALIGN, low=value if small else None,
                 high=value if small else None)


def known(values: Sequence[int], align: int, low: int, high: int) -> Shape:
    """``values[l]`` plus an unknown multiple of ``align``, between ``low`` and ``high``."""
    first = values[0]
    offsets = tuple([v - first for v in values])
    return Shape(WARP, offsets if any(offsets) else ZEROS, True, align, first % align, low, high)


def regroup(shape: Shape, group: int) -> Shape:
    """The same values with smaller groups."""
    if group >= shape.group:
        return shape
    if group == 1:
        align, residue = shape.align, shape.residue
        for offset in set(shape.offsets):
            while (offset % align) and align > 1:
                align //= 2
        return replace(shape, group=1, offsets=ZEROS, sure=True, align=align, residue=residue % align)
    firsts = [shape.offsets[lane // group * group] for lane in range(WARP)]
    offsets = tuple(o - f for o, f in zip(shape.offsets, firsts, strict=True))
    align = shape.align
    for first in set(firsts):
        while align > 1 and (first - firsts[0]) % align:
            align //= 2
    return replace(shape, group=group, offsets=offsets, align=align, residue=(shape.residue + firsts[0]) % align)


def equal_groups(shape: Shape) -> int:
    """The largest group within which all lanes have the same value."""
    return shape.group if shape.offsets is ZEROS else _equal_groups(shape.group, shape.offsets)


@lru_cache(maxsize=4096)
def _equal_groups(group: int, offsets: tuple[int, ...]) -> int:
    while group > 1:
        if all(offsets[lane] == offsets[lane // group * group] for lane in range(WARP)):
            return group
        group //= 2
    return 1


def elementwise(*operands: Shape) -> Shape:
    """The result of any function of the operands' values, lane by lane."""
    group = min([equal_groups(operand) for operand in operands], default=WARP)
    return Shape(group, sure=all(operand.sure for operand in operands) or group == 1)


def _bounds(low: int, high: int, width: int) -> tuple[int | None, int | None]:
    return (low, high) if low >= 0 and high < 1 << (width - 1) else (None, None)


def add(a: Shape, b: Shape, width: int) -> Shape:
    group = min(a.group, b.group)
    if not a.sure and not b.sure:
        group = 1  # one wrap can be looked for at run time, two could hide each other
    a, b = regroup(a, group), regroup(b, group)
    if a.offsets is ZEROS or b.offsets is ZEROS:
        offsets = b.offsets if a.offsets is ZEROS else a.offsets
    else:
        offsets = tuple([x + y for x, y in zip(a.offsets, b.offsets, strict=True)])
    align = min(a.align, b.align)
    low = high = None
    if a.low is not None and b.low is not None and a.high is not None and b.high is not None:
        low, high = _bounds(a.low + b.low, a.high + b.high, width)
    root = a.root if a.root is not None else b.root
    origin = _apart(a, b.constant) or _apart(b, a.constant) if group == WARP else None
    return Shape(group, offsets, a.sure and b.sure, align, (a.residue + b.residue) % align, low, high, root, origin)


def _apart(a: Shape, distance: int | None) -> tuple[int, int] | None:
    """The origin of a value so far from another."""
    return (a.origin[0], a.origin[1] + distance) if a.origin is not None and distance is not None else None


def sub(a: Shape, b: Shape, width: int) -> Shape:
    group = min(a.group, b.group)
    if not a.sure and not b.sure:
        group = 1
    if a.scalar and b.scalar and a.origin is not None and b.origin is not None and a.origin[0] == b.origin[0]:
        start = a.origin[1] - b.origin[1]
        values = [start + x - y for x, y in zip(a.offsets, b.offsets, strict=True)]
        if min(values) >= 0:
            return known(values, LARGEST_ALIGN, min(values), max(values))
    a, b = regroup(a, group), regroup(b, group)
    offsets = tuple(x - y for x, y in zip(a.offsets, b.offsets, strict=True))
    align = min(a.align, b.align)
    low = high = None
    if a.low is not None and b.low is not None and a.high is not None and b.high is not None:
        low, high = _bounds(a.low - b.high, a.high - b.low, width)
    return Shape(group, offsets, a.sure and b.sure, align, (a.residue - b.residue) % align, low, high, a.root)


def scale(a: Shape, factor: int, width: int) -> Shape:
    """a times a constant."""
    if factor == 0:
        return constant(0, width)
    offsets = ZEROS if a.offsets is ZEROS else tuple([o * factor for o in a.offsets])
    align = min(a.align * (factor & -factor), LARGEST_ALIGN)
    low = high = None
    if a.low is not None and a.high is not None and factor > 0:
        low, high = _bounds(a.low * factor, a.high * factor, width)
    return Shape(a.group, offsets, a.sure, align, a.residue * factor % align, low, high)


def multiply(a: Shape, b: Shape, width: int) -> Shape:
    for x, y in ((a, b), (b, a)):
        if y.constant is not None:
            return scale(x, y.constant, width)
    shape = elementwise(a, b)
    align = 1
    if a.residue % a.align == 0 and b.residue % b.align == 0:
        align = min(a.align * b.align, LARGEST_ALIGN)
    elif a.residue == 0 or b.residue == 0:
        align = a.align if a.residue == 0 else b.align
    if shape.group == 1:
        return shape
    low = high = None
    if a.low is not None and b.low is not None and a.high is not None and b.high is not None:
        low, high = _bounds(a.low * b.low, a.high * b.high, width)
    return replace(shape, align=align if equal_groups(a) >= shape.group and equal_groups(b) >= shape.group and
                   a.group == WARP and b.group == WARP and a.offsets == ZEROS and b.offsets == ZEROS else 1,
                   low=low, high=high)


def mask(a: Shape, bits: int, width: int) -> Shape:
    """a & (2**bits - 1)."""
    modulus = 1 << bits
    if a.align >= modulus and bits < width:
        values = [(a.residue + o) % modulus for o in a.offsets]
        if a.group == WARP:
            if a.sure:
                return known(values, LARGEST_ALIGN, min(values), max(values))
            return replace(known(values, LARGEST_ALIGN, 0, modulus - 1), sure=False)
    shape = elementwise(a)
    return replace(shape, low=0, high=modulus - 1) if bits < width else shape


def clear(a: Shape, bits: int, width: int) -> Shape:
    """a with its lowest ``bits`` cleared."""
    modulus = 1 << bits
    if a.align >= modulus:
        firsts = [lane // a.group * a.group for lane in range(WARP)]
        values = [(a.residue + o) // modulus * modulus for o in a.offsets]
        offsets = tuple(v - values[f] for v, f in zip(values, firsts, strict=True))
        low = high = None
        if a.low is not None and a.high is not None:
            low, high = a.low // modulus * modulus, a.high
        origin = _apart(a, values[0] - a.residue)
        return Shape(a.group, offsets, a.sure, a.align, values[0] % a.align, low, high, None, origin)
    if _below(a):
        return Shape(a.group, ZEROS, a.sure, modulus, 0, 0 if a.high is not None else None, a.high)
    return replace(elementwise(a), align=modulus, residue=0)


def _below(a: Shape) -> bool:
    """Whether the offsets change only bits below the alignment of the bases."""
    return a.stays and all(0 <= a.residue + offset < a.align for offset in a.offsets)


def shift_right(a: Shape, bits: int, width: int, arithmetic: bool) -> Shape:
    modulus = 1 << bits
    low = high = None
    if a.low is not None and a.high is not None:
        low, high = a.low >> bits, a.high >> bits
        if low == high:
            return constant(low, width)
    elif not arithmetic and bits:
        low, high = 0, (1 << (width - bits)) - 1
        if high >= 1 << (width - 1):
            low = high = None
    if a.align >= modulus and a.stays:
        firsts = [lane // a.group * a.group for lane in range(WARP)]
        values = [(a.residue + o) >> bits for o in a.offsets]
        offsets = tuple(v - values[f] for v, f in zip(values, firsts, strict=True))
        align = max(a.align >> bits, 1)
        return Shape(a.group, offsets, a.sure, align, values[0] % align, low, high)
    if _below(a):
        return Shape(a.group, ZEROS, a.sure, 1, 0, low, high)
    return replace(elementwise(a), low=low, high=high)


def either(a: Shape, b: Shape, width: int) -> Shape:
    """a | b: a sum where no bits meet."""
    for x, y in ((a, b), (b, a)):
        if y.high is not None and y.low is not None:
            modulus = 1 << y.high.bit_length()
            if x.align >= modulus and all((x.residue + o) % modulus == 0 for o in x.offsets):
                return replace(add(x, y, width), root=None)
    return elementwise(a, b)


def extend(a: Shape, from_width: int, to_width: int, signed: bool) -> Shape:
    """Into a wider register."""
    if not a.stays:
        if not a.sure:
            return Shape(1)
        return replace(a, sure=False, align=min(a.align, 1 << from_width), root=None, origin=None, low=None, high=None)
    low, high = a.low, a.high
    if low is None and not signed and from_width < to_width:
        low, high = 0, (1 << from_width) - 1
        if a.offsets != ZEROS and a.align == 1:
            pass
    return replace(a, low=low, high=high, align=min(a.align, 1 << (from_width - 1)),
                   residue=a.residue % min(a.align, 1 << (from_width - 1)), root=None, origin=None)


def truncate(a: Shape, width: int) -> Shape:
    """Into a narrower register. The sign bit is left out of what ``align`` says: offsets may carry into it."""
    align = min(a.align, 1 << (width - 1))
    keeps = a.high is not None and a.high < 1 << (width - 1)
    return replace(a, align=align, residue=a.residue % align, low=a.low if keeps else None,
                   high=a.high if keeps else None, root=None, origin=None)


def compare(comparison: str, a: Shape, b: Shape) -> Shape:
    """A comparison of integers: uniform too when all lanes lie on one side of a constant."""
    shape = elementwise(a, b)
    if shape.uniform:
        return shape
    limit = b.constant
    if a.group == WARP and a.sure and limit is not None and a.stays and a.align > 1 and (
            all(0 <= a.residue + o < a.align for o in a.offsets)):
        if comparison in ("gt", "le", "hi", "ls"):
            limit += 1
        elif comparison not in ("lt", "ge", "lo", "hs"):
            return shape
        if limit % a.align == 0:
            return UNIFORM
    return shape


def join(a: Shape | None, b: Shape) -> Shape:
    """What holds of a value that is one or the other."""
    if a is None or a == b:
        return b
    group = min(a.group, b.group)
    while group > 1:
        x, y = regroup(a, group), regroup(b, group)
        if x.offsets == y.offsets:
            break
        group //= 2
    x, y = regroup(a, group), regroup(b, group)
    align = min(x.align, y.align)
    while align > 1 and (x.residue - y.residue) % align:
        align //= 2
    low = high = None
    if x.low is not None and y.low is not None and x.high is not None and y.high is not None and (
            x.low <= y.low and y.high <= x.high):
        low, high = x.low, x.high
    return Shape(group, x.offsets if group > 1 else ZEROS, (x.sure and y.sure) or group == 1, align,
                 x.residue % align, low, high, x.root if x.root == y.root else None,
                 x.origin if x.origin == y.origin else None)
