"""Integer arithmetic, logic, shifts, bit fields, permutes (PTX manual, "Integer Arithmetic Instructions" and "Logic and
Shift Instructions")."""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

_I = "Integer Arithmetic Instructions: "
_L = "Logic and Shift Instructions: "

ARITHMETIC: list[Vector] = [
    *vectors("b32 b32 -> b32", _I + "add, sub, mul, div, rem, mul24, min, max", [
        ("add.sat.s32", [0x7FFFFFFF, 1], 0x7FFFFFFF, "clamped above"),
        ("add.sat.s32", [0x80000000, 0xFFFFFFFF], 0x80000000, "clamped below"),
        ("sub.sat.s32", [0, 0x80000000], 0x7FFFFFFF, "0 - (-2**31) is clamped"),
        ("sub.sat.s32", [0x80000000, 1], 0x80000000, "clamped below"),
        ("add.u16x2", [0xFFFF0001, 0x0001FFFF], 0x00000000, "no carry between the halves"),
        ("add.s16x2", [0x7FFF0001, 0x00010001], 0x80000002, "each half wraps"),
        ("min.s16x2", [0x80000001, 0x0001FFFF], 0x8000FFFF, "signed halves"),
        ("max.u16x2", [0x80000001, 0x0001FFFF], 0x8000FFFF, "unsigned halves"),
        ("max.relu.s16x2", [0x80000001, 0xFFFF0000], 0x00000001, "negative to 0"),
        ("min.relu.s32", [0xFFFFFFFF, 5], 0, "negative to 0"),
        ("min.s32", [0x80000000, 1], 0x80000000, "signed"),
        ("min.u32", [0x80000000, 1], 1, "unsigned"),
        ("mul.lo.s32", [0x00010001, 0x00010001], 0x00020001, "the low half"),
        ("mul.hi.s32", [0x80000000, 0x80000000], 0x40000000, "2**62 >> 32"),
        ("mul.hi.s32", [0xFFFFFFFF, 1], 0xFFFFFFFF, "-1 >> 32 keeps its sign"),
        ("mul.hi.u32", [0xFFFFFFFF, 0xFFFFFFFF], 0xFFFFFFFE, "unsigned"),
        ("mul24.lo.u32", [0xFF000002, 0x00000003], 6, "the upper 8 bits do not count"),
        ("mul24.lo.s32", [0x00FFFFFF, 0x00000002], 0xFFFFFFFE, "24-bit -1 times 2"),
        ("mul24.hi.u32", [0x00FFFFFF, 0x00FFFFFF], 0xFFFFFE00, "bits 47 to 16 of the product"),
        ("mul24.hi.s32", [0x00FFFFFF, 0x00000001], 0xFFFFFFFF, "-1: bits 47 to 16"),
        ("div.s32", [0xFFFFFFF9, 2], 0xFFFFFFFD, "-7 / 2 is -3: toward zero"),
        ("rem.s32", [0xFFFFFFF9, 2], 0xFFFFFFFF, "-7 rem 2 is -1: the sign of the dividend"),
        ("rem.s32", [7, 0xFFFFFFFE], 1, "7 rem -2"),
        ("div.u32", [0xFFFFFFF9, 2], 0x7FFFFFFC, "unsigned"),
        ("rem.u32", [0xFFFFFFFF, 10], 5, "unsigned"),
    ]),
    *vectors("b16 b16 -> b16", _I + "mul, div, rem", [
        ("mul.hi.s16", [0x8000, 0x8000], 0x4000, "2**30 >> 16"),
        ("mul.hi.u16", [0xFFFF, 0xFFFF], 0xFFFE, "unsigned"),
        ("div.s16", [0xFFF9, 2], 0xFFFD, "toward zero"),
        ("rem.u16", [0xFFFF, 0x0010], 0x000F, "unsigned"),
    ]),
    *vectors("b16 b16 -> b32", _I + "mul", [
        ("mul.wide.s16", [0x8000, 0x8000], 0x40000000, "the full product"),
        ("mul.wide.u16", [0xFFFF, 0xFFFF], 0xFFFE0001, "the full product"),
    ]),
    *vectors("b32 b32 -> b64", _I + "mul", [
        ("mul.wide.s32", [0xFFFFFFFF, 0x7FFFFFFF], 0xFFFFFFFF80000001, "negative"),
        ("mul.wide.u32", [0xFFFFFFFF, 0xFFFFFFFF], 0xFFFFFFFE00000001, "unsigned"),
    ]),
    *vectors("b64 b64 -> b64", _I + "mul, div, rem", [
        ("mul.hi.u64", [0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF], 0xFFFFFFFFFFFFFFFE, "unsigned"),
        ("mul.hi.s64", [0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF], 0xFFFFFFFFFFFFFFFF, "a small negative product"),
        ("mul.hi.s64", [0x8000000000000000, 0x8000000000000000], 0x4000000000000000, "2**126 >> 64"),
        ("rem.s64", [0x8000000000000000, 10], 0xFFFFFFFFFFFFFFF8, "-2**63 rem 10 is -8"),
        ("div.u64", [0xFFFFFFFFFFFFFFFF, 3], 0x5555555555555555, "unsigned"),
    ]),
    *vectors("b32 b32 b32 -> b32", _I + "mad, mad24, sad, dp4a, dp2a", [
        ("mad.hi.s32", [0xFFFFFFFF, 1, 1], 0, "-1 + 1"),
        ("mad.hi.sat.s32", [0x80000000, 0x80000000, 0x7FFFFFFF], 0x7FFFFFFF, "2**30 + (2**31 - 1) is clamped"),
        ("mad.hi.sat.s32", [0x80000000, 0x7FFFFFFF, 0x80000000], 0x80000000, "clamped below"),
        ("mad.lo.u32", [0xFFFFFFFF, 2, 3], 1, "wraps"),
        ("mad24.lo.s32", [0x00800000, 0x00000001, 0], 0xFF800000, "24-bit sign"),
        ("mad24.hi.sat.s32", [0x00800000, 0x00800000, 0x7FFFFFFF], 0x7FFFFFFF, "2**30 + (2**31 - 1) is clamped"),
        ("sad.s32", [0x80000000, 0x7FFFFFFF, 1], 0, "|-2**31 - (2**31 - 1)| + 1 wraps"),
        ("sad.u32", [1, 3, 10], 12, "|1 - 3| + 10"),
        ("sad.u32", [0xFFFFFFFF, 0, 0], 0xFFFFFFFF, "unsigned"),
        ("sad.s32", [0xFFFFFFFF, 0, 0], 1, "signed"),
        ("dp4a.u32.u32", [0xFFFFFFFF, 0xFFFFFFFF, 1], 0x0003F805, "4 * 255 * 255 + 1"),
        ("dp4a.s32.s32", [0xFFFFFFFF, 0xFFFFFFFF, 0], 4, "4 * -1 * -1"),
        ("dp4a.u32.s32", [0xFFFFFFFF, 0xFFFFFFFF, 0], 0xFFFFFC04, "4 * 255 * -1"),
        ("dp4a.s32.u32", [0x00000080, 0x00000080, 0], 0xFFFFC000, "-128 * 128"),
        ("dp4a.s32.s32", [0x01020304, 0x10203040, 0], 480, "1*16 + 2*32 + 3*48 + 4*64"),
        ("dp2a.lo.s32.u32", [0x80007FFF, 0x04030201, 0], 0xFFFF7FFF, "32767*1 - 32768*2"),
        ("dp2a.hi.s32.u32", [0x80007FFF, 0x04030201, 0], 0xFFFF7FFD, "32767*3 - 32768*4"),
        ("dp2a.lo.u32.s32", [0x0001FFFF, 0x000002FF, 0], 0xFFFF0003, "65535*-1 + 1*2"),
    ]),
    *vectors("b16 b16 b32 -> b32", _I + "mad", [
        ("mad.wide.u16", [0xFFFF, 0xFFFF, 0xFFFFFFFF], 0xFFFE0000, "the sum wraps"),
        ("mad.wide.s16", [0x8000, 0x0002, 0], 0xFFFF0000, "-65536"),
    ]),
    *vectors("b32 b32 b64 -> b64", _I + "mad", [
        ("mad.wide.s32", [0xFFFFFFFF, 2, 1], 0xFFFFFFFFFFFFFFFF, "-2 + 1"),
    ]),
    *vectors("b32 -> b32", _I + "abs, neg, cnot", [
        ("abs.s32", [0x80000001], 0x7FFFFFFF, "magnitude"),
        ("abs.s32", [0x80000000], 0x80000000, "-2**31 has no positive counterpart: two's complement"),
        ("neg.s32", [0x80000000], 0x80000000, "the same"),
        ("cnot.b32", [0], 1, "1 for 0"),
        ("cnot.b32", [0x80000000], 0, "0 for all else"),
    ]),
]

