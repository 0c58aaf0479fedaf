"""Layouts of mma fragments, ldmatrix, stmatrix, movmatrix (PTX manual, "Matrix Fragments for mma..." and the sections
of the others).

An mma of one element of A that is 1 and one of B: exactly one element of D becomes 1, in the lane and the register that
the manual's formulas name. With group = lane / 4 and thread = lane % 4.
"""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

_S = "Matrix Fragments for "
_ZERO = (0,) * 32


def _at(lane: int, value: int) -> tuple[int, ...]:
    return tuple(value if i == lane else 0 for i in range(32))


def _registers(count: int, register: int, lane: int, value: int) -> list[tuple[int, ...]]:
    return [_at(lane, value) if i == register else _ZERO for i in range(count)]


Place = tuple[int, int, int]
"""Register of the fragment, lane, bits there."""


def _one_hot(shape: str, types: str, counts: tuple[int, int, int], kind: str,
             rows: list[tuple[Place, Place, Place, str]]) -> list[Vector]:
    """``types``: of D, A, B, C as in the mnemonic; ``counts``: registers of A, B, D; ``rows``: places in A, B and D."""
    a, b, d = counts
    mnemonic = f"mma.sync.aligned.{shape}.row.col.{types}"
    signature = f"{' '.join([kind] * (a + b))} -> {' '.join([kind] * d)}"
    outs, ins = [f"%o{i}" for i in range(d)], [f"%i{i}" for i in range(a + b)]
    zero = "0" if kind == "b32" else "0d0000000000000000"
    clear = "\n".join(f"mov.{'b32' if kind == 'b32' else 'f64'} {name}, {zero};" for name in outs)
    body = (f"{clear}\n{{m}} {{{', '.join(outs)}}}, {{{', '.join(ins[:a])}}}, {{{', '.join(ins[a:])}}}, "
            f"{{{', '.join(outs)}}};")
    return vectors(signature, _S + f"mma.{shape}", [
        (mnemonic, _registers(a, *in_a) + _registers(b, *in_b), _registers(d, *in_d), why)
        for in_a, in_b, in_d, why in rows
    ], body)


_ONE = 0x3F800000

MMA: list[Vector] = [
    *_one_hot("m16n8k16", "f32.f16.f16.f32", (4, 2, 4), "b32", [
        ((3, 6, 0x3C000000), (1, 22, 0x3C000000), (3, 6, _ONE),
         "A[9][13]: lane 6, a7; B[13][5]: lane 22, b3; D[9][5]: lane 6, c3"),
        ((0, 0, 0x3C00), (0, 0, 0x3C00), (0, 0, _ONE), "A[0][0]: lane 0, a0; B[0][0]: lane 0, b0; D[0][0]: c0"),
        ((2, 13, 0x3C000000), (1, 29, 0x3C000000), (1, 15, _ONE),
         "A[3][11]: lane 13, a5; B[11][7]: lane 29, b3; D[3][7]: lane 15, c1"),
        ((1, 31, 0x3C00), (0, 7, 0x3C00), (3, 28, _ONE),
         "A[15][6]: lane 31, a2; B[6][1]: lane 7, b0; D[15][1]: lane 28, c3"),
    ]),
    *_one_hot("m16n8k16", "f16.f16.f16.f16", (4, 2, 2), "b32", [
        ((3, 6, 0x3C000000), (1, 22, 0x3C000000), (1, 6, 0x3C000000), "D[9][5]: lane 6, upper half of the second"),
        ((2, 13, 0x3C000000), (1, 25, 0x3C000000), (0, 15, 0x00003C00), "A[3][11], B[11][6], D[3][6]: lane 15, c0"),
    ]),
    *_one_hot("m16n8k16", "f32.bf16.bf16.f32", (4, 2, 4), "b32", [
        ((1, 26, 0x3F800000), (0, 10, 0x3F800000), (2, 25, _ONE),
         "A[14][5]: lane 26, a3; B[5][2]: lane 10, b1; D[14][2]: lane 25, c2"),
    ]),
    *_one_hot("m16n8k8", "f32.f16.f16.f32", (2, 1, 4), "b32", [
        ((1, 18, 0x3C000000), (0, 14, 0x3C000000), (3, 17, _ONE),
         "A[12][5]: lane 18, a3; B[5][3]: lane 14, b1; D[12][3]: lane 17, c3"),
    ]),
    *_one_hot("m16n8k8", "f32.tf32.tf32.f32", (4, 2, 4), "b32", [
        ((3, 9, _ONE), (1, 17, _ONE), (2, 10, _ONE),
         "A[10][5]: lane 9, a3; B[5][4]: lane 17, b1; D[10][4]: lane 10, c2"),
        ((1, 3, _ONE), (0, 31, _ONE), (3, 3, _ONE),
         "A[8][3]: lane 3, a1; B[3][7]: lane 31, b0; D[8][7]: lane 3, c3"),
        ((2, 28, _ONE), (1, 0, _ONE), (0, 28, _ONE),
         "A[7][4]: lane 28, a2; B[4][0]: lane 0, b1; D[7][0]: lane 28, c0"),
    ]),
    *_one_hot("m16n8k4", "f32.tf32.tf32.f32", (2, 1, 4), "b32", [
        ((1, 7, _ONE), (0, 11, _ONE), (2, 5, _ONE),
         "A[9][3]: lane 7, a1; B[3][2]: lane 11, b0; D[9][2]: lane 5, c2"),
    ]),
    *_one_hot("m16n8k32", "s32.s8.s8.s32", (4, 2, 4), "b32", [
        ((3, 5, 0x00000100), (1, 21, 0x00000100), (3, 6, 1),
         "A[9][21]: lane 5, a13; B[21][5]: lane 21, b5; D[9][5]: lane 6, c3"),
        ((0, 2, 0xFF000000), (0, 2, 0x01000000), (0, 0, 0xFFFFFFFF),
         "A[0][11] = -1: lane 2, a3; B[11][0]: lane 2, b3; D[0][0] = -1"),
        ((2, 16, 0x00000001), (1, 28, 0x000000FF), (1, 19, 0xFFFFFFFF),
         "A[4][16]: lane 16, a8; B[16][7] = -1: lane 28, b4; D[4][7]: lane 19, c1"),
    ]),
    *_one_hot("m16n8k32", "s32.u8.s8.s32", (4, 2, 4), "b32", [
        ((0, 0, 0x000000FF), (0, 0, 0x000000FF), (0, 0, 0xFFFFFF01), "255 * -1: A is unsigned, B signed"),
    ]),
    *_one_hot("m16n8k16", "s32.s8.s8.s32", (2, 1, 4), "b32", [
        ((1, 11, 0x01000000), (0, 19, 0x01000000), (2, 10, 1),
         "A[10][15]: lane 11, a7; B[15][4]: lane 19, b3; D[10][4]: lane 10, c2"),
    ]),
    *_one_hot("m8n8k16", "s32.s8.s8.s32", (1, 1, 2), "b32", [
        ((0, 13, 0x00010000), (0, 9, 0x00010000), (0, 13, 1),
         "A[3][6]: lane 13, a2; B[6][2]: lane 9, b2; D[3][2]: lane 13, c0"),
    ]),
    *_one_hot("m16n8k64", "s32.s4.s4.s32", (4, 2, 4), "b32", [
        ((3, 5, 0x00000010), (1, 21, 0x000000F0), (3, 6, 0xFFFFFFFF),
         "A[9][41]: lane 5, a25; B[41][5] = -1: lane 21, b9; D[9][5]: lane 6, c3"),
    ]),
    *_one_hot("m16n8k32", "f32.e4m3.e5m2.f32", (4, 2, 4), "b32", [
        ((3, 5, 0x00003800), (1, 21, 0x00003C00), (3, 6, _ONE),
         "as for 8-bit integers; 1 is 38 in e4m3 and 3c in e5m2"),
    ]),
    *_one_hot("m8n8k4", "f64.f64.f64.f64", (1, 1, 2), "f64", [
        ((0, 14, 0x3FF0000000000000), (0, 22, 0x3FF0000000000000), (1, 14, 0x3FF0000000000000),
         "A[3][2]: lane 14; B[2][5]: lane 22; D[3][5]: lane 14, c1"),
        ((0, 31, 0x3FF0000000000000), (0, 3, 0x3FF0000000000000), (0, 28, 0x3FF0000000000000),
         "A[7][3]: lane 31; B[3][0]: lane 3; D[7][0]: lane 28, c0"),
    ]),
]

