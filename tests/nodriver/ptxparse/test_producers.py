"""Soundness and precision on modules compiled now, from sources that are in neither the fixtures nor the corpus."""

from __future__ import annotations

import pytest

from tests.launches.registry import KernelLaunches
from tests.producers import PRODUCERS, compiled_by
from tests.soundness import examine, program_of, resolution


def kernels_of(producer: str) -> tuple[KernelLaunches, ...]:
    """The kernels of one producer; skips the test where its compiler is not installed."""
    found = compiled_by(producer)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.parametrize("producer", PRODUCERS)
def test_ranges_of_modules_compiled_now_are_sound_and_tight(producer: str, long_run: bool) -> None:
    kernels = kernels_of(producer)
    assert kernels
    evaluated = {"R": 0, "W": 0}
    hulls = {"R": 0, "W": 0}
    for kernel in kernels:
        assert program_of(kernel).opaque is None, kernel.name
        assert resolution(kernel).unresolved == 0, kernel.name
        for number, case in enumerate(kernel.first(20 if long_run else 3, seed=9)):
            outcome = examine(kernel, case)
            assert not outcome.violations, f"case {number}, grid {case.grid}, block {case.block}"
            if not kernel.data_dependent:
                for extent in outcome.extents:
                    evaluated[extent.kind] += extent.evaluated_bytes
                    hulls[extent.kind] += extent.hull_bytes
    assert evaluated["R"] <= 1.05 * hulls["R"]
    assert evaluated["W"] <= 1.05 * hulls["W"]
