"""Attempts to make the analysis take an integer instruction for something it is not: every case runs."""

from __future__ import annotations

import numpy as np
import pytest

from ptxparse.api import evaluate
from tests.small_kernels import Case, Shape, indexed, small, words

LANES: Shape = (8, 1, 1)
TID = "mov.u32 %r1, %tid.x;"

VALUES = [
    # Carries, saturation, packed forms.
    indexed("add_cc", TID + "add.cc.u32 %r2, %r1, -1; addc.u32 %r99, 0, 3;", 8, block=LANES),
    indexed("subc", TID + "sub.cc.u32 %r2, %r1, 4; subc.u32 %r3, 7, 0; and.b32 %r99, %r3, 7;", 8, block=LANES),
    indexed("madc", TID + "mad.lo.cc.u32 %r2, %r1, 2, -4; madc.hi.u32 %r99, %r1, 2, 1;", 8, block=LANES),
    indexed("add_sat", "add.sat.s32 %r1, %n, 1; shr.u32 %r99, %r1, 24;", 256, "a:u64 n:s32", n=0x7FFFFFFF),
    indexed("sub_sat", "sub.sat.s32 %r1, %n, 1; shr.u32 %r99, %r1, 24;", 256, "a:u64 n:s32", n=-0x80000000),
    indexed("mad_hi_sat", "mad.hi.sat.s32 %r1, %n, 2, %n; shr.u32 %r99, %r1, 24;", 256, "a:u64 n:s32", n=0x7FFFFFFF),
    indexed("add_packed", TID + "add.u16x2 %r2, %r1, 0xffff; and.b32 %r99, %r2, 0xffff;", 65536, block=LANES),
    indexed("min_packed", TID + "min.s16x2 %r2, %r1, 0x0000ffff; shr.u32 %r99, %r2, 16;", 65536, block=LANES),
    indexed("min_relu", TID + "sub.s32 %r2, %r1, 4; min.relu.s32 %r99, %r2, 3;", 8, block=LANES),
    indexed("max_unsigned", TID + "sub.s32 %r2, %r1, 4; max.u32 %r3, %r2, 2; shr.u32 %r99, %r3, 28;", 16, block=LANES),
    indexed("max_signed", TID + "sub.s32 %r2, %r1, 4; max.s32 %r99, %r2, 2;", 16, block=LANES),
    # Products.
    indexed("mul_hi_signed", TID + "sub.s32 %r2, %r1, 4; mul.hi.s32 %r3, %r2, 3; and.b32 %r99, %r3, 7;", 8, block=LANES),
    indexed("mul_hi_unsigned", TID + "sub.s32 %r2, %r1, 4; mul.hi.u32 %r99, %r2, 3;", 8, block=LANES),
    indexed("mul_wide_s16", "cvt.u16.u32 %rs1, %n; mul.wide.s16 %r1, %rs1, 4; neg.s32 %r99, %r1;", 8, "a:u64 n:u32",
            n=0xFFFF),
    indexed("mul_wide_u16", "cvt.u16.u32 %rs1, %n; mul.wide.u16 %r1, %rs1, 4; shr.u32 %r99, %r1, 8;", 1024, "a:u64 n:u32",
            n=0xFFFF),
    indexed("mul24", "mul24.lo.u32 %r99, %n, 1;", 256, "a:u64 n:u32", n=0xFF000007),
    indexed("mul24_signed", "mul24.lo.s32 %r1, %n, -1; mov.u32 %r99, %r1;", 256, "a:u64 n:u32", n=0x00FFFFFE),
    indexed("mul24_hi", "mul24.hi.u32 %r1, %n, 0x00ffff00; shr.u32 %r99, %r1, 24;", 256, "a:u64 n:u32", n=0x00FFFF01),
    # Shifts at and past the width.
    indexed("shl_32", TID + "shl.b32 %r2, %r1, 32; add.u32 %r99, %r2, 1;", 8, block=LANES),
    indexed("shl_register_past", TID + "add.u32 %r3, %r1, 29; shl.b32 %r2, 1, %r3; shr.u32 %r99, %r2, 28;", 16, block=LANES),
    indexed("shl_negative", "shl.b32 %r1, 5, %n; add.u32 %r99, %r1, 2;", 16, "a:u64 n:s32", n=-1),
    indexed("shl_uniform", "shl.b32 %r1, 5, %n; shr.u32 %r99, %r1, 30;", 16, "a:u64 n:s32", n=31),
    indexed("shr_signed_past", "shr.s32 %r1, %n, 40; add.s32 %r99, %r1, 1;", 16, "a:u64 n:s32", n=-5),
    indexed("shr_register", TID + "mul.lo.u32 %r2, %r1, 9; shr.s32 %r3, %n, %r2; and.b32 %r99, %r3, 15;", 16,
            "a:u64 n:s32", LANES, n=-0x12345678),
    indexed("shr_b16", TID + "cvt.u16.u32 %rs1, %r1; sub.s16 %rs2, %rs1, 4; shr.b16 %rs3, %rs2, 12; cvt.u32.u16 %r99, %rs3;",
            16, block=LANES),
    indexed("shl_b16", TID + "cvt.u16.u32 %rs1, %r1; shl.b16 %rs2, %rs1, 14; cvt.u32.u16 %r2, %rs2; shr.u32 %r99, %r2, 14;",
            16, block=LANES),
    indexed("shf", TID + "shf.l.wrap.b32 %r99, %r1, 1, 35;", 16, block=LANES),
    # Bit fields.
    indexed("bfe_registers", TID + "bfe.u32 %r99, 0x35, %r1, 3;", 8, block=LANES),
    indexed("bfe_signed", TID + "bfe.s32 %r2, %r1, 1, 2; add.s32 %r99, %r2, 2;", 8, block=LANES),
    indexed("bfe_past", TID + "bfe.s32 %r2, %n, 30, 8; and.b32 %r99, %r2, 15;", 16, "a:u64 n:u32", n=0x80000000),
    indexed("bfe_position_256", TID + "bfe.u32 %r99, %r1, 256, 3;", 8, block=LANES),
    indexed("bfe_zero_length", TID + "bfe.s32 %r2, %r1, 1, 256; add.s32 %r99, %r2, 1;", 8, block=LANES),
    indexed("bfi", TID + "bfi.b32 %r99, %r1, 0x18, 0, 2;", 32, block=LANES),
    indexed("bfi_past", TID + "bfi.b32 %r2, %r1, 3, 30, 8; shr.u32 %r99, %r2, 28;", 16, block=LANES),
    indexed("bfi_outside", TID + "bfi.b32 %r99, %r1, 3, 32, 8;", 16, block=LANES),
    indexed("popc", TID + "popc.b32 %r99, %r1;", 4, block=LANES),
    indexed("clz", TID + "clz.b32 %r99, %r1;", 33, block=LANES),
    indexed("clz64", "cvt.u64.u32 %rd1, %n; clz.b64 %r99, %rd1;", 65, "a:u64 n:u32", n=0),
    indexed("bfind", TID + "bfind.u32 %r2, %r1; add.u32 %r99, %r2, 1;", 8, block=LANES),
    indexed("brev", TID + "brev.b32 %r2, %r1; shr.u32 %r99, %r2, 29;", 8, block=LANES),
    indexed("lop3", TID + "lop3.b32 %r99, %r1, 6, 5, 0x96;", 16, block=LANES),
    indexed("prmt", TID + "prmt.b32 %r99, %r1, 0, 0x4440;", 16, block=LANES),
    indexed("sad", TID + "sad.s32 %r99, %r1, 4, 1;", 16, block=LANES),
    indexed("slct", TID + "sub.s32 %r2, %r1, 4; slct.u32.s32 %r99, 3, 9, %r2;", 16, block=LANES),
    indexed("cnot", TID + "cnot.b32 %r99, %r1;", 2, block=LANES),
    indexed("dp4a", TID + "dp4a.u32.u32 %r99, %r1, 0x01010101, 2;", 16, block=LANES),
    indexed("set", TID + "set.lt.u32.u32 %r2, %r1, 4; and.b32 %r99, %r2, 9;", 16, block=LANES),
    indexed("abs_minimum", "abs.s32 %r1, %n; shr.u32 %r99, %r1, 28;", 16, "a:u64 n:s32", n=-0x80000000),
    indexed("neg_minimum", "neg.s32 %r1, %n; shr.u32 %r99, %r1, 28;", 16, "a:u64 n:s32", n=-0x80000000),
    # Division.
    indexed("div_signed", TID + "sub.s32 %r2, %r1, 4; div.s32 %r3, %r2, 3; add.s32 %r99, %r3, 1;", 8, block=LANES),
    indexed("rem_signed", TID + "sub.s32 %r2, %r1, 4; rem.s32 %r3, %r2, 3; add.s32 %r99, %r3, 2;", 8, block=LANES),
    indexed("rem_negative_divisor", TID + "sub.s32 %r2, %r1, 4; rem.s32 %r3, %r2, -3; add.s32 %r99, %r3, 2;", 8, block=LANES),
    indexed("div_overflow", "div.s32 %r1, %n, -1; shr.u32 %r99, %r1, 28;", 16, "a:u64 n:s32", n=-0x80000000),
    indexed("div_loaded_zero", TID + "ld.global.u32 %r2, [%b]; div.u32 %r3, %r1, %r2; min.u32 %r99, %r3, 63;", 64,
            "a:u64 b:u64", LANES, b=words(1)),
    indexed("rem_loaded_zero", TID + "ld.global.u32 %r2, [%b]; rem.u32 %r3, %r1, %r2; min.u32 %r99, %r3, 63;", 64,
            "a:u64 b:u64", LANES, b=words(1)),
    indexed("div_zero_not_used", "div.u32 %r2, 9, %n; setp.eq.u32 %p1, %n, 0; selp.b32 %r99, 3, %r2, %p1;", 16,
            "a:u64 n:u32", n=0),
    indexed("div_16_by_bits", TID + "mul.wide.u32 %rd1, %r1, -858993459; shr.u64 %rd2, %rd1, 34; cvt.u32.u64 %r99, %rd2;", 4,
            block=(16, 1, 1)),
    # Conversions.
    indexed("cvt_narrow_signed", TID + "add.s32 %r2, %r1, 124; cvt.s32.s8 %r3, %r2; and.b32 %r99, %r3, 255;", 256,
            block=LANES),
    indexed("cvt_narrow_unsigned", TID + "add.s32 %r2, %r1, 252; cvt.u32.u8 %r99, %r2;", 256, block=LANES),
    indexed("cvt_sat", TID + "sub.s32 %r2, %r1, 4; cvt.sat.u8.s32 %r99, %r2;", 16, block=LANES),
    indexed("cvt_sat_16", TID + "sub.s32 %r2, %r1, 4; cvt.sat.u16.s32 %rs1, %r2; cvt.u32.u16 %r99, %rs1;", 16, block=LANES),
    indexed("cvt_same_width", TID + "sub.s32 %r2, %r1, 4; cvt.sat.s32.u32 %r3, %r2; shr.u32 %r99, %r3, 28;", 16, block=LANES),
    indexed("cvt_wide", TID + "sub.s32 %r2, %r1, 4; cvt.s64.s32 %rd1, %r2; shr.u64 %rd2, %rd1, 61; cvt.u32.u64 %r99, %rd2;",
            16, block=LANES),
    indexed("cvt_to_bfloat", TID + "cvt.u16.u32 %rs1, %r1; cvt.rn.bf16.u16 %rs2, %rs1; cvt.u32.u16 %r2, %rs2; "
            "shr.u32 %r99, %r2, 4;", 4096, block=LANES),
    indexed("cvt_to_half", TID + "cvt.rn.f16.u32 %rs2, %r1; cvt.u32.u16 %r2, %rs2; shr.u32 %r99, %r2, 4;", 4096, block=LANES),
    indexed("cvt_float_bits", TID + "cvt.rn.f32.u32 %f1, %r1; mov.b32 %r2, %f1; shr.u32 %r99, %r2, 22;", 1024, block=LANES),
    indexed("cvt_from_float", TID + "cvt.rn.f32.u32 %f1, %r1; mul.f32 %f2, %f1, 0f40000000; cvt.rzi.u32.f32 %r99, %f2;", 16,
            block=LANES),
    # Moves, vectors and sinks.
    indexed("unpack_high_half", TID + "shl.b32 %r2, %r1, 16; mov.b32 {_, %rs1}, %r2; cvt.u32.u16 %r99, %rs1;", 8, block=LANES),
    indexed("unpack_last_quarter", TID + "cvt.u64.u32 %rd1, %r1; shl.b64 %rd2, %rd1, 48; mov.b64 {_, _, _, %rs1}, %rd2; "
            "cvt.u32.u16 %r99, %rs1;", 8, block=LANES),
    indexed("unpack_middle", TID + "cvt.u64.u32 %rd1, %r1; mul.lo.u64 %rd2, %rd1, 0x100000000000; mov.b64 {_, %r99}, %rd2; "
            "shr.u32 %r99, %r99, 12;", 8, block=LANES),
    indexed("unpack_128", TID + ".reg .b128 %q; cvt.u64.u32 %rd1, %r1; mov.b128 %q, {%rd1, %rd1}; mov.b128 {_, %rd2}, %q; "
            "cvt.u32.u64 %r99, %rd2;", 8, block=LANES),
    indexed("pack_constant", TID + "cvt.u16.u32 %rs1, %r1; mov.b32 %r2, {0, %rs1}; shr.u32 %r99, %r2, 16;", 8, block=LANES),
    indexed("pack_halves", TID + "mov.b64 %rd1, {%r1, 3}; shr.u64 %rd2, %rd1, 31; cvt.u32.u64 %r99, %rd2;", 16, block=LANES),
    indexed("swap_in_place", TID + "mov.u32 %r2, 5; mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r2, %r1}, %rd1; add.u32 %r99, %r1, %r2;",
            16, block=LANES),
    indexed("float_constant_bits", "mov.f32 %f1, 2.0; mov.b32 %r1, %f1; shr.u32 %r99, %r1, 23;", 256),
    indexed("float_constant_hex", "mov.f32 %f1, 0f40000000; mov.b32 %r1, %f1; shr.u32 %r99, %r1, 23;", 256),
    indexed("double_constant_bits", "mov.f64 %fd1, 2.0; mov.b64 {%r2, %r1}, %fd1; shr.u32 %r99, %r1, 20;", 2048),
    # Loads that extend.
    indexed("ld_s8", "ld.global.s8 %r1, [%b]; neg.s32 %r99, %r1;", 256, "a:u64 b:u64", b=words(1, 0x80)),
    indexed("ld_u8", "ld.global.u8 %r99, [%b];", 256, "a:u64 b:u64", b=words(1, 0x80)),
    indexed("ld_b8_wide", "ld.global.b8 %r99, [%b];", 256, "a:u64 b:u64", b=words(1, 0x80)),
    indexed("ld_s16", "ld.global.s16 %r1, [%b]; shr.u32 %r99, %r1, 16;", 65536, "a:u64 b:u64", b=words(1, 0x8000)),
    indexed("ld_param_s16", "ld.param.s16 %r1, [m]; shr.u32 %r99, %r1, 16;", 65536, "a:u64 m:s16", m=-2),
    indexed("ld_param_u8_of_u32", "ld.param.u8 %r99, [m+1];", 256, "a:u64 m:u32", m=0x1234),
    # Vectors with sinks, wide vectors.
    indexed("vector_sinks", "ld.global.v4.u32 {%r1, _, %r2, _}, [%b]; add.u32 %r99, %r1, %r2;", 128, "a:u64 b:u64",
            b=np.array([1, 60, 3, 60], np.uint32)),
    indexed("vector_of_bytes", "ld.global.v4.u8 {%r1, %r2, %r3, %r4}, [%b]; sub.u32 %r99, %r4, %r1;", 256, "a:u64 b:u64",
            b=np.array([0xFF000001], np.uint32)),
    indexed("vector_of_256_bits", ".reg .b32 %w<8>; ld.global.v8.b32 {%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}, [%b]; "
            "st.global.v8.b32 [%b], {%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}; mov.b32 %r99, %w7;", 16, "a:u64 b:u64",
            b=words(8, 9)),
    indexed("uniform_load", "ldu.global.v2.u32 {%r1, %r99}, [%b];", 16, "a:u64 b:u64", b=words(4, 9)),
    # Special registers.
    indexed("warp_size", "mov.u32 %r99, WARP_SZ;", 64),
    indexed("warp_size_added_to_a_pointer", "add.u64 %rd1, %a, WARP_SZ; st.global.u32 [%rd1], 1; mov.u32 %r99, 1;", 64),
    indexed("special_registers_as_operands", "mad.lo.u32 %r99, %ctaid.x, %ntid.x, %tid.x;", 16, block=LANES, grid=(2, 1, 1)),
    indexed("special_register_read_as_16_bits", "cvt.u32.u16 %r99, %ctaid.x;", 4, grid=(4, 1, 1)),
    indexed("laneid", "mov.u32 %r99, %laneid;", 32, block=(9, 5, 2)),
    indexed("lanemask", "mov.u32 %r1, %lanemask_lt; popc.b32 %r99, %r1;", 32, block=(40, 1, 1)),
    indexed("warpid", "mov.u32 %r99, %warpid;", 32, block=(40, 1, 1)),
    indexed("ntid", "mov.u32 %r1, %ntid.x; mov.u32 %r2, %nctaid.y; add.u32 %r99, %r1, %r2;", 64, block=LANES, grid=(2, 3, 1)),
]


