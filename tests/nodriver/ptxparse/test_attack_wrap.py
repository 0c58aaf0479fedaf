"""Attempts with numbers that wrap around where they are compared or extended: signed against unsigned, wide against
narrow, and limits at the ends of their types."""

from __future__ import annotations

import itertools

import pytest

from tests.small_kernels import At, Shape, small, sound, words

BLOCK: Shape = (32, 1, 1)
STORE_64 = "shl.b64 %rd1, %rd5, 2; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; E: ret;"
STORE_32 = "mul.wide.s32 %rd1, %r2, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; E: ret;"

WIDE = ("lt.u64 %p1, %rd5, %rd6", "le.u64 %p1, %rd6, %rd5", "lt.s64 %p1, %rd5, %rd6", "gt.s64 %p1, %rd5, %rd6",
        "gt.u64 %p1, %rd5, %rd6", "ge.s64 %p1, %rd6, %rd5", "ge.u64 %p1, %rd6, %rd5", "ne.u64 %p1, %rd5, %rd6",
        "eq.u64 %p1, %rd5, %rd6")
LIMITS = (-5, 3, 0x7FFFFFFF, 0x80000005)


def run(body: str, n: int, m: int = 0, kind: str = "u32") -> None:
    """A store around the middle of a buffer; ``n`` and ``m`` are parameters."""
    arguments = {"buffer": words(128), "a": At("buffer", 256), "n": n, "m": m}
    assert sound(small(body, f"a:u64 n:{kind} m:{kind}"), (1, 1, 1), BLOCK, arguments).evaluation.opaque is None


@pytest.mark.parametrize("compare", WIDE)
@pytest.mark.parametrize("taken", ["", "!"])
def test_a_wide_number_against_a_zero_extended_sum(compare: str, taken: str) -> None:
    for n, other in itertools.product(LIMITS, ("%r1", "%m")):
        run(f"mov.u32 %r1, %tid.x; cvt.s64.s32 %rd5, %r1; sub.s64 %rd5, %rd5, 3; add.s32 %r9, %n, {other}; "
            f"cvt.u64.u32 %rd6, %r9; setp.{compare}; @{taken}%p1 bra E; {STORE_64}", n, 0x80000005)


@pytest.mark.parametrize("compare", WIDE)
@pytest.mark.parametrize("taken", ["", "!"])
def test_a_wide_number_against_a_sign_extended_sum(compare: str, taken: str) -> None:
    for n, other in itertools.product(LIMITS, ("%r1", "%m")):
        run(f"mov.u32 %r1, %tid.x; cvt.s64.s32 %rd5, %r1; sub.s64 %rd5, %rd5, 3; add.s32 %r9, %n, {other}; "
            f"cvt.s64.s32 %rd6, %r9; setp.{compare}; @{taken}%p1 bra E; {STORE_64}", n, 0x80000005)


NARROW = ("lt.u32 %p1, %r2, %r3", "lt.s32 %p1, %r2, %r3", "gt.s32 %p1, %r2, %r3", "gt.u32 %p1, %r2, %r3",
          "ge.s32 %p1, %r3, %r2", "le.u32 %p1, %r3, %r2", "eq.s32 %p1, %r2, %r3", "ne.s32 %p1, %r2, %r3")
EXTENSIONS = ("cvt.u32.u8", "cvt.s32.s8", "cvt.u32.u16", "cvt.s32.s16")


@pytest.mark.parametrize("compare", NARROW)
@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("taken", ["", "!"])
def test_a_number_against_an_extended_part(compare: str, extension: str, taken: str) -> None:
    for n, other in itertools.product((5, 120, 245, 65530), ("%r1", "%m")):
        run(f"mov.u32 %r1, %tid.x; sub.s32 %r2, %r1, 8; add.s32 %r4, {other}, %n; "
            f"{extension} %r3, %r4; setp.{compare}; @{taken}%p1 bra E; {STORE_32}", n)


@pytest.mark.parametrize("compare", NARROW)
@pytest.mark.parametrize("load", ["ld.param.u8", "ld.param.s8", "ld.param.u16", "ld.param.s16", "ld.param.u32"])
def test_a_number_against_a_parameter_of_another_width(compare: str, load: str) -> None:
    for n in (5, 120, 245, 65530):
        run(f"mov.u32 %r1, %tid.x; sub.s32 %r2, %r1, 8; {load} %r3, [n]; setp.{compare}; @!%p1 bra E; {STORE_32}", n)


