"""Memory comes and goes: the reader always has what is there."""

from __future__ import annotations

import pytest

from shim.layout import lib
from shim.tails import name
from shim.wire import Kind
from softgpu.instrument import Fail
from tests.nodriver.shim.things import see

MAKERS = {
    "device": ('made("cuMemAlloc_v2", size(1000))', lib.WIRE_ALLOCATED),
    "pitched": ('made("cuMemAllocPitch_v2", byref(pitch), size(100), size(7), 4)', lib.WIRE_PITCHED),
    "managed": ('made("cuMemAllocManaged", size(1000), 1)', lib.WIRE_MANAGED),
    "async": ('made("cuMemAllocAsync", size(1000), stream)', lib.WIRE_POOLED),
    "own": ('made("cuMemAllocAsync_ptsz", size(1000), None)', lib.WIRE_POOLED),
    "pool": ('made("cuMemAllocFromPoolAsync", size(1000), pool, stream)', lib.WIRE_POOLED),
    "host": ('made("cuMemAllocHost_v2", size(1000))', lib.WIRE_HOST),
    "pinned": ('made("cuMemHostAlloc", size(1000), 1)', lib.WIRE_HOST),
    "registered": ("register()", lib.WIRE_REGISTERED),
}
ENDERS = {
    "cuMemFree_v2": "", "cuMemFreeAsync": ", stream", "cuMemFreeAsync_ptsz": ", None", "cuMemFreeHost": "",
    "cuMemHostUnregister": "",
}
START = """
stream = c_void_p(made("cuStreamCreate", 1))
pool = c_void_p(value("cuDeviceGetDefaultMemPool", c_uint64, 0))
pitch = c_size_t()
kept = []
def register():
    kept.append(create_string_buffer(1000))
    ok("cuMemHostRegister_v2", kept[-1], size(1000), 1)
    return ctypes.addressof(kept[-1])
"""


def test_each_is_said_and_ends_with_each_that_frees_it() -> None:
    """Frees of memory that they are not for fail, in the driver as ever, and then it is still there."""
    makers = ", ".join([f"{maker!r}: lambda: {code}" for maker, (code, _) in MAKERS.items()])
    enders = ", ".join([f"{ender!r}: lambda at: cuda.{ender}(pointer(at){more})" for ender, more in ENDERS.items()])
    seen = see(START + f"""
makers, enders = {{{makers}}}, {{{enders}}}
tried = []
for maker, make in makers.items():
    for ender, end in enders.items():
        at = make()
        tried.append([maker, ender, at, end(at)])
ok("cuStreamSynchronize", stream)
show(tried)
""", STRICT="1")
    assert {maker for maker, _, _, result in seen.shown if not result} == set(MAKERS)  # all have a way to be freed
    wrong = {at: MAKERS[maker][1] for maker, _, at, result in seen.shown if result}
    assert wrong
    assert {at: body.kind for at, body in seen.alive(Kind.MEMORY).items()} == wrong
    assert [body.handle for body in seen.said(Kind.END)] == [at for _, _, at, _ in seen.shown]
    results = [result for *_, result in seen.shown if result]
    assert [body.result for body in seen.said(Kind.OUTCOME) if body.result] == results


@pytest.mark.parametrize("maker", MAKERS)
def test_what_is_said_of_it(maker: str) -> None:
    code, kind = MAKERS[maker]
    seen = see(START + f"at = {code}\nshow([at, pitch.value, context, stream.value, pool.value])\n")
    at, pitch, context, stream, pool = seen.shown
    (body,) = [body for address, body in seen.alive(Kind.MEMORY).items() if address == at]
    pooled, host = kind == lib.WIRE_POOLED, kind in (lib.WIRE_HOST, lib.WIRE_REGISTERED)
    wanted = {
        "address": at, "bytes": pitch * 7 if maker == "pitched" else 1000, "kind": kind, "pitch": pitch,
        "context": 0 if pooled else context, "owner": pool if pooled else 0, "device": -1 if host else 0,
        "stream": 0 if not pooled else 2 if maker == "own" else stream, "device_address": 0, "offset": 0,
        "flags": int(maker in ("managed", "pinned", "registered")),
        "width": 100 * (maker == "pitched"), "height": 7 * (maker == "pitched"), "name_bytes": 0,
    }
    assert body._asdict() == wanted


