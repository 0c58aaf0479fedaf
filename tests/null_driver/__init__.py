"""A ``libcuda.so.1`` that does nothing, for tests and measurements of what stands between a program and a driver.

It exports every function of ``tessera/driver_api/functions.tsv``, each of which answers CUDA_SUCCESS at once. What
makes something gives handles and addresses that differ; ``null.c`` has the few others that programs need an answer of.
``cuGetProcAddress`` is the software driver's. :func:`build` also makes drivers of other versions, and ones that behave
otherwise in something.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from softgpu.driver.generate import table
from tessera.driver_api import functions
from tools import driver, native
from tools.steps import BUILD
from tools.venv import PYTHON

SOURCES = Path(__file__).resolve().parent
FOLDER = BUILD / "native" / "null-driver"
LIBRARY = FOLDER / driver.LIBRARY.name
VERSION = 13000
PROC_ADDRESS = ("api.h", "cards.h", "driver.h", "functions.h", "proc_address.c")
"""What of the software driver is compiled in."""

_HANDLE = re.compile(
    r"CU(array|context|deviceptr(_v2)?|event|externalMemory|externalSemaphore|function|graph|graphExec|graphNode|"
    r"graphicsResource|greenCtx|kernel|library|linkState|memGenericAllocationHandle(_v1)?|memoryPool|mipmappedArray|"
    r"module|stream|surfref|texref|userObject) \*\w+"
)


def stubs() -> str:
    """Weak, so that the functions written by hand come before them. Batches begin with arrays that they only read."""
    lines = ['#include "null.h"', "#define WEAK __attribute__((weak))"]
    for function in functions():
        first = function.parameters.partition(",")[0]
        if _HANDLE.fullmatch(first) and "Batch" not in function.symbol:
            lines.append(f"WEAK int {function.symbol}(unsigned long long *answer) {{ return give(answer); }}")
        else:
            lines.append(f"WEAK int {function.symbol}(void) {{ return 0; }}")
    return "\n".join(lines) + "\n"


def build(own: Sequence[Path] = (), version: int = VERSION) -> Path:
    """The library, made anew when something it is made from has changed. ``own``: sources with functions of the API
    that it has in place of its own; ``version``: of CUDA, newer functions are not in it. Raises StepFailed."""
    folder = FOLDER
    if own or version != VERSION:
        named = hashlib.sha256("\0".join([str(version), *map(str, own)]).encode()).hexdigest()
        folder = FOLDER.with_name(f"{FOLDER.name}-{named[:12]}")
    folder.mkdir(parents=True, exist_ok=True)
    newer = "".join([f" {f.symbol};" for f in functions() if f.since > version])
    exports = _written(folder / "exports.map", f"{{ global: cu*; local:{newer} *; }};\n")
    made = [_written(folder / "functions.c", table()), _written(folder / "stubs.c", stubs())]
    shared = [driver.SOURCES / name for name in PROC_ADDRESS]
    extra = ("-fvisibility=default", f"-I{driver.headers(PYTHON)}", f"-I{driver.SOURCES}", f"-I{SOURCES}",
             f"-DNULL_VERSION={version}", f"-Wl,--version-script={exports}", "-Wl,-Bsymbolic-functions",
             "-Wl,--allow-multiple-definition")  # the first one counts
    files = [*own, *sorted(SOURCES.glob("*.[ch]")), exports, *shared, *made]
    return native.linked(folder / LIBRARY.name, "compile the null driver", files, "", extra,
                         "It is C11 with glibc on x86-64.")


def _written(path: Path, text: str) -> Path:
    """Moved into place: another process may be compiling it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        handle, aside = tempfile.mkstemp(dir=path.parent)
        os.write(handle, text.encode())
        os.close(handle)
        Path(aside).replace(path)
    return path
