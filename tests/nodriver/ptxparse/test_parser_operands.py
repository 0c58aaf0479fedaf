"""Operands: registers, constants, vectors, pairs, addresses, predicates."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.model import (
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Mnemonic,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from tests.ptxtext import instruction, instructions


def operand(text: str) -> Operand:
    return instruction(f"mov.b32 %r1, {text};", ".global .u32 g[4];").operands[1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("1", 1), ("-1", -1), ("+7", 7), ("4294967295", 4294967295), ("0xffffffff", 4294967295),
        ("0XFF", 255), ("-0x10", -16), ("017", 15), ("00", 0), ("0b1101", 13), ("0B11", 3), ("5U", 5), ("0xFFU", 255),
        ("18446744073709551615", 2**64 - 1), ("0x8000000000000000", 2**63),
        ("-9223372036854775808", -(2**63)),
        ("WARP_SZ", 32), ("~0", -1), ("2+3", 5), ("(2+3)*4", 20), ("2+3*4", 14), ("10-4-3", 3),
        ("1<<4", 16), ("256>>4", 16), ("7/2", 3), ("-7/2", -3), ("-7%3", -1), ("7%3", 1),
        ("6&3", 2), ("6|1", 7), ("6^3", 5),
        ("3==3", 1), ("3!=3", 0), ("2<3", 1), ("3<=2", 0), ("3>2", 1), ("2>=3", 0), ("1&&0", 0), ("1||0", 1),
        ("1?2:3", 2), ("0?2:1?4:5", 4), ("(.s64) 5", 5), ("-(3)", -3), ("0x1e+3", 33), ("(5)", 5), ("1 - -1", 2),
        ("0xffffffffffffffff + 1", 0), ("0x7fffffffffffffff * 4", 2**64 - 4),
    ],
)  # fmt: skip
def test_integer_constants(text: str, value: int) -> None:
    assert operand(text) == Immediate(value)


def f64(value: float) -> FloatImmediate:
    return FloatImmediate(int.from_bytes(struct.pack("<d", value), "little"), 64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0f3F800000", FloatImmediate(0x3F800000, 32)),
        ("0F7f800000", FloatImmediate(0x7F800000, 32)),
        ("0d3FF0000000000000", FloatImmediate(0x3FF0000000000000, 64)),
        ("0Dbff0000000000000", FloatImmediate(0xBFF0000000000000, 64)),
        ("0f0000000E", FloatImmediate(0x0000000E, 32)),
        ("1.5", f64(1.5)), ("-1.5", f64(-1.5)), ("1.", f64(1.0)), (".25", f64(0.25)), ("1e5", f64(1e5)),
        ("1.5E+2", f64(150.0)), ("2e-3", f64(2e-3)), ("-0.0", f64(-0.0)), ("1e999", f64(float("inf"))),
    ],
)  # fmt: skip
def test_floating_point_constants(text: str, expected: FloatImmediate) -> None:
    assert operand(text) == expected


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from(["{}", "{:#x}", "{:#b}", "{:#X}"]))
def test_every_integer_reads_back(value: int, form: str) -> None:
    assert operand(form.format(value)) == Immediate(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(value: float) -> None:
    bits = int.from_bytes(struct.pack("<d", value), "little")
    assert operand(f"0d{bits:016x}") == FloatImmediate(bits, 64)
    text = repr(value)
    if text.lstrip("-").isdigit():
        text += "."
    assert operand(text) == FloatImmediate(bits, 64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r2", Register("%r2")),
        ("%tid.x", Register("%tid.x")),
        ("%envreg31", Register("%envreg31")),
        ("_", Register("_")),
        ("g", Symbol("g")),
        ("g+4", Symbol("g", 4)),
        ("g + 0x10", Symbol("g", 16)),
        ("g-4", Symbol("g", -4)),
        ("g[8]", Symbol("g", 8)),
        ("g[2*4]", Symbol("g", 8)),
        ("$L__BB0_1", Symbol("$L__BB0_1")),
        ("!%p1", Negated(Register("%p1"))),
        ("! %p1", Negated(Register("%p1"))),
        ("-%r3", Negated(Register("%r3"))),
        ("%r1|%p1", Pair(Register("%r1"), Register("%p1"))),
        ("_ | %p1", Pair(Register("_"), Register("%p1"))),
        ("{%r1, %r2}", Vector((Register("%r1"), Register("%r2")))),
        ("{ %r1 ,_, 5, 0f3F800000 }", Vector((Register("%r1"), Register("_"), Immediate(5),
                                             FloatImmediate(0x3F800000, 32)))),
        ("{%r1}", Vector((Register("%r1"),))),
        ("%r2.b0", Register("%r2.b0")),
        ("%r2.h10", Register("%r2.h10")),
    ],
)  # fmt: skip
def test_operands(text: str, expected: Operand) -> None:
    assert operand(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[%rd1]", Address(Register("%rd1"))),
        ("[ %rd1 ]", Address(Register("%rd1"))),
        ("[%rd1+8]", Address(Register("%rd1"), 8)),
        ("[%rd1 + 0]", Address(Register("%rd1"))),
        ("[%rd1+-8]", Address(Register("%rd1"), -8)),
        ("[%rd1-8]", Address(Register("%rd1"), -8)),
        ("[%rd1+0x1E]", Address(Register("%rd1"), 30)),
        ("[%rd1+4*2]", Address(Register("%rd1"), 8)),
        ("[%rd1+(4+2)]", Address(Register("%rd1"), 6)),
        ("[g+8-4]", Address(Symbol("g"), 4)),
        ("[g]", Address(Symbol("g"))),
        ("[k_param_0+4]", Address(Symbol("k_param_0"), 4)),
        ("[240]", Address(Immediate(240))),
        ("[%rd1].unified", Address(Register("%rd1"))),
        ("[%rd1+8] .unified", Address(Register("%rd1"), 8)),
        ("[%rd1, {%r1, %r2}]", Address(Register("%rd1"), 0, (Vector((Register("%r1"), Register("%r2"))),))),
        ("[tex, samp, {%f1, %f2}]", Address(Symbol("tex"), 0, (Symbol("samp"),
                                                             Vector((Register("%f1"), Register("%f2")))))),
    ],
)  # fmt: skip
def test_addresses(text: str, expected: Address) -> None:
    assert instruction(f"ld.b32 %r1, {text};").operands == (Register("%r1"), expected)


@pytest.mark.parametrize(
    ("text", "predicate", "negated"),
    [
        ("@%p1 ret;", "%p1", False),
        ("@!%p1 ret;", "%p1", True),
        ("@ %p1\tret;", "%p1", False),
        ("@ ! %p1 ret;", "%p1", True),
        ("@%p1\n\nret;", "%p1", False),
        ("@q ret;", "q", False),
        ("@!q ret;", "q", True),
    ],
)
def test_guards(text: str, predicate: str, negated: bool) -> None:
    (found,) = instructions(f".reg .pred q; {text}")
    assert (found.opcode, found.predicate, found.negated) == ("ret", Register(predicate), negated)


def test_an_unguarded_instruction() -> None:
    found = instruction("ret;")
    assert (found.predicate, found.negated, found.operands) == (None, False, ())
    assert instruction("bar.sync 0;").operands == (Immediate(0),)


def test_wide_vectors_of_tensor_instructions() -> None:
    found = instruction(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4},\n"
        "{%r5,%r6}, {%f1,%f2,%f3,%f4};"
    )
    assert [len(o.items) for o in found.operands if isinstance(o, Vector)] == [4, 4, 2, 4]
    assert found.op == Mnemonic(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma",
        ("sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32"),
    )  # fmt: skip


def test_a_tensor_copy() -> None:
    found = instruction(
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4+8];"
    )
    assert found.modifiers == (
        "async", "bulk", "tensor", "2d", "shared::cta", "global", "mbarrier::complete_tx::bytes",
    )  # fmt: skip
    assert found.operands == (
        Address(Register("%r1")),
        Address(Register("%rd1"), 0, (Vector((Register("%r2"), Register("%r3"))),)),
        Address(Register("%r4"), 8),
    )


def test_a_modifier_with_a_ratio() -> None:
    found = instruction("spcompress.b8.b2.sp::2:4.x1 {%r1}, {%r2}, {%r3, %r4}, %r5;")
    assert found.modifiers == ("b8", "b2", "sp::2:4", "x1") and len(found.operands) == 4


def test_registers_without_a_percent_sign_and_vectors_of_them() -> None:
    a, b, c, d = instructions(
        """.reg .b32 r<4>, total; .reg .v4 .f32 v;
        add.s32 total, r0, r3;
        add.s32 total, r4, r03;
        mov.f32 %f1, v.x;
        mov.v4.f32 v, {%f1, %f2, %f3, %f4};
        """
    )
    assert a.operands == (Register("total"), Register("r0"), Register("r3"))
    assert b.operands == (Register("total"), Symbol("r4"), Register("r3"))
    assert c.operands == (Register("%f1"), Register("v.x"))
    assert d.operands[0] == Register("v")


def test_a_leading_zero_in_a_register_number_is_nothing() -> None:
    """The assembler takes %r01 for the %r1 of %r<10>."""
    assert instruction("mov.u32 %r01, %r5;").operands == (Register("%r1"), Register("%r5"))


def test_variables_named_with_a_percent_sign_are_symbols() -> None:
    first, second, third = instructions(
        ".shared .b8 %sm[4]; mov.u32 %r1, %sm; ld.shared.u8 %r1, [%sm+1]; ld.global.u32 %r1, [%vv];",
        before=".global .u32 %vv;",
    )
    assert first.operands[1] == Symbol("%sm")
    assert second.operands[1] == Address(Symbol("%sm"), 1)
    assert third.operands[1] == Address(Symbol("%vv"))


def test_instructions_are_equal_by_value() -> None:
    first, second = instructions("add.s32 %r1, %r2, 3;\nadd.s32 %r1, %r2, 3;")
    assert isinstance(first, Instruction)
    assert (first.op, first.operands) == (second.op, second.operands)
    assert first.op is second.op and second.line == first.line + 1
