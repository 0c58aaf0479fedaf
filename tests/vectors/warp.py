"""Exchange within a warp: shfl, vote, match, redux, elect. Operands and results are given lane by lane."""

from __future__ import annotations

from tests.vectors.vector import Vector, vectors

LANE = tuple(range(32))
ALL = (0xFFFFFFFF,) * 32

_S = "Data Movement and Conversion Instructions: shfl.sync"
_SHFL = "{m} %o0|%o1, %i0, %i1, %i2, 0xffffffff;"


def _same(value: int) -> tuple[int, ...]:
    return (value,) * 32


SHFL: list[Vector] = [
    *vectors("b32 b32 b32 -> b32 pred", _S, [
        ("shfl.sync.up.b32", [LANE, _same(1), _same(0x0000)],
         [(0, *range(31)), (0, *[1] * 31)], "lane 0 has nothing below: its own value, p false"),
        ("shfl.sync.down.b32", [LANE, _same(2), _same(0x001F)],
         [(*range(2, 32), 30, 31), (*[1] * 30, 0, 0)], "the last two keep their own"),
        ("shfl.sync.bfly.b32", [LANE, _same(16), _same(0x001F)],
         [(*range(16, 32), *range(16)), _same(1)], "halves exchanged"),
        ("shfl.sync.idx.b32", [LANE, _same(5), _same(0x001F)], [_same(5), _same(1)], "broadcast"),
        ("shfl.sync.idx.b32", [LANE, _same(5), _same(0x181F)],
         [(*[5] * 8, *[13] * 8, *[21] * 8, *[29] * 8), _same(1)], "segments of 8 (mask 18): lane 5 of each"),
        ("shfl.sync.idx.b32", [LANE, _same(5), _same(0x1803)],
         [LANE, _same(0)], "a clamp of 3 in segments of 8: lane 5 is out of range everywhere"),
        ("shfl.sync.idx.b32", [LANE, _same(13), _same(0x181F)],
         [(*[5] * 8, *[13] * 8, *[21] * 8, *[29] * 8), _same(1)], "13 counts modulo the segment, and p is true"),
        ("shfl.sync.idx.b32", [LANE, _same(37), _same(0x001F)], [_same(5), _same(1)], "5 bits of b count"),
        ("shfl.sync.up.b32", [LANE, _same(1), _same(0x1800)],
         [(0, *range(7), 8, *range(8, 15), 16, *range(16, 23), 24, *range(24, 31)), (0, *[1] * 7) * 4],
         "in segments of 8"),
        ("shfl.sync.down.b32", [LANE, _same(4), _same(0x181F)],
         [(4, 5, 6, 7, 4, 5, 6, 7, 12, 13, 14, 15, 12, 13, 14, 15, 20, 21, 22, 23, 20, 21, 22, 23, 28, 29, 30, 31,
           28, 29, 30, 31), (*[1] * 4, *[0] * 4) * 4], "in segments of 8"),
        ("shfl.sync.bfly.b32", [LANE, _same(8), _same(0x181F)],
         [(*LANE[:8], *range(8), *LANE[16:24], *range(16, 24)), (*[0] * 8, *[1] * 8, *[0] * 8, *[1] * 8)],
         "across segments of 8: a lower lane is in range, a higher one is not"),
        ("shfl.sync.idx.b32", [LANE, tuple(31 - lane for lane in LANE), _same(0x001F)],
         [tuple(31 - lane for lane in LANE), _same(1)], "each lane asks for another"),
    ], _SHFL),
]

_ODD = tuple(lane & 1 for lane in LANE)

VOTE: list[Vector] = [
    *vectors("pred -> pred pred pred b32", "Parallel Synchronization and Communication Instructions: vote.sync", [
        ("vote.sync.all.pred", [_same(1)], [_same(1), _same(1), _same(1), ALL], "true in all lanes"),
        ("vote.sync.all.pred", [_same(0)], [_same(0), _same(0), _same(1), _same(0)],
         "false in all lanes: uniform, neither all nor any"),
        ("vote.sync.all.pred", [_ODD], [_same(0), _same(1), _same(0), _same(0xAAAAAAAA)], "in odd lanes"),
    ], """{m} %o0, %i0, 0xffffffff;
vote.sync.any.pred %o1, %i0, 0xffffffff;
vote.sync.uni.pred %o2, %i0, 0xffffffff;
vote.sync.ballot.b32 %o3, %i0, 0xffffffff;"""),
    *vectors("pred -> pred b32", "Parallel Synchronization and Communication Instructions: vote.sync", [
        ("vote.sync.any.pred", [_ODD], [_same(0), ALL], "of the complement, in all lanes"),
    ], """and.pred %p0, %i0, !%i0;
{m} %o0, %p0, 0xffffffff;
vote.sync.ballot.b32 %o1, !%p0, 0xffffffff;"""),
    *vectors("pred b32 -> b32", "Parallel Synchronization and Communication Instructions: vote.sync", [
        ("vote.sync.ballot.b32", [_ODD, (*[0x0000FFFF] * 16, *[0xFFFF0000] * 16)],
         (*[0x0000AAAA] * 16, *[0xAAAA0000] * 16), "two member masks: bits of other lanes are 0"),
    ], """setp.lt.u32 %p0, %r0, 16;
@%p0 bra LOW;
{m} %o0, %i0, 0xffff0000;
bra DONE;
LOW: {m} %o0, %i0, 0x0000ffff;
DONE:"""),
]

