"""Modifiers in another order than the manual's."""

from __future__ import annotations

import random

import pytest

from ptxparse.order import in_manual_order
from softgpu.reference import UnsupportedInstruction
from softgpu.reference.numerics import OPERATIONS, THREE_INPUTS
from tests.reference_kernels import one


def test_the_manual_order_is_left_alone() -> None:
    for name in (*OPERATIONS, *THREE_INPUTS):
        opcode, *modifiers = name.split(".")
        if opcode not in ("copysign", "testp") and "satfinite.relu" not in name:
            assert in_manual_order(opcode, modifiers) == modifiers, name


def test_any_other_order_is_brought_back() -> None:
    choose = random.Random(1)
    for name in OPERATIONS:
        opcode, *modifiers = name.split(".")
        ordered = in_manual_order(opcode, modifiers)
        types = len(modifiers) - next(i for i in range(len(modifiers) + 1)
                                      if all(m[0] in "busfet" and m[-1].isdigit() for m in modifiers[i:]))
        before, last = modifiers[:len(modifiers) - types], modifiers[len(modifiers) - types:]
        mixed = list(before)
        choose.shuffle(mixed)
        place = choose.randrange(len(mixed) + 1)
        if opcode in ("copysign", "testp"):
            continue
        assert in_manual_order(opcode, [*mixed[:place], *last, *mixed[place:]]) == ordered, name


@pytest.mark.parametrize(("written", "ordered"), [
    ("vote.ballot.sync.b32", "vote.sync.ballot.b32"), ("shfl.idx.sync.b32", "shfl.sync.idx.b32"),
    ("ld.global.gpu.relaxed.u32", "ld.relaxed.gpu.global.u32"), ("ld.global.volatile.u32", "ld.volatile.global.u32"),
    ("atom.global.v4.f32.add", "atom.global.add.v4.f32"), ("atom.add.noftz.f16x2.gpu", "atom.gpu.add.noftz.f16x2"),
    ("cvt.f64.bf16.rp", "cvt.rp.f64.bf16"), ("max.s16x2.relu", "max.relu.s16x2"), ("setp.f32.lt", "setp.lt.f32"),
    ("ld.global.nc.L1::no_allocate.L2::128B.v4.f32", "ld.global.nc.L1::no_allocate.L2::128B.v4.f32"),
    ("cvt.f32.f64.rn", "cvt.rn.f32.f64"),
])
def test_orders_that_programs_have(written: str, ordered: str) -> None:
    opcode, *modifiers = written.split(".")
    assert ".".join((opcode, *in_manual_order(opcode, modifiers))) == ordered


def test_an_unknown_modifier_stays_and_is_refused() -> None:
    assert in_manual_order("add", ["f32", "fast", "rn"]) == ["f32", "fast", "rn"]
    with pytest.raises(UnsupportedInstruction):
        one("add.f32.fast %x, %a, %a;", [("f32", [1])], "f32")
    with pytest.raises(UnsupportedInstruction, match=r"add\.f32\.rn\.rn"):
        one("add.f32.rn.rn %x, %a, %a;", [("f32", [1])], "f32")


def test_a_kernel_with_another_order_gives_the_same() -> None:
    for text in ("add.f32.rz.ftz", "add.ftz.rz.f32", "add.rz.ftz.f32"):
        assert one(f"{text} %x, %a, %a;", [("f32", [0x00000001, 0x3F800001])], "f32").tolist() == [0, 0x40000001]