CARRY: list[Vector] = [
    *vectors("b32 b32 b32 b32 -> b32 b32", "Extended-Precision Arithmetic Instructions: add.cc, addc", [
        ("addc.u32", [0xFFFFFFFF, 0, 1, 0], [0, 1], "the carry of the low words enters the high ones"),
        ("addc.u32", [0xFFFFFFFE, 0, 1, 0], [0xFFFFFFFF, 0], "no carry"),
        ("addc.u32", [0x80000000, 0xFFFFFFFF, 0x80000000, 0], [0, 0], "the carry wraps the high word"),
    ], "add.cc.u32 %o0, %i0, %i2;\n{m} %o1, %i1, %i3;"),
    *vectors("b32 b32 b32 b32 -> b32 b32 b32", "Extended-Precision Arithmetic Instructions: addc.cc", [
        ("addc.cc.u32", [0xFFFFFFFF, 0xFFFFFFFF, 1, 0xFFFFFFFF], [0, 0xFFFFFFFF, 1],
         "a carry in beside operands that carry on their own"),
        ("addc.cc.u32", [0xFFFFFFFF, 0xFFFFFFFF, 1, 0], [0, 0, 1], "the carry in alone makes the carry out"),
    ], "add.cc.u32 %o0, %i0, %i2;\n{m} %o1, %i1, %i3;\naddc.u32 %o2, 0, 0;"),
    *vectors("b32 b32 b32 b32 -> b32 b32", "Extended-Precision Arithmetic Instructions: sub.cc, subc", [
        ("subc.u32", [0, 1, 1, 0], [0xFFFFFFFF, 0], "the borrow of the low words enters the high ones"),
        ("subc.u32", [5, 0, 5, 0], [0, 0], "equal words do not borrow"),
        ("subc.u32", [0, 0, 1, 0], [0xFFFFFFFF, 0xFFFFFFFF], "borrowed from nothing"),
    ], "sub.cc.u32 %o0, %i0, %i2;\n{m} %o1, %i1, %i3;"),
    *vectors("b32 b32 b32 b32 -> b32 b32 b32", "Extended-Precision Arithmetic Instructions: subc.cc", [
        ("subc.cc.u32", [0, 0, 1, 0xFFFFFFFF], [0xFFFFFFFF, 0, 0xFFFFFFFF], "0 - (2**32 - 1) - 1 borrows again"),
    ], "sub.cc.u32 %o0, %i0, %i2;\n{m} %o1, %i1, %i3;\nsubc.u32 %o2, 0, 0;"),
    *vectors("b32 b32 b32 b32 -> b32 b32", "Extended-Precision Arithmetic Instructions: mad.cc, madc", [
        ("madc.hi.u32", [0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0], [0, 0xFFFFFFFF],
         "(2**32 - 1)**2 + 2**32 - 1: the low sum carries"),
        ("madc.hi.u32", [0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, 0], [0xFFFFFFFF, 0xFFFFFFFE], "it does not carry"),
        ("madc.hi.s32", [0xFFFFFFFF, 1, 1, 0], [0, 0], "-1 + 1: the low sum carries into the sign words"),
    ], "mad.lo.cc.u32 %o0, %i0, %i1, %i2;\n{m} %o1, %i0, %i1, %i3;"),
    *vectors("b64 b64 b64 b64 -> b64 b64", "Extended-Precision Arithmetic Instructions: add.cc, addc", [
        ("addc.u64", [0xFFFFFFFFFFFFFFFF, 1, 1, 2], [0, 4], "128-bit sum"),
    ], "add.cc.u64 %o0, %i0, %i2;\n{m} %o1, %i1, %i3;"),
]

