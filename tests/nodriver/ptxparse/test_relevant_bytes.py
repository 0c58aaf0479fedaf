"""Parameters on which the ranges of a launch do not depend may be anything."""

from __future__ import annotations

from random import Random

import pytest

from ptxparse.api import Allocations, analyze_kernel, evaluate, relevant_bytes
from tests.launches.catalog import all_kernels
from tests.launches.place import entry_of, module_of, place

KERNELS = list(all_kernels())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_other_bytes_change_nothing(kernel: object) -> None:
    rng = Random(1)
    for case in kernel.first(2, seed=1):  # type: ignore[attr-defined]
        placed = place(kernel, case)
        program = analyze_kernel(module_of(kernel), entry_of(kernel))
        allocations = Allocations([(name, placed.addresses[name], max(size, 1)) for name, size in placed.sizes.items()])
        launch, rest = (program, case.grid, case.block), (allocations, placed.loaded.globals, None, case.shared)
        found = evaluate(*launch, placed.parameters, *rest)
        relevant = {at for first, last in relevant_bytes(program) for at in range(first, last)}
        for _ in range(3):
            changed = bytes([byte if at in relevant else rng.randrange(256)
                             for at, byte in enumerate(placed.parameters)])
            assert evaluate(*launch, changed, *rest) == found
