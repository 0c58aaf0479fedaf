"""Integer arithmetic as compilers write it, and as they do not: each function defines one value."""

from __future__ import annotations

from collections.abc import Callable

from tests.random_kernels.builder import WIDTH, Builder, Value
from tests.random_kernels.division import divide, divide_magic, divide_power

SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 63, 64, -1, -2, -3, -4, -7, -8, -16, 100)
STRANGE = (0x55555556, 0x7FFFFFFF, -0x80000000, 0xFFFF, 255, -256, 1000003, 0x10000, 4096, -65536)
MASKS = (1, 3, 7, 15, 31, 63, 255, 0x3FF, 0xFFFF, -2, -4, -8, -16, -32, 0x7FFFFFFF, 12, 0x18, 0xF0, 5, 0x55, -5)


def number(b: Builder) -> int:
    return b.choose.choice(SMALL if b.maybe(0.9) else STRANGE)


def operand(b: Builder, kind: str, most: int = 64) -> tuple[str, int]:
    """A register or a constant, as text, and its bits."""
    if b.maybe(0.35):
        value = number(b)
        if kind == "rs":
            value = max(min(value, 0x7FFF), -0x8000)
        if abs(value).bit_length() <= most:
            return str(value), abs(value).bit_length()
    found = b.pick(kind, most)
    return found.name, found.bits


def _cap(kind: str, bits: int) -> int:
    return min(bits, WIDTH[kind])


def add(b: Builder, kind: str) -> Value:
    x, y = b.pick(kind), operand(b, kind)
    name = b.choose.choice(("add", "sub"))
    d = b.destination(kind, _cap(kind, max(x.bits, y[1]) + 1))
    first, second = (x.name, y[0]) if b.maybe(0.85) else (y[0], x.name)
    b.emit(f"{name}.{b.choose.choice('su')}{WIDTH[kind]} {d.name}, {first}, {second}")
    return d


def multiply(b: Builder, kind: str) -> Value:
    x = b.pick(kind, 32)
    y = operand(b, kind, 12 if b.maybe(0.8) else 32)
    bits = _cap(kind, x.bits + y[1])
    width = f"{b.choose.choice('su')}{WIDTH[kind]}"
    if b.maybe(0.4):
        z = b.pick(kind)
        d = b.destination(kind, _cap(kind, max(bits, z.bits) + 1))
        b.emit(f"mad.lo.{width} {d.name}, {x.name}, {y[0]}, {z.name}")
    else:
        d = b.destination(kind, bits)
        b.emit(f"mul.lo.{width} {d.name}, {x.name}, {y[0]}")
    return d


def multiply_wide(b: Builder, kind: str) -> Value:
    """From 32 to 64 bits, or from 16 to 32."""
    small = {"rd": "r", "r": "rs"}[kind]
    x, y = b.pick(small), operand(b, small)
    width = f"{b.choose.choice('su')}{WIDTH[small]}"
    bits = min(x.bits + y[1], WIDTH[kind])
    if width[0] == "u" and small == "r":
        # A negative number counts as a large one.
        bits = 64 if x.bits + y[1] > 30 or y[0][0] == "-" else bits
    if b.maybe(0.3):
        z = b.pick(kind)
        d = b.destination(kind, _cap(kind, max(bits, z.bits) + 1))
        b.emit(f"mad.wide.{width} {d.name}, {x.name}, {y[0]}, {z.name}")
    else:
        d = b.destination(kind, bits)
        b.emit(f"mul.wide.{width} {d.name}, {x.name}, {y[0]}")
    return d


def multiply_high(b: Builder, kind: str) -> Value:
    x = b.pick(kind)
    factor = b.choose.choice((0x55555556, 0x66666667, 0x2AAAAAAB, 0x92492493, 0xCCCCCCCD, 0xAAAAAAAB, 715827883, 3, -5))
    d = b.destination(kind, WIDTH[kind])
    width = WIDTH[kind]
    if width == 16:
        factor &= 0x7FFF
    b.emit(f"mul.hi.{b.choose.choice('su')}{width} {d.name}, {x.name}, {factor}")
    return d


def shift_left(b: Builder, kind: str) -> Value:
    x = b.pick(kind, 34)
    if b.maybe(0.85):
        count = b.choose.choice((1, 2, 3, 4, 5, 7, 8) if kind != "rs" else (1, 2, 3, 4))
        text, bits = str(count), _cap(kind, x.bits + count)
    else:
        amount = b.pick("r", 4)
        text, bits = amount.name, _cap(kind, x.bits + 16)
    d = b.destination(kind, bits)
    b.emit(f"shl.b{WIDTH[kind]} {d.name}, {x.name}, {text}")
    return d


def shift_right(b: Builder, kind: str) -> Value:
    x = b.pick(kind)
    sign = b.choose.choice("suub")
    if b.maybe(0.85):
        text = str(b.choose.choice((1, 2, 3, 4, 5, 8, 15, 31, 33, WIDTH[kind] - 1)))
    else:
        text = b.pick("r", 6).name
    d = b.destination(kind, x.bits if sign == "s" else WIDTH[kind])
    b.emit(f"shr.{sign}{WIDTH[kind]} {d.name}, {x.name}, {text}")
    return d


def logic(b: Builder, kind: str) -> Value:
    x = b.pick(kind)
    name = b.choose.choice(("and", "and", "and", "or", "xor"))
    if b.maybe(0.7):
        mask = b.choose.choice(MASKS)
        y = (str(mask), abs(mask).bit_length() if name != "and" or mask < 0 else mask.bit_length())
        bits = mask.bit_length() if name == "and" and mask > 0 else max(x.bits, y[1]) + 1
    else:
        other = b.pick(kind)
        y = (other.name, other.bits)
        bits = max(x.bits, y[1]) + 1
    d = b.destination(kind, _cap(kind, bits))
    b.emit(f"{name}.b{WIDTH[kind]} {d.name}, {x.name}, {y[0]}")
    return d


