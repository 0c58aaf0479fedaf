"""setp, set, slct, selp with unordered operands, signed zeros, boolean operators (PTX manual, "Comparison and Selection
Instructions")."""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

_C = "Comparison and Selection Instructions: "
_NAN, _ONE, _TWO = 0x7FC00000, 0x3F800000, 0x40000000

SETP: list[Vector] = [
    *vectors("f32 f32 -> pred pred", _C + "setp", [
        ("setp.lt.f32", [_ONE, _TWO], [1, 0], "p, and its complement q"),
        ("setp.lt.f32", [_NAN, _ONE], [0, 1], "an ordered comparison with NaN is false, q true"),
        ("setp.ltu.f32", [_NAN, _ONE], [1, 0], "an unordered one is true"),
        ("setp.ne.f32", [_NAN, _NAN], [0, 1], ".ne is ordered: false with NaN"),
        ("setp.neu.f32", [_NAN, _NAN], [1, 0], ".neu is true with NaN"),
        ("setp.equ.f32", [_ONE, _NAN], [1, 0], ".equ is true with NaN"),
        ("setp.equ.f32", [_ONE, _TWO], [0, 1], "and compares numbers"),
        ("setp.geu.f32", [_ONE, _TWO], [0, 1], "numbers"),
        ("setp.num.f32", [_ONE, _NAN], [0, 1], "both are numbers"),
        ("setp.num.f32", [0x7F800000, _ONE], [1, 0], "infinity is a number"),
        ("setp.nan.f32", [_ONE, 0xFF800001], [1, 0], "either is NaN"),
        ("setp.eq.f32", [0x00000000, 0x80000000], [1, 0], "zeros are equal"),
        ("setp.lt.f32", [0x80000000, 0x00000000], [0, 1], "zeros are equal"),
        ("setp.eq.f32", [0x00000001, 0x00000000], [0, 1], "a subnormal is not zero"),
        ("setp.eq.ftz.f32", [0x00000001, 0x80000000], [1, 0], "with .ftz it is"),
        ("setp.gt.f32", [0x7F800000, 0x7F7FFFFF], [1, 0], "infinity is larger than the largest"),
    ], "{m} %o0|%o1, %i0, %i1;"),
    *vectors("f32 f32 pred -> pred pred", _C + "setp", [
        ("setp.lt.and.f32", [_ONE, _TWO, 1], [1, 0], "t & c, !t & c"),
        ("setp.lt.and.f32", [_TWO, _ONE, 1], [0, 1], "t & c, !t & c"),
        ("setp.lt.and.f32", [_ONE, _TWO, 0], [0, 0], "both are false with c false"),
        ("setp.lt.or.f32", [_ONE, _TWO, 1], [1, 1], "both are true with c true"),
        ("setp.lt.xor.f32", [_NAN, _TWO, 1], [1, 0], "t is false: false ^ true, true ^ true"),
    ], "{m} %o0|%o1, %i0, %i1, %i2;"),
    *vectors("f32 f32 pred -> pred", _C + "setp", [
        ("setp.gt.and.f32", [_TWO, _ONE, 0], 1, "the complement of c"),
    ], "{m} %o0, %i0, %i1, !%i2;"),
    *vectors("b32 b32 -> pred", _C + "setp", [
        ("setp.lt.s32", [0xFFFFFFFF, 0], 1, "signed"),
        ("setp.lt.u32", [0xFFFFFFFF, 0], 0, "unsigned"),
        ("setp.lo.u32", [0, 0xFFFFFFFF], 1, "lower, unsigned"),
        ("setp.hs.u32", [5, 5], 1, "higher or the same"),
        ("setp.hi.u32", [5, 5], 0, "higher"),
        ("setp.ls.u32", [0x80000000, 0x7FFFFFFF], 0, "lower or the same"),
        ("setp.ge.s32", [0x80000000, 0x7FFFFFFF], 0, "signed"),
        ("setp.ne.b32", [0x80000000, 0], 1, "bits"),
    ]),
    *vectors("b64 b64 -> pred", _C + "setp", [
        ("setp.gt.s64", [0x8000000000000000, 0], 0, "signed"),
        ("setp.gt.u64", [0x8000000000000000, 0], 1, "unsigned"),
    ]),
    *vectors("b16 b16 -> pred", _C + "setp", [
        ("setp.lt.s16", [0x8000, 0], 1, "signed"),
    ]),
    *vectors("f64 f64 -> pred", _C + "setp", [
        ("setp.leu.f64", [0x7FF8000000000000, 0], 1, "unordered"),
        ("setp.lt.f64", [0x8000000000000001, 0x8000000000000000], 1, "subnormals count"),
    ]),
    *vectors("f16x2 f16x2 -> pred pred", "Half Precision Comparison Instructions: setp", [
        ("setp.lt.f16x2", [0x3C004000, 0x40003C00], [0, 1], "p from the lower halves, q from the upper ones"),
        ("setp.eq.ftz.f16x2", [0x00010001, 0x00003C00], [0, 1], "the upper halves are zero with .ftz"),
    ], "{m} %o0|%o1, %i0, %i1;"),
    *vectors("bf16 bf16 -> pred", "Half Precision Comparison Instructions: setp", [
        ("setp.gtu.bf16", [0x7FC0, 0x3F80], 1, "unordered"),
    ]),
]

