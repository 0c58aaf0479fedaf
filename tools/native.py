"""The run-time of compiled kernels (``softgpu/engine/runtime``), built with the machine's C compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.steps import BUILD, ROOT, StepFailed, relative, run
from tools.venv import PYTHON

SOURCES = ROOT / "softgpu" / "engine" / "runtime"
LIBRARY = ROOT / "softgpu" / "lib" / "libsoftgpu-engine.so"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE")
FOR_LINKING = ("-shared", "-Wl,", "-l")
"""Beginnings of flags that do not matter for object files."""

OBJECT_SECONDS = 24 * 3600
"""Object files that were not used for so long are removed."""

SANITIZERS = ("address,undefined", "thread")

USERS = frozenset({"engine"})
"""Tiers and benchmarks that need the run-time; the others do without a C compiler."""


def compiler() -> str:
    """The C compiler: ``CC``, or gcc, or cc. Raises StepFailed when there is none."""
    for name in (os.environ.get("CC"), "gcc", "cc"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise StepFailed("no C compiler: the software GPU's run-time needs gcc (or cc, or CC in the environment)")


def sanitizer_flags(kind: str) -> list[str]:
    """Flags of a build with sanitizers: ``address,undefined`` or ``thread``; none for the empty kind."""
    return [f"-fsanitize={kind}", "-fno-sanitize-recover=all", "-g", "-O1"] if kind else []


def build() -> Path:
    """The library, made anew when its sources or its commands have changed. Raises StepFailed."""
    return _library(LIBRARY, "")


def prepare() -> None:
    """The library of this source tree, and beside it the engine's version and interpreter as they are now."""
    library = build()
    command: list[str | Path] = [PYTHON, "-m", "softgpu.engine.version", library.parent]
    run("write the engine's version", command, "It is made from the sources of softgpu/engine and ptxparse.")


def sanitized(kind: str) -> Path:
    """The library with sanitizers (one of ``SANITIZERS``), for tests; raises StepFailed."""
    assert kind in SANITIZERS
    return _library(BUILD / "native" / kind.replace(",", "-") / LIBRARY.name, kind)


def inputs() -> list[Path]:
    """The sources and headers of the library."""
    return [*sorted(SOURCES.glob("*.c")), *sorted(SOURCES.glob("*.h"))]


def _library(library: Path, kind: str) -> Path:
    title = "compile the run-time" + (f" ({kind})" if kind else "")
    return linked(library, title, inputs(), kind, ("-ldl",), "The run-time is C11 with glibc on x86-64.")


def linked(library: Path, title: str, files: Sequence[Path], kind: str, extra: Sequence[str], advice: str) -> Path:
    """A shared library of the ``.c`` among ``files``, made anew when one of these or the command has changed. ``kind``:
    of sanitizers; ``extra``: more for the command. Raises StepFailed."""
    complete = [] if kind else ["-Wl,-z,defs"]  # the sanitizers' own functions come with the program
    flags = [*FLAGS, *sanitizer_flags(kind), "-shared", f"-Wl,-soname,{library.name}", *complete, *extra]
    state = hashlib.sha256("\0".join([compiler(), *flags]).encode())
    for path in files:
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    stamp = BUILD / "native" / f"{relative(library).replace('/', '-')}.stamp"
    if library.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == state.hexdigest():
        return library
    for folder in (library.parent, stamp.parent):
        folder.mkdir(parents=True, exist_ok=True)
    # Built aside and moved into place, so that processes that use the old one, or build too, are not disturbed.
    handle, made = tempfile.mkstemp(dir=library.parent, prefix=".building-")
    os.close(handle)
    try:
        objects = _compiled(title, files, [flag for flag in flags if not flag.startswith(FOR_LINKING)], advice)
        run(title.replace("compile", "link", 1), [compiler(), "-o", made, *objects, *flags], advice)
        Path(made).chmod(0o755)
        Path(made).replace(library)
    finally:
        Path(made).unlink(missing_ok=True)
    stamp.write_text(state.hexdigest(), encoding="utf-8")
    return library


def _compiled(title: str, files: Sequence[Path], flags: Sequence[str], advice: str) -> list[Path]:
    """Object files of the ``.c`` among ``files``; those whose source, headers and command are as before are there
    already, the others are made two at a time. Raises StepFailed."""
    folder = BUILD / "native" / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    common = hashlib.sha256("\0".join([compiler(), *flags]).encode())
    for header in files:
        if header.suffix == ".h":
            common.update(header.name.encode() + b"\0" + header.read_bytes())
    objects: list[Path] = []
    missing: list[Path] = []
    for source in files:
        if source.suffix == ".c":
            state = common.copy()
            state.update(str(source).encode() + b"\0" + source.read_bytes())
            objects.append(folder / f"{state.hexdigest()}.o")
            if objects[-1].exists():
                objects[-1].touch()
            else:
                missing += [source, objects[-1]]
    if missing:
        make: list[str | Path] = [sys.executable, "-m", "tools.compile", str(len(flags)), compiler(), *flags, *missing]
        run(title, make, advice)
    for old in folder.glob("*.o"):
        if time.time() - old.stat().st_mtime > OBJECT_SECONDS:
            old.unlink(missing_ok=True)
    return objects
