"""Intervals and interval maps do what a set and a dictionary of single bytes do."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.session.intervals import Extent, IntervalMap, Intervals

SIZE = 40
SPANS = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE))  # also empty and reversed ones
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove"]), SPANS), max_size=30)
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "update", "remove"]), SPANS, st.integers(1, 3)), max_size=30)


def bytes_of(spans: list[Extent]) -> set[int]:
    return {byte for lo, hi in spans for byte in range(lo, hi)}


def apart(spans: list[Extent]) -> bool:
    """Whether spans are in order, not empty, and do not touch."""
    return all(lo < hi for lo, hi in spans) and all(a[1] < b[0] for a, b in pairwise(spans))


@given(STEPS, SPANS)
def test_intervals_are_a_set_of_bytes(steps: list[tuple[str, Extent]], asked: Extent) -> None:
    intervals, model = Intervals(), set[int]()
    for what, (lo, hi) in steps:
        if what == "add":
            intervals.add(lo, hi)
            model |= set(range(lo, hi))
        else:
            intervals.remove(lo, hi)
            model -= set(range(lo, hi))
        assert bytes_of(list(intervals)) == model
        assert apart(list(intervals))
    wanted = set(range(*asked))
    assert intervals.total() == len(model)
    assert len(intervals) == len(list(intervals))
    assert bytes_of(intervals.overlap(*asked)) == wanted & model
    assert bytes_of(intervals.missing(*asked)) == wanted - model
    assert apart(intervals.overlap(*asked)) and apart(intervals.missing(*asked))
    assert intervals.contains(*asked) == (wanted <= model)


@given(STEPS, SPANS)
def test_a_copy_is_equal_and_its_own(steps: list[tuple[str, Extent]], more: Extent) -> None:
    intervals = Intervals()
    for what, span in steps:
        getattr(intervals, what)(*span)
    copy = intervals.copy()
    assert copy == intervals == Intervals(intervals)
    before = list(intervals)
    copy.add(*more)
    assert list(intervals) == before
    assert (copy == intervals) == intervals.contains(*more)
    copy.clear()
    assert list(copy) == [] and list(intervals) == before


def mixed(old: int | None, value: int) -> int | None:
    """A function of an old value and a number, which also takes values away."""
    result = ((old or 0) + value) % 4
    return result or None


@given(CHANGES, SPANS)
def test_an_interval_map_is_a_dictionary_of_bytes(changes: list[tuple[str, Extent, int]], asked: Extent) -> None:
    intervals: IntervalMap[int] = IntervalMap()
    model: dict[int, int | None] = dict.fromkeys(range(SIZE))
    for what, (lo, hi), value in changes:
        if what == "set":
            intervals.set(lo, hi, value)
        elif what == "remove":
            intervals.remove(lo, hi)
        else:
            intervals.update(lo, hi, lambda old, value=value: mixed(old, value))  # type: ignore[misc]
        for byte in range(lo, hi):
            model[byte] = {"set": value, "remove": None}.get(what, mixed(model[byte], value))
        found = list(intervals)
        assert {byte: v for start, end, v in found for byte in range(start, end)} == \
            {byte: v for byte, v in model.items() if v is not None}
        assert all(a[1] < b[0] or a[2] != b[2] for a, b in pairwise(found)), "merged"
        assert len(intervals) == len(found)
        assert intervals.changes == len({edge for lo, hi, _ in found for edge in (lo, hi)})
    assert {byte: v for lo, hi, v in intervals.get(*asked) for byte in range(lo, hi)} == \
        {byte: model[byte] for byte in range(*asked) if model[byte] is not None}
    pieces = intervals.pieces(*asked)
    assert [byte for lo, hi, _ in pieces for byte in range(lo, hi)] == list(range(*asked))
    assert all(model[byte] == value for lo, hi, value in pieces for byte in range(lo, hi))


def test_copies_of_a_map_are_their_own() -> None:
    intervals: IntervalMap[str] = IntervalMap()
    intervals.set(3, 9, "a")
    copy = intervals.copy()
    assert copy == intervals
    copy.set(5, 7, "b")
    assert list(intervals) == [(3, 9, "a")] and copy != intervals
    copy.clear()
    assert list(copy) == [] and copy == IntervalMap()


def test_edges_far_apart_cost_nothing() -> None:
    intervals = Intervals([(0, 1 << 63), (1 << 64, (1 << 64) + 8)])
    assert intervals.total() == (1 << 63) + 8
    assert intervals.missing(0, 1 << 65) == [(1 << 63, 1 << 64), ((1 << 64) + 8, 1 << 65)]