@pytest.mark.parametrize("case", VALUES, ids=str)
def test_stores_at_computed_words_are_covered(case: Case) -> None:
    case.prove()


GUARD = "@!%p1 bra E; "
TAIL = " E: ret;"

PREDICATES = [
    ("pred_even_constant_is_true", "mov.pred %p1, 2;"),
    ("pred_minus_one_is_true", "mov.pred %p1, -1;"),
    ("not", TID + "setp.lt.u32 %p2, %r1, 3; not.pred %p1, %p2;"),
    ("xor", TID + "setp.lt.u32 %p2, %r1, 3; setp.lt.u32 %p3, %r1, 5; xor.pred %p1, %p2, %p3;"),
    ("or_negated", TID + "setp.lt.u32 %p2, %r1, 3; setp.gt.u32 %p3, %r1, 5; not.pred %p3, %p3; or.pred %p1, %p2, %p3;"),
    ("second_destination", TID + "setp.lt.u32 %p2|%p1, %r1, 3;"),
    ("second_destination_combined", TID + "setp.lt.u32 %p3, %r1, 5; setp.lt.and.u32 %p2|%p1, %r1, 3, %p3;"),
    ("second_destination_or", TID + "setp.lt.u32 %p3, %r1, 5; setp.lt.or.u32 %p2|%p1, %r1, 3, %p3;"),
    ("combined_negated", TID + "setp.lt.u32 %p3, %r1, 5; setp.lt.and.u32 %p1, %r1, 7, !%p3;"),
    ("combined_xor", TID + "setp.lt.u32 %p3, %r1, 5; setp.lt.xor.u32 %p1, %r1, 7, %p3;"),
    ("guarded_definition", TID + "setp.lt.u32 %p2, %r1, 3; setp.lt.u32 %p1, %r1, 2; @%p2 setp.gt.u32 %p1, %r1, 0;"),
    ("guarded_negated", TID + "setp.lt.u32 %p2, %r1, 3; setp.lt.u32 %p1, %r1, 5; @!%p2 setp.gt.u32 %p1, %r1, 6;"),
    ("signed_compare", TID + "sub.s32 %r2, %r1, 4; setp.lt.s32 %p1, %r2, 2;"),
    ("unsigned_compare", TID + "sub.s32 %r2, %r1, 4; setp.hi.u32 %p1, %r2, 2;"),
    ("lower_or_same", TID + "sub.s32 %r2, %r1, 4; setp.ls.u32 %p1, %r2, 2;"),
    ("compare_16", TID + "cvt.u16.u32 %rs1, %r1; sub.s16 %rs2, %rs1, 4; setp.lt.s16 %p1, %rs2, 2;"),
    ("compare_b32", TID + "setp.ne.b32 %p1, %r1, 2;"),
    ("compare_float", TID + "cvt.rn.f32.u32 %f1, %r1; setp.lt.f32 %p1, %f1, 0f40400000;"),
    ("compare_float_second", TID + "cvt.rn.f32.u32 %f1, %r1; setp.lt.f32 %p2|%p1, %f1, 0f40400000;"),
    ("compare_bfloat", TID + "shl.b32 %r2, %r1, 13; cvt.u16.u32 %rs1, %r2; mov.u16 %rs2, 0x10; setp.lt.bf16 %p1, %rs1, %rs2;"),
    ("compare_half", TID + "shl.b32 %r2, %r1, 13; cvt.u16.u32 %rs1, %r2; mov.u16 %rs2, 0x10; setp.lt.f16 %p1, %rs1, %rs2;"),
    ("testp", TID + "mov.b32 %f1, %r1; testp.subnormal.f32 %p1, %f1;"),
    ("vote", TID + "setp.lt.u32 %p2, %r1, 3; vote.sync.any.pred %p1, %p2, 0xff;"),
    ("match", TID + "and.b32 %r2, %r1, 0; match.all.sync.b32 %r3|%p1, %r2, 0xff;"),
]


@pytest.mark.parametrize(("name", "setup"), PREDICATES, ids=[name for name, _ in PREDICATES])
def test_stores_under_a_predicate_are_covered(name: str, setup: str) -> None:
    body = f"{setup} mov.u32 %r98, %tid.x; {GUARD} mov.u32 %r99, %r98;"
    case = indexed(name, body, 8, block=LANES)
    Case(name, case.body.replace("\nret;", f"\n{TAIL}"), case.arguments, block=LANES).prove()


def test_cvt_pack_is_not_a_saturating_conversion() -> None:
    """``cvt.pack.sat.u16.s32 d, a, b`` is a in the upper half and b in the lower (PTX manual, cvt.pack)."""
    kernel = small(TID + "cvt.pack.sat.u16.s32 %r99, %r1, %r1; mul.wide.u32 %rd1, %r99, 4; add.s64 %rd2, %a, %rd1; "
                   "st.global.u32 [%rd2], 1; ret;")
    found = evaluate(kernel.program, (1, 1, 1), (3, 1, 1), (1 << 20).to_bytes(8, "little"), [("a", 1 << 20, 1 << 20)])
    assert found.opaque is not None or max(r.hi for r in found.ranges) >= 4 * 0x20002 + 4
