"""cvt: float to integer and back, between floating-point types, packed narrow types (PTX manual, "cvt").

Float to integer: NaN gives 0, but 1 << (width - 1) where the source is f64 or the destination has 64 bits (Integer
Notes); values outside are clamped, for these conversions by default.
"""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

_S = "Data Movement and Conversion Instructions: cvt"

TO_INTEGER: list[Vector] = [
    *vectors("f32 -> b32", _S, [
        ("cvt.rzi.s32.f32", [0x7FC00000], 0x00000000, "NaN"),
        ("cvt.rzi.s32.f32", [0x4F000000], 0x7FFFFFFF, "2**31 is clamped"),
        ("cvt.rzi.s32.f32", [0xCF000000], 0x80000000, "-2**31 is exact"),
        ("cvt.rzi.s32.f32", [0xFF800000], 0x80000000, "-infinity is clamped"),
        ("cvt.rni.s32.f32", [0x3F000000], 0, "0.5 to even"),
        ("cvt.rni.s32.f32", [0x3FC00000], 2, "1.5 to even"),
        ("cvt.rni.s32.f32", [0x40200000], 2, "2.5 to even"),
        ("cvt.rni.s32.f32", [0xC0200000], 0xFFFFFFFE, "-2.5 to even"),
        ("cvt.rmi.s32.f32", [0xBF000000], 0xFFFFFFFF, "-0.5 down"),
        ("cvt.rpi.s32.f32", [0xBF000000], 0, "-0.5 up"),
        ("cvt.rpi.s32.f32", [0x00000001], 1, "the smallest number up"),
        ("cvt.rpi.ftz.s32.f32", [0x00000001], 0, "which is 0 with .ftz"),
        ("cvt.rmi.ftz.s32.f32", [0x80000001], 0, "also below zero"),
        ("cvt.rzi.u32.f32", [0xBF800000], 0, "-1 is clamped"),
        ("cvt.rzi.u32.f32", [0x4F800000], 0xFFFFFFFF, "2**32 is clamped"),
        ("cvt.rzi.u32.f32", [0x7FC00000], 0, "NaN"),
        ("cvt.rmi.u32.f32", [0xBF000000], 0, "-0.5 down is -1, clamped"),
        ("cvt.rzi.s16.f32", [0x47000000], 0x00007FFF, "32768 is clamped, then extended by its sign"),
        ("cvt.rzi.s16.f32", [0xC7800000], 0xFFFF8000, "-65536 is clamped, then extended by its sign"),
        ("cvt.rzi.s8.f32", [0x43480000], 0x0000007F, "200 is clamped"),
        ("cvt.rzi.s8.f32", [0xC3480000], 0xFFFFFF80, "-200 is clamped and extended by its sign"),
        ("cvt.rzi.u8.f32", [0x43960000], 0x000000FF, "300 is clamped"),
        ("cvt.rni.u8.f32", [0x437F8000], 0x000000FF, "255.5 rounds to 256 and is clamped"),
        ("cvt.rzi.u16.f32", [0x7F800000], 0x0000FFFF, "infinity is clamped"),
    ]),
    *vectors("f32 -> b64", _S, [
        ("cvt.rzi.s64.f32", [0x7FC00000], 0x8000000000000000, "NaN to 64 bits"),
        ("cvt.rzi.u64.f32", [0x7FC00000], 0x8000000000000000, "NaN to 64 bits"),
        ("cvt.rzi.s64.f32", [0x5F000000], 0x7FFFFFFFFFFFFFFF, "2**63 is clamped"),
        ("cvt.rzi.u64.f32", [0x5F000000], 0x8000000000000000, "2**63 is exact"),
        ("cvt.rzi.u64.f32", [0x5F800000], 0xFFFFFFFFFFFFFFFF, "2**64 is clamped"),
        ("cvt.rzi.s64.f32", [0xDF000000], 0x8000000000000000, "-2**63 is exact"),
    ]),
    *vectors("f64 -> b32", _S, [
        ("cvt.rzi.s32.f64", [0x7FF8000000000000], 0x80000000, "NaN of f64"),
        ("cvt.rzi.u32.f64", [0x7FF8000000000000], 0x80000000, "NaN of f64"),
        ("cvt.rni.s32.f64", [0x41DFFFFFFFE00000], 0x7FFFFFFF, "2**31 - 0.5 rounds to 2**31, clamped"),
        ("cvt.rzi.s32.f64", [0x41DFFFFFFFFFFFFF], 0x7FFFFFFF, "just below 2**31"),
        ("cvt.rni.s32.f64", [0x3FDFFFFFFFFFFFFF], 0, "just below 0.5: adding 0.5 first would be wrong"),
        ("cvt.rzi.u32.f64", [0x41EFFFFFFFFFFFFF], 0xFFFFFFFF, "just below 2**32"),
    ]),
    *vectors("f64 -> b64", _S, [
        ("cvt.rni.s64.f64", [0x4340000000000001], 0x0020000000000002, "2**53 + 2 is exact"),
        ("cvt.rzi.u64.f64", [0xBFF0000000000000], 0, "-1 is clamped"),
        ("cvt.rzi.u64.f64", [0x43EFFFFFFFFFFFFF], 0xFFFFFFFFFFFFF800, "the largest below 2**64"),
        ("cvt.rzi.s64.f64", [0xFFF8000000000000], 0x8000000000000000, "NaN"),
    ]),
    *vectors("f16 -> b32", _S, [
        ("cvt.rzi.s32.f16", [0x7E00], 0, "NaN"),
        ("cvt.rni.s32.f16", [0x3E00], 2, "1.5 to even"),
        ("cvt.rzi.u8.f16", [0x7BFF], 0xFF, "65504 is clamped"),
        ("cvt.rzi.s32.f16", [0x7C00], 0x7FFFFFFF, "infinity is clamped"),
    ]),
    *vectors("f16 -> b64", _S, [
        ("cvt.rzi.s64.f16", [0x7E00], 0x8000000000000000, "NaN to 64 bits"),
    ]),
    *vectors("bf16 -> b32", _S, [
        ("cvt.rni.s32.bf16", [0x4020], 2, "2.5 to even"),
        ("cvt.rzi.u32.bf16", [0x4F80], 0xFFFFFFFF, "2**32 is clamped"),
    ]),
]

