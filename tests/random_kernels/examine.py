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
from tests.random_kernels.launches import READ_ONLY, Case, Placed, allocations, place
from tests.random_kernels.memory import BYTES
from tests.soundness import ALLOWED, inside, union

STEPS = 6000
"""Issues of a launch at most; what takes longer is discarded."""
UNCOUNTED = ("none",)


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
        placed = place(module, case)
        try:
            result = launch(placed.loaded, program.kernel, case.grid, case.block, placed.parameters, step_limit=STEPS)
        except (MemoryFault, StepLimit, DeadlockError) as error:
            report.discarded.append(type(error).__name__)
            continue
        except InterpreterError as error:
            report.discarded.append(f"{type(error).__name__}: {error}")
            continue
        report.launches += 1
        _Examination(program, placed, result, report, checks).run()
    return report


class _Examination:
    def __init__(self, program: AccessProgram, placed: Placed, result: LaunchResult, report: Report, checks: str):
        self.program = program
        self.placed = placed
        self.result = result
        self.entries = result.log.entries
        self.report = report
        self.checks = checks
        self.places = allocations(placed)
        self.allocations = Allocations(self.places)
        report.accesses += len(self.entries)

    def blame(self, check: str, sentence: str) -> None:
        case = self.placed.case
        self.report.violations.append((check, f"{sentence} [grid {case.grid} block {case.block} {case.numbers}]"))

    def evaluate(self, placed: Placed, known: Any = None, where: Allocations | None = None) -> Evaluation:
        case = placed.case
        where = where or Allocations(allocations(placed))
        return evaluate(self.program, case.grid, case.block, placed.parameters, where,
                        module_globals=placed.loaded.globals, contents=known)

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
            everything = [(n, o, d) for n, o, d in self.placed.known]
            tables = [piece for piece in everything if piece[0] in READ_ONLY]
            for contents in (tables, everything):
                known = self.evaluate(self.placed, contents)
                if known.opaque is None:
                    self._inside(known, "e")
        if "f" in self.checks and self.program.deterministic:
            self._schedules()

    def _inside(self, evaluation: Evaluation, check: str) -> None:
        remaining = len(self.entries)
        places = [*self.places, *((n, a, s) for n, (a, s) in self.placed.loaded.globals.items())]
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
        case = self.placed.case
        amounts = count(self.program, case.grid, case.block, self.placed.parameters)
        found: dict[str, float] = {}
        for text, times in self.result.instructions.items():
            kind, operations = operation_count(mnemonic(text))
            if operations:
                found[kind] = found.get(kind, 0) + times * operations
        widths = self.entries["width"]
        found["bytes_read"] = int(widths[self.entries["kind"] != b"W"].sum())
        found["bytes_written"] = int(widths[self.entries["kind"] != b"R"].sum())
        for kind, number in found.items():
            amount = amounts.get(kind)
            if amount is None:
                if number and amounts:
                    self.blame("c", f"{number} {kind} happened, none were counted")
            elif not amount.low - 0.5 <= number <= amount.high + 0.5:
                self.blame("c", f"{number} {kind} happened, outside {amount}")

    def _again(self, evaluation: Evaluation) -> None:
        if self.evaluate(self.placed, where=self.allocations) != evaluation:
            self.blame("d", "a second evaluation differs")
        if self.program.escapes:
            return
        elsewhere = place(self.placed.loaded.module, self.placed.case, spacing=1 << 20)
        moved = self.evaluate(elsewhere)
        if set(moved.ranges) != set(evaluation.ranges):
            self.blame("d", f"other ranges when moved: {set(moved.ranges) ^ set(evaluation.ranges)}")
        copied = program_from_json(program_to_json(self.program))
        case = self.placed.case
        anew = evaluate(copied, case.grid, case.block, elsewhere.parameters, allocations(elsewhere),
                        module_globals=elsewhere.loaded.globals)
        if set(anew.ranges) != set(moved.ranges):
            self.blame("d", f"its copy through JSON differs: {set(anew.ranges) ^ set(moved.ranges)}")

    def _schedules(self) -> None:
        entries = self.entries
        if not len(entries) or int(entries["width"].sum()) > 200_000:
            return
        if shared_between_threads(entries):
            return
        case = self.placed.case
        other = place(self.placed.loaded.module, case)
        schedule = Schedule("random", seed=case.seed, together=1, quantum=5)
        launch(other.loaded, self.program.kernel, case.grid, case.block, other.parameters, schedule=schedule, log=False,
               step_limit=40 * STEPS)
        shift = 0
        for low, high in union(zip(entries["address"], entries["address"] + entries["width"].astype(np.uint64),
                                   strict=True)).tolist():
            if self.placed.memory.read(low, high - low) != other.memory.read(low + shift, high - low):
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