SET: list[Vector] = [
    *vectors("f32 f32 -> b32", _C + "set", [
        ("set.lt.u32.f32", [_ONE, _TWO], 0xFFFFFFFF, "true is all ones in an integer type"),
        ("set.lt.s32.f32", [_TWO, _ONE], 0x00000000, "false is 0"),
        ("set.lt.f32.f32", [_ONE, _TWO], 0x3F800000, "true is 1.0 in a floating-point type"),
        ("set.neu.f32.f32", [_NAN, _NAN], 0x3F800000, "unordered"),
        ("set.eq.ftz.u32.f32", [0x00000001, 0x80000001], 0xFFFFFFFF, "flushed"),
    ]),
    *vectors("b32 b32 -> b32", _C + "set", [
        ("set.gt.u32.s32", [0, 0xFFFFFFFF], 0xFFFFFFFF, "signed"),
        ("set.hi.f32.u32", [0, 0xFFFFFFFF], 0x00000000, "unsigned"),
    ]),
    *vectors("b32 b32 pred -> b32", _C + "set", [
        ("set.eq.and.s32.u32", [7, 7, 0], 0x00000000, "true and false"),
        ("set.eq.xor.f32.s32", [7, 8, 1], 0x3F800000, "false xor true"),
    ], "{m} %o0, %i0, %i1, %i2;"),
    *vectors("b32 b32 -> f16", "Half Precision Comparison Instructions: set", [
        ("set.lt.f16.s32", [0xFFFFFFFF, 0], 0x3C00, "true is 1.0 of half precision; signed integers"),
        ("set.lt.f16.u32", [0xFFFFFFFF, 0], 0x0000, "unsigned integers"),
        ("set.eq.bf16.b32", [7, 7], 0x3F80, "true is 1.0 of bf16"),
    ]),
    *vectors("f16x2 f16x2 -> f16x2", "Half Precision Comparison Instructions: set", [
        ("set.lt.f16x2.f16x2", [0x3C004000, 0x40003C00], 0x3C000000, "1.0 in the upper half"),
    ]),
    *vectors("f16x2 f16x2 -> b32", "Half Precision Comparison Instructions: set", [
        ("set.lt.u32.f16x2", [0x3C004000, 0x40003C00], 0xFFFF0000, "all ones in the half of the true comparison"),
    ]),
    *vectors("f16x2 f16x2 pred -> f16x2", "Half Precision Comparison Instructions: set", [
        ("set.lt.and.f16x2.f16x2", [0x3C004000, 0x40003C00, 1], 0x3C000000, "true & c above, false & c below"),
        ("set.lt.or.f16x2.f16x2", [0x3C004000, 0x40003C00, 1], 0x3C003C00, "c holds for both halves"),
        ("set.lt.xor.f16x2.f16x2", [0x3C004000, 0x40003C00, 1], 0x00003C00, "true ^ true above, false ^ true below"),
    ], "{m} %o0, %i0, %i1, %i2;"),
]

SELECT: list[Vector] = [
    *vectors("b32 b32 f32 -> b32", _C + "slct", [
        ("slct.b32.f32", [0xA, 0xB, _ONE], 0xA, "c >= 0 chooses a"),
        ("slct.b32.f32", [0xA, 0xB, 0x80000000], 0xA, "-0 >= 0"),
        ("slct.b32.f32", [0xA, 0xB, _NAN], 0xB, "NaN chooses b"),
        ("slct.b32.f32", [0xA, 0xB, 0x80000001], 0xB, "a negative subnormal is below 0"),
        ("slct.ftz.b32.f32", [0xA, 0xB, 0x80000001], 0xA, "and -0 with .ftz"),
        ("slct.f32.f32", [_ONE, _TWO, 0xFF800000], _TWO, "-infinity"),
    ]),
    *vectors("b32 b32 b32 -> b32", _C + "slct", [
        ("slct.u32.s32", [0xA, 0xB, 0], 0xA, "0 >= 0"),
        ("slct.u32.s32", [0xA, 0xB, 0x80000000], 0xB, "negative"),
    ]),
    *vectors("b64 b64 pred -> b64", _C + "selp", [
        ("selp.b64", [0xA, 0xB, 1], 0xA, "true chooses a"),
        ("selp.b64", [0xA, 0xB, 0], 0xB, "false chooses b"),
    ]),
]

VECTORS = [*SETP, *SET, *SELECT]
