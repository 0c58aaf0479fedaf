"""Half precision and bfloat16 arithmetic; minimum and maximum; sign instructions; testp.

f16: 1 is 3c00, 2**-11 is 1000, the largest number 7bff (65504), the smallest 0001 (2**-24). bf16: 1 is 3f80, one unit
there 2**-7.
"""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

_NAN = 0x7FFFFFFF

HALF: list[Vector] = [
    *vectors("f16 f16 -> f16", "Half Precision Floating Point Instructions: add, sub, mul", [
        ("add.rn.f16", [0x3C00, 0x1000], 0x3C00, "1 + 2**-11 is halfway, even below"),
        ("add.f16", [0x3C01, 0x1000], 0x3C02, "halfway, even above"),
        ("add.rn.f16", [0x7BFF, 0x4C00], 0x7C00, "65504 + 16 is halfway to 65536: infinity"),
        ("add.rn.f16", [0x7BFF, 0x4BFF], 0x7BFF, "just less than halfway"),
        ("add.rn.f16", [0x0001, 0x0001], 0x0002, "subnormals are supported"),
        ("add.ftz.f16", [0x0001, 0x8002], 0x0000, "both are flushed, +0 + -0 is +0"),
        ("add.sat.f16", [0x3C00, 0x3C00], 0x3C00, ".sat clamps to 1"),
        ("add.sat.f16", [0x7E00, 0x3C00], 0x0000, ".sat flushes NaN to +0"),
        ("add.rn.f16", [0x7C00, 0xFC00], 0x7FFF, "infinity minus infinity"),
        ("sub.rn.f16", [0x3C00, 0x3C00], 0x0000, "exact zero"),
        ("mul.rn.f16", [0x0001, 0x3800], 0x0000, "half the smallest number, even is 0"),
        ("mul.rn.f16", [0x0003, 0x3800], 0x0002, "1.5 units of the smallest number: to even"),
        ("mul.f16", [0x0400, 0x3800], 0x0200, "a subnormal product"),
        ("mul.ftz.f16", [0x0400, 0x3800], 0x0000, "which .ftz flushes"),
        ("mul.rn.f16", [0x7BFF, 0xC000], 0xFC00, "overflow"),
    ]),
    *vectors("f16 f16 f16 -> f16", "Half Precision Floating Point Instructions: fma", [
        ("fma.rn.f16", [0x3C01, 0x3C01, 0xBC02], 0x0010, "2**-20 is left of the exact product"),
        ("fma.rn.f16", [0x7BFF, 0x4000, 0xFBFF], 0x7BFF, "no overflow of the product"),
        ("fma.rn.relu.f16", [0xBC00, 0x3C00, 0x0000], 0x0000, ".relu clamps negative results to 0"),
        ("fma.rn.relu.f16", [0x7C00, 0x0000, 0x3C00], 0x7FFF, ".relu gives the canonical NaN"),
        ("fma.rn.sat.f16", [0x4000, 0x3C00, 0x3C00], 0x3C00, ".sat clamps to 1"),
        ("fma.rn.ftz.f16", [0x03FF, 0x7800, 0x3C00], 0x3C00, "a subnormal input is flushed"),
    ]),
    *vectors("f16x2 f16x2 -> f16x2", "Half Precision Floating Point Instructions: add", [
        ("add.f16x2", [0x3C004000, 0x3C003C00], 0x40004200, "each half on its own"),
        ("add.f16x2", [0x7BFF0001, 0x7BFF8001], 0x7C000000, "overflow above, exact zero below"),
    ]),
    *vectors("bf16 bf16 bf16 -> bf16", "Half Precision Floating Point Instructions: fma", [
        ("fma.rn.bf16", [0x3F80, 0x3F80, 0x3B80], 0x3F80, "1 + 2**-8 is halfway, even below"),
        ("fma.rn.bf16", [0x3F81, 0x3F80, 0x3B80], 0x3F82, "halfway, even above"),
        ("fma.rn.bf16", [0x3F81, 0x3F81, 0xBF82], 0x3880, "2**-14 is left of the exact product"),
        ("fma.rn.bf16", [0x0001, 0x3F80, 0x0001], 0x0002, "subnormals are supported"),
        ("fma.rn.relu.bf16", [0xFFC0, 0x3F80, 0x0000], 0x7FFF, ".relu gives the canonical NaN"),
    ]),
    *vectors("bf16x2 bf16x2 bf16x2 -> bf16x2", "Half Precision Floating Point Instructions: fma", [
        ("fma.rn.bf16x2", [0x3F813F80, 0x3F803F80, 0x3B803B80], 0x3F823F80, "each half on its own"),
    ]),
    *vectors("f16 -> f16", "Half Precision Floating Point Instructions: ex2, tanh", [
        ("ex2.approx.f16", [0xFC00], 0x0000, "2 to -infinity"),
        ("ex2.approx.f16", [0x8000], 0x3C00, "2 to -0"),
        ("tanh.approx.f16", [0x7C00], 0x3C00, "tanh of infinity"),
        ("tanh.approx.f16", [0x8000], 0x8000, "tanh of -0"),
    ]),
]