FROM_INTEGER: list[Vector] = [
    *vectors("b32 -> f32", _S, [
        ("cvt.rn.f32.s32", [0x01000001], 0x4B800000, "2**24 + 1 is halfway, even below"),
        ("cvt.rn.f32.s32", [0x01000003], 0x4B800002, "2**24 + 3 is halfway, even above"),
        ("cvt.rz.f32.s32", [0x01000003], 0x4B800001, "toward zero"),
        ("cvt.rp.f32.s32", [0x01000001], 0x4B800001, "toward +infinity"),
        ("cvt.rm.f32.s32", [0xFEFFFFFF], 0xCB800001, "-(2**24 + 1) toward -infinity"),
        ("cvt.rn.f32.u32", [0xFFFFFFFF], 0x4F800000, "rounds up to 2**32"),
        ("cvt.rz.f32.u32", [0xFFFFFFFF], 0x4F7FFFFF, "toward zero"),
        ("cvt.rn.f32.s32", [0x80000000], 0xCF000000, "-2**31"),
        ("cvt.rn.f32.s32", [0x00000000], 0x00000000, "zero is +0"),
        ("cvt.rm.f32.s32", [0x00000000], 0x00000000, "in every rounding"),
    ]),
    *vectors("b64 -> f32", _S, [
        ("cvt.rn.f32.u64", [0x8000008000000000], 0x5F000000, "halfway, even below"),
        ("cvt.rn.f32.u64", [0x8000008000000001], 0x5F000001, "one above halfway: no rounding to f64 first"),
        ("cvt.rn.f32.s64", [0x8000000000000000], 0xDF000000, "-2**63"),
        ("cvt.rz.f32.u64", [0xFFFFFFFFFFFFFFFF], 0x5F7FFFFF, "toward zero"),
    ]),
    *vectors("b64 -> f64", _S, [
        ("cvt.rn.f64.u64", [0xFFFFFFFFFFFFFFFF], 0x43F0000000000000, "rounds up to 2**64"),
        ("cvt.rz.f64.u64", [0xFFFFFFFFFFFFFFFF], 0x43EFFFFFFFFFFFFF, "toward zero"),
        ("cvt.rn.f64.s64", [0x0020000000000001], 0x4340000000000000, "2**53 + 1 is halfway, even below"),
        ("cvt.rp.f64.s64", [0x0020000000000001], 0x4340000000000001, "toward +infinity"),
        ("cvt.rp.f64.s64", [0xFFDFFFFFFFFFFFFF], 0xC340000000000000, "-(2**53 + 1) toward +infinity"),
    ]),
    *vectors("b32 -> f16", _S, [
        ("cvt.rn.f16.s32", [2049], 0x6800, "halfway, even below"),
        ("cvt.rn.f16.s32", [2051], 0x6802, "halfway, even above"),
        ("cvt.rn.f16.s32", [65519], 0x7BFF, "below halfway to 65536"),
        ("cvt.rn.f16.s32", [65520], 0x7C00, "overflow"),
        ("cvt.rz.f16.s32", [65520], 0x7BFF, "toward zero"),
        ("cvt.rn.f16.s32", [0x80000000], 0xFC00, "-2**31 overflows"),
    ]),
]

