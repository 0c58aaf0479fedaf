"""Integer arithmetic of the interpreter against Python integers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest

from softgpu.reference import UnsupportedInstruction
from tests.reference_kernels import evaluate, one

WIDTH = {"u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64}


def values(kind: str, count: int = 6) -> list[int]:
    """Edge values of a type and some random ones, as Python integers of the type."""
    width = WIDTH[kind]
    chosen = random.Random(kind)
    bits = [0, 1, 2, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, 7, (1 << width) - 7]
    bits += [chosen.getrandbits(width) for _ in range(count)]
    return [interpret(b, kind) for b in bits]


def interpret(bits: int, kind: str) -> int:
    """The low bits of an integer as a value of the type."""
    width = WIDTH[kind]
    bits &= (1 << width) - 1
    return bits - (1 << width) if kind[0] == "s" and bits >> (width - 1) else bits


def clamp(value: int, kind: str) -> int:
    low, high = (-(1 << WIDTH[kind] - 1), (1 << WIDTH[kind] - 1) - 1) if kind[0] == "s" else (0, (1 << WIDTH[kind]) - 1)
    return min(max(value, low), high)


def check2(mnemonic: str, kind: str, expected: Callable[[int, int], int], result: str = "",
           skip: Callable[[int, int], bool] = lambda a, b: False) -> None:
    pairs = [(a, b) for a, b in itertools.product(values(kind), repeat=2) if not skip(a, b)]
    got = one(f"{mnemonic} %x, %a, %b;", [(kind, [a for a, _ in pairs]), (kind, [b for _, b in pairs])], result or kind)
    want = [expected(a, b) & (1 << WIDTH[result or kind]) - 1 for a, b in pairs]
    assert got.tolist() == want


def check3(mnemonic: str, kinds: tuple[str, str, str, str], expected: Callable[[int, int, int], int]) -> None:
    result, a_kind, b_kind, c_kind = kinds
    triples = list(itertools.product(values(a_kind, 3), values(b_kind, 3), values(c_kind, 1)))
    columns = [(kind, [t[i] for t in triples]) for i, kind in enumerate((a_kind, b_kind, c_kind))]
    got = one(f"{mnemonic} %x, %a, %b, %c;", columns, result)
    assert got.tolist() == [expected(*t) & (1 << WIDTH[result]) - 1 for t in triples]


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@pytest.mark.parametrize("kind", WIDTH)
def test_add_sub_mul_wrap(kind: str) -> None:
    check2(f"add.{kind}", kind, lambda a, b: a + b)
    check2(f"sub.{kind}", kind, lambda a, b: a - b)
    check2(f"mul.lo.{kind}", kind, lambda a, b: a * b)
    check2(f"mul.hi.{kind}", kind, lambda a, b: a * b >> WIDTH[kind])


@pytest.mark.parametrize("kind", WIDTH)
def test_min_max(kind: str) -> None:
    check2(f"min.{kind}", kind, min)
    check2(f"max.{kind}", kind, max)


@pytest.mark.parametrize("kind", WIDTH)
def test_division_truncates_toward_zero(kind: str) -> None:
    check2(f"div.{kind}", kind, truncated, skip=lambda a, b: b == 0)
    check2(f"rem.{kind}", kind, lambda a, b: a - b * truncated(a, b), skip=lambda a, b: b == 0)


def test_division_by_zero_is_all_ones_and_the_dividend() -> None:
    assert one("div.u32 %x, %a, %b;", [("u32", [5, 0]), ("u32", [0, 0])], "u32").tolist() == [2**32 - 1] * 2
    assert one("rem.u32 %x, %a, %b;", [("u32", [5, 0]), ("u32", [0, 0])], "u32").tolist() == [5, 0]
    assert one("div.s64 %x, %a, %b;", [("s64", [-5]), ("s64", [0])], "s64").tolist() == [2**64 - 1]
    assert one("rem.s64 %x, %a, %b;", [("s64", [-5]), ("s64", [0])], "s64").tolist() == [2**64 - 5]


@pytest.mark.parametrize(("kind", "wide"), [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")])
def test_wide_products(kind: str, wide: str) -> None:
    check2(f"mul.wide.{kind}", kind, lambda a, b: a * b, wide)
    check3(f"mad.wide.{kind}", (wide, kind, kind, wide), lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", WIDTH)
def test_mad(kind: str) -> None:
    check3(f"mad.lo.{kind}", (kind,) * 4, lambda a, b, c: a * b + c)
    check3(f"mad.hi.{kind}", (kind,) * 4, lambda a, b, c: (a * b >> WIDTH[kind]) + c)


def test_saturating_forms() -> None:
    check2("add.sat.s32", "s32", lambda a, b: clamp(a + b, "s32"))
    check2("sub.sat.s32", "s32", lambda a, b: clamp(a - b, "s32"))
    check3("mad.hi.sat.s32", ("s32",) * 4, lambda a, b, c: clamp((a * b >> 32) + c, "s32"))


def low24(a: int, kind: str) -> int:
    a &= 0xFFFFFF
    return a - (1 << 24) if kind == "s32" and a >> 23 else a


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bit_products(kind: str) -> None:
    check2(f"mul24.lo.{kind}", kind, lambda a, b: low24(a, kind) * low24(b, kind))
    check2(f"mul24.hi.{kind}", kind, lambda a, b: low24(a, kind) * low24(b, kind) >> 16)
    check3(f"mad24.lo.{kind}", (kind,) * 4, lambda a, b, c: low24(a, kind) * low24(b, kind) + c)
    if kind == "s32":
        def saturated(a: int, b: int, c: int) -> int:
            return clamp(interpret(low24(a, kind) * low24(b, kind) >> 16, "s32") + c, "s32")
        check3("mad24.hi.sat.s32", (kind,) * 4, saturated)


@pytest.mark.parametrize("kind", WIDTH)
def test_sad(kind: str) -> None:
    check3(f"sad.{kind}", (kind,) * 4, lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_abs_and_neg(kind: str) -> None:
    data = values(kind)
    mask = (1 << WIDTH[kind]) - 1
    assert one(f"abs.{kind} %x, %a;", [(kind, data)], kind).tolist() == [abs(a) & mask for a in data]
    assert one(f"neg.{kind} %x, %a;", [(kind, data)], kind).tolist() == [-a & mask for a in data]


@pytest.mark.parametrize("kind", ["u16x2", "s16x2"])
def test_packed_halves(kind: str) -> None:
    half = kind[:3]
    words = [(a & 0xFFFF) << 16 | b & 0xFFFF for a, b in itertools.pairwise(values(half))]
    pairs = list(itertools.product(words, repeat=2))
    operations = {"add": lambda a, b: a + b, "min": min, "max": max}
    for name, function in operations.items():
        got = one(f"{name}.{kind} %x, %a, %b;", [("b32", [a for a, _ in pairs]), ("b32", [b for _, b in pairs])], "b32")
        want = []
        for a, b in pairs:
            parts = [function(interpret(a >> s, half), interpret(b >> s, half)) & 0xFFFF for s in (0, 16)]
            want.append(parts[1] << 16 | parts[0])
        assert got.tolist() == want


def octets(word: int, signed: bool) -> list[int]:
    parts = [word >> 8 * i & 0xFF for i in range(4)]
    return [p - 256 if signed and p >= 128 else p for p in parts]


@pytest.mark.parametrize("a_kind", ["u32", "s32"])
@pytest.mark.parametrize("b_kind", ["u32", "s32"])
def test_dot_products(a_kind: str, b_kind: str) -> None:
    chosen = random.Random(4)
    a, b, c = ([chosen.getrandbits(32) for _ in range(32)] for _ in range(3))
    a[:2], b[:2] = [0x80808080, 0xFFFFFFFF], [0x80808080, 0xFFFFFFFF]
    columns = [("b32", a), ("b32", b), ("b32", c)]
    signed = (a_kind == "s32", b_kind == "s32")
    got = one(f"dp4a.{a_kind}.{b_kind} %x, %a, %b, %c;", columns, "b32")
    want = [z + sum(p * q for p, q in zip(octets(x, signed[0]), octets(y, signed[1]), strict=True))
            for x, y, z in zip(a, b, c, strict=True)]
    assert got.tolist() == [w & 0xFFFFFFFF for w in want]
    for part, first in (("lo", 0), ("hi", 2)):
        got = one(f"dp2a.{part}.{a_kind}.{b_kind} %x, %a, %b, %c;", columns, "b32")
        want = []
        for x, y, z in zip(a, b, c, strict=True):
            halves = [interpret(x >> s, "s16" if signed[0] else "u16") for s in (0, 16)]
            chosen_octets = octets(y, signed[1])[first:first + 2]
            want.append(z + sum(p * q for p, q in zip(halves, chosen_octets, strict=True)))
        assert got.tolist() == [w & 0xFFFFFFFF for w in want]


def test_extended_precision_chains() -> None:
    chosen = random.Random(5)
    pairs = [(chosen.getrandbits(128), chosen.getrandbits(128)) for _ in range(30)]
    pairs += [((1 << 128) - 1, 1), (0, 1), (1 << 64, 1), ((1 << 64) - 1, (1 << 64) - 1)]
    mask = (1 << 64) - 1
    columns = [("u64", [v >> s & mask for v in column]) for column in zip(*pairs, strict=True) for s in (0, 64)]
    for name, operation in (("add", int.__add__), ("sub", int.__sub__)):
        body = f"{name}.cc.u64 %x, %a, %c; {name}c.u64 %y, %b, %d;"
        low, high = evaluate(body, columns, ["u64", "u64"])
        want = [operation(a, b) & (1 << 128) - 1 for a, b in pairs]
        assert [int(h) << 64 | int(l_) for l_, h in zip(low, high, strict=True)] == want


def test_carry_through_three_words_and_multiplication() -> None:
    """A 32 x 64-bit product plus a 96-bit sum, by mad.lo.cc, madc.hi.cc, madc.lo.cc, madc.hi."""
    chosen = random.Random(6)
    rows = [(chosen.getrandbits(32), chosen.getrandbits(64), chosen.getrandbits(64)) for _ in range(40)]
    rows.append((2**32 - 1, 2**64 - 1, 2**64 - 1))
    body = """
        mov.b64 {%r0, %r1}, %b; mov.b64 {%r2, %r3}, %c;
        mad.lo.cc.u32 %r4, %a, %r0, %r2;
        madc.hi.cc.u32 %r5, %a, %r0, %r3;
        addc.u32 %r6, 0, 0;
        mad.lo.cc.u32 %r5, %a, %r1, %r5;
        madc.hi.u32 %r6, %a, %r1, %r6;
        mov.b64 %x, {%r4, %r5}; mov.b32 %y, %r6;
    """
    low, high = evaluate(body, [("u32", [r[0] for r in rows]), ("u64", [r[1] for r in rows]),
                                ("u64", [r[2] for r in rows])], ["u64", "u32"])
    got = [int(h) << 64 | int(l_) for l_, h in zip(low, high, strict=True)]
    assert got == [(a * b + c) % 2**96 for a, b, c in rows]


def test_carry_flag_is_kept_by_guarded_instructions() -> None:
    body = "add.cc.u32 %r0, %a, %a; setp.ne.u32 %p0, %b, 0; @%p0 add.cc.u32 %r0, 0, 0; addc.u32 %x, 0, 0;"
    got = one(body, [("u32", [2**31, 2**31, 0, 0]), ("u32", [0, 1, 0, 1])], "u32")
    assert got.tolist() == [1, 0, 0, 0]


def test_relu_forms() -> None:
    check2("max.relu.s32", "s32", lambda a, b: max(a, b, 0))
    check2("min.relu.s32", "s32", lambda a, b: max(min(a, b), 0))


@pytest.mark.parametrize("text", [
    "add.sat.u32 %x, %a, %a;", "add.ftz.u32 %x, %a, %a;", "mul.u32 %x, %a, %a;", "mul.wide.u64 %x, %a, %a;",
    "add.cc.u16 %x, %a, %a;", "dp4a.u16.u32 %x, %a, %a, %a;", "add.u32.foo %x, %a, %a;", "frobnicate.u32 %x, %a;",
    "add.u32 %x, %a;", "add.u64 %x, %a, %a;", "neg.u32 %x, %a;",
])
def test_unknown_modifiers_and_wrong_operands_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=text.split(maxsplit=1)[0].replace(".", r"\.")):
        one(text, [("u32", [1])], "u32")


def test_immediate_operands_take_the_width_of_the_type() -> None:
    assert one("add.s64 %x, %a, -1;", [("s64", [0, 5])], "s64").tolist() == [2**64 - 1, 4]
    assert one("sub.u16 %x, %a, 0xffffffff;", [("u16", [0])], "u16").tolist() == [1]
    assert one("add.s32 %x, WARP_SZ, %a;", [("s32", [1])], "s32").tolist() == [33]
    assert np.all(one("mov.u32 %x, -1;", [("u32", [0])], "u32") == 0xFFFFFFFF)
