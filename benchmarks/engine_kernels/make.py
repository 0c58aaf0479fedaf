"""Compiles the CUDA sources beside this file to PTX: ``python benchmarks/engine_kernels/make.py``.

Line one of each result is a comment with the command. Needs nvcc; the benchmark itself only reads the results.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent


def main() -> int:
    for source in sorted(FOLDER.glob("*.cu")):
        result = source.with_suffix(".ptx")
        names = [str(path.relative_to(ROOT)) for path in (source, result)]
        command = ["nvcc", "-ptx", "-arch=compute_80", "-O3", names[0], "-o", names[1]]
        subprocess.run(command, cwd=ROOT, check=True)
        result.write_text(f"// {' '.join(command)}\n{result.read_text().strip()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
