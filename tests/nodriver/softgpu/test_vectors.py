"""The interpreter against vectors derived by hand from the PTX manual."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.reference_kernels import Run
from tests.vectors import VECTORS, Kernel, kernel_of, kernels, uniform_kernels
from tests.vectors.vector import NAN

CHAPTERS = sorted({vector.section.partition(":")[0] for vector in VECTORS})


def run(kernel: Kernel) -> list[str]:
    """Launch a kernel of vectors; a line for every wrong result."""
    machine = Run(kernel.text)
    out = machine.buffer(kernel.output_bytes)
    machine.launch(kernel.name, 1, kernel.threads, out, machine.buffer(kernel.inputs))
    return kernel.check(machine.read(out, kernel.output_bytes, np.uint8))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_interpreter_gives_what_the_manual_says(chapter: str) -> None:
    chosen = [vector for vector in VECTORS if vector.section.partition(":")[0] == chapter]
    wrong = [line for kernel in kernels(chosen) for line in run(kernel)]
    assert not wrong, "\n".join(wrong)


def test_many_bodies_in_one_kernel_do_not_disturb_each_other() -> None:
    assert [line for kernel in kernels(VECTORS, 64) for line in run(kernel)] == []


def test_threads_that_do_the_same_give_what_the_manual_says() -> None:
    assert [line for kernel in uniform_kernels(VECTORS, 64) for line in run(kernel)] == []


def test_a_wrong_result_is_found() -> None:
    for vector in VECTORS[::40]:
        first = vector.expected[0]
        changed: int | tuple[int, ...] = first + 1 if isinstance(first, int) else (*first[:-1], first[-1] ^ 1)
        wrong = run(kernel_of(replace(vector, expected=(changed, *vector.expected[1:]))))
        assert first == NAN or (wrong and wrong[0].startswith(vector.mnemonic)), vector.name


def test_vectors_are_not_repeated() -> None:
    seen = {(v.body, v.sources, v.operands) for v in VECTORS}
    assert len(seen) == len(VECTORS) > 700


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")
def test_the_assembler_accepts_every_kernel(tmp_path: Path) -> None:
    source = tmp_path / "vectors.ptx"
    (kernel,) = kernels(VECTORS, 10_000)
    source.write_text(kernel.text)
    command = ["ptxas", "-arch=sm_100a", "-O0", "-o", str(tmp_path / "vectors.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = kernel.text.splitlines()
    wrong = [lines[int(number) - 1] for number in re.findall(r"line (\d+); error", done.stderr)]
    assert done.returncode == 0, (wrong, done.stderr[:500])
