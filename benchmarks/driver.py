"""The software driver: copies beside memcpy, empty launches, many objects. Programs in C, linked with -lcuda."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import _engine_c
from _common import ROOT, Row
from _engine_report import print_rows
from _engine_timing import Measured, Times, microseconds, share

import softgpu
from tools import driver, native
from tools.venv import PYTHON

FOLDER = ROOT / "benchmarks" / "driver_programs"
PARTS = ("copies", "launches", "objects")
SECONDS = 300


def lines(name: str) -> list[list[str]]:
    """The words of each line that a program prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, name)
        command = [native.compiler(), *native.FLAGS, f"-I{driver.headers(PYTHON)}", FOLDER / f"{name}.c", "-o", program,
                   f"-L{driver.LIBRARY.parent}", "-lcuda"]
        subprocess.run(command, check=True, timeout=SECONDS)
        done = subprocess.run([program], env=softgpu.environment("A100-80G"), stdout=subprocess.PIPE, text=True,
                              check=True, timeout=SECONDS)
    return [line.split() for line in done.stdout.splitlines()]


def times(words: list[str]) -> list[Times]:
    """Pairs of microseconds, as median and best."""
    values = [float(word) / 1e6 for word in words]
    return [Times(*pair) for pair in zip(values[::2], values[1::2], strict=True)]


def copies() -> list[Row]:
    rows = []
    for of, *words in lines("copies"):
        bytes_, (memcpy, *driven) = int(of), times(words)
        name = f"{bytes_ >> 20} MiB" if bytes_ >> 20 else f"{bytes_ >> 10} KiB"
        rows.append(Measured(f"{name}: memcpy", bytes_ / memcpy.median / 1e9, "GB/s", best=bytes_ / memcpy.best / 1e9))
        for kind, time in zip(("to the device", "from the device", "within the device"), driven, strict=True):
            rows.append(share(f"{name}: copy {kind}, of memcpy", time, memcpy, 0.5))
    return rows


def launches() -> list[Row]:
    alone, many, graph = (times(words)[0] for words in lines("launches"))
    return [
        microseconds("empty launch, waited for", alone, 6),
        microseconds("empty launch, one of many", many, 6),
        microseconds("empty launch, one of a graph", graph),
        *[row for row in _engine_c.rows() if row.what == "empty launch, C"],
    ]


def objects() -> list[Row]:
    found = defaultdict(list)
    for name, *words in lines("objects"):
        found[name].append([float(word) for word in words])
    rows = []
    for name, runs in found.items():
        # The best run of each: a thousand take less than the time for which other work takes a core away.
        first, last, end_last, end_first = (min(times) for times in zip(*runs, strict=True))
        count = {"allocations": 100_000}.get(name, 10_000)
        rows += [
            Row(f"{name}: one of the first 1000", first, "µs"),
            Row(f"{name}: one of the last of {count}, beside those", last / first, "times", 3),
            Row(f"{name}: end of one while there are few", end_first, "µs"),
            Row(f"{name}: end of one while there are {count}, beside those", end_last / end_first, "times", 3),
        ]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all when none is named")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    works = {"copies": copies, "launches": launches, "objects": objects}
    rows = [row for part in options.parts or PARTS for row in works[part]()]
    notes = f"Load of the machine before and after: {before:.1f}, {os.getloadavg()[0]:.1f}."
    return print_rows("driver", rows, options.json, notes)


if __name__ == "__main__":
    sys.exit(main())