SHIFTS: list[Vector] = [
    *vectors("b32 b32 -> b32", _L + "shl, shr", [
        ("shl.b32", [1, 31], 0x80000000, "by 31"),
        ("shl.b32", [1, 32], 0, "amounts above the width are clamped to it"),
        ("shl.b32", [0xFFFFFFFF, 0xFFFFFFFF], 0, "the amount is unsigned"),
        ("shr.u32", [0xFFFFFFFF, 32], 0, "clamped"),
        ("shr.u32", [0x80000000, 31], 1, "by 31"),
        ("shr.s32", [0x80000000, 32], 0xFFFFFFFF, "clamped: filled with the sign"),
        ("shr.s32", [0x7FFFFFFF, 40], 0, "clamped: filled with the sign"),
        ("shr.b32", [0x80000000, 4], 0x08000000, "untyped shifts fill with zeros"),
    ]),
    *vectors("b16 b32 -> b16", _L + "shl, shr", [
        ("shl.b16", [1, 16], 0, "clamped to 16"),
        ("shl.b16", [0xFFFF, 15], 0x8000, "by 15"),
        ("shr.s16", [0x8000, 20], 0xFFFF, "filled with the sign"),
        ("shr.u16", [0x8000, 16], 0, "clamped"),
    ]),
    *vectors("b64 b32 -> b64", _L + "shl, shr", [
        ("shl.b64", [1, 64], 0, "clamped to 64"),
        ("shl.b64", [1, 32], 0x100000000, "the amount may exceed 31"),
        ("shr.s64", [0x8000000000000000, 100], 0xFFFFFFFFFFFFFFFF, "filled with the sign"),
        ("shr.u64", [0xFFFFFFFFFFFFFFFF, 64], 0, "clamped"),
    ]),
    *vectors("b32 b32 b32 -> b32", _L + "shf", [
        ("shf.l.wrap.b32", [0x80000000, 0x00000001, 33], 0x00000003, "33 wraps to 1"),
        ("shf.l.clamp.b32", [0x80000000, 0x00000001, 33], 0x80000000, "33 is clamped to 32: operand a"),
        ("shf.r.clamp.b32", [0x12345678, 0x9ABCDEF0, 40], 0x9ABCDEF0, "clamped to 32: operand b"),
        ("shf.r.wrap.b32", [0x12345678, 0x9ABCDEF0, 32], 0x12345678, "wraps to 0: operand a"),
        ("shf.l.wrap.b32", [0x12345678, 0x9ABCDEF0, 8], 0xBCDEF012, "the upper word after the shift"),
        ("shf.r.wrap.b32", [0x12345678, 0x9ABCDEF0, 8], 0xF0123456, "the lower word after the shift"),
        ("shf.l.clamp.b32", [0x12345678, 0x9ABCDEF0, 0], 0x9ABCDEF0, "not shifted: operand b"),
    ]),
]

