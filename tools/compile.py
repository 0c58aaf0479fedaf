"""Compiles C files, as many at a time as there are processors.

    python -m tools.compile COUNT COMPILER FLAG... [SOURCE OBJECT]...    (COUNT flags)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def compile_one(compiler: str, flags: list[str], source: str, target: str) -> int:
    """An object file, put into place when it is whole; the compiler's exit status."""
    handle, made = tempfile.mkstemp(dir=Path(target).parent, prefix=".building-")
    os.close(handle)
    try:
        status = subprocess.run([compiler, *flags, "-c", source, "-o", made], check=False).returncode
        if status == 0:
            Path(made).replace(target)
        return status
    finally:
        Path(made).unlink(missing_ok=True)


def main() -> int:
    """Exit status 1 when a file could not be compiled; the compiler has said why."""
    count = int(sys.argv[1])
    compiler, flags, files = sys.argv[2], sys.argv[3 : 3 + count], sys.argv[3 + count :]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        done = threads.map(lambda pair: compile_one(compiler, flags, *pair), zip(files[::2], files[1::2], strict=True))
        return int(any(list(done)))


if __name__ == "__main__":
    sys.exit(main())