INTEGERS: list[Vector] = [
    *vectors("b32 -> b32", _S, [
        ("cvt.sat.u8.s32", [0xFFFFFFFB], 0x00000000, "-5 is clamped"),
        ("cvt.sat.u8.s32", [300], 0x000000FF, "300 is clamped"),
        ("cvt.sat.s8.s32", [200], 0x0000007F, "200 is clamped"),
        ("cvt.sat.s8.s32", [0xFFFFFF38], 0xFFFFFF80, "-200 is clamped and extended by its sign"),
        ("cvt.sat.s16.u32", [0xFFFFFFFF], 0x00007FFF, "clamped"),
        ("cvt.sat.s32.u32", [0x80000000], 0x7FFFFFFF, "clamped"),
        ("cvt.sat.u32.s32", [0x80000000], 0x00000000, "clamped"),
        ("cvt.s8.s32", [0x0000017F], 0x0000007F, "cut"),
        ("cvt.s8.s32", [0x00000180], 0xFFFFFF80, "cut and extended by its sign"),
        ("cvt.u8.s32", [0xFFFFFFFF], 0x000000FF, "cut and extended by zeros"),
        ("cvt.s16.s32", [0x00018000], 0xFFFF8000, "cut and extended by its sign"),
    ]),
    *vectors("b32 -> b64", _S, [
        ("cvt.s64.s32", [0x80000000], 0xFFFFFFFF80000000, "extended by the source's sign"),
        ("cvt.u64.s32", [0x80000000], 0xFFFFFFFF80000000, "the source's type decides"),
        ("cvt.s64.u32", [0x80000000], 0x0000000080000000, "the source's type decides"),
    ]),
    *vectors("b64 -> b32", _S, [
        ("cvt.sat.u32.s64", [0xFFFFFFFFFFFFFFFF], 0x00000000, "-1 is clamped"),
        ("cvt.sat.s32.s64", [0x0000000080000000], 0x7FFFFFFF, "clamped"),
        ("cvt.sat.s32.u64", [0xFFFFFFFFFFFFFFFF], 0x7FFFFFFF, "clamped from above"),
        ("cvt.u32.u64", [0x123456789ABCDEF0], 0x9ABCDEF0, "cut"),
    ]),
]

