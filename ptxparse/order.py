"""The order of modifiers: programs may write them in another than the manual does, and assemblers do not mind.

The manual's own examples have ``cvt.f64.bf16.rp`` and ``atom.global.v2.f32.add`` beside the syntax lines, and libraries
write ``vote.ballot.sync``. For each opcode listed here, the groups stand in the order of the syntax lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

_TYPES = (
    "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 u2 s2 u4 s4 f16 bf16 f32 f64 tf32 u16x2 s16x2 f16x2 bf16x2 "
    "f32x2 e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2 ue8m0x2"
)
_ARITHMETIC = (
    "pack", "lo hi wide", "approx full", "rn rz rm rp rna rni rzi rmi rpi", "ftz", "NaN", "xorsign", "abs", "cc", "sat",
    "relu", "satfinite", _TYPES,
)
_COMPARISON = (
    "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan", "and or xor", "ftz", _TYPES,
)
_SCOPES = "cta cluster gpu sys"
_SPACES = "global shared shared::cta shared::cluster local const param param::entry param::func"
_EVICTIONS = " ".join(
    f"{level}::{what}" for level in ("L1", "L2")
    for what in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate", "no_evict")
)
_ACCESS = (
    "mmio", "weak volatile relaxed acquire release", _SCOPES, _SPACES, "ca cg cs lu cv wb wt", "nc", _EVICTIONS,
    "L2::cache_hint", "L2::64B L2::128B L2::256B", "v2 v4 v8", _TYPES, "unified",
)
_ATOMIC = (
    "relaxed acquire release acq_rel", _SCOPES, _SPACES, "and or xor cas exch add inc dec min max", "noftz",
    "L2::cache_hint", "v2 v4 v8", _TYPES,
)

_GRAMMAR: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("add", "addc", "sub", "subc", "mul", "mad", "madc", "mul24", "mad24", "fma", "div", "rem", "min", "max", "abs",
         "neg", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "cvt"), _ARITHMETIC),
    **dict.fromkeys(("set", "setp"), _COMPARISON),
    **dict.fromkeys(("ld", "ldu", "st"), _ACCESS),
    **dict.fromkeys(("atom", "red"), _ATOMIC),
    "shfl": ("sync", "up down bfly idx", _TYPES),
    "vote": ("sync", "all any uni ballot", _TYPES),
    "match": ("any all", "sync", _TYPES),
    "redux": ("sync", "add min max and or xor", "abs", "NaN", _TYPES),
    "prmt": ("b32", "f4e b4e rc8 ecl ecr rc16"),
    "lop3": ("and or", "b32"),
}


@cache
def _ranks(opcode: str) -> dict[str, int]:
    return {name: rank for rank, group in enumerate(_GRAMMAR.get(opcode, ())) for name in group.split()}


def in_manual_order(opcode: str, modifiers: Sequence[str]) -> list[str]:
    """The modifiers of an instruction sorted as the manual has them; unchanged when one is not known here.

    Those of one group, such as the two types of ``cvt``, keep their order, since it means something.
    """
    ranks = _ranks(opcode)
    if any(modifier not in ranks for modifier in modifiers):
        return list(modifiers)
    return sorted(modifiers, key=ranks.__getitem__)
