"""atom: what stands in memory before and after (PTX manual, "atom").

Operands: the value in memory, then those of the instruction; results: the old value, then what is in memory now.
"""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

_S = "Parallel Synchronization and Communication Instructions: atom"


def _global(store: str, operands: str = "%i1") -> str:
    return f"""mul.wide.u32 %rd0, %r0, 16;
mov.u64 %rd1, cells;
add.s64 %rd0, %rd0, %rd1;
st.global.{store} [%rd0], %i0;
{{m}} %o0, [%rd0], {operands};
ld.global.{store} %o1, [%rd0];"""


def _shared(store: str, operands: str = "%i1") -> str:
    return f"""mul.lo.u32 %r1, %r0, 16;
mov.u32 %r2, board;
add.u32 %r1, %r1, %r2;
st.shared.{store} [%r1], %i0;
{{m}} %o0, [%r1], {operands};
ld.shared.{store} %o1, [%r1];"""


_WORDS: list[tuple[str, list[int], list[int], str]] = [
    ("inc.u32", [4, 5], [4, 5], "below the bound: one more"),
    ("inc.u32", [5, 5], [5, 0], "at the bound: wraps to 0"),
    ("inc.u32", [6, 5], [6, 0], "above the bound: wraps to 0"),
    ("inc.u32", [0xFFFFFFFF, 0xFFFFFFFF], [0xFFFFFFFF, 0], "the largest bound"),
    ("dec.u32", [5, 5], [5, 4], "one less"),
    ("dec.u32", [0, 5], [0, 5], "at 0: wraps to the bound"),
    ("dec.u32", [6, 5], [6, 5], "above the bound: wraps to the bound"),
    ("add.u32", [0xFFFFFFFF, 2], [0xFFFFFFFF, 1], "wraps"),
    ("add.s32", [0x7FFFFFFF, 1], [0x7FFFFFFF, 0x80000000], "wraps, no clamping"),
    ("min.s32", [0xFFFFFFFF, 1], [0xFFFFFFFF, 0xFFFFFFFF], "signed"),
    ("min.u32", [0xFFFFFFFF, 1], [0xFFFFFFFF, 1], "unsigned"),
    ("max.s32", [0xFFFFFFFF, 1], [0xFFFFFFFF, 1], "signed"),
    ("and.b32", [0xF0F0F0F0, 0xFF00FF00], [0xF0F0F0F0, 0xF000F000], "bits"),
    ("xor.b32", [0xF0F0F0F0, 0xFF00FF00], [0xF0F0F0F0, 0x0FF00FF0], "bits"),
    ("exch.b32", [1, 2], [1, 2], "exchange"),
]

VECTORS: list[Vector] = [
    *[vector for space, body in (("global", _global("b32")), ("shared", _shared("b32")))
      for vector in vectors("b32 b32 -> b32 b32", _S, [
          (f"atom.{space}.{name}", given, wanted, why) for name, given, wanted, why in _WORDS
      ], body)],
    *vectors("f32 f32 -> f32 f32", _S, [
        ("atom.global.add.f32", [0x3F800000, 0x33800000], [0x3F800000, 0x3F800000], "to nearest even"),
        ("atom.global.add.f32", [0x00000001, 0x00000001], [0x00000001, 0x00000000],
         "global memory: subnormal operands are flushed"),
        ("atom.global.add.f32", [0x00C00000, 0x80800000], [0x00C00000, 0x00000000],
         "global memory: subnormal results are flushed"),
    ], _global("b32")),
    *vectors("f32 f32 -> f32 f32", _S, [
        ("atom.shared.add.f32", [0x00000001, 0x00000001], [0x00000001, 0x00000002],
         "shared memory: subnormals are supported"),
    ], _shared("b32")),
    *vectors("f64 f64 -> f64 f64", _S, [
        ("atom.global.add.f64", [0x3FF0000000000000, 0x3CA0000000000000],
         [0x3FF0000000000000, 0x3FF0000000000000], "to nearest even"),
    ], _global("b64")),
    *vectors("b64 b64 -> b64 b64", _S, [
        ("atom.global.max.s64", [0x8000000000000000, 0], [0x8000000000000000, 0], "signed"),
        ("atom.global.max.u64", [0x8000000000000000, 0], [0x8000000000000000, 0x8000000000000000], "unsigned"),
        ("atom.global.add.u64", [0x00000000FFFFFFFF, 1], [0x00000000FFFFFFFF, 0x0000000100000000], "64 bits"),
        ("atom.global.exch.b64", [1, 2], [1, 2], "exchange"),
    ], _global("b64")),
    *vectors("f16 f16 -> f16 f16", _S, [
        ("atom.global.add.noftz.f16", [0x0001, 0x0001], [0x0001, 0x0002], ".noftz keeps subnormals"),
        ("atom.global.add.noftz.f16", [0x7BFF, 0x4C00], [0x7BFF, 0x7C00], "halfway to 65536: infinity"),
    ], _global("b16")),
    *vectors("b32 b32 b32 -> b32 b32", _S, [
        ("atom.global.cas.b32", [5, 5, 9], [5, 9], "equal: exchanged"),
        ("atom.global.cas.b32", [5, 6, 9], [5, 5], "not equal: left"),
    ], _global("b32", "%i1, %i2")),
    *vectors("b16 b16 b16 -> b16 b16", _S, [
        ("atom.global.cas.b16", [0x1234, 0x1234, 0xABCD], [0x1234, 0xABCD], "16 bits"),
    ], _global("b16", "%i1, %i2")),
    *vectors("b64 b64 b64 b64 b64 b64 -> b64 b64 b64 b64", _S, [
        ("atom.global.cas.b128", [1, 2, 1, 2, 8, 9], [1, 2, 8, 9], "both words equal: exchanged"),
        ("atom.global.cas.b128", [1, 2, 1, 3, 8, 9], [1, 2, 1, 2], "the upper word differs: left"),
    ], """mul.wide.u32 %rd0, %r0, 16;
mov.u64 %rd1, cells;
add.s64 %rd0, %rd0, %rd1;
st.global.v2.b64 [%rd0], {%i0, %i1};
mov.b128 %q0, {%i2, %i3};
mov.b128 %q1, {%i4, %i5};
{m} %q2, [%rd0], %q0, %q1;
mov.b128 {%o0, %o1}, %q2;
ld.global.v2.b64 {%o2, %o3}, [%rd0];"""),
    *vectors("b64 b64 b64 b64 -> b64 b64 b64 b64", _S, [
        ("atom.global.exch.b128", [1, 2, 8, 9], [1, 2, 8, 9], "exchange of 128 bits"),
    ], """mul.wide.u32 %rd0, %r0, 16;
mov.u64 %rd1, cells;
add.s64 %rd0, %rd0, %rd1;
st.global.v2.b64 [%rd0], {%i0, %i1};
mov.b128 %q0, {%i2, %i3};
{m} %q2, [%rd0], %q0;
mov.b128 {%o0, %o1}, %q2;
ld.global.v2.b64 {%o2, %o3}, [%rd0];"""),
]
