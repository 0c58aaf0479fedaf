"""The proof by running: a launch in the interpreter against what its access program says.

:func:`examine` runs one case and returns plain records: what was violated (nothing, if the analysis is sound), and for
every allocation the bytes really touched beside the bytes evaluated, which is where the precision benchmark gets its
figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxparse.api import AccessProgram, Allocations, Evaluation, analyze, evaluate
from softgpu.reference import LaunchResult, Schedule, launch
from tessera.reasons import Reason
from tests.launches.case import LaunchCase
from tests.launches.place import Placed, entry_of, module_of, place
from tests.launches.registry import KernelLaunches

Intervals = npt.NDArray[np.int64]
"""Rows (lo, hi), sorted, disjoint and not touching; offsets in bytes."""

ALLOWED = {b"R": ("R", "A"), b"W": ("MAYW", "MUSTW", "A"), b"A": ("A",)}
"""Kinds of range that may hold a logged access of each kind."""


class Extent(NamedTuple):
    """Bytes of one allocation: ``touched`` [lo, hi) from the first to the last byte that the launch really accessed
    (None: it accessed none), ``evaluated`` the same of the ranges. ``touched_bytes`` and ``evaluated_bytes`` leave
    gaps out. ``kind`` is R (reads) or W (writes and atomics)."""

    kernel: str
    allocation: object
    kind: str
    touched: tuple[int, int] | None
    evaluated: tuple[int, int] | None
    touched_bytes: int
    evaluated_bytes: int

    @property
    def hull_bytes(self) -> int:
        """Size of ``touched``."""
        return self.touched[1] - self.touched[0] if self.touched else 0

    @property
    def equal(self) -> bool:
        """Whether the evaluated ranges begin and end with the bytes really touched."""
        return self.touched == self.evaluated


@dataclass
class Outcome:
    """What one case showed. ``violations`` are sentences; with ``opaque`` set nothing was claimed, nor checked."""

    kernel: str
    opaque: Reason | None
    pinned: tuple[Reason, ...]
    accesses: int
    violations: list[str] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)
    memory: dict[str, bytes] = field(default_factory=dict)


@cache
def programs(kernel: KernelLaunches) -> dict[str, AccessProgram]:
    """Access programs of the module that holds the kernel, by kernel name."""
    return _analysed(module_of(kernel))


_analyses: dict[int, dict[str, AccessProgram]] = {}


def _analysed(module: Any) -> dict[str, AccessProgram]:
    found = _analyses.get(id(module))
    if found is None:
        found = _analyses[id(module)] = {program.kernel: program for program in analyze(module)}
    return found


def program_of(kernel: KernelLaunches) -> AccessProgram:
    """The access program of a kernel with launches."""
    return programs(kernel)[entry_of(kernel).name]


def allocations_of(placed: Placed) -> Allocations:
    """The case's buffers as allocations; module variables are given apart."""
    return Allocations([(name, address, max(placed.sizes[name], 1)) for name, address in placed.addresses.items()])


def evaluated(
    kernel: KernelLaunches, placed: Placed, allocations: Allocations, known: Sequence[str] = ()
) -> Evaluation:
    """The evaluation of a placed case; ``known`` names buffers whose contents are given to it."""
    contents = [(name, 0, placed.before[name]) for name in known if placed.before[name]]
    case = placed.case
    return evaluate(program_of(kernel), case.grid, case.block, placed.parameters, allocations,
                    module_globals=placed.loaded.globals, contents=contents or None, shared=case.shared)


def run(placed: Placed, schedule: Schedule | None = None, log: bool = True) -> LaunchResult:
    """Launches a placed case."""
    case = placed.case
    return launch(placed.loaded, placed.entry.name, case.grid, case.block, placed.parameters, shared=case.shared,
                  schedule=schedule, log=log, cooperative=case.cooperative)


def examine(
    kernel: KernelLaunches, case: LaunchCase, schedule: Schedule | None = None, known: Sequence[str] = ()
) -> Outcome:
    """Runs a case and compares every access with the evaluation: (a) each lies inside ranges of its kind, (b) every
    byte of every must-write range was written."""
    placed = place(kernel, case)
    allocations = allocations_of(placed)
    evaluation = evaluated(kernel, placed, allocations, known)
    result = run(placed, schedule)
    outcome = Outcome(kernel.name, evaluation.opaque, evaluation.pinned, len(result.log))
    outcome.memory = {name: placed.bytes_of(name) for name in (*placed.addresses, *placed.loaded.globals)}
    if evaluation.opaque is not None:
        return outcome
    entries = result.log.entries
    if result.workspace is not None:
        low, size = result.workspace
        entries = entries[(entries["address"] < low) | (entries["address"] >= low + size)]
    remaining = len(entries)
    places = [(a.id, a.address, a.size) for a in allocations.items]
    # Constant variables are read through their own space: no access to global memory.
    spaces = {variable.name: variable.space for variable in module_of(kernel).variables}
    places += [(name, *place) for name, place in placed.loaded.globals.items() if spaces.get(name) != "const"]
    for identity, address, size in places:
        mine = entries[(entries["address"] >= address) & (entries["address"] < address + size)]
        remaining -= len(mine)
        ranges = [r for r in evaluation.ranges if r.allocation == identity]
        offsets = mine["address"].astype(np.int64) - address
        _check_inside(outcome, identity, mine, offsets, ranges)
        _check_written(outcome, identity, mine, offsets, ranges, size)
        _measure(outcome, identity, mine, offsets, ranges)
    if remaining:
        outcome.violations.append(f"{kernel.name}: {remaining} accesses in no allocation")
    return outcome


