"""What the software driver's instrument costs: calls of a function that does next to nothing.

The same C program, which calls ``cuCtxGetCurrent``, runs without an instrument, with one that does nothing, with rules
and with a log of all calls. Python's interpreter takes no part.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import RUNS, Row, arguments, report

from softgpu.instrument import Delay, Instrument
from tools import driver, native
from tools.venv import PYTHON

PROGRAM = r"""
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int count, char **given) {
  CUcontext context;
  struct timespec start, end;
  long calls = count > 1 ? atol(given[1]) : 0;
  if (cuInit(0) || cuCtxCreate(&context, NULL, 0, 0)) return 1;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long n = 0; n < calls; n++)
    if (cuCtxGetCurrent(&context)) return 1;
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.3f\n", ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)calls);
  return 0;
}
"""


def instruments(folder: Path) -> dict[str, Instrument]:
    """What is compared."""
    rules = [Delay("cuMemAlloc", 10 ** 12), Delay("cuMemFree", 10 ** 12)]
    return {
        "instrument without settings": Instrument(),
        "two rules for other functions": Instrument(rules=rules),
        "log of calls": Instrument(log=folder / "log", calls=True),
    }


def nanoseconds(program: Path, calls: int, variables: dict[str, str]) -> float:
    """Of a call."""
    environment = {**os.environ, **variables}
    done = subprocess.run([program, str(calls)], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    """Print the table."""
    options = arguments(__doc__)
    library = driver.build(PYTHON)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, program = folder / "program.c", folder / "program"
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run([native.compiler(), "-O2", f"-I{driver.headers(PYTHON)}", source, "-o", program, library,
                        f"-Wl,-rpath,{library.parent}"], check=True)
        best = {"no instrument": min([nanoseconds(program, 20_000_000, {}) for _ in range(RUNS)])}
        for what, instrument in instruments(folder).items():
            calls = 50_000 if instrument.calls else 2_000_000
            with instrument.variables() as variables:
                best[what] = min([nanoseconds(program, calls, variables) for _ in range(RUNS)])
        rows = [Row(f"cuCtxGetCurrent, {what}", round(took, 1), "ns") for what, took in best.items()]
        rows += [Row(f"{what} : no instrument", round(took / best["no instrument"], 1), "x")
                 for what, took in best.items() if what != "no instrument"]
    notes = f"The best of {RUNS} runs of each."
    return report("instrument", rows, options.json, notes)


if __name__ == "__main__":
    sys.exit(main())