FIELDS: list[Vector] = [
    *vectors("b32 b32 b32 -> b32", _I + "bfe", [
        ("bfe.u32", [0xDEADBEEF, 8, 8], 0xBE, "bits 15 to 8"),
        ("bfe.s32", [0xDEADBEEF, 8, 8], 0xFFFFFFBE, "extended by bit 15"),
        ("bfe.s32", [0xFFFFFFFF, 8, 0], 0, "a length of 0 gives 0"),
        ("bfe.u32", [0xFFFFFFFF, 0, 32], 0xFFFFFFFF, "all bits"),
        ("bfe.u32", [0x80000000, 31, 5], 1, "past the width: padded with zeros"),
        ("bfe.s32", [0x80000000, 31, 5], 0xFFFFFFFF, "past the width: padded with bit 31"),
        ("bfe.s32", [0x80000000, 40, 3], 0xFFFFFFFF, "a start beyond the width: bit 31 everywhere"),
        ("bfe.u32", [0xFFFFFFFF, 32, 1], 0, "a start beyond the width"),
        ("bfe.s32", [0x40000000, 30, 200], 1, "length 200: the sign is bit 31, which is 0"),
        ("bfe.s32", [0x00000080, 7, 1], 0xFFFFFFFF, "one bit is its own sign"),
        ("bfe.u32", [0xFFFFFFFF, 256, 4], 0xF, "only 8 bits of the position count"),
        ("bfe.u32", [0xFFFFFFFF, 0, 0x104], 0xF, "only 8 bits of the length count"),
        ("bfe.u32", [0xF0000000, 28, 255], 0xF, "a length up to 255"),
    ]),
    *vectors("b64 b32 b32 -> b64", _I + "bfe", [
        ("bfe.s64", [0x8000000000000000, 63, 1], 0xFFFFFFFFFFFFFFFF, "the top bit"),
        ("bfe.u64", [0xF000000000000000, 60, 10], 0xF, "past the width"),
        ("bfe.u64", [0x00000001FFFFFFFF, 1, 32], 0xFFFFFFFF, "across the words"),
    ]),
    *vectors("b32 b32 b32 b32 -> b32", _I + "bfi", [
        ("bfi.b32", [0xFF, 0, 28, 8], 0xF0000000, "past the width: cut"),
        ("bfi.b32", [0xFFFFFFFF, 0x12345678, 4, 0], 0x12345678, "a length of 0 gives b"),
        ("bfi.b32", [0xFFFFFFFF, 0x12345678, 32, 8], 0x12345678, "a start beyond the width gives b"),
        ("bfi.b32", [0xDEADBEEF, 0, 0, 32], 0xDEADBEEF, "all bits"),
        ("bfi.b32", [0xDEADBEEF, 0x11111111, 0, 255], 0xDEADBEEF, "a length up to 255"),
        ("bfi.b32", [0x5, 0xFFFFFFFF, 260, 4], 0xFFFFFF5F, "only 8 bits of the position count"),
    ]),
    *vectors("b64 b64 b32 b32 -> b64", _I + "bfi", [
        ("bfi.b64", [0xFF, 0, 60, 8], 0xF000000000000000, "past the width: cut"),
    ]),
    *vectors("b32 -> b32", _I + "bfind, popc, clz, brev", [
        ("bfind.u32", [0], 0xFFFFFFFF, "nothing found"),
        ("bfind.u32", [0x80000000], 31, "the top bit"),
        ("bfind.s32", [0xFFFFFFFF], 0xFFFFFFFF, "-1 has no bit unlike its sign"),
        ("bfind.s32", [0], 0xFFFFFFFF, "nor has 0"),
        ("bfind.s32", [0x80000000], 30, "the highest 0 of a negative number"),
        ("bfind.shiftamt.u32", [1], 31, "the shift that brings the bit to the top"),
        ("bfind.shiftamt.u32", [0], 0xFFFFFFFF, "nothing found stays all ones"),
        ("bfind.shiftamt.s32", [0x80000000], 1, "31 - 30"),
        ("popc.b32", [0xFFFFFFFF], 32, "all"),
        ("clz.b32", [0], 32, "the width for 0"),
        ("clz.b32", [1], 31, "31"),
        ("brev.b32", [0x00000001], 0x80000000, "reversed"),
        ("brev.b32", [0x12345678], 0x1E6A2C48, "reversed"),
    ]),
    *vectors("b64 -> b32", _I + "bfind, popc, clz", [
        ("bfind.s64", [0xFFFFFFFF00000000], 31, "the highest 0 of a negative number"),
        ("bfind.shiftamt.u64", [1], 63, "63"),
        ("clz.b64", [0x0000000100000000], 31, "31"),
        ("clz.b64", [0], 64, "the width for 0"),
        ("popc.b64", [0xF00000000000000F], 8, "both words"),
    ]),
    *vectors("b32 b32 -> b32", _I + "bmsk, szext", [
        ("bmsk.wrap.b32", [1, 2], 0x00000006, "the manual's example"),
        ("bmsk.clamp.b32", [32, 4], 0, "a start beyond the width"),
        ("bmsk.clamp.b32", [4, 64], 0xFFFFFFF0, "a width beyond 32"),
        ("bmsk.wrap.b32", [33, 1], 0x00000002, "the start wraps to 1"),
        ("bmsk.wrap.b32", [4, 32], 0, "the width wraps to 0"),
        ("bmsk.clamp.b32", [4, 0], 0, "a width of 0"),
        ("bmsk.wrap.b32", [28, 8], 0xF0000000, "past the top"),
        ("szext.wrap.u32", [0xFFFFFFFF, 0], 0, "the manual's example"),
        ("szext.clamp.s32", [0xFFFFFF80, 8], 0xFFFFFF80, "sign of 8 bits"),
        ("szext.clamp.s32", [0x0000017F, 8], 0x0000007F, "sign of 8 bits"),
        ("szext.clamp.s32", [0x12345678, 32], 0x12345678, "32 bits or more with .clamp: a"),
        ("szext.wrap.s32", [0x12345678, 33], 0x00000000, "33 wraps to 1"),
        ("szext.wrap.s32", [0x12345679, 33], 0xFFFFFFFF, "33 wraps to 1: bit 0 is the sign"),
        ("szext.wrap.u32", [0x12345678, 32], 0, "32 wraps to 0"),
    ]),
    *vectors("b32 b32 b32 -> b32", _I + "fns", [
        ("fns.b32", [0xAAAAAAAA, 3, 1], 3, "the manual's example: the base itself counts"),
        ("fns.b32", [0xAAAAAAAA, 3, 0xFFFFFFFF], 3, "the manual's example, backward"),
        ("fns.b32", [0xAAAAAAAA, 2, 1], 3, "the manual's example"),
        ("fns.b32", [0xAAAAAAAA, 2, 0xFFFFFFFF], 1, "the manual's example, backward"),
        ("fns.b32", [0xAAAAAAAA, 2, 0], 0xFFFFFFFF, "offset 0 asks for the base only"),
        ("fns.b32", [0x0000000F, 0, 5], 0xFFFFFFFF, "there is no fifth"),
        ("fns.b32", [0x80000001, 0, 2], 31, "the second"),
    ]),
]

