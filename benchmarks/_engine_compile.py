"""Compilation of every kernel of the corpus with nothing remembered, in parts, by processor time."""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import dataclass

from _common import Row, quantile

from ptxparse.parser import parse
from softgpu.engine.errors import UnsupportedKernel
from softgpu.engine.kernel import translate
from softgpu.engine.linker import shared_object
from softgpu.engine.objects import QUICK, _optimized
from softgpu.engine.options import Options
from softgpu.engine.target import host_target
from tests.launches.catalog import corpus_kernels
from tests.launches.place import entry_of, text_of
from tests.launches.registry import KernelLaunches

PARTS = ("parsing", "IR generation", "LLVM passes", "code generation", "linking")
"""LLVM's reading of the IR text is counted to its passes."""
RUNS = 3


@dataclass(frozen=True)
class Compiled:
    """A kernel's name, and milliseconds of each part: of the run that was fastest as a whole."""

    name: str
    parts: tuple[float, ...]

    @property
    def whole(self) -> float:
        return sum(self.parts)


def rows() -> tuple[list[Row], str]:
    """The figures, and a note about them."""
    kernels = corpus_kernels()
    if not kernels:
        return [], "The corpus is not there, so its compilation is not measured. "
    times, refused = [], []
    _once(kernels[0])  # LLVM sets itself up at its first compilation
    for kernel in kernels:
        try:
            times.append(min([_once(kernel) for _ in range(RUNS)], key=lambda found: found.whole))
        except UnsupportedKernel:
            refused.append(kernel.name)
    whole = [found.whole for found in times]
    slowest = max(times, key=lambda found: found.whole)
    found = [
        Row("compile a kernel, median", statistics.median(whole), "ms", 40),
        Row("compile a kernel, 95th percentile", quantile(whole, 0.95), "ms"),
        Row(f"compile a kernel, slowest ({slowest.name})", slowest.whole, "ms", 1000),
    ]
    for number, part in enumerate(PARTS):
        of_part = [found.parts[number] for found in times]
        found.append(Row(f"compile, {part}, median", statistics.median(of_part), "ms"))
        found.append(Row(f"compile, {part}, 95th percentile", quantile(of_part, 0.95), "ms"))
        found.append(Row(f"compile, {part}, of the slowest", slowest.parts[number], "ms"))
    note = f"{len(times)} kernels of the corpus compiled for the block of their first launch"
    return found, f"{note}; refused: {', '.join(refused)}. " if refused else f"{note}. "


def _once(kernel: KernelLaunches) -> Compiled:
    (case,) = kernel.first(1, seed=1)
    block = (*case.block, 1, 1)[:3]
    text, target = text_of(kernel), host_target()
    marks = [time.process_time()]

    def mark() -> None:
        marks.append(time.process_time())

    module = parse(text)
    mark()
    entry = module.function(entry_of(kernel).name)
    assert entry is not None
    ir = translate(module, entry, Options((block[0], block[1], block[2])), target).text
    mark()
    optimized, machine = _optimized(ir, QUICK, target, verify=False)
    mark()
    relocatable = bytes(machine.emit_object(optimized))
    mark()
    shared_object(relocatable)
    mark()
    return Compiled(kernel.name, tuple((end - begin) * 1e3 for begin, end in itertools.pairwise(marks)))
