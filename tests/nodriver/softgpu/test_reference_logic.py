"""Logic, shifts and bit fields of the interpreter against Python integers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from tests.reference_kernels import evaluate, one

AMOUNTS = [0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 255, 256, 2**31, 2**32 - 1]


def words(width: int, count: int = 6) -> list[int]:
    chosen = random.Random(width)
    return [0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1] + [
        chosen.getrandbits(width) for _ in range(count)]


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def check(body: str, kinds: tuple[str, ...], rows: list[tuple[int, ...]], result: str,
          expected: Callable[..., int]) -> None:
    columns = [(kind, [row[i] for row in rows]) for i, kind in enumerate(kinds)]
    got = one(body, columns, result)
    mask = (1 << 8 * got.dtype.itemsize) - 1
    assert got.tolist() == [expected(*row) & mask for row in rows]


@pytest.mark.parametrize("width", [16, 32, 64])
def test_logic(width: int) -> None:
    kind = f"b{width}"
    rows = list(itertools.product(words(width), repeat=2))
    for name, function in (("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__)):
        check(f"{name}.{kind} %x, %a, %b;", (kind, kind), rows, kind, function)
    single = [(w,) for w in words(width)]
    check(f"not.{kind} %x, %a;", (kind,), single, kind, lambda a: ~a)
    check(f"cnot.{kind} %x, %a;", (kind,), single, kind, lambda a: int(a == 0))


def test_predicate_logic() -> None:
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    for body, want in [("and.pred %x, %a, %b;", [0, 0, 0, 1]), ("or.pred %x, %a, !%b;", [1, 0, 1, 1]),
                       ("xor.pred %x, !%a, %b;", [1, 0, 0, 1]), ("not.pred %x, %b;", [1, 0, 1, 0]),
                       ("mov.pred %x, %a;", [0, 0, 1, 1])]:
        assert one(body, [("pred", a), ("pred", b)], "pred").tolist() == want


@pytest.mark.parametrize("width", [16, 32, 64])
def test_shifts_clamp_the_amount(width: int) -> None:
    rows = list(itertools.product(words(width), AMOUNTS))
    check(f"shl.b{width} %x, %a, %b;", (f"b{width}", "u32"), rows, f"b{width}",
          lambda a, n: a << n if n < width else 0)
    check(f"shr.u{width} %x, %a, %b;", (f"b{width}", "u32"), rows, f"b{width}",
          lambda a, n: a >> n if n < width else 0)
    check(f"shr.s{width} %x, %a, %b;", (f"b{width}", "u32"), rows, f"b{width}",
          lambda a, n: signed(a, width) >> min(n, width - 1))


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shifts(mode: str) -> None:
    rows = list(itertools.product(words(32, 2), words(32, 2), AMOUNTS))

    def amount(n: int) -> int:
        return n & 31 if mode == "wrap" else min(n, 32)

    check(f"shf.l.{mode}.b32 %x, %a, %b, %c;", ("b32",) * 3, rows, "b32",
          lambda a, b, n: (b << 32 | a) << amount(n) >> 32)
    check(f"shf.r.{mode}.b32 %x, %a, %b, %c;", ("b32",) * 3, rows, "b32", lambda a, b, n: (b << 32 | a) >> amount(n))


@pytest.mark.parametrize("width", [32, 64])
def test_counting(width: int) -> None:
    rows = [(w,) for w in words(width, 20)]
    kind = f"b{width}"
    check(f"popc.{kind} %x, %a;", (kind,), rows, "u32", int.bit_count)
    check(f"clz.{kind} %x, %a;", (kind,), rows, "u32", lambda a: width - a.bit_length())
    check(f"brev.{kind} %x, %a;", (kind,), rows, kind, lambda a: int(f"{a:0{width}b}"[::-1], 2))
    check(f"bfind.u{width} %x, %a;", (kind,), rows, "u32", lambda a: a.bit_length() - 1)

    def leading(a: int) -> int:
        return (~signed(a, width) if signed(a, width) < 0 else a).bit_length() - 1

    check(f"bfind.s{width} %x, %a;", (kind,), rows, "u32", leading)
    check(f"bfind.shiftamt.u{width} %x, %a;", (kind,), rows, "u32",
          lambda a: width - a.bit_length() if a else -1)
    check(f"bfind.shiftamt.s{width} %x, %a;", (kind,), rows, "u32",
          lambda a: width - 1 - leading(a) if leading(a) >= 0 else -1)


def extracted(a: int, position: int, length: int, width: int, is_signed: bool) -> int:
    """The loop of the PTX manual (bfe), bit by bit."""
    position, length = position & 0xFF, length & 0xFF
    sign = a >> min(position + length - 1, width - 1) & 1 if is_signed and length else 0
    result = 0
    for i in range(width):
        bit = a >> (position + i) & 1 if i < length and position + i < width else sign
        result |= bit << i
    return result


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfe(kind: str) -> None:
    width = int(kind[1:])
    amounts = [0, 1, 7, 8, 31, 32, 33, 63, 64, 255, 256 + 3]
    rows = list(itertools.product(words(width, 2), amounts, amounts))
    check(f"bfe.{kind} %x, %a, %b, %c;", (kind, "u32", "u32"), rows, kind,
          lambda a, p, n: extracted(a, p, n, width, kind[0] == "s"))


@pytest.mark.parametrize("width", [32, 64])
def test_bfi(width: int) -> None:
    amounts = [0, 1, 8, 31, 32, 63, 64, 255, 256 + 3]
    rows = list(itertools.product(words(width, 1), words(width, 1), amounts, amounts))

    def inserted(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        for i in range(length):
            if position + i < width:
                b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    check(f"bfi.b{width} %x, %a, %b, %c, %d;", (f"b{width}", f"b{width}", "u32", "u32"), rows, f"b{width}", inserted)


def test_lop3_for_every_table() -> None:
    a, b, c = 0xF0F0A5C3, 0xCCCC1234, 0xAAAA9876
    body = "".join(f"lop3.b32 %r0, %a, %b, %c, {t}; mad.lo.u32 %r1, %r1, 31, %r0;" for t in range(256))
    got = one(f"mov.u32 %r1, 0; {body} mov.u32 %x, %r1;", [("b32", [a]), ("b32", [b]), ("b32", [c])], "b32")
    total = 0
    for table in range(256):
        word = 0
        for i in range(32):
            index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
            word |= (table >> index & 1) << i
        total = (total * 31 + word) & 0xFFFFFFFF
    assert got.tolist() == [total]


def test_lop3_with_predicate() -> None:
    body = "lop3.or.b32 %x|%p1, %a, %b, %a, 0x40, %c; selp.b32 %y, 1, 0, %p1;"
    word, predicate = evaluate(body, [("b32", [5, 5, 0]), ("b32", [1, 5, 0]), ("pred", [0, 0, 1])], ["b32", "b32"])
    assert word.tolist() == [0, 0, 0]
    assert predicate.tolist() == [0, 0, 1]


PRMT = {
    "f4e": ["3210", "4321", "5432", "6543"], "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"], "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"], "rc16": ["1010", "3232", "1010", "3232"],
}


@pytest.mark.parametrize("mode", PRMT)
def test_prmt_modes(mode: str) -> None:
    source = 0x8877665544332211
    rows = [(source & 0xFFFFFFFF, source >> 32, s) for s in (*range(4), 0xFFFFFFF1)]

    def expected(a: int, b: int, select: int) -> int:
        digits = PRMT[mode][select & 3]
        return sum((source >> 8 * int(d) & 0xFF) << 8 * (3 - i) for i, d in enumerate(digits))

    check(f"prmt.b32.{mode} %x, %a, %b, %c;", ("b32",) * 3, rows, "b32", expected)


def test_prmt_generic_with_sign_replication() -> None:
    chosen = random.Random(8)
    rows = [(chosen.getrandbits(32), chosen.getrandbits(32), chosen.getrandbits(32)) for _ in range(60)]

    def expected(a: int, b: int, select: int) -> int:
        result = 0
        for k in range(4):
            nibble = select >> 4 * k & 15
            octet = (b << 32 | a) >> 8 * (nibble & 7) & 0xFF
            result |= ((0xFF if octet >> 7 else 0) if nibble & 8 else octet) << 8 * k
        return result

    check("prmt.b32 %x, %a, %b, %c;", ("b32",) * 3, rows, "b32", expected)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bmsk_and_szext(mode: str) -> None:
    amounts = [0, 1, 5, 16, 31, 32, 33, 63, 2**32 - 1]

    def mask(a: int, b: int) -> int:
        """The pseudo-code of the PTX manual (bmsk)."""
        mask0 = 0 if mode == "clamp" and a >= 32 else ~0 << (a & 31)
        total = (a & 31) + (b & 31)
        if total >= 32 or (mode == "clamp" and (a >= 32 or b >= 32)):
            mask1 = 0
        else:
            mask1 = ~0 if b & 31 == 0 else ~0 << total
        return mask0 & ~mask1

    check(f"bmsk.{mode}.b32 %x, %a, %b;", ("b32", "b32"), list(itertools.product(amounts, repeat=2)), "b32", mask)
    for kind in ("u32", "s32"):
        def extended(a: int, n: int, kind: str = kind) -> int:
            count = min(n, 32) if mode == "clamp" else n & 31
            low = a & (1 << count) - 1
            return low - (1 << count) if kind == "s32" and count and low >> (count - 1) else low
        check(f"szext.{mode}.{kind} %x, %a, %b;", ("b32", "b32"), list(itertools.product(words(32), amounts)), "b32",
              extended)


def test_fns() -> None:
    masks = [0xAAAAAAAA, 0, 0xFFFFFFFF, 0x80000001, 0x00010000]
    rows = list(itertools.product(masks, [0, 1, 2, 3, 16, 31], [0, 1, 2, 5, -1, -2, -40, 2**31]))

    def nth(mask: int, base: int, offset: int) -> int:
        """The pseudo-code of the PTX manual (fns)."""
        offset = signed(offset & 0xFFFFFFFF, 32)
        if offset == 0:
            return base if mask >> base & 1 else -1
        position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
        while 0 <= position < 32:
            if mask >> position & 1:
                if count == 0:
                    return position
                count -= 1
            position += step
        return -1

    check("fns.b32 %x, %a, %b, %c;", ("b32", "b32", "s32"), rows, "b32", nth)
