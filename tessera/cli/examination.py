"""What ``tessera ptx`` found out about one file, before anybody words it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ptxparse.api import AccessProgram, Allocations, Amount, Evaluation, Range, analyze, count, evaluate, parse
from ptxparse.launch_text import (
    ALLOCATION_BASE,
    ALLOCATION_GAP,
    BoundLaunch,
    FreshAllocation,
    Launch,
    bind,
    fresh_allocations,
)
from ptxparse.model import Function, Module
from ptxparse.program import Access
from tessera.errors import TesseraError, UsageError

STANDARD_INPUT = "-"


class UnreadableFile(TesseraError):
    """A file that is named on the command line cannot be read."""


@dataclass
class LaunchFindings:
    """One launch of a kernel: how it was laid out, all memory made up for it, the part of that which holds the module's
    variables, what is read and written, amounts of work by class."""

    bound: BoundLaunch
    allocations: tuple[FreshAllocation, ...]
    placed: tuple[FreshAllocation, ...]
    evaluation: Evaluation
    counts: dict[str, Amount]


@dataclass
class KernelFindings:
    """A kernel as written and what the analysis says of it; ``launch`` if one was asked for."""

    function: Function
    program: AccessProgram
    launch: LaunchFindings | None = None

    @property
    def opaque(self) -> bool:
        """Whether nothing bounded can be said, of the kernel or of this launch."""
        launched = self.launch is not None and self.launch.evaluation.opaque is not None
        return launched or self.program.opaque is not None


@dataclass
class FileFindings:
    """A file: its module with its kernels, or the error that there is instead."""

    path: str
    module: Module | None = None
    kernels: list[KernelFindings] = field(default_factory=list)
    error: TesseraError | None = None


def read_text(path: str) -> str:
    """The text of a file, ``-`` for standard input. Bytes that are no UTF-8 (in comments, say) are replaced; NULs that
    end an embedded image are left out."""
    try:
        raw = sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    return raw.decode("utf-8", errors="replace").rstrip("\0")


def examine(path: str, kernel: str | None = None) -> FileFindings:
    """Read and analyse one file; an error of the file becomes part of the result."""
    try:
        module = parse(read_text(path), path)
    except TesseraError as error:
        return FileFindings(path, error=error)
    found = [KernelFindings(f, p) for f, p in zip(module.entries, analyze(module), strict=True)]
    return FileFindings(path, module, [k for k in found if kernel in (None, k.function.name)])


def apply_launch(files: Sequence[FileFindings], launch: Launch) -> None:
    """Evaluate the launch on the one kernel there is; raises UsageError when there are several."""
    kernels = [(file.module, kernel) for file in files for kernel in file.kernels]
    if len(kernels) > 1:
        names = ", ".join(kernel.function.name for _, kernel in kernels)
        raise UsageError(f"--launch is for one kernel, choose it with --kernel: {names}")
    for module, kernel in kernels:
        assert module is not None
        kernel.launch = launched(module, kernel, launch)


def launched(module: Module, kernel: KernelFindings, launch: Launch) -> LaunchFindings:
    """The launch laid out for the kernel, with addresses for the module's variables, and evaluated."""
    bound = bind(launch, kernel.function)
    after = bound.allocations[-1] if bound.allocations else None
    variables = [(v.name, v.size) for v in module.variables if v.space in ("global", "const") and v.size]
    placed = fresh_allocations(variables, after.address + after.size + ALLOCATION_GAP if after else ALLOCATION_BASE)
    allocations = (*bound.allocations, *placed)
    evaluation = evaluated(kernel.program, bound, allocations, placed)
    counts = count(kernel.program, launch.grid, launch.block, bound.params, launch.shared)
    return LaunchFindings(bound, allocations, placed, evaluation, counts)


def evaluated(
    program: AccessProgram,
    bound: BoundLaunch,
    allocations: Sequence[FreshAllocation],
    placed: Sequence[FreshAllocation],
) -> Evaluation:
    """The program evaluated for a launch; allocations go by their names, ``placed`` are the module's variables."""
    launch = bound.launch
    variables = {a.name: (a.address, a.size) for a in placed}
    return evaluate(
        program, launch.grid, launch.block, bound.params, Allocations(allocations), variables, shared=launch.shared
    )


def access_ranges(kernel: KernelFindings, access: Access) -> tuple[Range, ...]:
    """The ranges of one access of the kernel at its launch."""
    launch = kernel.launch
    if launch is None or kernel.opaque:
        return ()
    alone = replace(kernel.program, accesses=(access,))
    return evaluated(alone, launch.bound, launch.allocations, launch.placed).ranges