def test_what_a_call_did_not_free_is_there_once_more() -> None:
    seen = see("""
first, second = made("cuMemAlloc_v2", size(1000)), made("cuMemAlloc_v2", size(2000))
results = [cuda.cuMemFree_v2(pointer(first)), cuda.cuMemFree_v2(pointer(first + 256)), cuda.cuMemFree_v2(pointer(0)),
           cuda.cuMemFree_v2(pointer(second)), cuda.cuMemFree_v2(pointer(second))]
show([results, first, second])
""", rules=[Fail("cuMemFree", call=1, result="CUDA_ERROR_ILLEGAL_ADDRESS")])
    results, first, second = seen.shown
    assert results == [700, 1, 0, 0, 1]
    assert seen.alive(Kind.MEMORY).keys() == {first}
    records = [(r.kind, r.body) for r in seen.observed.records if r.kind in (Kind.MEMORY, Kind.END, Kind.OUTCOME)]
    assert [kind.name for kind, _ in records] == ["MEMORY", "MEMORY", "END", "OUTCOME", "MEMORY", "END", "OUTCOME",
                                                  "END", "END", "OUTCOME"]
    assert records[4] == records[0]
    ends = [record.sequence for record in seen.observed.records if record.kind is Kind.END]
    assert [(body.of, body.result) for kind, body in records if kind is Kind.OUTCOME] == [
        (ends[0], 700), (ends[1], 1), (ends[3], 1)]
    assert ends[2] and seen.said(Kind.END)[2].handle == second


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_memory_of_a_graph_is_no_memory_yet(mode: int) -> None:
    seen = see(START + f"""
before = made("cuMemAllocAsync", size(500), stream)
ok("cuStreamBeginCapture_v2", stream, {mode})
at = made("cuMemAllocAsync", size(1000), stream)
ok("cuMemFreeAsync", pointer(at), stream)
graph = c_uint64()
ok("cuStreamEndCapture", stream, byref(graph))
show([before, at])
""")
    before, _ = seen.shown
    assert seen.alive(Kind.MEMORY).keys() == {before}
    captured = [record for record in seen.observed.records if record.flags & lib.WIRE_CAPTURED]
    assert [record.kind for record in captured] == [Kind.MEMORY, Kind.END]


