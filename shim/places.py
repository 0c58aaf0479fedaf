"""Where the preload library lies."""

from __future__ import annotations

from pathlib import Path

from shim.errors import ShimMissing, ShimTrouble

PRELOAD = Path(__file__).resolve().with_name("lib") / "libcuda.so.1"


def library() -> Path:
    """The preload library. Raises ShimMissing if it is not built, ShimTrouble if the loader could not be told of it."""
    if not PRELOAD.exists():
        raise ShimMissing(f"{PRELOAD} is not built: run python3 build.py build")
    if set(str(PRELOAD)) & set(": \t\n"):
        raise ShimTrouble(f"{PRELOAD}: the loader takes no path with a space or a colon; install Tessera elsewhere")
    return PRELOAD