BETWEEN: list[Vector] = [
    *vectors("f32 -> f32", _S, [
        ("cvt.rni.f32.f32", [0xBECCCCCD], 0x80000000, "-0.4 to -0"),
        ("cvt.rni.f32.f32", [0x40200000], 0x40000000, "2.5 to even"),
        ("cvt.rzi.f32.f32", [0xBF7FFFFF], 0x80000000, "toward zero keeps the sign"),
        ("cvt.rpi.f32.f32", [0x00000001], 0x3F800000, "the smallest number up"),
        ("cvt.rpi.ftz.f32.f32", [0x00000001], 0x00000000, "which is 0 with .ftz"),
        ("cvt.rmi.f32.f32", [0x80000001], 0xBF800000, "down"),
        ("cvt.sat.f32.f32", [0x40000000], 0x3F800000, ".sat clamps to 1"),
        ("cvt.sat.f32.f32", [0x7FC00000], 0x00000000, ".sat flushes NaN"),
        ("cvt.ftz.f32.f32", [0x807FFFFF], 0x80000000, "flushed"),
    ]),
    *vectors("f32 -> f16", _S, [
        ("cvt.rn.f16.f32", [0x3F801000], 0x3C00, "1 + 2**-11 is halfway, even below"),
        ("cvt.rn.f16.f32", [0x3F803000], 0x3C02, "halfway, even above"),
        ("cvt.rn.f16.f32", [0x3F801001], 0x3C01, "above halfway"),
        ("cvt.rz.f16.f32", [0x3F801FFF], 0x3C00, "toward zero"),
        ("cvt.rm.f16.f32", [0xBF801000], 0xBC01, "negative toward -infinity"),
        ("cvt.rp.f16.f32", [0x3F800001], 0x3C01, "toward +infinity"),
        ("cvt.rn.f16.f32", [0x477FEFFF], 0x7BFF, "below halfway to 65536"),
        ("cvt.rn.f16.f32", [0x477FF000], 0x7C00, "halfway to 65536"),
        ("cvt.rz.f16.f32", [0x7F7FFFFF], 0x7BFF, "overflow toward zero"),
        ("cvt.rz.f16.f32", [0x7F800000], 0x7C00, "infinity stays"),
        ("cvt.rm.f16.f32", [0x477FF000], 0x7BFF, "positive overflow toward -infinity"),
        ("cvt.rm.f16.f32", [0xC7800000], 0xFC00, "negative overflow toward -infinity"),
        ("cvt.rn.f16.f32", [0x33000000], 0x0000, "2**-25 is halfway to the smallest number"),
        ("cvt.rn.f16.f32", [0x33000001], 0x0001, "just above"),
        ("cvt.rn.f16.f32", [0x33C00000], 0x0002, "1.5 units of the smallest number: to even"),
        ("cvt.rp.f16.f32", [0x00000001], 0x0001, "the smallest f32 toward +infinity"),
        ("cvt.rm.f16.f32", [0x80000001], 0x8001, "toward -infinity"),
        ("cvt.rn.f16.f32", [0x387FE000], 0x0400, "halfway below the smallest normal number, even is normal"),
        ("cvt.rn.f16.f32", [0xFFC12345], 0x7FFF, "NaN"),
        ("cvt.rn.satfinite.f16.f32", [0xFF800000], 0xFBFF, ".satfinite clamps to the largest number of the sign"),
        ("cvt.rn.satfinite.f16.f32", [0x7FC00001], 0x7FFF, ".satfinite keeps NaN, canonical"),
        ("cvt.rn.relu.f16.f32", [0xBF800000], 0x0000, ".relu clamps negative numbers"),
        ("cvt.rn.relu.f16.f32", [0xFFC00000], 0x7FFF, ".relu gives the canonical NaN"),
        ("cvt.rn.sat.f16.f32", [0x40000000], 0x3C00, ".sat clamps to 1"),
    ]),
    *vectors("f64 -> f16", _S, [
        ("cvt.rn.f16.f64", [0x3FF0020000001000], 0x3C01, "just above halfway: no rounding to f32 first"),
    ]),
    *vectors("f64 -> f32", _S, [
        ("cvt.rn.f32.f64", [0x47EFFFFFF0000000], 0x7F800000, "halfway above the largest number"),
        ("cvt.rn.f32.f64", [0x47EFFFFFEFFFFFFF], 0x7F7FFFFF, "below halfway"),
        ("cvt.rz.f32.f64", [0x7FEFFFFFFFFFFFFF], 0x7F7FFFFF, "overflow toward zero"),
        ("cvt.rn.f32.f64", [0x3690000000000000], 0x00000000, "2**-150 is halfway to the smallest number"),
        ("cvt.rn.f32.f64", [0x3690000000000001], 0x00000001, "just above"),
        ("cvt.rm.f32.f64", [0x8000000000000001], 0x80000001, "toward -infinity"),
        ("cvt.rn.f32.f64", [0x3800000000000000], 0x00400000, "a subnormal result"),
        ("cvt.rn.ftz.f32.f64", [0x3800000000000000], 0x00000000, "flushed"),
    ]),
    *vectors("f32 -> f64", _S, [
        ("cvt.f64.f32", [0x00000001], 0x36A0000000000000, "a subnormal is exact"),
        ("cvt.ftz.f64.f32", [0x80000001], 0x8000000000000000, "flushed"),
    ]),
    *vectors("f16 -> f32", _S, [
        ("cvt.f32.f16", [0x0001], 0x33800000, "a subnormal is exact"),
        ("cvt.f32.f16", [0xFC00], 0xFF800000, "-infinity"),
    ]),
    *vectors("f32 -> bf16", _S, [
        ("cvt.rn.bf16.f32", [0x3F808000], 0x3F80, "halfway, even below"),
        ("cvt.rn.bf16.f32", [0x3F818000], 0x3F82, "halfway, even above"),
        ("cvt.rn.bf16.f32", [0x3F808001], 0x3F81, "above halfway"),
        ("cvt.rn.bf16.f32", [0x7F7FFFFF], 0x7F80, "overflow"),
        ("cvt.rz.bf16.f32", [0x7F7FFFFF], 0x7F7F, "overflow toward zero"),
        ("cvt.rn.bf16.f32", [0x7F800001], 0x7FFF, "a NaN whose upper half is that of infinity"),
        ("cvt.rn.bf16.f32", [0x00008000], 0x0000, "halfway to the smallest number"),
        ("cvt.rn.bf16.f32", [0x00018000], 0x0002, "subnormal, halfway, even above"),
        ("cvt.rz.satfinite.bf16.f32", [0x7F800000], 0x7F7F, ".satfinite clamps infinity"),
    ]),
    *vectors("f32 -> b32", _S, [
        ("cvt.rna.tf32.f32", [0x3F801000], 0x3F802000, "halfway, away from zero"),
        ("cvt.rna.tf32.f32", [0xBF801000], 0xBF802000, "halfway, away from zero"),
        ("cvt.rna.tf32.f32", [0x3F800FFF], 0x3F800000, "below halfway"),
        ("cvt.rn.tf32.f32", [0x3F801000], 0x3F800000, "halfway, even below"),
        ("cvt.rz.tf32.f32", [0x3F801FFF], 0x3F800000, "toward zero"),
    ]),
]