_FILL = """mov.u32 %r1, board;
shl.b32 %r2, %r0, 2;
add.u32 %r2, %r1, %r2;
st.shared.b32 [%r2], %i0;
bar.warp.sync 0xffffffff;
and.b32 %r3, %r0, 7;
mad.lo.u32 %r3, %r3, 16, %r1;
"""
"""Elements 0 to 63 of a matrix of 8 rows of 16 bytes; %r3 is the address of the row that a lane names."""

_COUNTED = tuple(2 * lane | (2 * lane + 1) << 16 for lane in range(32))
"""The matrix whose element [row][column] is 8 row + column, two elements per lane."""

_TRANSPOSED = tuple(16 * (lane % 4) + lane // 4 | (16 * (lane % 4) + 8 + lane // 4) << 16 for lane in range(32))
"""Its transpose: rows 2 (lane % 4) and 2 (lane % 4) + 1 of column lane / 4."""

MOVES: list[Vector] = [
    *vectors("b32 -> b32", "Warp-level matrix load instruction: ldmatrix", [
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16", [_COUNTED], _COUNTED,
         "a lane holds elements 2 thread and 2 thread + 1 of row group"),
        ("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", [_COUNTED], _TRANSPOSED, ".trans: of column group"),
    ], _FILL + "{m} {%o0}, [%r3];"),
    *vectors("b32 -> b32 b32", "Warp-level matrix load instruction: ldmatrix", [
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16", [_COUNTED],
         [_COUNTED, tuple(56 - 8 * (lane // 4) + 2 * (lane % 4) | (57 - 8 * (lane // 4) + 2 * (lane % 4)) << 16
                          for lane in range(32))],
         "lanes 8 to 15 give the rows of the second matrix: here the same rows from the last to the first"),
    ], _FILL + """sub.u32 %r4, 7, %r0;
and.b32 %r4, %r4, 7;
mad.lo.u32 %r4, %r4, 16, %r1;
setp.ge.u32 %p0, %r0, 8;
selp.b32 %r3, %r4, %r3, %p0;
{m} {%o0, %o1}, [%r3];"""),
    *vectors("b32 -> b32", "Warp-level matrix store instruction: stmatrix", [
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16", [_COUNTED], _COUNTED, "the reverse of ldmatrix"),
        ("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16", [_COUNTED], _TRANSPOSED, ".trans"),
    ], _FILL + """bar.warp.sync 0xffffffff;
{m} [%r3], {%i0};
bar.warp.sync 0xffffffff;
ld.shared.b32 %o0, [%r2];"""),
    *vectors("b32 -> b32", "Warp-level matrix transpose instruction: movmatrix", [
        ("movmatrix.sync.aligned.m8n8.trans.b16", [_COUNTED], _TRANSPOSED, "the transpose"),
    ]),
]

VECTORS = [*MMA, *MOVES]
