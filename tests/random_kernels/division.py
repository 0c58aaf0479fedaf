"""Divisions and remainders: as instructions, and as the multiplications and shifts that compilers make of them."""

from __future__ import annotations

from tests.random_kernels.builder import WIDTH, Builder, Value


def divide(b: Builder, kind: str) -> Value:
    """By a constant, or by a register that is not zero (made so by or-ing a bit in)."""
    x = b.pick(kind)
    name, sign = b.choose.choice(("div", "rem")), b.choose.choice("su")
    if b.maybe(0.7):
        divisor = str(b.choose.choice((2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 100) if b.maybe(0.9) else (1, -3, -4, -1)))
    else:
        value = b.pick(kind, 16)
        odd = b.fresh(kind, max(value.bits, 1))
        b.emit(f"or.b{WIDTH[kind]} {odd.name}, {value.name}, 1")
        divisor = odd.name
    bits = x.bits if sign == "s" else WIDTH[kind]
    d = b.destination(kind, bits)
    b.emit(f"{name}.{sign}{WIDTH[kind]} {d.name}, {x.name}, {divisor}")
    return d


def divide_power(b: Builder, kind: str) -> Value:
    """A signed division by a power of two, and sometimes its remainder, as nvcc writes them."""
    if kind == "rs":
        return divide(b, kind)
    width = WIDTH[kind]
    x, log = b.pick(kind), b.choose.choice((1, 2, 3, 4, 5))
    sign, fix, total = (b.fresh(kind) for _ in range(3))
    b.emit(f"shr.s{width} {sign.name}, {x.name}, {width - 1}")
    b.emit(f"shr.u{width} {fix.name}, {sign.name}, {width - log}")
    b.emit(f"add.s{width} {total.name}, {x.name}, {fix.name}")
    quotient = b.destination(kind, x.bits)
    b.emit(f"shr.s{width} {quotient.name}, {total.name}, {log}")
    if b.maybe(0.6) and quotient.name != x.name:
        floor = b.fresh(kind)
        b.emit(f"and.b{width} {floor.name}, {total.name}, {-(1 << log)}")
        rest = b.destination(kind, log + 1)
        b.emit(f"sub.s{width} {rest.name}, {x.name}, {floor.name}")
        return rest
    return quotient


def magic_unsigned(d: int, width: int = 32) -> tuple[int, int] | None:
    """(M, s) with floor(M x / 2^(width + s)) = floor(x / d) for all x; None when M needs a bit more."""
    for s in range(16):
        m = -(-(1 << (width + s)) // d)
        if m >= 1 << width:
            return None
        if m * d - (1 << (width + s)) <= 1 << s:
            return m, s
    return None


def magic_signed(d: int) -> tuple[int, int]:
    """(M, s) as in Warren, Hacker's Delight, 10-1, for 32 bits."""
    s = 0
    while True:
        m = ((1 << (32 + s)) + d - 1) // d if d & (d - 1) else (1 << (32 + s)) // d + 1
        if m * d - (1 << (32 + s)) <= 1 << (s + 1) and m * d > 1 << (32 + s):
            return m, s
        s += 1


def divide_magic(b: Builder, kind: str) -> Value:
    """Division by a constant through a multiplication, and sometimes the remainder."""
    if kind != "r":
        return divide(b, kind)
    x = b.pick("r")
    d = b.choose.choice((3, 5, 6, 7, 9, 10, 12, 24, 25, 100, 127))
    if b.maybe(0.5):
        m, s = magic_signed(d)
        t, sign = b.fresh("r"), b.fresh("r")
        b.emit(f"mul.hi.s32 {t.name}, {x.name}, {m - (1 << 32) if m >= 1 << 31 else m}")
        if m >= 1 << 31:
            b.emit(f"add.s32 {t.name}, {t.name}, {x.name}")
        b.emit(f"shr.u32 {sign.name}, {t.name}, 31")
        if s:
            b.emit(f"shr.s32 {t.name}, {t.name}, {s}")
        quotient = b.destination("r", x.bits, x)
        b.emit(f"add.s32 {quotient.name}, {t.name}, {sign.name}")
    else:
        found = magic_unsigned(d)
        t = b.fresh("r")
        if found is None:
            # x / 7 unsigned: the multiplier has 33 bits.
            s = d.bit_length()
            m = -(-(1 << (32 + s)) // d) - (1 << 32)
            u = b.fresh("r")
            b.emit(f"mul.hi.u32 {t.name}, {x.name}, {m}")
            b.emit(f"sub.s32 {u.name}, {x.name}, {t.name}")
            b.emit(f"shr.u32 {u.name}, {u.name}, 1")
            b.emit(f"add.s32 {u.name}, {u.name}, {t.name}")
            quotient = b.destination("r", 32)
            b.emit(f"shr.u32 {quotient.name}, {u.name}, {s - 1}")
        elif b.maybe(0.5):
            w = b.fresh("rd", 64)
            b.emit(f"mul.wide.u32 {w.name}, {x.name}, {found[0]}")
            b.emit(f"shr.u64 {w.name}, {w.name}, {32 + found[1]}")
            quotient = b.destination("r", 32)
            b.emit(f"cvt.u32.u64 {quotient.name}, {w.name}")
        else:
            b.emit(f"mul.hi.u32 {t.name}, {x.name}, {found[0]}")
            quotient = b.destination("r", 32)
            b.emit(f"shr.u32 {quotient.name}, {t.name}, {found[1]}")
    if b.maybe(0.6) and quotient.name != x.name:
        t = b.fresh("r")
        b.emit(f"mul.lo.s32 {t.name}, {quotient.name}, {d}")
        rest = b.destination("r", 8)
        b.emit(f"sub.s32 {rest.name}, {x.name}, {t.name}")
        return rest
    return quotient