def unary(b: Builder, kind: str) -> Value:
    x = b.pick(kind)
    d = b.destination(kind, _cap(kind, x.bits + 1))
    text = b.choose.choice((f"not.b{WIDTH[kind]}", f"neg.s{WIDTH[kind]}", f"abs.s{WIDTH[kind]}"))
    b.emit(f"{text} {d.name}, {x.name}")
    return d


def extreme(b: Builder, kind: str) -> Value:
    x, y = b.pick(kind), operand(b, kind)
    d = b.destination(kind, max(x.bits, y[1]))
    name, sign = b.choose.choice(("min", "max")), b.choose.choice("ssu")
    b.emit(f"{name}.{sign}{WIDTH[kind]} {d.name}, {x.name}, {y[0]}")
    return d


def field(b: Builder, kind: str) -> Value:
    if kind == "rs":
        return logic(b, kind)
    x = b.pick(kind)
    position, length = b.choose.randrange(0, 12), b.choose.randrange(0, 9)
    width = WIDTH[kind]
    if b.maybe(0.1):
        position, length = b.choose.randrange(0, width + 8), b.choose.randrange(0, width + 8)
    if b.maybe(0.6):
        d = b.destination(kind, min(length + 1, width))
        b.emit(f"bfe.{b.choose.choice('su')}{width} {d.name}, {x.name}, {position}, {length}")
    else:
        y = b.pick(kind)
        d = b.destination(kind, _cap(kind, max(y.bits, position + length) + 1))
        b.emit(f"bfi.b{width} {d.name}, {x.name}, {y.name}, {position}, {length}")
    return d


def select(b: Builder, kind: str) -> Value:
    x, y, p = b.pick(kind), operand(b, kind), b.pick("p")
    d = b.destination(kind, max(x.bits, y[1]))
    first, second = (x.name, y[0]) if b.maybe(0.5) else (y[0], x.name)
    b.emit(f"selp.{b.choose.choice('bsu')}{WIDTH[kind]} {d.name}, {first}, {second}, {p.name}")
    return d


def copy(b: Builder, kind: str) -> Value:
    x = b.pick(kind)
    d = b.destination(kind, x.bits)
    b.emit(f"mov.{b.choose.choice('bus')}{WIDTH[kind]} {d.name}, {x.name}")
    return d


def sign_extension(b: Builder, kind: str) -> Value:
    """shl and shr of the same register: sign or zero extension of the low bits, with or without a scale."""
    width = WIDTH[kind]
    x = b.pick(kind)
    low = b.choose.choice((width // 2, width - 8, 8, 3))
    t = b.fresh(kind, width)
    d = b.destination(kind, width - low + 4 if width - low + 4 < width else width)
    b.emit(f"shl.b{width} {t.name}, {x.name}, {low}")
    back = max(low - b.choose.choice((0, 1, 2, 3)), 0) if b.maybe(0.8) else low + 2
    b.emit(f"shr.{b.choose.choice('ssu')}{width} {d.name}, {t.name}, {back}")
    return d


def special(b: Builder, kind: str) -> Value:
    """Operations of which the analysis knows little."""
    x = b.pick("r")
    y = b.pick("r")
    p = b.pick("p")
    text, bits = b.choose.choice((
        ("popc.b32 {d}, {x}", 6), ("clz.b32 {d}, {x}", 6), ("bfind.u32 {d}, {x}", 6),
        ("prmt.b32 {d}, {x}, {y}, 0x5410", 32), ("shf.l.wrap.b32 {d}, {x}, {y}, 5", 32),
        ("shf.r.wrap.b32 {d}, {x}, {y}, 7", 32), ("lop3.b32 {d}, {x}, {y}, 7, 0x6a", 32),
        ("mul24.lo.s32 {d}, {x}, {y}", 32), ("mul24.lo.u32 {d}, {x}, 5", 32),
        ("mad24.lo.s32 {d}, {x}, 3, {y}", 32), ("sad.s32 {d}, {x}, {y}, 1", 32), ("brev.b32 {d}, {x}", 32),
        ("mad.hi.s32 {d}, {x}, {y}, {x}", 32), ("add.sat.s32 {d}, {x}, {y}", 32), ("cnot.b32 {d}, {x}", 1),
        ("set.lt.u32.s32 {d}, {x}, {y}", 32), ("slct.s32.s32 {d}, {x}, {y}, {y}", 32),
        ("dp4a.s32.s32 {d}, {x}, {y}, {x}", 32), ("selp.b32 {d}, 1, 0, {p}", 1),
    ))  # fmt: skip
    d = b.destination("r", bits)
    b.emit(text.format(d=d.name, x=x.name, y=y.name, p=p.name))
    return d


Definition = Callable[[Builder, str], Value]
COMMON: list[tuple[Definition, int]] = [
    (add, 10), (multiply, 6), (shift_left, 4), (shift_right, 4), (logic, 6), (unary, 1), (extreme, 3), (divide, 3),
    (field, 2), (select, 3), (copy, 2), (sign_extension, 1), (divide_power, 2), (divide_magic, 2), (multiply_high, 1),
]  # fmt: skip


def define(b: Builder, kind: str) -> Value:
    """A new value of the kind, by any operation."""
    if kind == "r" and b.maybe(0.04):
        return special(b, kind)
    if kind != "rs" and b.maybe(0.08):
        return multiply_wide(b, kind)
    operations, weights = zip(*COMMON, strict=True)
    operation: Definition = b.choose.choices(operations, weights)[0]
    return operation(b, kind)
