"""The CUDA driver by cuda-python, every call checked."""

from __future__ import annotations

import ctypes
from typing import Any

from orchestrator.traces.errors import ReplayDriverError

try:
    from cuda.bindings import driver as cuda
except ImportError as error:
    raise ReplayDriverError(f"replay needs cuda-bindings: install the extra 'orchestrator' ({error})") from error

__all__ = ["CallFailed", "call", "cuda", "load"]


class CallFailed(ReplayDriverError):
    """A driver function did not succeed; ``name`` is the result's, as in ``CUDA_ERROR_INVALID_VALUE``."""

    def __init__(self, function: str, name: str) -> None:
        super().__init__(f"{function}: {name}")
        self.name = name


def load(path: str | None) -> None:
    """Take the driver at an absolute path, or without one that on the loader's path. Raises ReplayDriverError."""
    try:
        if path is not None:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)  # cuda-python finds what has its SONAME
        call(cuda.cuInit(0), "cuInit")
    except (OSError, RuntimeError) as error:
        raise ReplayDriverError(f"no CUDA driver: {error}") from error


def call(result: tuple[Any, ...], function: str) -> Any:
    """The value of a call that has to succeed: None, one value, or a tuple. Raises :class:`CallFailed`."""
    status = result[0]
    if int(status):
        raise CallFailed(function, getattr(status, "name", str(status)))
    return None if len(result) == 1 else result[1] if len(result) == 2 else result[1:]
