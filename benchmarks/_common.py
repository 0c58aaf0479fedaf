"""What the benchmarks share: the PTX texts they read, timing, and the table they print.

A benchmark prints a markdown table, or with ``--json`` one object
``{"schema": "tessera.benchmark", "version": 1, "benchmark": NAME, "rows": [...]}``; its exit code is 1 when a figure
misses its limit.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.material import material  # noqa: E402 - found only now that the repository is on the path

RUNS = 7


@dataclass(frozen=True)
class Row:
    """One figure. ``limit`` is what it must reach (``at_least``) or not exceed; None where there is no requirement."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False

    @property
    def ok(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def texts() -> tuple[str, list[tuple[str, str]]]:
    """The PTX files to read, as (name, text), and what they are: the corpus, or our fixtures where it is not there."""
    folder = material()
    source = folder / "corpus" / "ptx" if folder else ROOT / "tests" / "fixtures" / "ptx"
    files = sorted(source.glob("*.ptx"))
    return ("corpus" if folder else "fixtures"), [(file.name, file.read_text()) for file in files]


def seconds(work: Callable[[], object], runs: int = RUNS) -> list[float]:
    """Processor seconds of each of several runs, after one that is not counted."""
    work()
    found = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return found


def alternating(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Median processor seconds of two pieces of work whose runs alternate, so that both meet the same machine."""
    ours, yardstick = [], []
    for _ in range(RUNS):
        ours += seconds(first, 1)
        yardstick += seconds(second, 1)
    return statistics.median(ours), statistics.median(yardstick)


def quantile(values: list[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed (nearest rank)."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def arguments(description: str | None) -> argparse.Namespace:
    """The options every benchmark takes."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser.parse_args()


def report(name: str, rows: list[Row], as_json: bool, notes: str = "") -> int:
    """Print the figures; returns the exit code."""
    if as_json:
        found = [{**asdict(row), "ok": row.ok} for row in rows]
        head = {"schema": "tessera.benchmark", "version": 1, "benchmark": name, "python": platform.python_version()}
        print(json.dumps({**head, "notes": notes, "rows": found}))
    else:
        print(f"| {name} | value | limit | |\n| --- | --- | --- | --- |")
        for row in rows:
            limit = "" if row.limit is None else f"{'≥' if row.at_least else '≤'} {row.limit:g} {row.unit}"
            print(f"| {row.what} | {row.value:.4g} {row.unit} | {limit} | {'' if row.ok else 'missed'} |")
        if notes:
            print(f"\n{notes}")
    return 0 if all(row.ok for row in rows) else 1
