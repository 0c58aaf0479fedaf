"""Timing for the engine's benchmark: runs of several pieces of work in turn, and rows with a median and a best run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from _common import Row

FEWEST, MOST = 5, 41
SECONDS = 2.0
"""A group of works gets about this long, but each of them FEWEST runs."""
SETTLING = 0.04
"""Seconds for which idle threads of OpenBLAS and of numba go on looking for work; the next run waits for them."""

Work = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds."""

    median: float
    best: float


@dataclass(frozen=True)
class Measured(Row):
    """``value``, which has the limit, is of the medians; ``best`` the same of the best runs, None where there is one
    figure only."""

    best: float | None = None


def interleaved(works: dict[str, Work], settling: tuple[str, ...] = ()) -> dict[str, Times]:
    """Times on the wall clock of works whose runs alternate, so that all meet the same machine. Right before each run
    there is one that is not counted, so that all find their own data in the caches and their threads awake; after a
    work named in ``settling`` there is a pause."""
    found: dict[str, list[float]] = {name: [] for name in works}
    end = time.perf_counter() + SECONDS
    for number in range(MOST):
        if number >= FEWEST and time.perf_counter() > end:
            break
        for name, work in works.items():
            found[name].append(_warm(work, time.perf_counter))
            if name in settling:
                time.sleep(SETTLING)
    return {name: Times(statistics.median(times), min(times)) for name, times in found.items()}


def processor_seconds(works: dict[str, Work]) -> dict[str, Times]:
    """The same in processor time of this process, for works that use one thread: other work on the machine disturbs
    that less."""
    found: dict[str, list[float]] = {name: [] for name in works}
    time.sleep(SETTLING)
    for _ in range(FEWEST):
        for name, work in works.items():
            found[name].append(_warm(work, time.process_time))
    return {name: Times(statistics.median(times), min(times)) for name, times in found.items()}


def _warm(work: Work, clock: Callable[[], float]) -> float:
    work()
    begin = clock()
    work()
    return clock() - begin


def milliseconds(what: str, times: Times, limit: float | None = None) -> Row:
    return Measured(what, times.median * 1e3, "ms", limit, best=times.best * 1e3)


def microseconds(what: str, times: Times, limit: float | None = None) -> Row:
    return Measured(what, times.median * 1e6, "µs", limit, best=times.best * 1e6)


def share(what: str, times: Times, yardstick: Times, least: float | None = None) -> Row:
    """Our speed as a share of a yardstick's."""
    return Measured(what, yardstick.median / times.median, "x", least, True, yardstick.best / times.best)