def _check_inside(outcome: Outcome, identity: object, mine: Any, offsets: Intervals, ranges: Sequence[Any]) -> None:
    for kind, allowed in ALLOWED.items():
        chosen = mine["kind"] == kind
        if not chosen.any():
            continue
        cover = union((r.lo, r.hi) for r in ranges if r.kind in allowed)
        low = offsets[chosen]
        high = low + mine["width"][chosen]
        outside = ~inside(cover, low, high)
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            entry = mine[chosen][first]
            outcome.violations.append(
                f"{outcome.kernel}: {int(outside.sum())} accesses {kind.decode()} outside {cover.tolist()} of "
                f"{identity}, first bytes [{low[first]}, {high[first]}) at line {entry['line']}, "
                f"block {entry['block']}, thread {entry['thread']}")


def _check_written(
    outcome: Outcome, identity: object, mine: Any, offsets: Intervals, ranges: Sequence[Any], size: int
) -> None:
    must = [r for r in ranges if r.kind == "MUSTW"]
    if not must:
        return
    writes = mine["kind"] == b"W"
    written = union(zip(offsets[writes], offsets[writes] + mine["width"][writes], strict=True))
    for r in must:
        if r.lo < r.hi and not inside(written, np.array([r.lo]), np.array([r.hi]))[0]:
            outcome.violations.append(
                f"{outcome.kernel}: must-write [{r.lo}, {r.hi}) of {identity} is not fully written: "
                f"{written.tolist()[:4]}")


def _measure(outcome: Outcome, identity: object, mine: Any, offsets: Intervals, ranges: Sequence[Any]) -> None:
    for kind, logged, claimed in (("R", (b"R",), ("R",)), ("W", (b"W", b"A"), ("MAYW", "MUSTW", "A"))):
        chosen = np.isin(mine["kind"], logged)
        cover = union((r.lo, r.hi) for r in ranges if r.kind in claimed)
        real = union(zip(offsets[chosen], offsets[chosen] + mine["width"][chosen], strict=True))
        if len(real) or len(cover):
            outcome.extents.append(
                Extent(outcome.kernel, identity, kind, hull(real), hull(cover), length(real), length(cover)))


def hull(intervals: Intervals) -> tuple[int, int] | None:
    """From the first to past the last byte; None of no intervals."""
    return (int(intervals[0, 0]), int(intervals[-1, 1])) if len(intervals) else None


def length(intervals: Intervals) -> int:
    """Bytes in disjoint intervals."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def union(pairs: Iterable[tuple[int, int]]) -> Intervals:
    """The union of half-open intervals; empty ones do not count."""
    rows = np.array(list(pairs), np.int64).reshape(-1, 2)
    rows = rows[rows[:, 0] < rows[:, 1]]
    if not len(rows):
        return rows
    rows = np.unique(rows, axis=0)
    reach = np.maximum.accumulate(rows[:, 1])
    first = np.append(True, rows[1:, 0] > reach[:-1])
    starts = rows[first, 0]
    ends = reach[np.append(np.flatnonzero(first)[1:] - 1, len(rows) - 1)]
    return np.stack([starts, ends], axis=1)


def inside(cover: Intervals, low: Intervals, high: Intervals) -> npt.NDArray[np.bool_]:
    """For each [low, high): does one of the disjoint intervals hold it?"""
    if not len(cover):
        return np.zeros(len(low), np.bool_)
    at = np.searchsorted(cover[:, 0], low, side="right") - 1
    held: npt.NDArray[np.bool_] = (at >= 0) & (high <= cover[np.maximum(at, 0), 1])
    return held


def schedules_agree(kernel: KernelLaunches, case: LaunchCase, seed: int) -> list[str]:
    """(c) Names of buffers and variables whose bytes differ between two orders of the blocks."""
    found = []
    for schedule in (Schedule("reverse"), Schedule("random", seed=seed, together=1, quantum=7)):
        placed = place(kernel, case)
        run(placed, schedule, log=False)
        found.append({name: placed.bytes_of(name) for name in (*placed.addresses, *placed.loaded.globals)})
    return [name for name in found[0] if found[0][name] != found[1][name]]


class Resolution(NamedTuple):
    """(e) Static accesses of a kernel to global memory, and how many have a base. ``loaded`` are those through pointers
    that were themselves loaded from memory."""

    kernel: str
    resolved: int
    unresolved: int
    loaded: int
    reasons: tuple[Reason, ...]


def resolution(kernel: KernelLaunches) -> Resolution:
    """Counts of the kernel's static accesses."""
    program = program_of(kernel)
    reasons = [reason for reason, _ in program.problems]
    loaded = reasons.count(Reason.POINTER_FROM_MEMORY)
    return Resolution(kernel.name, sum(a.instructions for a in program.accesses), program.unresolved, loaded,
                      tuple(dict.fromkeys(reasons)))
