"""Memory that processes of one machine give each other: the other reads it, whatever becomes of each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.nodriver.driver.program import Program

MIB = 1 << 20
GIB = 1 << 30
PRELUDE = """
import socket
class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]
class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]
class Properties(ctypes.Structure):
    _fields_ = [("type", c_int), ("types", c_int), ("location", Location), ("meta", c_void_p), ("flags", c_uint64)]
class PoolProperties(ctypes.Structure):
    _fields_ = [("type", c_int), ("types", c_int), ("location", Location), ("meta", c_void_p), ("most", c_size_t),
                ("rest", ctypes.c_uint8 * 56)]
class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", c_int)]
cuda.cuIpcOpenMemHandle_v2.argtypes = [c_void_p, Handle, c_uint]
assert cuda.cuInit(0) == 0 or sys.exit("no machine")
context = c_void_p()
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
def ok(result):
    assert result == 0, result
def allocate(size):
    pointer = c_uint64()
    ok(cuda.cuMemAlloc_v2(byref(pointer), c_size_t(size)))
    return pointer.value
def read(address, count):
    data = (ctypes.c_ubyte * count)()
    ok(cuda.cuMemcpyDtoH_v2(data, c_uint64(address), c_size_t(count)))
    return list(data)
def fill(address, value, count):
    ok(cuda.cuMemsetD8_v2(c_uint64(address), ctypes.c_ubyte(value), c_size_t(count)))
def unused():
    free, total = c_size_t(), c_size_t()
    ok(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value
def handle_of(address):
    handle = Handle()
    result = cuda.cuIpcGetMemHandle(byref(handle), c_uint64(address))
    return result or ctypes.string_at(byref(handle), 64).hex()
def open_handle(text, flags=1):
    pointer = c_uint64()
    result = cuda.cuIpcOpenMemHandle_v2(byref(pointer), Handle.from_buffer_copy(bytes.fromhex(text)), flags)
    return [result, pointer.value]
def close_handle(address):
    return cuda.cuIpcCloseMemHandle(c_uint64(address))
def create(size, types=1):
    handle = c_uint64()
    wanted = Properties(1, types, Location(1, 0))
    result = cuda.cuMemCreate(byref(handle), c_size_t(size), byref(wanted), c_uint64(0))
    return result or handle.value
def export(handle):
    file = c_int()
    ok(cuda.cuMemExportToShareableHandle(byref(file), c_uint64(handle), 1, c_uint64(0)))
    return file.value
def import_(file):
    handle = c_uint64()
    result = cuda.cuMemImportFromShareableHandle(byref(handle), c_void_p(file), 1)
    os.close(file)
    return result or handle.value
def map_(handle, size):
    pointer = c_uint64()
    ok(cuda.cuMemAddressReserve(byref(pointer), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0)))
    ok(cuda.cuMemMap(pointer, c_size_t(size), c_size_t(0), c_uint64(handle), c_uint64(0)))
    ok(cuda.cuMemSetAccess(pointer, c_size_t(size), byref(Access(Location(1, 0), 3)), c_size_t(1)))
    return pointer.value
def unmap(address, size):
    ok(cuda.cuMemUnmap(c_uint64(address), c_size_t(size)))
    ok(cuda.cuMemAddressFree(c_uint64(address), c_size_t(size)))
other = socket.socket(fileno=LINE) if LINE else None
def send(file):
    socket.send_fds(other, [b"x"], [file])
    os.close(file)
def receive():
    return socket.recv_fds(other, 1, 1)[1][0]
