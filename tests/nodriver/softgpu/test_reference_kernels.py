"""Compiled kernels in the interpreter against numpy: is the oracle itself right?"""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.reference import KernelTrap, Schedule, launch
from tests.launches.case import Buffer, LaunchCase, Packed, buffer
from tests.launches.catalog import all_kernels
from tests.launches.place import Placed, place
from tests.launches.registry import KernelLaunches
from tests.references import REFERENCES, Inputs, compare

CHECKED = [kernel for kernel in all_kernels() if kernel.name in REFERENCES]
BY_NAME = {kernel.name: kernel for kernel in all_kernels()}


def run(kernel: KernelLaunches, case: LaunchCase, schedule: Schedule | None = None) -> Placed:
    """The case's memory after the launch."""
    placed = place(kernel, case)
    launch(placed.loaded, placed.entry.name, case.grid, case.block, placed.parameters, shared=case.shared, log=False,
           cooperative=case.cooperative, schedule=schedule)
    return placed


def check(kernel: KernelLaunches, case: LaunchCase, schedule: Schedule | None = None) -> None:
    """Runs a case and compares every buffer with what the reference says, or with what it held before."""
    reference = REFERENCES[kernel.name]
    placed = run(kernel, case, schedule)
    expected = {}
    for key, value in reference.compute(Inputs(case)).items():
        name = key.name if isinstance(key, Buffer) else key
        argument = case.arguments.get(name)
        if argument is not None and not isinstance(key, Buffer):
            name = next(b.name for b in case.buffers() if argument is b or getattr(argument, "buffer", None) is b)
        expected[name] = value
    for found in case.buffers():
        where = f"{kernel.name} grid {case.grid} block {case.block}: {found.name}"
        if found.name in expected and isinstance(found.data, np.ndarray):
            held = np.frombuffer(placed.bytes_of(found.name), found.data.dtype)
            compare(expected.pop(found.name), held, reference, where)
        elif not reference.partial:
            before = placed.before[found.name]
            assert placed.bytes_of(found.name) == before, f"{where} changed"
    for name, value in expected.items():
        variable = name.removeprefix("global ")
        given = np.asarray(value)
        held = np.frombuffer(placed.bytes_of(variable), np.float32 if given.dtype.kind == "f" else np.int32)
        compare(value, held, reference, f"{kernel.name}: variable {variable}")


@pytest.mark.parametrize("kernel", CHECKED, ids=lambda kernel: kernel.name)
def test_kernel_computes_its_operator(kernel: KernelLaunches, long_run: bool) -> None:
    count = 40 if long_run else 5
    for number, case in enumerate(kernel.first(count, seed=7, large=False)):
        check(kernel, case, Schedule("random", seed=number) if number % 2 else None)


def test_exchange_leaves_the_last_and_shows_the_others() -> None:
    kernel = BY_NAME["atomics:atomics_exchange"]
    for case in kernel.first(4):
        placed = run(kernel, case)
        n = int(case.arguments["n"])  # type: ignore[arg-type]
        start = int(case.arguments["slot"].data[0])  # type: ignore[union-attr, arg-type, index]
        left = [int(v) for v in (*placed.array("seen"), *placed.array("slot"))]
        assert sorted(left) == sorted([start, *range(n)])
        assert n == 0 or 1 <= int(placed.array("wide")[0]) <= n


def test_printf_writes_what_c_would() -> None:
    kernel = BY_NAME["calls:print_values"]
    for case in kernel.first(4):
        placed = place(kernel, case)
        result = launch(placed.loaded, placed.entry.name, case.grid, case.block, placed.parameters)
        inputs = Inputs(case)
        lines = [f"value {i}: {v} {f:5.2f} {'negative' if v < 0 else 'fine'}"
                 for i, (v, f) in enumerate(zip(inputs.x, inputs.f, strict=True))]
        assert sorted(result.output.decode().splitlines()) == sorted(lines)


def test_failed_assertion_traps() -> None:
    kernel = BY_NAME["calls:assert_positive"]
    case = kernel.first(1)[0]
    bad = LaunchCase(case.grid, case.block, {**case.arguments, "x": buffer([-1], np.int32)})
    placed = place(kernel, bad)
    with pytest.raises(KernelTrap):
        launch(placed.loaded, placed.entry.name, bad.grid, bad.block, placed.parameters)


def test_every_fixture_kernel_is_checked() -> None:
    """A kernel without a reference is one that another test here covers, or that the interpreter refuses."""
    unchecked = {k.name for k in all_kernels() if k.origin == "fixtures" and not k.refused} - set(REFERENCES)
    assert unchecked == {"calls:print_values"}


def test_packed_structs_follow_the_rules_of_c() -> None:
    assert Packed("bh", (1, 2)).size == 4
    assert Packed("Pi", (0, 1)).size == 16
    assert Packed("Pi5i5q", (0,) * 12).size == 8 + 24 + 40
