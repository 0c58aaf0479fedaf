"""What the shim adds to a launch and to the start of a program, beside a call through a pointer and a ZeroMQ message.

Runs of all ways to launch take turns, so that all meet the same machine. Limits are shown; missing one is no failure,
as other work on the machine moves every figure. Losing a record is.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from _common import ROOT, Row, quantile, report
from _shim_programs import PRELOAD, PTX, Launches, build, drained, environment, reader, run, zmq_each

import softgpu
from tessera.environment import DISABLE, DRIVER, SOCKET
from tests import null_driver
from tools import driver

SHIM = ROOT / "shim" / "lib" / driver.LIBRARY.name
ROUNDS, LAUNCHES, MESSAGES, SOFT_LAUNCHES, STARTS = 7, 2_000_000, 200_000, 100_000, 700
EVERY = 512
"""Launches on the software driver that are queued before they are waited for."""

BARE, POINTER, PASSING, DISABLED, RECORDING, ZMQ = (
    "the driver alone", "a function pointer", "shim, nobody listens", "shim, disabled", "shim, with a reader",
    "a ZeroMQ message for each",
)  # fmt: skip
LINKED, OPENED, SOFT = "linked", "opened by name", "software driver"


@dataclass(frozen=True)
class Spread(Row):
    """``value`` is the median of the rounds; of all of them the least and the most; of launches, the medians of the
    rounds' 99th percentile and mean."""

    low: float = 0
    high: float = 0
    p99: float | None = None
    mean: float | None = None


def spread(what: str, values: Sequence[float], unit: str, limit: float | None = None, at_least: bool = False) -> Spread:
    return Spread(what, statistics.median(values), unit, limit, at_least, min(values), max(values))


def ways(folder: Path, launches: int) -> dict[tuple[str, str], Callable[[], Launches]]:
    """Everything that is measured, by group and name."""
    made, null = build(folder), null_driver.build()
    plain, soft = environment(null), softgpu.environment("A100-80G")
    shim = {PRELOAD: str(SHIM), DRIVER.name: str(null)}
    soft_shim = shim | {DRIVER.name: str(driver.LIBRARY)}

    def recorded(program: Path, count: int, every: int, variables: dict[str, str], ptx: Path | None = None) -> Launches:
        socket = folder / "socket"
        with reader(made, socket) as process:
            found = run(program, count, every, variables | {SOCKET.name: str(socket)}, ptx)
            read = drained(process)
        socket.unlink()
        if read.launches != found.launches or read.gaps or read.lost:
            raise SystemExit(f"{found.launches} launches, and the reader has {read}")
        return found

    def message_each() -> Launches:
        found, received = zmq_each(made, folder, min(MESSAGES, launches))
        if received != found.launches:
            raise SystemExit(f"{found.launches} launches, and {received} messages")
        return found

    on_null, on_soft = (launches, 0), (min(SOFT_LAUNCHES, launches), EVERY)
    return {
        (LINKED, BARE): lambda: run(made.linked, *on_null, plain),
        (LINKED, POINTER): lambda: run(made.linked, *on_null, plain | {PRELOAD: str(made.pointer)}),
        (LINKED, PASSING): lambda: run(made.linked, *on_null, plain | shim),
        (LINKED, DISABLED): lambda: run(made.linked, *on_null, plain | shim | {DISABLE.name: "1"}),
        (LINKED, RECORDING): lambda: recorded(made.linked, *on_null, plain | shim),
        (LINKED, ZMQ): message_each,
        (OPENED, BARE): lambda: run(made.opened, *on_null, plain),
        (OPENED, PASSING): lambda: run(made.opened, *on_null, plain | shim),
        (OPENED, RECORDING): lambda: recorded(made.opened, *on_null, plain | shim),
        (SOFT, BARE): lambda: run(made.opened, *on_soft, soft, PTX),
        (SOFT, PASSING): lambda: run(made.opened, *on_soft, soft | soft_shim, PTX),
        (SOFT, RECORDING): lambda: recorded(made.opened, *on_soft, soft | soft_shim, PTX),
    }


