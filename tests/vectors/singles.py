"""Pairs of single-precision numbers (``.f32x2``) and mixed precision: what PTX 8.6 added for sm_100."""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

VECTORS: list[Vector] = [
    *vectors("b64 b64 -> b64", "Floating Point Instructions: add, sub, mul (.f32x2)", [
        ("add.rn.f32x2", [0x3F8000003F800001, 0x3380000033800000], 0x3F8000003F800002, "halfway: even in each half"),
        ("add.rz.f32x2", [0x7F7FFFFF3F800000, 0x7F7FFFFF80000001], 0x7F7FFFFF3F7FFFFF, "toward zero in each half"),
        ("add.rn.ftz.f32x2", [0x0000000180000001, 0x0000000180000001], 0x0000000080000000, "flushed with the sign"),
        ("mul.rn.f32x2", [0x3F80000100800000, 0x3F8000013F000000], 0x3F80000200400000, "each half on its own"),
        ("sub.rm.f32x2", [0x3F8000003F800000, 0x3F80000000000000], 0x800000003F800000, "zero toward -infinity"),
    ]),
    *vectors("b64 b64 b64 -> b64", "Floating Point Instructions: fma (.f32x2)", [
        ("fma.rn.f32x2", [0x3F8000013F800000, 0x3F8000013F800000, 0xBF80000233800000], 0x288000003F800000,
         "fused in each half"),
        ("fma.rn.ftz.f32x2", [0x008000003F800000, 0x3F0000003F800000, 0x00000000BF800000], 0x0000000000000000,
         "the upper result is flushed"),
    ]),
    *vectors("f16 f32 -> f32", "Mixed Precision Floating Point Instructions: add", [
        ("add.rn.f32.f16", [0x3C00, 0x33800000], 0x3F800000, "1 + 2**-24 in single precision"),
        ("add.rp.f32.f16", [0x3C00, 0x33800000], 0x3F800001, "toward +infinity"),
        ("add.sat.f32.f16", [0x4000, 0x3F800000], 0x3F800000, "clamped to 1"),
    ]),
    *vectors("bf16 bf16 f32 -> f32", "Mixed Precision Floating Point Instructions: fma", [
        ("fma.rn.f32.bf16", [0x3F81, 0x3F81, 0xBF820000], 0x38800000, "2**-14 is left of the exact product"),
    ]),
]
