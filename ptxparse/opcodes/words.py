"""Groups of modifiers that many opcodes share, as words separated by spaces."""

from __future__ import annotations

UNSIGNED = "u16 u32 u64"
SIGNED = "s16 s32 s64"
INTEGER = f"{UNSIGNED} {SIGNED}"
WORD = "u32 s32 u64 s64"
BITS = "b16 b32 b64"
PACKED_INTEGER = "u16x2 s16x2 u8x4 s8x4"
FLOAT = "f32 f64"
HALF = "f16 f16x2 bf16 bf16x2"
FLOAT8 = "e4m3x4 e5m2x4 e3m2x4 e2m3x4 e2m1x4 e2m1p4x4 ue8m0x4"
STORAGE = f"b8 {BITS} b128 u8 {UNSIGNED} s8 {SIGNED} {FLOAT}"

ROUNDING = "rn rz rm rp"
INTEGER_ROUNDING = "rni rzi rmi rpi"
COMPARISON = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"

SHARED = "shared shared::cta shared::cluster"
PARAMETER = "param param::entry param::func"
SCOPES = "cta cluster gpu sys"
VECTOR = "v2 v4 v8"
HINT = "L2::cache_hint"
PREFETCH_SIZE = "L2::64B L2::128B L2::256B"
EVICTION_1 = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
EVICTION_2 = "L2::evict_normal L2::evict_first L2::evict_last L2::evict_unchanged"

REDUCTION = "and or xor add inc dec min max"
DIMENSIONS = "1d 2d 3d 4d 5d"
LOAD_MODE = (
    "tile tile::gather4 tile::scatter4 im2col im2col::w im2col::w::128 im2col_no_offs im2col_no_offs::w"
)
OVERRIDE = "override::global_address override::global_dim override::global_dim_stride"
CTA_GROUP = "cta_group::1 cta_group::2"
MULTICAST = "multicast::cluster multicast::cluster::16b multicast::cluster::32b"
COMPLETION = "mbarrier::complete_tx::bytes bulk_group"
REPORT = (
    "mbarrier::report::disabled mbarrier::report::validity::per_16bytes::80000000 "
    "mbarrier::report::validity::per_16bytes::8000 mbarrier::report::validity::per_16bytes::80 "
    "mbarrier::report::validity::per_16bytes::8 mbarrier::report::validity::per_element::ff"
)
REPEAT = "x1 x2 x4 x8 x16 x32 x64 x128"