_M = "Parallel Synchronization and Communication Instructions: match.sync"

MATCH: list[Vector] = [
    *vectors("b32 -> b32", _M, [
        ("match.any.sync.b32", [tuple(lane % 3 for lane in LANE)],
         tuple((0x49249249, 0x92492492, 0x24924924)[lane % 3] for lane in LANE), "lanes with the same value"),
    ], "{m} %o0, %i0, 0xffffffff;"),
    *vectors("b32 -> b32 pred", _M, [
        ("match.all.sync.b32", [_same(7)], [ALL, _same(1)], "all agree: the mask, true"),
        ("match.all.sync.b32", [LANE], [_same(0), _same(0)], "not all agree: 0, false"),
    ], "{m} %o0|%o1, %i0, 0xffffffff;"),
    *vectors("b64 -> b32", _M, [
        ("match.any.sync.b64", [tuple((lane & 16) << 32 for lane in LANE)], (*[0x0000FFFF] * 16, *[0xFFFF0000] * 16),
         "all 64 bits count"),
    ], "{m} %o0, %i0, 0xffffffff;"),
]

_R = "Parallel Synchronization and Communication Instructions: redux.sync"
_REDUX = "{m} %o0, %i0, 0xffffffff;"

REDUX: list[Vector] = [
    *vectors("b32 -> b32", _R, [
        ("redux.sync.add.u32", [LANE], _same(496), "0 + ... + 31"),
        ("redux.sync.add.s32", [_same(0x80000001)], _same(32), "truncated to 32 bits"),
        ("redux.sync.min.s32", [tuple((lane - 16) & 0xFFFFFFFF for lane in LANE)], _same(0xFFFFFFF0), "signed"),
        ("redux.sync.min.u32", [tuple((lane - 16) & 0xFFFFFFFF for lane in LANE)], _same(0), "unsigned"),
        ("redux.sync.max.u32", [tuple((lane - 16) & 0xFFFFFFFF for lane in LANE)], _same(0xFFFFFFFF), "unsigned"),
        ("redux.sync.and.b32", [tuple(0xFFFFFFFF ^ 1 << lane for lane in LANE)], _same(0), "each bit is 0 somewhere"),
        ("redux.sync.or.b32", [tuple(1 << lane for lane in LANE)], _same(0xFFFFFFFF), "each bit is 1 somewhere"),
        ("redux.sync.xor.b32", [LANE], _same(0), "each bit is 1 in 16 lanes"),
    ], _REDUX),
    *vectors("f32 -> f32", _R, [
        ("redux.sync.min.f32", [(0x00000000, *[0x80000000] * 31)], _same(0x80000000), "+0 is larger than -0"),
        ("redux.sync.max.f32", [(0x00000000, *[0x80000000] * 31)], _same(0x00000000), "+0 is larger than -0"),
        ("redux.sync.max.f32", [(0x7FC00000, *[0xBF800000] * 31)], _same(0xBF800000), "NaN is passed over"),
        ("redux.sync.min.f32", [_same(0x7FC00001)], _same(0x7FFFFFFF), "all NaN: canonical NaN"),
        ("redux.sync.min.NaN.f32", [(*[0x3F800000] * 31, 0xFFC00001)], _same(0x7FFFFFFF), ".NaN: any NaN"),
        ("redux.sync.max.abs.f32", [(0xC0000000, *[0x3F800000] * 31)], _same(0x40000000), ".abs: magnitudes"),
        ("redux.sync.min.abs.NaN.f32", [(0xC0000000, *[0xBF800000] * 31)], _same(0x3F800000), "magnitudes, no NaN"),
    ], _REDUX),
]

ELECT: list[Vector] = [
    *vectors("b32 -> b32", "Parallel Synchronization and Communication Instructions: elect.sync", [
        ("elect.sync", [LANE], _same(1), "one leader, whose lane number all threads get"),
    ], """{m} %r1|%p0, 0xffffffff;
vote.sync.ballot.b32 %r2, %p0, 0xffffffff;
popc.b32 %o0, %r2;
shr.u32 %r2, %r2, %r1;
and.b32 %o0, %o0, %r2;"""),
]

VECTORS = [*SHFL, *VOTE, *MATCH, *REDUX, *ELECT]
