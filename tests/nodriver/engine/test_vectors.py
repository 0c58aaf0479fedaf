"""The engine against vectors derived by hand from the PTX manual: its tables of operations, each instruction on its
own, and launched kernels."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest

from softgpu.engine import LoadedModule, Memory, launch
from softgpu.engine.emit.dispatch import operations
from softgpu.engine.ops.operation import Operation
from tests.nodriver.engine.evaluate import compiled, stored
from tests.vectors import VECTORS, Kernel, Vector, kernels, uniform_kernels
from tests.vectors.kernel import is_nan
from tests.vectors.vector import NAN

BODIES = 32
"""Vectors' bodies in one kernel: compiling costs less than one by one."""


BARE = re.compile(r"(?P<name>[\w.:]+) (?P<operands>[%\w|, ]+);$")
"""A body that is one instruction with nothing but registers."""


def pure(vector: Vector, table: dict[str, Operation]) -> Operation | None:
    """The operation that a vector's body is, its operands in order, if it is one and nothing else."""
    match = BARE.match(vector.body)
    operation = table.get(vector.mnemonic)
    if match is None or match["name"] != vector.mnemonic or vector.of_warp or operation is None or operation.warp:
        return None
    named = re.findall(r"%(\w+)", match["operands"])
    wanted = [f"o{i}" for i in range(len(vector.results))] + [f"i{i}" for i in range(len(vector.sources))]
    if named != wanted or len(operation.sources) != len(vector.sources):
        return None
    return operation


def test_operations_give_what_the_manual_says() -> None:
    table = operations(0)
    groups: dict[str, list[Vector]] = defaultdict(list)
    for vector in VECTORS:
        if pure(vector, table) is not None:
            groups[vector.mnemonic].append(vector)
    assert sum(map(len, groups.values())) > 400
    chosen = [table[mnemonic] for mnemonic in groups]
    wrong = []
    for function, vectors in zip(compiled(chosen), groups.values(), strict=True):
        operands = [np.array(column, np.uint64).astype(stored(kind)) for kind, column in
                    zip(function.operation.sources, zip(*(v.operands for v in vectors), strict=True), strict=True)]
        results = function(*operands)
        for row, vector in enumerate(vectors):
            for number, wanted in enumerate(vector.expected):
                assert isinstance(wanted, int)
                found = int(results[number][row])
                kind = function.operation.results[number]
                if vector.results[number] == "b32" and stored(kind).itemsize < 4 and kind[0] == "s":
                    found = found - ((found >> 8 * stored(kind).itemsize - 1) << 8 * stored(kind).itemsize) & 0xFFFFFFFF
                if found != wanted and not (wanted == NAN and is_nan(found, vector.results[number])):
                    wrong.append(f"{vector.name}: result {number} is {found:#x}, expected {wanted:#x} ({vector.why})")
    assert not wrong, "\n".join(wrong)


def run(kernel: Kernel) -> list[str]:
    """Launch a kernel of vectors; a line for every wrong result."""
    outputs = np.zeros(kernel.output_bytes, np.uint8)
    launch(LoadedModule(kernel.text, Memory()), kernel.name, 1, kernel.threads, [outputs, kernel.inputs])
    return kernel.check(outputs)


def test_kernels_give_what_the_manual_says(long_run: bool) -> None:
    table = operations(0)
    # Instructions that are a pure operation have been tried above; here all others, and some of those.
    chosen = [v for n, v in enumerate(VECTORS) if long_run or n % 8 == 0 or pure(v, table) is None]
    wrong = [line for kernel in kernels(chosen, BODIES) for line in run(kernel)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_kernels_whose_threads_do_the_same_give_what_the_manual_says() -> None:
    wrong = [line for kernel in uniform_kernels(VECTORS, BODIES) for line in run(kernel)]
    assert not wrong, "\n".join(wrong)