SELECT_BYTES: list[Vector] = [
    *vectors("b32 b32 b32 -> b32", "Data Movement and Conversion Instructions: prmt", [
        ("prmt.b32", [0x33221100, 0x77665544, 0x7531], 0x77553311, "bytes 7, 5, 3, 1"),
        ("prmt.b32", [0x33221100, 0x77665544, 0xABCD3210], 0x33221100, "bits above 15 do not count"),
        ("prmt.b32", [0x00008000, 0x00000000, 0x9999], 0xFFFFFFFF, "the sign of byte 1 in all bits"),
        ("prmt.b32", [0x00007F80, 0x00000000, 0x9810], 0x00FF7F80, "sign of byte 1, sign of byte 0, bytes 1 and 0"),
        *[(f"prmt.b32.{mode}", [0x33221100, 0x77665544, select], expected, f"table of .{mode}, row {select & 3}")
          for mode, rows in {
              "f4e": (0x33221100, 0x44332211, 0x55443322, 0x66554433),
              "b4e": (0x55667700, 0x66770011, 0x77001122, 0x00112233),
              "rc8": (0x00000000, 0x11111111, 0x22222222, 0x33333333),
              "ecl": (0x33221100, 0x33221111, 0x33222222, 0x33333333),
              "ecr": (0x00000000, 0x11111100, 0x22221100, 0x33221100),
              "rc16": (0x11001100, 0x33223322, 0x11001100, 0x33223322),
          }.items() for select, expected in zip((0xFFFFFFFC, 1, 2, 3), rows, strict=True)],
    ]),
]

