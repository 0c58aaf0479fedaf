"""The shared objects of ``shim``: the preload library and the extension by which Python reads what it writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools import driver, native
from tools.steps import BUILD, ROOT, StepFailed, run

SOURCES = ROOT / "shim"
PRELOAD = SOURCES / "lib" / "libcuda.so.1"
EXTENSION = SOURCES / "_wire.abi3.so"
READER = tuple([SOURCES / name for name in ("check.c", "reader.c", "reader.h", "wire.h")])
MADE = BUILD / "native" / "shim"

USERS = frozenset({"shim", "device"})
"""Tiers and benchmarks that need both."""


def products() -> list[Path]:
    """What is built."""
    return [EXTENSION, PRELOAD] if any((SOURCES / "preload").glob("*.c")) else [EXTENSION]


def prepare(python: Path) -> list[Path]:
    """All of it, made anew when something it is made from has changed. Raises StepFailed."""
    extension(python)
    if PRELOAD in products():
        preload(python)
    return products()


def sources() -> list[Path]:
    """What all of it is made from, without the generated files."""
    return [*READER, *sorted((SOURCES / "preload").glob("*.[ch]")), SOURCES / "extension.py"]


def extension(python: Path) -> Path:
    """The extension, with declarations by the cffi of an interpreter. Raises StepFailed."""
    source = MADE / "_wire.c"
    run("generate the shim's extension", [python, "-m", "shim.extension", source],
        "It is made from shim/wire.h by the package cffi.")
    extra = (f"-I{include(python)}", f"-I{SOURCES}",
             "-Wl,-z,undefs")  # what it needs of Python comes with the interpreter
    return native.linked(EXTENSION, "compile the shim's extension", [*READER, source], "", extra,
                         "It needs the headers of Python (Debian and Ubuntu: package python3-dev).")


def preload(python: Path, kind: str = "") -> Path:
    """The preload library, with sanitizers of a ``kind`` under ``build``. Raises StepFailed."""
    folder = BUILD / "native" / kind.replace(",", "-") / "shim" if kind else PRELOAD.parent
    title = "compile the preload library" + (f" ({kind})" if kind else "")
    extra = (f"-I{driver.headers(python)}", f"-I{SOURCES}", f"-I{MADE}", "-ldl")
    return native.linked(folder / PRELOAD.name, title, inputs(), kind, extra,
                         "The preload library is C11 with glibc on x86-64.")


def inputs() -> list[Path]:
    """What the preload library is made from, generated files last."""
    generated = [path for path in sorted(MADE.glob("*.[ch]")) if path.name != "_wire.c"]
    return [*sorted((SOURCES / "preload").glob("*.[ch]")), SOURCES / "wire.h", *generated]


def include(python: Path) -> str:
    """The folder of an interpreter's headers. Raises StepFailed."""
    ask: list[str | Path] = [python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
    found: str = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    if not Path(found, "Python.h").exists():
        raise StepFailed("no Python.h: the shim's extension needs the headers of Python (package python3-dev)")
    return found
