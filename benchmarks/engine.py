"""The engine: kernels beside numba, numpy and OpenBLAS in the same run; launches, loads, and compilation.

``docs/engine-performance.md`` says what is measured and how to read it. Only some parts: name them after the options.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import _engine_blas
import _engine_c
import _engine_compile
import _engine_interpreter
import _engine_matmul
import _engine_memory
import _engine_numba
import numpy as np
from _common import Row
from _engine_report import print_rows

from softgpu.engine.target import host_target


def _compile() -> list[Row]:
    found, note = _engine_compile.rows()
    NOTES.append(note)
    return found


PARTS: dict[str, Callable[[], list[Row]]] = {
    "memory": _engine_memory.rows,
    "matmul": _engine_matmul.rows,
    "launch": _engine_c.rows,
    "compile": _compile,
    "interpreter": _engine_interpreter.rows,
}
NOTES: list[str] = []


def machine() -> str:
    """The processor, and what the engine makes code for."""
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    name = model[1] if model else "unknown processor"
    return f"{name}, {len(os.sched_getaffinity(0))} cores, kernels compiled for {host_target().name}. "


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all when none is named")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}")
    before = os.getloadavg()[0]
    rows = [row for part in options.parts or PARTS for row in PARTS[part]()]
    NOTES.insert(0, machine())
    if not _engine_numba.available():
        NOTES.append(_engine_numba.MISSING)
    elif not options.parts or "memory" in options.parts:
        NOTES.append(f"{_engine_numba.describe()}. ")
    NOTES.append(f"numpy {np.__version__}, {_engine_blas.describe()}. ")
    NOTES.append(f"Load of the machine before and after: {before:.1f}, {os.getloadavg()[0]:.1f}.")
    return print_rows("engine", rows, options.json, "".join(NOTES))


if __name__ == "__main__":
    sys.exit(main())
