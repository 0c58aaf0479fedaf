"""What newer targets added: elect, redux of floats, 128-bit atomics, three-input extremes, narrow formats."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from softgpu.reference import UnsupportedInstruction
from softgpu.reference.numerics import OPERATIONS, THREE_INPUTS
from softgpu.reference.numerics.narrow import NARROW, decode, encode
from tests.reference_kernels import HEADER, REGISTERS, Run, evaluate, one

LANES = [("u32", list(range(32)))]


def test_elect_among_the_members_of_a_mask() -> None:
    body = """setp.ge.u32 %p1, %a, 20; @%p1 bra $H; elect.sync %x|%p0, 0x000fff00; bra $E;
        $H: elect.sync _|%p0, 0xfff00000; mov.u32 %x, 99; $E: selp.u32 %y, 1, 0, %p0;"""
    body = "setp.lt.u32 %p2, %a, 8; mov.u32 %x, 77; mov.u32 %y, 0; @%p2 bra $Z;\n" + body + " $Z:"
    lane, leads = evaluate(body, LANES, ["u32", "u32"])
    assert lane.tolist() == [77] * 8 + [8] * 12 + [99] * 12
    assert np.flatnonzero(leads).tolist() == [8, 20]


def test_redux_of_floats_by_member_mask() -> None:
    body = """setp.lt.u32 %p0, %r61, 999; mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 16; @%p1 bra $L;
        redux.sync.max.f32 %x, %a, 0xffff0000; bra $E; $L: redux.sync.min.f32 %x, %a, 0x0000ffff; $E:"""
    values = np.arange(32, dtype=np.float32) - 7.5
    found = one(body, [("f32", values)], "f32").view(np.float32)
    assert found.tolist() == [-7.5] * 16 + [23.5] * 16


def test_threads_that_exchange_128_bits_at_one_place_come_in_order() -> None:
    text = f"""{HEADER}.visible .entry k(.param .u64 out, .param .u64 cell)
        {{ {REGISTERS} .reg .b128 %q<4>; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [cell]; mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd3, %r1, 16; add.u64 %rd1, %rd1, %rd3; cvt.u64.u32 %rd4, %r1; add.u64 %rd5, %rd4, 100;
        mov.b128 %q0, {{%rd4, %rd5}}; atom.global.exch.b128 %q1, [%rd2], %q0; st.global.b128 [%rd1], %q1; ret; }}"""
    run = Run(text)
    out, cell = run.buffer(32 * 16), run.buffer(np.array([7, 8], np.uint64))
    run.launch("k", 1, 32, out, cell)
    found = run.read(out, 64, np.uint64).reshape(32, 2).tolist()
    assert found == [[7, 8]] + [[n, n + 100] for n in range(31)]
    assert run.read(cell, 2, np.uint64).tolist() == [31, 131]


def test_compare_and_swap_of_128_bits_in_shared_memory_through_a_generic_address() -> None:
    body = """.shared .align 16 .b8 s[16]; mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1; setp.eq.u32 %p0, %a, 0;
        .reg .b128 %q<4>; @%p0 st.shared.v2.b64 [s], {0, 0}; bar.sync 0; mov.b64 %rd3, 0; cvt.u64.u32 %rd4, %a;
        add.u64 %rd5, %rd4, 1; mov.b128 %q0, {%rd4, %rd3}; mov.b128 %q1, {%rd5, %rd3};
        atom.cas.b128 %q2, [%rd2], %q0, %q1; mov.b128 {%rd6, %rd7}, %q2; cvt.u32.u64 %x, %rd6;"""
    # Thread n swaps n for n + 1: in order of threads each finds what it expects.
    assert one(body, LANES, "u32").tolist() == list(range(32))


@pytest.mark.parametrize("name", sorted(THREE_INPUTS))
def test_three_inputs_are_two_steps(name: str) -> None:
    values = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x3F800000, 0xBF800000, 0xC0000000, 0x7F800000,
              0xFF800000, 0x7FC00001, 0xFFFFFFFF]
    a, b, c = (np.array(column, np.uint32) for column in zip(*itertools.product(values, repeat=3), strict=True))
    found = THREE_INPUTS[name](a, b, c)
    two = OPERATIONS[name.replace(".abs", "")]
    if ".abs" in name:
        a, b, c = (x & np.uint32(0x7FFFFFFF) for x in (a, b, c))
    assert np.array_equal(found, two(two(a, b), c))


@pytest.mark.parametrize("kind", sorted(NARROW))
def test_codes_of_narrow_formats_are_their_own_conversions(kind: str) -> None:
    codes = np.arange(1 << NARROW[kind].bits, dtype=np.uint8)
    values = decode(codes, kind)
    assert values.max() == {"e2m1": 6.0, "e2m3": 7.5, "e3m2": 28.0}[kind]
    assert np.array_equal(encode(values.astype(np.float32).view(np.uint32), kind, "f32"), codes)
    assert np.array_equal(np.signbit(values), codes >> (NARROW[kind].bits - 1) == 1)


@pytest.mark.parametrize("kind", sorted(NARROW))
def test_numbers_round_to_the_nearest_code(kind: str) -> None:
    magnitudes = NARROW[kind].magnitudes
    # Eighths of the finest distance between two codes: every halfway point is among them.
    values = np.arange(0, 2 * magnitudes[-1], (magnitudes[1] - magnitudes[0]) / 8)
    found = encode(values.astype(np.float32).view(np.uint32), kind, "f32")
    for value, code in zip(values, found, strict=True):
        distance = np.abs(magnitudes - value)
        nearest = np.flatnonzero(distance == distance.min())
        assert code in nearest and (len(nearest) == 1 or code % 2 == 0), value


def test_ue8m0_of_every_power_of_two_and_what_lies_between() -> None:
    powers = np.ldexp(np.float32(1), np.arange(-126, 128)).astype(np.float32).view(np.uint32)
    zero = np.zeros_like(powers)
    for rounding in ("rz", "rp"):
        exact = OPERATIONS[f"cvt.{rounding}.ue8m0x2.f32"](powers, zero)
        assert np.array_equal(exact >> 8, np.arange(1, 255))
    above = powers + np.uint32(1)
    assert np.array_equal(OPERATIONS["cvt.rz.ue8m0x2.f32"](above, zero) >> 8, np.arange(1, 255))
    assert np.array_equal(OPERATIONS["cvt.rp.ue8m0x2.f32"](above, zero) >> 8, np.arange(2, 256))
    assert (OPERATIONS["cvt.rp.satfinite.ue8m0x2.f32"](above, zero) >> 8).max() == 0xFE


def test_absolute_differences_of_bytes_and_halves() -> None:
    random = np.random.default_rng(5)
    a, b, c = (random.integers(0, 1 << 32, 64, np.uint32) for _ in range(3))
    bytes_of = {"u32": "4B", "s32": "4b"}
    halves_of = {"u32": "2H", "s32": "2h"}
    for parts, forms, kind in itertools.product((4, 2), ("", ".add"), ("u32", "s32")):
        layout = (bytes_of if parts == 4 else halves_of)[kind]
        body = f"vabsdiff{parts}.u32.{kind}.{kind}{forms} %x, %a, %b, %c;"
        found = one(body, [("u32", a), ("u32", b), ("u32", c)], "u32")
        for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), found.tolist(), strict=True):
            left, right = (struct.unpack(f"<{layout}", struct.pack("<I", v)) for v in (x, y))
            apart = [abs(p - q) for p, q in zip(left, right, strict=True)]
            width = 32 // parts
            wanted = z + sum(apart) if forms else sum(d << width * i for i, d in enumerate(apart))
            assert result == wanted & 0xFFFFFFFF, body


@pytest.mark.parametrize("text", [
    "fence.proxy.alias;", "fence.proxy.async;", "fence.proxy.async.shared::cta;", "membar.proxy.alias;",
    "setmaxnreg.dec.sync.aligned.u32 64;",
])
def test_what_only_orders_or_hints_changes_nothing(text: str) -> None:
    assert one(f"{text} mov.u32 %x, %a;", LANES, "u32").tolist() == list(range(32))


@pytest.mark.parametrize("text", [
    "setmaxnreg.dec.sync.aligned.u32 20;", "fence.proxy.tensormap::generic.release.gpu;", "max.relu.u32 %x, %a, %a;",
    "vabsdiff4.u32.u32.u32.sat %x, %a, %a, %a;", "vabsdiff4.s32.u32.u32 %x, %a, %a, %a;", "sub.u16x2 %x, %a, %a;",
    "cvt.rs.f16x2.f32 %x, %a, %a, %a;", "min.xorsign.abs.f32 %x, %a, %a, %a;",
    "fma.rn.sat.f32x2 %rd1, %rd1, %rd1, %rd1;",
    "cvt.pack.sat.u16.s32.b32 %x, %a, %a, %a;", "add.rn.sat.f32x2 %rd1, %rd1, %rd1;",
])
def test_forms_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        one(f"{text} mov.u32 %x, %a;", LANES, "u32")