EXTREMES: list[Vector] = [
    *vectors("f32 f32 -> f32", "Floating Point Instructions: min, max", [
        ("min.f32", [0x00000000, 0x80000000], 0x80000000, "+0 counts as larger than -0"),
        ("min.f32", [0x80000000, 0x00000000], 0x80000000, "in either order"),
        ("max.f32", [0x80000000, 0x00000000], 0x00000000, "+0 counts as larger than -0"),
        ("max.f32", [0x00000000, 0x80000000], 0x00000000, "in either order"),
        ("min.f32", [0x7FC00001, 0x3F800000], 0x3F800000, "the number where one operand is NaN"),
        ("max.f32", [0xBF800000, 0x7F800001], 0xBF800000, "a signalling NaN too"),
        ("max.f32", [0x7FC00001, 0xFFC00002], _NAN, "the canonical NaN of two NaNs"),
        ("min.NaN.f32", [0x7FC00001, 0x3F800000], _NAN, ".NaN: canonical NaN if any is NaN"),
        ("max.NaN.f32", [0x3F800000, 0xFF800001], _NAN, ".NaN: canonical NaN if any is NaN"),
        ("min.ftz.f32", [0x00000001, 0x3F800000], 0x00000000, "subnormals are flushed"),
        ("max.ftz.f32", [0x80000001, 0xFF800000], 0x80000000, "with their sign"),
        ("max.f32", [0x80000001, 0xFF800000], 0x80000001, "and kept without .ftz"),
        ("min.xorsign.abs.f32", [0xBF800000, 0x40000000], 0xBF800000, "least magnitude, signs differ"),
        ("max.xorsign.abs.f32", [0xBF800000, 0xC0000000], 0x40000000, "largest magnitude, signs agree"),
        ("max.NaN.xorsign.abs.f32", [0xBF800000, 0x7FC00000], _NAN, ".NaN goes before the sign"),
    ]),
    *vectors("f32 f32 f32 -> f32", "Floating Point Instructions: min, max (three inputs)", [
        ("min.f32", [0x40400000, 0x3F800000, 0x40000000], 0x3F800000, "least of three"),
        ("max.f32", [0x7FC00001, 0xBF800000, 0x7FC00000], 0xBF800000, "NaNs are passed over"),
        ("max.NaN.f32", [0x3F800000, 0x40000000, 0x7FC00001], _NAN, ".NaN: any NaN"),
        ("min.abs.f32", [0xC0400000, 0xBF800000, 0x40000000], 0x3F800000, ".abs: least magnitude"),
        ("max.ftz.abs.f32", [0x80000001, 0x80000002, 0x00000000], 0x00000000, "flushed magnitudes"),
        ("min.f32", [0x00000000, 0x00000000, 0x80000000], 0x80000000, "+0 counts as larger than -0"),
    ]),
    *vectors("f64 f64 -> f64", "Floating Point Instructions: min, max", [
        ("min.f64", [0x0000000000000000, 0x8000000000000000], 0x8000000000000000, "+0 counts as larger than -0"),
        ("max.f64", [0x7FF8000000000001, 0xBFF0000000000000], 0xBFF0000000000000, "the number"),
    ]),
    *vectors("f16 f16 -> f16", "Half Precision Floating Point Instructions: min, max", [
        ("min.NaN.f16", [0x7E01, 0x3C00], 0x7FFF, "canonical NaN"),
        ("min.f16", [0x7E01, 0x3C00], 0x3C00, "the number"),
        ("max.f16", [0x8000, 0x0000], 0x0000, "+0 counts as larger than -0"),
        ("max.xorsign.abs.f16", [0xC000, 0x3C00], 0xC000, "magnitude 2, signs differ"),
    ]),
    *vectors("bf16x2 bf16x2 -> bf16x2", "Half Precision Floating Point Instructions: min, max", [
        ("max.NaN.bf16x2", [0x7FC03F80, 0x3F808000], 0x7FFF3F80, "NaN above, 1 below"),
    ]),
]

