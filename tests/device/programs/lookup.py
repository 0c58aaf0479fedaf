"""Whether ``cuGetProcAddress`` finds what ``dlsym`` finds, for every function of the headers.

    python -m tests.device.programs.lookup
"""

from __future__ import annotations

import ctypes
from typing import Any

from tessera.driver_api import Function, functions
from tests.device.programs.device import main

LEGACY, PER_THREAD = 1, 2
"""Flags of ``cuGetProcAddress``."""
SUCCESS, VERSION_NOT_SUFFICIENT = 0, 2
"""Statuses: found; and there is such a function, but not for this version."""


def symbol(library: ctypes.CDLL, name: str) -> int:
    """The address that ``dlsym`` finds, 0 for none."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def found(library: ctypes.CDLL, function: Function) -> int:
    """The address that ``cuGetProcAddress`` gives a program of the version in which the function came."""
    address, status = ctypes.c_void_p(), ctypes.c_int()
    flags = ctypes.c_uint64(PER_THREAD if function.stream else LEGACY)
    result = library.cuGetProcAddress_v2(function.name.encode(), ctypes.byref(address), function.since, flags,
                                         ctypes.byref(status))
    return address.value or 0 if result == SUCCESS else 0


def run() -> dict[str, Any]:
    library = ctypes.CDLL("libcuda.so.1")
    if library.cuInit(0):
        raise RuntimeError("cuInit fails")
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    known = [function for function in functions() if function.since <= version.value]
    pairs = {function: (symbol(library, function.symbol), found(library, function)) for function in known}
    return {
        "version": version.value, "asked": len(known), "equal": sum(a == b != 0 for a, b in pairs.values()),
        "different": sorted(f.symbol for f, (a, b) in pairs.items() if a and b and a != b),
        "only_by_dlsym": sorted(f.symbol for f, (a, b) in pairs.items() if a and not b),
        "only_by_cuGetProcAddress": sorted(f.symbol for f, (a, b) in pairs.items() if b and not a),
        "nowhere": sorted(f.symbol for f, (a, b) in pairs.items() if not a and not b),
    }  # fmt: skip


if __name__ == "__main__":
    main(run)
