"""What the software driver refuses, on one that answers everything with success."""

from __future__ import annotations

from typing import Any

import pytest

from shim.layout import lib
from shim.wire import Kind
from tessera.environment import DRIVER
from tests import null_driver
from tests.nodriver.shim.observed import symbol
from tests.nodriver.shim.things import Seen, see


def see_null(code: str) -> Seen:
    return see(code, instrument=False, **{DRIVER.name: str(null_driver.build())})


def test_the_oldest_forms() -> None:
    """The null driver leaves what they would fill in as it was."""
    seen = see_null("""
def preset(function, at, *arguments):
    ok(function, byref(c_uint(at)), *arguments)
preset("cuMemAlloc", 0x1000, 100)
preset("cuMemAllocPitch", 0x2000, byref(c_uint(512)), 100, 7, 4)
ok("cuMemAllocHost", byref(c_void_p(0x300000000000)), 50)
preset("cuModuleGetGlobal", 0x4000, byref(c_uint(8)), c_void_p(16), b"v")
arrays = [made("cuArray3DCreate", (c_uint * 6)(8, 4, 2, 0x20, 2, 1)),
          made("cuArrayCreate", (c_uint * 4)(8, 4, 0x10, 1))]
ok("cuMemHostRegister", c_void_p(0x500000000000), size(64), 0)
ok("cuMemFree", c_uint(0x1000))
show(arrays)
""")
    assert {at: (body.kind, body.bytes) for at, body in seen.alive(Kind.MEMORY).items()} == {
        0x2000: (lib.WIRE_PITCHED, 512 * 7), 0x300000000000: (lib.WIRE_HOST, 50), 0x4000: (lib.WIRE_VARIABLE, 8),
        0x500000000000: (lib.WIRE_REGISTERED, 64)}
    assert [body.handle for body in seen.said(Kind.END)] == [0x1000]
    deep, flat = seen.shown
    assert {at: (b.width, b.height, b.depth, b.format, b.channels, b.flags, b.element_bytes)
            for at, b in seen.alive(Kind.ARRAY).items()} == {
        deep: (8, 4, 2, 0x20, 2, 1, 8), flat: (8, 4, 0, 0x10, 1, 0, 2)}


def test_levels_end_with_their_mipmapped_array() -> None:
    seen = see_null("""
class Descriptor(ctypes.Structure):
    _fields_ = [("sizes", c_size_t * 3), ("format", c_int), ("channels", c_uint), ("flags", c_uint)]
def array():
    whole = made("cuMipmappedArrayCreate", byref(Descriptor((16, 8, 0), 0x01, 4, 0)), 3)
    return [whole, *[made("cuMipmappedArrayGetLevel", c_void_p(whole), level) for level in range(2)]]
first, second = array(), array()
ok("cuMipmappedArrayDestroy", c_void_p(first[0]))
show(second)
""")
    whole, *levels = seen.shown
    assert {at: (body.of, body.levels, body.level) for at, body in seen.alive(Kind.ARRAY).items()} == {
        whole: (0, 3, 0), levels[0]: (whole, 0, 0), levels[1]: (whole, 0, 1)}
    body: Any = seen.alive(Kind.ARRAY)[whole]
    assert (body.width, body.height, body.depth, body.element_bytes) == (16, 8, 0, 4)


@pytest.mark.parametrize("twin", ["", "_ptsz"])
def test_mapping_into_arrays_is_other_work(twin: str) -> None:
    seen = see_null(f"""
stream = made("cuStreamCreate", 0)
ok("cuMemMapArrayAsync{twin}", None, 0, c_void_p(stream))
ok("cuMemMapArrayAsync{twin}", None, 0, None)
show(stream)
""")
    work = [record for record in seen.observed.records if record.kind is Kind.OTHER_WORK]
    assert [record.place.stream for record in work] == [seen.shown, 2 if twin else 1]
    assert {symbol(record) for record in work} == {f"cuMemMapArrayAsync{twin}"}


def test_a_range_that_is_given_to_others() -> None:
    seen = see_null("""
at = made("cuMemAlloc_v2", size(1000))
file = c_int()
ok("cuMemGetHandleForAddressRange", byref(file), pointer(at), size(1000), 1, c_uint64(0))
show(at)
""")
    assert [(body.address, body.kind) for body in seen.alive(Kind.EXPORT).values()] == [(seen.shown, Kind.MEMORY)]


def test_managed_variables_belong_to_no_context() -> None:
    seen = see_null("""
library = made("cuLibraryLoadData", b".version 8.0", None, None, 0, None, None, 0)
at, count = made("cuLibraryGetManaged", byref(size(24)), c_void_p(library), b"everywhere"), 24
ok("cuCtxDestroy_v2", c_void_p(made("cuCtxGetCurrent")))
show([library, at])
""")
    library, at = seen.shown
    body = seen.alive(Kind.MEMORY)[at]
    assert (body.owner, body.context, body.kind, body.device, body.bytes) == (library, 0, lib.WIRE_VARIABLE, -1, 24)


@pytest.mark.parametrize("kind", [2, 3, 4, 77])
def test_physical_memory_of_the_host(kind: int) -> None:
    """Its number is that of a node, if it is any; a kind that nobody knows is said as it is."""
    seen = see_null(f"""
properties = Properties(1, 0, Location({kind}, 5))
handle = made("cuMemCreate", size(2 << 20), byref(properties), c_uint64(0))
base = made("cuMemAddressReserve", size(2 << 20), size(0), pointer(0), c_uint64(0))
ok("cuMemMap", pointer(base), size(2 << 20), size(0), pointer(handle), c_uint64(0))
show([handle, base])
""")
    handle, base = seen.shown
    body = seen.alive(Kind.PHYSICAL)[handle]
    assert (body.location_type, body.location, body.type) == (kind, 5, 1)
    assert seen.alive(Kind.MEMORY)[base].device == -1
