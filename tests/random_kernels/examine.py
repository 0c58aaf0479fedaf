"""Launches of one module in the interpreter, compared with what the analysis says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxparse.api import (
    AccessProgram,
    Allocations,
    Evaluation,
    analyze,
    count,
    evaluate,
    parse,
    program_from_json,
    program_to_json,
)
from ptxparse.opcodes import operation_count
from ptxparse.parser import mnemonic
from softgpu.reference import DeadlockError, InterpreterError, LaunchResult, MemoryFault, Schedule, StepLimit, launch
from tests.random_kernels.launches import Case, place
from tests.random_kernels.memory import BYTES
from tests.random_kernels.placed import Placed
from tests.soundness import ALLOWED, inside, union

STEPS = 6000
"""Issues of a launch at most; what takes longer is discarded."""


@dataclass
class Report:
    """What the launches of one module showed. ``violations`` are (check, sentence)."""

    violations: list[tuple[str, str]] = field(default_factory=list)
    launches: int = 0
    discarded: list[str] = field(default_factory=list)
    opaque: int = 0
    must: int = 0
    accesses: int = 0
    precision: list[tuple[str, int, int]] = field(default_factory=list)
    """(kind, bytes of the hull really touched, bytes evaluated) per allocation and launch."""


def examine(text: str, launches: Sequence[Case], checks: str = "abcdef") -> Report:
    """Runs all launches and returns what was found; ``checks`` names those to make:

    (a) accesses lie inside ranges of their kind, (b) must-write ranges are written, (c) counts are within their
    bounds, (d) equal results when evaluated again, elsewhere in memory, (e) soundness with known tables,
    (f) two orders of the blocks agree where the program is called deterministic.
    """
    module = parse(text)
    (program,) = analyze(module)
    report = Report()
    if program.opaque is not None:
        report.opaque += 1
    for case in launches:
        examine_launch(program, place(module, case), report, checks)
    return report


def examine_launch(program: AccessProgram, placed: Placed, report: Report, checks: str) -> None:
    """One launch run and examined; discarded when the kernel does something that no kernel may do."""
    try:
        result = _run(program, placed, STEPS)
    except (MemoryFault, StepLimit, DeadlockError) as error:
        report.discarded.append(type(error).__name__)
    except InterpreterError as error:
        report.discarded.append(f"{type(error).__name__}: {error}")
    else:
        report.launches += 1
        _Examination(program, placed, result, report, checks).run()


def _run(program: AccessProgram, placed: Placed, steps: int, schedule: Schedule | None = None) -> LaunchResult:
    return launch(placed.loaded, program.kernel, placed.grid, placed.block, placed.parameters, shared=placed.shared,
                  schedule=schedule, cooperative=placed.cooperative, step_limit=steps, log=schedule is None)


_COUNTED_BY_WARP = ("wmma", "discard")
"""Instructions whose bytes are logged otherwise than they are counted."""


class _Examination:
    def __init__(self, program: AccessProgram, placed: Placed, result: LaunchResult, report: Report, checks: str):
        self.program = program
        self.placed = placed
        self.result = result
        self.entries = result.log.entries
        if result.workspace is not None:
            low, size = result.workspace
            addresses = self.entries["address"]
            self.entries = self.entries[(addresses < low) | (addresses >= low + size)]
        self.report = report
        self.checks = checks
        self.allocations = Allocations(placed.places)
        report.accesses += len(self.entries)

    def blame(self, check: str, sentence: str) -> None:
        self.report.violations.append((check, f"{sentence} [{self.placed.label}]"))

    def evaluate(
        self, placed: Placed, known: Any = None, where: Allocations | None = None, program: AccessProgram | None = None
    ) -> Evaluation:
        return evaluate(program or self.program, placed.grid, placed.block, placed.parameters,
                        where or Allocations(placed.places), module_globals=placed.loaded.globals, contents=known,
                        shared=placed.shared)

    def run(self) -> None:
        evaluation = self.evaluate(self.placed, where=self.allocations)
        if "c" in self.checks:
            self._counts()
        if evaluation.opaque is not None:
            return
        self._inside(evaluation, "a")
        if "d" in self.checks:
            self._again(evaluation)
        if "e" in self.checks:
            everything = self.placed.known
            for contents in ([p for p in everything if p[0] in self.placed.constant], everything):
                known = self.evaluate(self.placed, contents)
                if known.opaque is None:
                    self._inside(known, "e")
        if "f" in self.checks and self.program.deterministic:
            self._schedules()

    def _inside(self, evaluation: Evaluation, check: str) -> None:
        remaining = len(self.entries)
        places = [*self.placed.places, *((n, a, s) for n, (a, s) in self.placed.loaded.globals.items())]
        for identity, address, size in places:
            mine = self.entries[(self.entries["address"] >= address) & (self.entries["address"] < address + size)]
            remaining -= len(mine)
            ranges = [r for r in evaluation.ranges if r.allocation == identity]
            low = mine["address"].astype(np.int64) - address
            high = low + mine["width"]
            for kind, allowed in ALLOWED.items():
                chosen = mine["kind"] == kind
                cover = union((r.lo, r.hi) for r in ranges if r.kind in allowed)
                bad = chosen & ~inside(cover, low, high)
                if bad.any():
                    at = int(np.flatnonzero(bad)[0])
                    first = (low[at] - BYTES // 2, high[at] - BYTES // 2)
                    self.blame(check, f"{kind.decode()} of {identity} at {first}, line {mine['line'][at]}, block "
                               f"{mine['block'][at]}, thread {mine['thread'][at]}, outside {_around_middle(cover)}")
            self._written(identity, mine, low, high, ranges, check)
            if check == "a":
                self._precision(mine, low, high, ranges)
        if remaining:
            self.blame(check, f"{remaining} accesses in no allocation")

    def _written(self, identity: object, mine: Any, low: Any, high: Any, ranges: Any, check: str) -> None:
        must = [r for r in ranges if r.kind == "MUSTW"]
        self.report.must += len(must)
        if must:
            writes = mine["kind"] == b"W"
            written = union(zip(low[writes], high[writes], strict=True))
            for r in must:
                if r.lo < r.hi and not inside(written, np.array([r.lo]), np.array([r.hi]))[0]:
                    claimed = _around_middle(np.array([[r.lo, r.hi]]))
                    self.blame("b" if check == "a" else check,
                               f"must-write {claimed} of {identity} is not fully written: {_around_middle(written)}")

    def _precision(self, mine: Any, low: Any, high: Any, ranges: Any) -> None:
        for kind, logged, claimed in (("R", (b"R",), ("R",)), ("W", (b"W", b"A"), ("MAYW", "MUSTW", "A"))):
            chosen = np.isin(mine["kind"], logged)
            cover = union((r.lo, r.hi) for r in ranges if r.kind in claimed)
            size = int((cover[:, 1] - cover[:, 0]).sum()) if len(cover) else 0
            touched = int(high[chosen].max() - low[chosen].min()) if chosen.any() else 0
            if size or touched:
                self.report.precision.append((kind, touched, size))

    def _counts(self) -> None:
        placed = self.placed
        amounts = count(self.program, placed.grid, placed.block, placed.parameters, placed.shared)
        found: dict[str, float] = {}
        for text, times in self.result.instructions.items():
            kind, operations = operation_count(mnemonic(text))
            if operations:
                found[kind] = found.get(kind, 0) + times * operations
        widths = self.entries["width"]
        found["bytes_read"] = int(widths[self.entries["kind"] != b"W"].sum())
        found["bytes_written"] = int(widths[self.entries["kind"] != b"R"].sum())
        if any(text.startswith(_COUNTED_BY_WARP) for text in self.result.instructions):
            del found["bytes_read"], found["bytes_written"]
        for kind, number in found.items():
            amount = amounts.get(kind)
            if amount is None:
                if number and amounts and kind != "tensor" and self.program.opaque is None:
                    self.blame("c", f"{number} {kind} happened, none were counted")
            elif not amount.low - 0.5 <= number <= amount.high + 0.5:
                self.blame("c", f"{number} {kind} happened, outside {amount}")

    def _again(self, evaluation: Evaluation) -> None:
        if self.evaluate(self.placed, where=self.allocations) != evaluation:
            self.blame("d", "a second evaluation differs")
        if self.program.escapes:
            return
        elsewhere = self.placed.again(1 << 20)
        moved = self.evaluate(elsewhere)
        if set(moved.ranges) != set(evaluation.ranges):
            self.blame("d", f"other ranges when moved: {set(moved.ranges) ^ set(evaluation.ranges)}")
        anew = self.evaluate(elsewhere, program=program_from_json(program_to_json(self.program)))
        if set(anew.ranges) != set(moved.ranges):
            self.blame("d", f"its copy through JSON differs: {set(anew.ranges) ^ set(moved.ranges)}")

    def _schedules(self) -> None:
        entries = self.entries
        if not len(entries) or int(entries["width"].sum()) > 200_000:
            return
        if shared_between_threads(entries):
            return
        other = self.placed.again(0)
        _run(self.program, other, 40 * STEPS, Schedule("random", seed=len(entries), together=1, quantum=5))
        ends = entries["address"] + entries["width"].astype(np.uint64)
        for low, high in union(zip(entries["address"], ends, strict=True)).tolist():
            if self.placed.memory.read(low, high - low) != other.memory.read(low, high - low):
                self.blame("f", f"the order of blocks changes [{low:#x}, {high:#x})")
                return


def _around_middle(intervals: Any) -> str:
    """Intervals relative to the middle of their buffer, where the pointers point; the first few."""
    return str((intervals[:6] - BYTES // 2).tolist())


def shared_between_threads(entries: Any) -> bool:
    """Whether some byte is written by one thread and touched by another (a race, or nearly); two atomics are none."""
    widths = entries["width"].astype(np.int64)
    starts = np.repeat(entries["address"].astype(np.int64), widths)
    within = np.arange(len(starts)) - np.repeat(np.cumsum(widths) - widths, widths)
    touched = starts + within
    owner = np.repeat(entries["block"].astype(np.int64) << 20 | entries["thread"], widths)
    kind = np.repeat(entries["kind"], widths)
    order = np.argsort(touched, kind="stable")
    touched, owner, kind = touched[order], owner[order], kind[order]
    first = np.append(True, touched[1:] != touched[:-1])
    group = np.cumsum(first) - 1
    several = np.zeros(group[-1] + 1, bool)
    several[group[owner != owner[first][group]]] = True
    kinds = {k: np.zeros(len(several), bool) for k in (b"R", b"W", b"A")}
    for k, has in kinds.items():
        has[group[kind == k]] = True
    return bool((several & (kinds[b"W"] | (kinds[b"A"] & kinds[b"R"]))).any())
