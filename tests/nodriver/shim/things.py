"""Programs in Python that make and end things under the preload library."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from shim.wire import Kind
from tests.nodriver.driver.client import HEAD
from tests.nodriver.shim.living import living
from tests.nodriver.shim.observed import Observed, observe

MORE = """
def ok(function, *arguments):
    result = getattr(cuda, function)(*arguments)
    assert result == 0, (function, result)
def made(function, *arguments):
    found = c_uint64()
    ok(function, byref(found), *arguments)
    return found.value
def size(number):
    return c_size_t(number)
def pointer(number):
    return c_uint64(number)
class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]
class Properties(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("win32", c_void_p), ("flags", c_uint64)]
class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", c_int)]
ok("cuInit", 0)
"""


class Seen(NamedTuple):
    """``shown``: what the program showed at last."""

    shown: Any
    observed: Observed

    def alive(self, *kinds: Kind) -> dict[int, Any]:
        """Bodies of the records that announced what is alive of some kinds, by handle or address."""
        return {key[1]: record.body for key, record in living(self.observed.records).items() if key[0] in kinds}

    def said(self, *kinds: Kind) -> list[Any]:
        """Bodies of all records of some kinds."""
        return [record.body for record in self.observed.records if record.kind in kinds]


def see(code: str, *, context: bool = True, **settings: Any) -> Seen:
    """Run code with ``cuda``, the library, and what HEAD and MORE have; with a context of device 0, ``context``."""
    first = 'context = made("cuCtxCreate_v2", 0, 0)\n' if context else ""
    observed = observe([sys.executable, "-c", HEAD + MORE + first + code, "libcuda.so.1"], **settings)
    assert observed.status == 0, observed.errors
    return Seen(json.loads(observed.output.splitlines()[-1]), observed)
