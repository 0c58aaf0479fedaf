"""Analysis of one kernel and evaluation of one launch: medians and 95th percentiles."""

from __future__ import annotations

import statistics
import sys
import time

from _common import Row, arguments, quantile, report, texts

from ptxparse.api import Allocations, Evaluator, analyze_kernel, parse
from tests.launches.catalog import all_kernels
from tests.launches.place import entry_of, module_of, place

REPEATED = 200


def analysis_times() -> list[float]:
    """Milliseconds for each kernel of the texts; the best of three, since a kernel is analysed once in its life."""
    found = []
    for name, text in texts()[1]:
        parsed = parse(text, name)
        for entry in parsed.entries:
            best = min(_once(lambda e=entry, p=parsed: analyze_kernel(p, e)) for _ in range(3))  # type: ignore[misc]
            found.append(best * 1e3)
    return found


def _once(work) -> float:  # type: ignore[no-untyped-def]
    begin = time.process_time()
    work()
    return time.process_time() - begin


def evaluation_times() -> tuple[list[float], list[float], list[float]]:
    """Microseconds of an evaluation, for one launch of every kernel: with equal arguments remembered, with only the
    pointers new, with nothing remembered."""
    equal, moved, fresh = [], [], []
    for kernel in all_kernels():
        (case,) = kernel.first(1, seed=1)
        placed = place(kernel, case)
        program = analyze_kernel(module_of(kernel), entry_of(kernel))
        evaluator = Evaluator(program)
        places = [(name, placed.addresses[name], max(size, 1)) for name, size in placed.sizes.items()]
        allocations = Allocations(places)
        launch = (case.grid, case.block, placed.parameters)
        rest = (allocations, placed.loaded.globals, None, case.shared)
        evaluator.evaluate(*launch, *rest)
        begin = time.process_time()
        for _ in range(REPEATED):
            evaluator.evaluate(*launch, *rest)
        equal.append((time.process_time() - begin) / REPEATED * 1e6)
        times_moved, times_fresh = [], []
        for _ in range(9):
            evaluator._whole.clear()
            times_moved.append(_once(lambda e=evaluator, a=launch, r=rest: e.evaluate(*a, *r)))  # type: ignore[misc]
            evaluator._whole.clear()
            evaluator._relative.clear()
            times_fresh.append(_once(lambda e=evaluator, a=launch, r=rest: e.evaluate(*a, *r)))  # type: ignore[misc]
        moved.append(statistics.median(times_moved) * 1e6)
        fresh.append(statistics.median(times_fresh) * 1e6)
    return equal, moved, fresh


def main() -> int:
    options = arguments(__doc__)
    times = analysis_times()
    rows = [
        Row("analysis, median", statistics.median(times), "ms", 2),
        Row("analysis, 95th percentile", quantile(times, 0.95), "ms", 20),
        Row("analysis, slowest", max(times), "ms"),
    ]
    equal, moved, fresh = evaluation_times()
    rows += [
        Row("evaluation, equal arguments, median", statistics.median(equal), "µs", 3),
        Row("evaluation, equal arguments, 95th percentile", quantile(equal, 0.95), "µs"),
        Row("evaluation, new pointers, median", statistics.median(moved), "µs"),
        Row("evaluation, nothing remembered, median", statistics.median(fresh), "µs", 200),
        Row("evaluation, nothing remembered, 95th percentile", quantile(fresh, 0.95), "µs"),
        Row("evaluation, nothing remembered, slowest", max(fresh), "µs"),
    ]
    notes = f"{len(times)} kernels of the {texts()[0]} analysed, "
    notes += f"one launch of each of {len(fresh)} kernels evaluated. Processor time."
    return report("analysis", rows, options.json, notes)


if __name__ == "__main__":
    sys.exit(main())
