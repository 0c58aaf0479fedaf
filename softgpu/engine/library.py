"""The C run-time from Python: its declarations from its own headers, the library by cffi."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from softgpu.engine.errors import EngineError
from tessera.errors import ExitCode

RUNTIME = Path(__file__).resolve().parent / "runtime"
HEADERS = (RUNTIME / "abi.h", RUNTIME / "softgpu_engine.h")
LIBRARY = Path(__file__).resolve().parent.parent / "lib" / "libsoftgpu-engine.so"
BEGIN, END = "/* begin declarations", "/* end declarations */"


class LibraryMissing(EngineError, ImportError):
    """The run-time is not built, or cannot be loaded."""

    exit_code = ExitCode.NO_DRIVER


class Runtime(NamedTuple):
    """``ffi`` has the types of ``abi.h`` and ``softgpu_engine.h``, ``lib`` the functions and enumerators."""

    ffi: Any
    lib: Any


def declarations() -> str:
    """What stands between the marks of the headers, as cffi reads it."""
    parts = []
    for header in HEADERS:
        text = header.read_text(encoding="utf-8")
        parts.append(text[text.index(BEGIN):text.index(END)])
    return "\n".join(parts)


def load(library: Path = LIBRARY) -> Runtime:
    """The run-time at ``library``. Raises LibraryMissing."""
    return _load(library)


@cache
def _load(library: Path) -> Runtime:
    try:
        from cffi import FFI
    except ImportError as error:
        raise LibraryMissing("the software GPU needs the package cffi (the extra 'softgpu')") from error
    if not library.exists():
        raise LibraryMissing(f"{library} is not built: run python3 build.py build")
    ffi = FFI()
    ffi.cdef(declarations())
    try:
        return Runtime(ffi, ffi.dlopen(str(library)))
    except OSError as error:
        raise LibraryMissing(f"{library} cannot be loaded ({error}): run python3 build.py build") from error