SIGNS: list[Vector] = [
    *vectors("f32 -> f32", "Floating Point Instructions: abs, neg", [
        ("abs.f32", [0x80000001], 0x00000001, "the sign bit is cleared"),
        ("abs.ftz.f32", [0x80000001], 0x00000000, "and a subnormal flushed"),
        ("neg.f32", [0x00000000], 0x80000000, "the negative of 0 is -0"),
        ("neg.ftz.f32", [0x00000001], 0x80000000, "of a flushed subnormal too"),
        ("abs.f32", [0xFF800000], 0x7F800000, "infinity"),
    ]),
    *vectors("f16x2 -> f16x2", "Half Precision Floating Point Instructions: neg", [
        ("neg.f16x2", [0x00008000], 0x80000000, "both halves"),
    ]),
    *vectors("f32 f32 -> f32", "Floating Point Instructions: copysign", [
        ("copysign.f32", [0xBF800000, 0x40000000], 0xC0000000, "the sign of a, the value of b"),
        ("copysign.f32", [0x3F800000, 0x80000000], 0x00000000, "onto zero"),
    ]),
    *vectors("f64 f64 -> f64", "Floating Point Instructions: copysign", [
        ("copysign.f64", [0x8000000000000000, 0x3FF0000000000000], 0xBFF0000000000000, "the sign of -0"),
    ]),
    *vectors("f32 -> pred", "Floating Point Instructions: testp", [
        ("testp.finite.f32", [0x7F800000], 0, "infinity is not finite"),
        ("testp.finite.f32", [0x7FC00000], 0, "nor is NaN"),
        ("testp.finite.f32", [0xFF7FFFFF], 1, "the lowest number is"),
        ("testp.infinite.f32", [0xFF800000], 1, "of either sign"),
        ("testp.infinite.f32", [0x7F800001], 0, "NaN is not infinite"),
        ("testp.number.f32", [0x7F800000], 1, "infinity is a number"),
        ("testp.notanumber.f32", [0xFFFFFFFF], 1, "NaN of either sign"),
        ("testp.normal.f32", [0x80000000], 1, "zeros count as normal"),
        ("testp.normal.f32", [0x007FFFFF], 0, "subnormals do not"),
        ("testp.normal.f32", [0x7F800000], 0, "nor does infinity"),
        ("testp.subnormal.f32", [0x80000001], 1, "of either sign"),
        ("testp.subnormal.f32", [0x00000000], 0, "zero is not"),
    ]),
    *vectors("f64 -> pred", "Floating Point Instructions: testp", [
        ("testp.subnormal.f64", [0x000FFFFFFFFFFFFF], 1, "the largest subnormal"),
    ]),
]

VECTORS = [*HALF, *EXTREMES, *SIGNS]