def launch_rows(rounds: int, launches: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        works = ways(Path(folder), launches)
        works[SOFT, BARE]()  # compiles the kernel
        found: dict[tuple[str, str], list[Launches]] = {way: [] for way in works}
        for _ in range(rounds):
            for way, work in works.items():
                found[way].append(work())
    rows: list[Row] = []
    for (group, name), runs in found.items():
        medians = [one.median_ns for one in runs]
        p99, mean = (statistics.median(values) for values in zip(*((one.p99_ns, one.mean_ns) for one in runs),
                                                                 strict=True))
        rows.append(Spread(f"{group}: {name}", statistics.median(medians), "ns", None, False, min(medians),
                           max(medians), p99, mean))
    return rows + compared(found)


def compared(found: dict[tuple[str, str], list[Launches]]) -> list[Row]:
    """What each way adds to the driver alone, round by round, and that beside the yardsticks."""
    added = {(group, name): [one.median_ns - bare.median_ns for one, bare in zip(runs, found[group, BARE], strict=True)]
             for (group, name), runs in found.items() if name != BARE}
    limits = {PASSING: 10.0, DISABLED: 10.0, RECORDING: 60.0}
    rows: list[Row] = [spread(f"added, {group}: {name}", values, "ns", None if group == SOFT else limits.get(name))
                       for (group, name), values in added.items()]
    for name, yardstick in ((PASSING, POINTER), (RECORDING, POINTER), (RECORDING, ZMQ)):
        times = [one.median_ns / other.median_ns
                 for one, other in zip(found[LINKED, name], found[LINKED, yardstick], strict=True)]
        rows.append(spread(f"a launch, {LINKED}: {name}, of {yardstick}", times, "times"))
    means = [one.mean_ns / other.mean_ns
             for one, other in zip(found[LINKED, RECORDING], found[LINKED, ZMQ], strict=True)]
    rows.append(spread(f"a launch by the mean, {LINKED}: {RECORDING}, of {ZMQ}", means, "times"))
    for group in (LINKED, OPENED):
        rates = [one.per_second / 1e6 for one in found[group, RECORDING]]
        rows.append(spread(f"launches of one thread, none lost, {group}: {RECORDING}", rates, "million/s", 3, True))
    return rows


def start_rows() -> list[Row]:
    """The start and end of a program that has nothing to do with CUDA."""
    before = {name: text for name, text in os.environ.items() if name != PRELOAD}
    environments = (before, before | {PRELOAD: str(SHIM)})
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(STARTS):
        for variables, into in zip(environments, times, strict=True):
            begin = time.perf_counter()
            process = os.posix_spawn("/bin/true", ["true"], variables)
            status = os.waitpid(process, 0)[1]
            into.append((time.perf_counter() - begin) * 1e3)
            assert status == 0
    without, preloaded = (statistics.median(values) for values in times)
    shares = [(quantile(values, 0.1), quantile(values, 0.9)) for values in times]
    return [
        Spread("/bin/true (range of the middle 80 %)", without, "ms", None, False, *shares[0]),
        Spread("/bin/true, shim preloaded (likewise)", preloaded, "ms", None, False, *shares[1]),
        Row("added to /bin/true, of the medians", preloaded - without, "ms", 1),
    ]


def print_table(rows: Sequence[Row], notes: str) -> None:
    print("| shim | median | lowest to highest | p99 | mean | limit | |\n| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        cells = [row.what, f"{row.value:.3g} {row.unit}"]
        if isinstance(row, Spread):
            cells += [f"{row.low:.3g} to {row.high:.3g}"]
            cells += ["" if value is None else f"{value:.3g}" for value in (row.p99, row.mean)]
        else:
            cells += ["", "", ""]
        cells += ["" if row.limit is None else f"{'≥' if row.at_least else '≤'} {row.limit:g} {row.unit}"]
        print(f"| {' | '.join([*cells, '' if row.ok else 'missed'])} |")
    print(f"\n{notes}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"turns of all ways (default {ROUNDS})")
    parser.add_argument("--launches", type=int, default=LAUNCHES, metavar="N", help=f"of a run (default {LAUNCHES})")
    options = parser.parse_args()
    if not SHIM.exists():
        raise SystemExit(f"no {SHIM.relative_to(ROOT)}: python3 build.py build makes it")
    before = os.getloadavg()[0]
    rows = launch_rows(options.rounds, options.launches) + start_rows()
    messages, soft = (min(most, options.launches) for most in (MESSAGES, SOFT_LAUNCHES))
    notes = f"{options.rounds} rounds of {options.launches} launches, of {messages} with messages and of {soft} on the "
    notes += f"software driver; {STARTS} starts. "
    notes += f"Load of the machine before and after: {before:.1f}, {os.getloadavg()[0]:.1f}."
    if options.json:
        report("shim", rows, True, notes)
    else:
        print_table(rows, notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
