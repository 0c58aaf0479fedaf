"""Launches of every kernel in the interpreter against what the analysis claims."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.soundness as soundness
from ptxparse.api import Range
from softgpu.reference import Schedule, UnsupportedInstruction
from tests.launches import expectations
from tests.launches.case import LaunchCase
from tests.launches.catalog import all_kernels
from tests.launches.place import place
from tests.launches.registry import KernelLaunches
from tests.material import require_material
from tests.soundness import Outcome, examine, program_of, schedules_agree

KERNELS = all_kernels()
RUNNING = [kernel for kernel in KERNELS if not kernel.refused]
BY_NAME = {kernel.name: kernel for kernel in KERNELS}


def ids(kernel: KernelLaunches) -> str:
    return kernel.name


def present(names: object) -> list[str]:
    """Those of the names whose kernels are here (the corpus may not be)."""
    return [name for name in BY_NAME if name in names]  # type: ignore[operator]


def describe(outcome: Outcome, case: LaunchCase, number: int) -> str:
    return f"case {number}, grid {case.grid}, block {case.block}: " + "; ".join(outcome.violations)


@pytest.mark.parametrize("kernel", RUNNING, ids=ids)
def test_every_access_lies_inside(kernel: KernelLaunches, long_run: bool) -> None:
    for number, case in enumerate(kernel.first(24 if long_run else 3, seed=1)):
        outcome = examine(kernel, case)
        assert not outcome.violations, describe(outcome, case, number)


@pytest.mark.long
@pytest.mark.parametrize("kernel", RUNNING, ids=ids)
def test_every_access_of_large_launches_lies_inside(kernel: KernelLaunches) -> None:
    for number, case in enumerate(kernel.first(6, seed=2, large=True)):
        outcome = examine(kernel, case, Schedule("random", seed=number))
        assert not outcome.violations, describe(outcome, case, number)


def known_buffers(case: LaunchCase) -> list[str]:
    """Buffers of whole numbers: their contents may be known to the evaluation."""
    return [b.name for b in case.buffers() if isinstance(b.data, np.ndarray) and b.data.dtype.kind in "iu"]


@pytest.mark.parametrize("kernel", [k for k in RUNNING if not program_of(k).opaque], ids=ids)
def test_known_contents_stay_sound(kernel: KernelLaunches, long_run: bool) -> None:
    for number, case in enumerate(kernel.first(10 if long_run else 1, seed=3)):
        known = known_buffers(case)
        if not known:
            continue
        outcome = examine(kernel, case, known=known)
        assert not outcome.violations, describe(outcome, case, number)


THROUGH_TABLES = (
    "gather:embedding", "gather:gather_int32", "rope:rope_table", "nvcc_k07_embed_sm80:embed",
)


@pytest.mark.parametrize("name", [n for n in THROUGH_TABLES if n in BY_NAME])
def test_known_tables_make_gathers_exact(name: str) -> None:
    kernel = BY_NAME[name]
    for number, case in enumerate(kernel.first(6, seed=4)):
        outcome = examine(kernel, case, known=known_buffers(case))
        assert not outcome.violations, describe(outcome, case, number)
        assert not [e for e in outcome.extents if not e.equal], f"case {number}"


@pytest.mark.parametrize("kernel", [k for k in RUNNING if program_of(k).deterministic], ids=ids)
def test_deterministic_kernels_do_not_depend_on_the_order_of_blocks(kernel: KernelLaunches, long_run: bool) -> None:
    for number, case in enumerate(kernel.first(8 if long_run else 2, seed=5)):
        if number or case.grid != (1, 1, 1):
            differing = schedules_agree(kernel, case, number)
            assert not differing, f"case {number}, grid {case.grid}: {differing}"


def test_named_kernels_are_deterministic_and_device_invariant() -> None:
    programs = {name: program_of(BY_NAME[name]) for name in present(expectations.MIRRORABLE)}
    assert not [name for name, p in programs.items() if not (p.deterministic and p.device_invariant)]
    assert len(programs) > 90


def test_unordered_and_device_dependent_kernels_are_not_taken_for_more() -> None:
    assert not [n for n in present(expectations.UNORDERED) if program_of(BY_NAME[n]).deterministic]
    assert not [n for n in present(expectations.DEVICE_DEPENDENT) if program_of(BY_NAME[n]).device_invariant]


def test_opaque_kernels_are_the_named_ones() -> None:
    found = {kernel.name: str(program_of(kernel).opaque) for kernel in KERNELS if program_of(kernel).opaque}
    assert found == {name: expectations.OPAQUE[name] for name in present(expectations.OPAQUE)}


def test_pinned_kernels_are_the_named_ones() -> None:
    pinned = {kernel.name: {str(reason) for reason, _ in program_of(kernel).pinned} for kernel in KERNELS}
    found = {name: reasons for name, reasons in pinned.items() if reasons}
    assert found == {name: expectations.PINNED[name] for name in present(expectations.PINNED)}


@pytest.mark.parametrize("name", present(expectations.EXACT))
def test_ranges_are_equal_to_the_byte(name: str, long_run: bool) -> None:
    kernel = BY_NAME[name]
    for number, case in enumerate(kernel.first(12 if long_run else 4, seed=6)):
        wide = [e for e in examine(kernel, case).extents if not e.equal]
        assert not wide, f"case {number}, grid {case.grid}, block {case.block}"


def test_the_interpreter_runs_all_of_the_corpus_but_one() -> None:
    require_material()
    corpus = [kernel for kernel in KERNELS if kernel.origin == "corpus"]
    assert len(corpus) == 115
    assert [kernel.name for kernel in corpus if kernel.refused] == ["triton_tma_matmul_sm90:tma_matmul"]


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel.refused], ids=ids)
def test_refused_kernels_are_refused_before_anything_runs(kernel: KernelLaunches) -> None:
    (case,) = kernel.first(1)
    placed = place(kernel, case)
    with pytest.raises(UnsupportedInstruction, match=r"line \d+"):
        soundness.run(placed)
    assert all(placed.bytes_of(name) == held for name, held in placed.before.items())


# The harness itself must be able to find a fault.


def changed(monkeypatch: pytest.MonkeyPatch, change: object) -> list[str]:
    """Violations of a saxpy and of a fill when every evaluated range is changed."""
    original = soundness.evaluated

    def evaluated(*arguments: object, **options: object) -> object:
        found = original(*arguments, **options)  # type: ignore[arg-type]
        return found._replace(ranges=tuple(r for old in found.ranges for r in change(old)))  # type: ignore[operator]

    monkeypatch.setattr(soundness, "evaluated", evaluated)
    violations = []
    for name in ("elementwise:saxpy_stride", "elementwise:fill_exact", "atomics:atomics_int"):
        for case in BY_NAME[name].first(3, seed=8):
            violations += examine(BY_NAME[name], case).violations
    return violations


CHANGES = {
    "a byte less at the end": lambda r: [r._replace(hi=r.hi - 1)],
    "a byte later": lambda r: [r._replace(lo=r.lo + 1)],
    "no reads": lambda r: [] if r.kind == "R" else [r],
    "writes taken for reads": lambda r: [r._replace(kind="R")] if "W" in r.kind else [r],
    "no atomics": lambda r: [] if r.kind == "A" else [r],
    "reads taken for must-writes": lambda r: [r, Range("MUSTW", r.allocation, r.lo, r.hi, True)],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_harness_finds_wrong_ranges(monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    assert changed(monkeypatch, change)


def test_the_harness_accepts_right_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not changed(monkeypatch, lambda r: [r])


def test_the_schedules_differ_enough_to_show_an_order() -> None:
    kernel = BY_NAME["atomics:atomics_ticket"]
    assert any(schedules_agree(kernel, case, 1) for case in kernel.first(8, seed=2))


intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=8)


@given(intervals, st.integers(0, 50), st.integers(1, 10))
def test_union_and_inside_agree_with_sets_of_bytes(pairs: list[tuple[int, int]], low: int, size: int) -> None:
    covered = {byte for lo, n in pairs for byte in range(lo, lo + n)}
    cover = soundness.union((lo, lo + n) for lo, n in pairs)
    assert {byte for lo, hi in cover.tolist() for byte in range(lo, hi)} == covered
    assert all(a[1] < b[0] for a, b in zip(cover.tolist(), cover.tolist()[1:], strict=False))
    held = soundness.inside(cover, np.array([low]), np.array([low + size]))[0]
    assert held == all(byte in covered for byte in range(low, low + size))
