"""Memory and events that two processes share."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from shim.layout import lib
from shim.wire import Kind, Record
from tessera.environment import MACHINE
from tests.nodriver.driver.client import HEAD
from tests.nodriver.shim.living import living
from tests.nodriver.shim.observed import observe
from tests.nodriver.shim.things import MORE

OWNER = HEAD + MORE + """
import subprocess
context = made("cuCtxCreate_v2", 0, 0)
memory, event = made("cuMemAlloc_v2", size(5000)), made("cuEventCreate", 6)
shared, signal = create_string_buffer(64), create_string_buffer(64)
ok("cuIpcGetMemHandle", shared, pointer(memory))
ok("cuIpcGetEventHandle", signal, c_void_p(event))
class PoolProperties(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("win32", c_void_p),
                ("rest", c_uint64 * 8)]
pool = made("cuMemPoolCreate", byref(PoolProperties(1, 1, Location(1, 0))))
pooled = made("cuMemAllocFromPoolAsync", size(3000), c_void_p(pool), None)
ok("cuStreamSynchronize", None)
data, file = create_string_buffer(64), c_int()
ok("cuMemPoolExportToShareableHandle", byref(file), c_void_p(pool), 1, c_uint64(0))
ok("cuMemPoolExportPointer", data, pointer(pooled))
os.set_inheritable(file.value, True)
words = [bytes(part).hex() for part in (shared, signal, data)]
other = subprocess.run([sys.executable, "-c", os.environ["USER_CODE"], "libcuda.so.1", *words, str(file.value)],
                       capture_output=True, text=True, close_fds=False)
assert other.returncode == 0, other.stderr
show([json.loads(other.stdout), memory, event, pooled, context])
"""
USER = HEAD + MORE + """
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]
def handle(word):
    return Handle.from_buffer_copy(bytes.fromhex(word))
context = made("cuCtxCreate_v2", 0, 0)
first = made("cuIpcOpenMemHandle_v2", handle(sys.argv[2]), 1)
second = made("cuIpcOpenMemHandle_v2", handle(sys.argv[2]), 1)
event = made("cuIpcOpenEventHandle", handle(sys.argv[3]))
pool = made("cuMemPoolImportFromShareableHandle", c_void_p(int(sys.argv[5])), 1, c_uint64(0))
pooled = made("cuMemPoolImportPointer", c_void_p(pool), byref(handle(sys.argv[4])))
ok("cuIpcCloseMemHandle", pointer(first))
marker = made("cuEventCreate", 0)
ok("cuIpcCloseMemHandle", pointer(first))
wrong = cuda.cuIpcCloseMemHandle(pointer(first))
third = made("cuIpcOpenMemHandle_v2", handle(sys.argv[2]), 1)
show([first, second, event, pool, pooled, marker, wrong, third, context])
"""


def bodies(records: list[Record], *kinds: Kind) -> dict[int, Any]:
    return {key[1]: record.body for key, record in living(records).items() if key[0] in kinds}


def test_what_processes_share() -> None:
    shared = {MACHINE.name: f"shared-{os.getpid()}"}
    seen = observe([sys.executable, "-c", OWNER, "libcuda.so.1"], USER_CODE=USER, **shared)
    assert seen.status == 0, seen.errors
    told, memory, event, pooled, _ = json.loads(seen.output)
    first, second, opened, pool, imported, marker, wrong, third, context = told
    owner, user = [client for client in seen.clients if any(r.kind is Kind.CONTEXT for r in client)]
    assert {(at, body.kind) for at, body in bodies(owner, Kind.EXPORT).items()} == {
        (memory, Kind.MEMORY), (event, Kind.EVENT), (pooled, Kind.MEMORY)}
    assert first == second
    assert wrong
    alive = bodies(user, Kind.MEMORY)
    assert {at: (body.bytes, body.kind, body.context, body.owner) for at, body in alive.items()} == {
        third: (5000, lib.WIRE_IMPORTED, context, 0), imported: (3000, lib.WIRE_IMPORTED, 0, pool)}
    assert bodies(user, Kind.EVENT)[opened].imported
    order = [(r.kind, r.body[0]) for r in user if (r.kind is Kind.MEMORY and r.body.address == first)
             or (r.kind is Kind.EVENT and r.body.handle == marker) or r.kind is Kind.END]
    ends = [(Kind.END, first), (Kind.END, first)]  # the last one was wrong
    again = [(Kind.MEMORY, third)] if third == first else []
    assert order == [(Kind.MEMORY, first), (Kind.EVENT, marker), *ends, *again]