"""

Start = Callable[..., Program]


FLEET = "T4,L4;from=T4:to=L4:bandwidth_gb_s=10:peer=true"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Program] = []

    def begin(machine: str = "one", devices: str = FLEET, line: socket.socket | None = None) -> Program:
        files = [line.fileno()] if line else []
        made.append(Program(tmp_path, machine, devices, f"LINE = {files[0] if files else 0}\n{PRELUDE}", files))
        return made[-1]

    yield begin
    for program in made:
        program.end(hard=True)


@pytest.fixture
def pair(start: Start) -> tuple[Program, Program]:
    """Two programs with a line for files between them."""
    ends = socket.socketpair()
    programs = start(line=ends[0]), start(line=ends[1])
    for end in ends:
        end.close()
    return programs


def test_memory_is_read_and_written_by_another_process(start: Start) -> None:
    first, second = start(), start()
    first.run("small = allocate(1000); a = allocate(5000); fill(a, 7, 5000)")
    handle = first.get("handle_of(a + 100)")  # all of it, wherever the pointer points
    result, address = second.get(f"open_handle('{handle}')")
    assert result == 0
    assert second.get(f"read({address}, 5000)") == [7] * 5000
    assert second.get(f"cuda.cuMemcpyDtoH_v2((ctypes.c_ubyte * 2)(), c_uint64({address + 4999}), c_size_t(2))") == 1
    second.run(f"fill({address}, 9, 10)")
    assert first.get("read(a, 11)") == [9] * 10 + [7]
    assert second.get(f"cuda.cuMemFree_v2(c_uint64({address}))") == 1
    assert second.get(f"open_handle('{handle}')") == [0, address]  # the same once more, to be closed twice
    assert second.get(f"[close_handle({address}), close_handle({address}), close_handle({address})]") == [0, 0, 1]
    assert first.get("read(a, 1)") == [9]
    assert second.get("unused()") == first.get("unused()") == 16 * GIB - 5120 - 1024


def test_what_handles_are_refused(start: Start) -> None:
    first, second, stranger, alone = start(), start(), start("other"), start("")
    handle = first.run("a = allocate(5000)", "handle_of(a)")
    assert first.get(f"open_handle('{handle}')")[0] == 201
    assert second.get(f"open_handle('{handle}', 0)")[0] == 1
    assert second.get(f"open_handle('00{handle[2:]}')")[0] == 400
    assert stranger.get(f"open_handle('{handle}')")[0] == 400
    assert alone.get(f"open_handle('{handle}')")[0] == 400
    assert first.get("handle_of(a + 5000)") == 1
    assert first.run("p = c_void_p(); ok(cuda.cuMemAllocHost_v2(byref(p), c_size_t(99)))", "handle_of(p.value)") == 1
    first.end(hard=True)
    assert second.get(f"open_handle('{handle}')")[0] == 205


def test_a_context_takes_what_it_opened_with_it(start: Start) -> None:
    first, second = start(), start()
    handle = first.run("a = allocate(5000); fill(a, 3, 5000)", "handle_of(a)")
    other = "n = c_void_p(); ok(cuda.cuCtxCreate_v2(byref(n), 0, 1))"  # on another device, which may access it
    result, address = second.run(other, f"open_handle('{handle}')")
    assert result == 0 and second.get(f"read({address}, 2)") == [3, 3]
    assert second.run("ok(cuda.cuCtxDestroy_v2(n))", f"close_handle({address})") == 1
    result, address = second.get(f"open_handle('{handle}')")
    assert result == 0 and second.get(f"read({address}, 2)") == [3, 3]


@pytest.mark.parametrize("hard", [False, True], ids=["ended", "killed"])
def test_memory_outlives_who_exported_it(start: Start, hard: bool, tmp_path: Path) -> None:
    first, second = start(), start()
    handle = first.run("a = allocate(5000); fill(a, 5, 5000)", "handle_of(a)")
    result, address = second.get(f"open_handle('{handle}')")
    assert result == 0
    first.end(hard)
    assert second.get(f"read({address}, 5000)") == [5] * 5000
    assert second.get("unused()") == 16 * GIB
    assert second.get(f"close_handle({address})") == 0
    names = "[os.path.realpath(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')]"
    assert not [name for name in second.get(names) if "memfd" in name]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["softgpu-one"]


def test_an_importer_may_be_killed(start: Start) -> None:
    first, second = start(), start()
    handle = first.run("a = allocate(5000); fill(a, 5, 5000)", "handle_of(a)")
    assert second.get(f"open_handle('{handle}')")[0] == 0
    second.end(hard=True)
    assert first.get("read(a, 2)") == [5, 5]
    assert first.run("ok(cuda.cuMemFree_v2(c_uint64(a)))", "unused()") == 16 * GIB


@pytest.mark.parametrize("hard", [False, True], ids=["ended", "killed"])
def test_handles_of_memory_without_addresses(pair: tuple[Program, Program], hard: bool) -> None:
    first, second = pair
    first.run(f"h = create({4 * MIB}); p = map_(h, {4 * MIB}); fill(p, 6, 100); send(export(h))")
    second.run(f"h = import_(receive()); p = map_(h, {4 * MIB})")
    assert second.get("read(p, 101)") == [6] * 100 + [0]
    second.run("fill(p + 50, 8, 1)")
    assert first.get("read(p + 49, 2)") == [6, 8]
    assert second.get("unused()") == 16 * GIB - 4 * MIB  # counted once
    assert second.get(f"create({16 * GIB})") == 2
    first.end(hard)
    assert second.get("read(p + 49, 2)") == [6, 8]
    second.run(f"unmap(p, {4 * MIB}); ok(cuda.cuMemRelease(c_uint64(h)))")
    assert second.get("unused()") == 16 * GIB


def test_pools(pair: tuple[Program, Program]) -> None:
    first, second = pair
    first.run(
        "pool = c_void_p(); ok(cuda.cuMemPoolCreate(byref(pool), byref(PoolProperties(1, 1, Location(1, 0)))))\n"
        "file = c_int(); ok(cuda.cuMemPoolExportToShareableHandle(byref(file), pool, 1, c_uint64(0)))\n"
        "send(file.value)\n"
        "a = c_uint64(); ok(cuda.cuMemAllocFromPoolAsync(byref(a), c_size_t(3000), pool, c_void_p(0)))\n"
        "fill(a.value, 4, 3000)\n"
        "data = Handle(); ok(cuda.cuMemPoolExportPointer(byref(data), a))"
    )
    data = first.get("ctypes.string_at(byref(data), 64).hex()")
    second.run(
        "file = receive(); pool = c_void_p()\n"
        "ok(cuda.cuMemPoolImportFromShareableHandle(byref(pool), c_void_p(file), 1, c_uint64(0))); os.close(file)\n"
        f"data = Handle.from_buffer_copy(bytes.fromhex('{data}'))\n"
        "p = c_uint64(); ok(cuda.cuMemPoolImportPointer(byref(p), pool, byref(data)))"
    )
    assert second.get("read(p.value, 3000)") == [4] * 3000
    second.run("fill(p.value, 5, 1)")
    assert first.get("read(a.value, 2)") == [5, 4]
    first.end(hard=True)
    assert second.get("read(p.value, 2)") == [5, 4]
    assert second.run("ok(cuda.cuMemFreeAsync(p, c_void_p(0))); ok(cuda.cuCtxSynchronize())", "unused()") == 16 * GIB


def test_host_memory_that_both_register(start: Start) -> None:
    first, second = start(), start()
    code = (
        "import mmap\n"
        "m = mmap.mmap(f, 8192); p = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "ok(cuda.cuMemHostRegister_v2(c_void_p(p), c_size_t(8192), 2))"
    )
    file = first.run(f"f = os.memfd_create('shared'); os.ftruncate(f, 8192)\n{code}", "f")
    second.run(f"f = os.open('/proc/{first.process.pid}/fd/{file}', os.O_RDWR)\n{code}")
    first.run("fill(p + 5, 3, 10)")
    assert second.get("read(p + 4, 12)") == [0, *[3] * 10, 0]


def test_files_of_this_process_are_none(start: Start) -> None:
    first = start()
    assert first.get("import_(os.memfd_create('softgpu-memory-0-one'))") == 1