LOGIC: list[Vector] = [
    vector
    for table, expected, why in (
        (0x80, 0x80, "a & b & c"), (0xFE, 0xFE, "a | b | c"), (0x40, 0x40, "a & b & ~c"),
        (0x1A, 0x1A, "(a & b | c) ^ a"), (0x96, 0x96, "a ^ b ^ c"), (0xCA, 0xCA, "a ? b : c"), (0xE8, 0xE8, "majority"),
        (0x00, 0x00, "false"),
    )
    for vector in vectors("b32 b32 b32 -> b32", _L + "lop3", [
        ("lop3.b32", [0xF0, 0xCC, 0xAA], expected, f"{why}: the table is the function of f0, cc, aa"),
    ], f"{{m}} %o0, %i0, %i1, %i2, {table:#x};\nand.b32 %o0, %o0, 0xff;")
] + [
    *vectors("b32 b32 b32 pred -> b32 pred", _L + "lop3", [
        ("lop3.or.b32", [0xF0, 0x0F, 0xFF, 0], [0, 0], "the result is 0 and q false"),
        ("lop3.or.b32", [0xF0, 0x0F, 0xFF, 1], [0, 1], "q true"),
        ("lop3.or.b32", [0xFF, 0x01, 0xFF, 0], [1, 1], "the result is not 0"),
    ], "{m} %o0|%o1, %i0, %i1, %i2, 0x80, %i3;"),
    *vectors("b32 b32 b32 pred -> pred", _L + "lop3", [
        ("lop3.and.b32", [0xFF, 0x01, 0xFF, 1], 1, "not 0 and true, the result itself dropped"),
        ("lop3.and.b32", [0xFF, 0x01, 0xFF, 0], 0, "not 0 and false"),
    ], "{m} _|%o0, %i0, %i1, %i2, 0x80, %i3;"),
]

VECTORS = [*ARITHMETIC, *CARRY, *SHIFTS, *FIELDS, *SELECT_BYTES, *LOGIC]