PACKED: list[Vector] = [
    *vectors("f32 f32 -> b32", _S, [
        ("cvt.rn.f16x2.f32", [0x3F800000, 0x40000000], 0x3C004000, "a goes to the upper half"),
        ("cvt.rz.bf16x2.f32", [0x3F80FFFF, 0x40000000], 0x3F804000, "a goes to the upper half, toward zero"),
        ("cvt.rn.relu.f16x2.f32", [0xBF800000, 0x3F800000], 0x00003C00, ".relu on each"),
        ("cvt.rn.satfinite.f16x2.f32", [0x7F800000, 0xFF800000], 0x7BFFFBFF, ".satfinite on each"),
    ]),
    *vectors("f32 f32 -> b16", _S, [
        ("cvt.rn.satfinite.e4m3x2.f32", [0x43E00000, 0x447A0000], 0x7E7E, "448 is the largest, 1000 is clamped"),
        ("cvt.rn.satfinite.e4m3x2.f32", [0x7FC00000, 0xFF800000], 0x7FFE, "NaN stays, -infinity is clamped"),
        ("cvt.rn.satfinite.e4m3x2.f32", [0x41880000, 0x41980000], 0x585A, "17 and 19 are halfway: 16 and 20 are even"),
        ("cvt.rn.satfinite.e4m3x2.f32", [0x3A800000, 0x3B400000], 0x0002, "2**-10 and 1.5 * 2**-9 are halfway"),
        ("cvt.rn.satfinite.e4m3x2.f32", [0x80000000, 0x3F800000], 0x8038, "-0 and 1"),
        ("cvt.rn.satfinite.e5m2x2.f32", [0x49742400, 0xFF800000], 0x7BFB, "clamped to 57344"),
        ("cvt.rn.satfinite.e5m2x2.f32", [0x3F900000, 0x3FB00000], 0x3C3E, "1.125 and 1.375 are halfway"),
        ("cvt.rn.satfinite.relu.e5m2x2.f32", [0xBF800000, 0x7FC00000], 0x007F, ".relu; NaN stays"),
        ("cvt.rn.satfinite.e2m3x2.f32", [0x40F00000, 0xBF800000], 0x1F28, "7.5 is the largest of e2m3, -1"),
        ("cvt.rn.satfinite.e2m3x2.f32", [0x7F800000, 0x3D800000], 0x1F00, "clamped; 1/16 is halfway to 1/8: even is 0"),
        ("cvt.rn.satfinite.e3m2x2.f32", [0x42000000, 0x3F800000], 0x1F0C, "clamped to 28; 1"),
        ("cvt.rn.satfinite.e3m2x2.f32", [0x3D800000, 0xC1B00000], 0x013E, "1/16, the smallest; -22 is halfway to -24"),
        ("cvt.rz.ue8m0x2.f32", [0x3FC00000, 0x40000000], 0x7F80, "1.5 toward zero is 2**0; 2 is 2**1"),
        ("cvt.rp.ue8m0x2.f32", [0x3FC00000, 0x40000000], 0x8080, "1.5 up is 2**1; 2 is exact"),
    ]),
    *vectors("b32 -> b16", _S, [
        ("cvt.rn.satfinite.e4m3x2.f16x2", [0x5F003C00], 0x7E38, "448 and 1: upper to upper"),
        ("cvt.rp.ue8m0x2.bf16x2", [0x3FC04000], 0x8080, "upper to upper"),
    ]),
    *vectors("b16 -> b32", _S, [
        ("cvt.rn.f16x2.e4m3x2", [0x7E01], 0x5F001800, "448 and 2**-9"),
        ("cvt.rn.f16x2.e4m3x2", [0x7FB8], 0x7FFFBC00, "NaN and -1"),
        ("cvt.rn.f16x2.e5m2x2", [0x7C01], 0x7C000100, "infinity and 2**-16, subnormal in both"),
        ("cvt.rn.relu.f16x2.e4m3x2", [0xB838], 0x00003C00, "-1 becomes 0"),
        ("cvt.rn.f16x2.e2m3x2", [0x1F28], 0x4780BC00, "7.5 and -1"),
        ("cvt.rn.f16x2.e3m2x2", [0x1F01], 0x4F002C00, "28 and 1/16"),
        ("cvt.rn.bf16x2.ue8m0x2", [0x7F80], 0x3F804000, "2**0 and 2**1"),
    ]),
    *vectors("f32 f32 -> b32", _S, [
        ("cvt.rn.satfinite.e2m1x2.f32", [0x40C00000, 0xBF000000], 0x00000079,
         "6 is the largest of e2m1 (7), -0.5 the smallest below 0 (9); a goes to the upper four bits"),
        ("cvt.rn.satfinite.e2m1x2.f32", [0x3E800000, 0x40A00000], 0x00000006, "0.25 and 5 are halfway: even 0 and 4"),
        ("cvt.rn.satfinite.e2m1x2.f32", [0x7F800000, 0x3F400000], 0x00000072, "clamped; 0.75 is halfway: even is 1"),
    ], ".reg .b8 %n; {m} %n, %i0, %i1; cvt.u32.u8 %o0, %n;"),
    *vectors("b32 -> b32", _S, [
        ("cvt.rn.f16x2.e2m1x2", [0x00000079], 0x4600B800, "6 and -0.5"),
        ("cvt.rn.f16x2.e2m1x2", [0x00000023], 0x3C003E00, "1 and 1.5"),
    ], ".reg .b8 %n; cvt.u8.u32 %n, %i0; {m} %o0, %n;"),
    *vectors("b32 b32 b32 -> b32", "Data Movement and Conversion Instructions: cvt.pack", [
        ("cvt.pack.sat.u8.s32.b32", [300, 0xFFFFFFFF, 0x12345678], 0x5678FF00,
         "a next to the lowest, b lowest, c moved up by two elements"),
        ("cvt.pack.sat.s8.s32.b32", [200, 0xFFFFFF00, 0x0000ABCD], 0xABCD7F80, "signed clamping"),
    ]),
    *vectors("b32 b32 -> b32", "Data Movement and Conversion Instructions: cvt.pack", [
        ("cvt.pack.sat.s16.s32", [0x00012345, 0xFFFE0000], 0x7FFF8000, "a above b, both clamped"),
        ("cvt.pack.sat.u16.s32", [0x00012345, 0xFFFFFFFF], 0xFFFF0000, "unsigned clamping"),
    ]),
]

VECTORS = [*TO_INTEGER, *FROM_INTEGER, *INTEGERS, *BETWEEN, *PACKED]