@pytest.mark.parametrize("compare", ["lt.u16", "lt.s16", "ge.u16", "gt.s16", "ne.s16"])
def test_sums_of_16_bits(compare: str) -> None:
    for n in (0, 5, 32760, 65530, -3):
        run(f"mov.u32 %r1, %tid.x; sub.s32 %r2, %r1, 8; cvt.u16.u32 %rs1, %r2; cvt.u16.u32 %rs2, %n; add.s16 %rs2, %rs2, 7; "
            f"setp.{compare} %p1, %rs1, %rs2; @!%p1 bra E; {STORE_32}", n)


@pytest.mark.parametrize("compare", ["lt.s32", "lt.u32", "le.s32", "ne.s32", "ge.u32"])
@pytest.mark.parametrize("n", [0, 1, 5, -1, -0x80000000, 0x7FFFFFFF])
def test_sums_that_pass_the_end_of_their_type(compare: str, n: int) -> None:
    """``tid + n`` may wrap; the store is at ``tid`` itself."""
    run(f"mov.u32 %r1, %tid.x; add.s32 %r3, %r1, %n; mov.u32 %r2, %r1; setp.{compare} %p1, %r3, 16; @!%p1 bra E; {STORE_32}",
        n, kind="s32")


@pytest.mark.parametrize("compare", ["lt.s32", "lt.u32", "ge.s32", "gt.u32"])
@pytest.mark.parametrize("n", [0, 1, 3, -1, 0x40000000, 0x10000001])
def test_products_that_pass_the_end_of_their_type(compare: str, n: int) -> None:
    run(f"mov.u32 %r1, %tid.x; mul.lo.s32 %r3, %r1, %n; mov.u32 %r2, %r1; setp.{compare} %p1, %r3, 16; @!%p1 bra E; {STORE_32}",
        n, kind="s32")


@pytest.mark.parametrize("extension", ["cvt.s64.s32", "cvt.u64.u32", "cvt.s64.s16", "cvt.u64.u16", "cvt.s64.s8", "cvt.u64.u8"])
@pytest.mark.parametrize("n", [0, 100, 120, 250, 32760, 65530, -4])
def test_addresses_of_extended_sums(extension: str, n: int) -> None:
    """The extended number is brought back by subtracting what it must be for the first thread."""
    bits = int(extension.rsplit(".", 1)[1][1:])
    first = n & ((1 << bits) - 1)
    first -= (1 << bits) if extension[-len(str(bits)) - 1] == "s" and first >> (bits - 1) else 0
    source = "%r3" if bits == 32 else "%rs1" if bits == 16 else "%r3"
    body = (f"mov.u32 %r1, %tid.x; add.s32 %r3, %r1, %n; cvt.u16.u32 %rs1, %r3; {extension} %rd5, {source}; "
            f"add.s64 %rd5, %rd5, {-first}; setp.lt.s64 %p1, %rd5, -60; @%p1 bra E; {STORE_64}")
    run(body, n, kind="s32")


@pytest.mark.parametrize("step", [1, 3, 100, 0x4000, -1])
@pytest.mark.parametrize("compare", ["lt.s16", "lt.u16", "ne.s16", "le.u16"])
def test_loops_of_16_bits(step: int, compare: str) -> None:
    """The counter wraps around unless the limit stops it first; twenty rounds at most. The store is at the round."""
    body = f"""
    mov.u16 %rs1, 3; cvt.u16.u32 %rs2, %n; mov.u32 %r2, 0;
    L: mul.wide.s32 %rd1, %r2, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; add.s16 %rs1, %rs1, {step};
    add.s32 %r2, %r2, 1; setp.ge.s32 %p2, %r2, 20; @%p2 bra E; setp.{compare} %p1, %rs1, %rs2; @%p1 bra L; E: ret;"""
    for n in (0, 9, 0x7FFE, 0x8000, 0xFFFF):
        run(body, n)


@pytest.mark.parametrize("compare", ["lt.s16", "lt.u16", "ne.s16"])
def test_loops_of_16_bits_with_nothing_else_to_stop_them(compare: str) -> None:
    for n, step in ((9, 1), (0x7FFF, 0x2000), (0x8000, 0x4000), (0xC000, 0x4000), (0xF000, 0x1500)):
        body = f"""
        mov.u16 %rs1, 0; cvt.u16.u32 %rs2, %n;
        L: cvt.u32.u16 %r2, %rs1; shr.u32 %r2, %r2, 10; mul.wide.s32 %rd1, %r2, 4; add.s64 %rd2, %a, %rd1;
        st.global.u32 [%rd2], 1; add.s16 %rs1, %rs1, {step}; setp.{compare} %p1, %rs1, %rs2; @%p1 bra L; ret;"""
        endless = n % step != 0 if compare == "ne.s16" else compare == "lt.s16" and n == 0x7FFF
        if not endless:
            run(body, n)