def test_physical_memory_is_mapped_as_by_growing_segments() -> None:
    seen = see("""
page = 2 << 20
properties = Properties(1, 0, Location(1, 0))
base = made("cuMemAddressReserve", size(8 * page), size(0), pointer(0), c_uint64(0))
handles = []
for n in range(4):
    handle = made("cuMemCreate", size(page), byref(properties), c_uint64(0))
    handles.append(handle)
    ok("cuMemMap", pointer(base + n * page), size(page), size(0), pointer(handle), c_uint64(0))
access = Access(Location(1, 0), 3)
ok("cuMemSetAccess", pointer(base), size(4 * page), byref(access), size(1))
ok("cuMemSetAccess", pointer(base + 3 * page), size(page), byref(access), size(1))
wrong = cuda.cuMemUnmap(pointer(base), size(page // 2))
ok("cuMemUnmap", pointer(base + page), size(2 * page))
for handle in handles[1:3]:
    ok("cuMemRelease", pointer(handle))
again = made("cuMemRetainAllocationHandle", pointer(base))
ok("cuMemRelease", pointer(again))
ok("cuMemUnmap", pointer(base + 3 * page), size(page))
busy = cuda.cuMemAddressFree(pointer(base), size(8 * page))
show([base, handles, again, wrong, busy])
""")
    base, handles, again, wrong, busy = seen.shown
    page = 2 << 20
    assert again == handles[0]
    assert wrong
    assert busy
    assert {at: (body.bytes, body.owner, body.kind, body.device, body.context)
            for at, body in seen.alive(Kind.MEMORY).items()} == {base: (page, handles[0], lib.WIRE_MAPPED, 0, 0)}
    assert {at: body.bytes for at, body in seen.alive(Kind.RESERVATION).items()} == {base: 8 * page}
    physical = {at: (body.bytes, body.type, body.location_type, body.location, body.shareable, body.imported)
                for at, body in seen.alive(Kind.PHYSICAL).items()}
    assert physical == dict.fromkeys((again, handles[3]), (page, 1, 1, 0, 0, 0))
    assert [(body.address, body.bytes, body.flags, body.location_type, body.location)
            for body in seen.alive(Kind.ACCESS).values()] == [(base, 4 * page, 3, 1, 0)]
    unmapped = [(body.handle, body.bytes) for body in seen.said(Kind.END) if body.memory == lib.WIRE_MAPPED]
    assert unmapped == [(base, page // 2), (base + page, 2 * page), (base + 3 * page, page)]


def test_a_handle_that_only_mappings_kept_is_one_again() -> None:
    seen = see("""
page = 2 << 20
properties = Properties(1, 1, Location(1, 1))
base = made("cuMemAddressReserve", size(page), size(0), pointer(0), c_uint64(0))
handle = made("cuMemCreate", size(page), byref(properties), c_uint64(0))
ok("cuMemMap", pointer(base), size(page), size(0), pointer(handle), c_uint64(0))
ok("cuMemRelease", pointer(handle))
handle = made("cuMemRetainAllocationHandle", pointer(base))
file = c_int()
ok("cuMemExportToShareableHandle", byref(file), pointer(handle), 1, c_uint64(0))
other = made("cuMemImportFromShareableHandle", c_void_p(file.value), 1)
show([base, handle, other])
""")
    base, handle, other = seen.shown
    said = {at: (body.bytes, body.location, body.shareable, body.imported)
            for at, body in seen.alive(Kind.PHYSICAL).items()}
    assert said == {handle: (2 << 20, 1, 1, 0), other: (0, 1, 1, 1)}
    assert seen.alive(Kind.EXPORT).keys() == {handle}
    assert seen.alive(Kind.MEMORY)[base].device == 1


def test_physical_memory_of_the_host_passes() -> None:
    """The software driver has none, and says so."""
    seen = see("""
results = []
for kind in (2, 3, 4, 9):
    properties, handle = Properties(1, 0, Location(kind, 123456)), c_uint64()
    results.append(cuda.cuMemCreate(byref(handle), size(2 << 20), byref(properties), c_uint64(0)))
show(results)
""")
    assert all(seen.shown)
    assert not seen.said(Kind.PHYSICAL)


def test_variables_are_said_once() -> None:
    seen = see(r"""
text = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 board[40];\n"
module = made("cuModuleLoadData", text)
at, count = c_uint64(), c_size_t()
ok("cuModuleGetGlobal_v2", byref(at), None, c_void_p(module), b"board")
ok("cuModuleGetGlobal_v2", None, byref(count), c_void_p(module), b"board")
ok("cuModuleGetGlobal_v2", byref(at), byref(count), c_void_p(module), b"board")
wrong = [cuda.cuModuleGetGlobal_v2(byref(at), byref(count), c_void_p(module), b"nothing"),
         cuda.cuModuleGetGlobal_v2(None, None, c_void_p(module), b"board")]
show([module, at.value, count.value, wrong, context])
""")
    module, at, count, wrong, context = seen.shown
    (record,) = [record for record in seen.observed.records if record.kind is Kind.MEMORY]
    body = record.body
    assert (body.address, body.bytes, body.owner, body.kind, body.context) == (
        at, count, module, lib.WIRE_VARIABLE, context)
    assert name(record) == "board"
    assert count == 40
    assert wrong[0] == 500
