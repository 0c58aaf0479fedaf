"""The least bytes that a placement has to move, counted from what a bare run really touched, byte by byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from tests.shadow.outcome import Logged, Ranges
from tests.soundness import union

NOTHING: Ranges = ()


class Least(NamedTuple):
    """Bytes that come to GPUs before launches, and that come home behind them."""

    gather: int
    apply: int


def least(log: Iterable[Logged], placement: Mapping[tuple[int, int], Sequence[int]],
          everywhere: Ranges = NOTHING) -> Least:
    """Of the log of a bare run without a seed. ``placement``: for a launch, by sequence and node, what
    :meth:`orchestrator.session.placement.Placement.devices` said; without, it stays at home. What launches of one
    segment write comes home once; what is mirrored does not. ``everywhere``: what all GPUs have at the beginning, as
    variables of modules, which are :attr:`tests.shadow.Outcome.places`."""
    valid: defaultdict[int, Ranges] = defaultdict(lambda: _plus(everywhere))
    gather = apply = 0
    for (_, sent, mirrored), group in groupby(log, lambda one: _segment(one, placement)):
        written = NOTHING
        for one in group:
            for device in sent:
                gather += _count(_minus(one.read, valid[device]))
                valid[device] = _plus(valid[device], one.read, one.written)
            for device in valid:
                if device not in sent:
                    valid[device] = _minus(valid[device], _plus(one.written))
            written = _plus(written, one.written)
        if sent and not mirrored:
            apply += _count(written)
    return Least(gather, apply)


def _segment(one: Logged, placement: Mapping[tuple[int, int], Sequence[int]]) -> tuple[int, tuple[int, ...], bool]:
    """What has the same belongs together; the GPUs other than home, and whether it runs at home as well."""
    devices = placement.get((one.sequence, one.node), ()) if one.kernel else ()
    others = tuple(device for device in devices if device != one.home)
    mirrored = one.home in devices
    return one.run, others if mirrored else others[:1], mirrored


def _plus(*ranges: Ranges) -> Ranges:
    return tuple((lo, hi) for lo, hi in union(pair for some in ranges for pair in some).tolist())


def _minus(ranges: Ranges, gone: Ranges) -> Ranges:
    """What is left of sorted, disjoint ranges."""
    found, at = [], 0
    for lo, hi in ranges:
        while at < len(gone) and gone[at][1] <= lo:
            at += 1
        k = at
        while k < len(gone) and gone[k][0] < hi:
            if lo < gone[k][0]:
                found.append((lo, gone[k][0]))
            lo = max(lo, gone[k][1])
            k += 1
        if lo < hi:
            found.append((lo, hi))
    return tuple(found)


def _count(ranges: Ranges) -> int:
    return sum(hi - lo for lo, hi in ranges)
