"""The threads of the OpenBLAS that numpy has loaded. Others set them by environment variables, which is too early here:
``build.py`` gives every child one thread."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path

import numpy as np

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "")


@cache
def _library() -> tuple[ctypes.CDLL, str, str] | None:
    """The library, and what its names begin and end with; None when numpy works with something else."""
    np.linalg.norm(np.ones((2, 2), np.float32) @ np.ones((2, 2), np.float32))
    for path in sorted(set(re.findall(r"/\S*openblas\S*", Path("/proc/self/maps").read_text()))):
        library = ctypes.CDLL(path)
        for prefix in PREFIXES:
            for suffix in SUFFIXES:
                if hasattr(library, f"{prefix}_set_num_threads{suffix}"):
                    return library, prefix, suffix
    return None


def set_threads(count: int) -> bool:
    """Have matrix products use so many threads; False when that cannot be said to numpy's library."""
    found = _library()
    if found is None:
        return False
    library, prefix, suffix = found
    getattr(library, f"{prefix}_set_num_threads{suffix}")(count)
    return True


def describe() -> str:
    """Version, and the processor that its code is for."""
    found = _library()
    if found is None:
        return "numpy without OpenBLAS"
    library, prefix, suffix = found
    config = getattr(library, f"{prefix}_get_config{suffix}")
    config.restype = ctypes.c_char_p
    words = config().decode().split()
    return " ".join(word for word in words if word not in ("NO_AFFINITY", "USE64BITINT", "DYNAMIC_ARCH"))
