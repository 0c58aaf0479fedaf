"""Records a second through the tracker: steps that it knows, and record by record; and the memory that it takes.

Each figure comes with how long it takes by the decoding of the same records in the same run, which is the fastest that
taking them one by one could be.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from _common import RUNS, Row, report
from _tracker_steps import Steps, beginning

from orchestrator.session.code import Code
from orchestrator.session.dependencies import Dependencies
from orchestrator.session.placement import Home, Placement
from orchestrator.session.placements.rules import Rule, Rules
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.tracker import Tracker
from shim.wire import records

SETTINGS = Settings((Gpu(1 << 30), Gpu(1 << 30)))
KNOWN, ONE_BY_ONE = 400, 20
"""Steps of a run."""
MILLION = 1_000_000


class Way(NamedTuple):
    """How records are taken. ``limit``: at most so many times as long as they are decoded."""

    name: str
    placement: Callable[[], Placement]
    steps: int
    limit: float
    options: Callable[[], dict[str, Any]]


def sent(pattern: str) -> Callable[[], Placement]:
    return lambda: Rules([Rule(pattern, None, (1,))])


def one_by_one() -> dict[str, Any]:
    return {"recognise": False}


WAYS = (
    Way("steps that are known, at home", Home, KNOWN, 1, dict),
    Way("steps that are known, sent in one segment", sent("*"), KNOWN, 4, dict),
    Way("steps that are known, 200 segments each", sent("a*"), KNOWN, 4, dict),
    Way("record by record, at home", Home, ONE_BY_ONE, 30, one_by_one),
    Way("record by record, sent", sent("*"), ONE_BY_ONE, 60, one_by_one),
    Way("record by record, with dependencies", Home, ONE_BY_ONE, 60,
        lambda: {"operations": Dependencies().take}),
)  # fmt: skip


def once(work: Callable[[bytes], object], batches: list[bytes]) -> float:
    begin = time.process_time()
    for batch in batches:
        work(batch)
    return time.process_time() - begin


def decode(batch: bytes) -> None:
    for _ in records(batch):
        pass


def measure(way: Way, code: Code) -> tuple[float, float]:
    """Records a second, and by how much more they take than to be decoded: medians."""
    program = beginning()
    steps = Steps(program)
    tracker = Tracker(SETTINGS, way.placement(), code, **way.options())
    tracker.take(b"".join(program.data))
    done = 1
    speeds, times = [], []
    for run in range(RUNS + 1):
        batches = list(steps.batches(done, way.steps))
        done += way.steps
        seconds = once(tracker.take, batches)
        if run:  # in the first, steps become known
            speeds.append(way.steps * steps.records / seconds)
            times.append(seconds / once(decode, batches))
    return statistics.median(speeds), statistics.median(times)


def resident() -> float:
    """Megabytes of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def growth(placement: Placement, code: Code, count: int) -> float:
    """Megabytes more after so many records than after a tenth of them."""
    program = beginning()
    steps = Steps(program)
    tracker = Tracker(SETTINGS, placement, code)
    tracker.take(b"".join(program.data))
    before = 0.0
    for begin in range(10):
        for batch in steps.batches(1 + begin * count // steps.records // 10, count // steps.records // 10):
            tracker.take(batch)
        before = before or resident()
    return resident() - before


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--records", type=int, default=10 * MILLION, help="with which the memory is measured")
    options = parser.parse_args()
    code = Code()
    rows = []
    for way in WAYS:
        speed, times = measure(way, code)
        rows.append(Row(way.name, speed, "records/s"))
        rows.append(Row(f"{way.name}, times as long as decoding", times, "×", way.limit))
    more = growth(sent("*")(), code, options.records)
    rows.append(Row(f"memory more from record {options.records // 10:,} to {options.records:,}", more, "MB", 16))
    return report("tracker", rows, options.json, "Steps of 505 records, of which 500 are launches with one parameter "
                  f"changing from step to step. Medians of {RUNS} runs.")


if __name__ == "__main__":
    sys.exit(main())
