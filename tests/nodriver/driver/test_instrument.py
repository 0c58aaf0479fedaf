"""The instrument: its file, and what the driver does then."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from softgpu.instrument import Delay, Fail, Instrument, InstrumentError
from tests.material import ROOT
from tests.nodriver.driver.client import Done, run
from tests.nodriver.driver.programs import build_program, run_program
from tools import driver, native
from tools.venv import PYTHON

NO_DEVICE, NOT_PERMITTED = 100, 800
SCHEMA = json.loads((ROOT / "docs" / "schema" / "instrument.json").read_text(encoding="utf-8"))
BEGIN = """
assert cuda.cuInit(0) == 0
context = c_void_p()
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
"""
TAKE = """
def take(size=1000):
    pointer = c_uint64()
    return [cuda.cuMemAlloc_v2(byref(pointer), c_size_t(size)), pointer]
"""


def under(instrument: Instrument, code: str, **more: str) -> Done:
    with instrument.variables() as variables:
        return run(code, **variables, **more)


def records(instrument: Instrument) -> list[dict[str, Any]]:
    found = instrument.records()
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for record in found:
        validator.validate(record)
    return found


def with_file(tmp_path: Path, text: str, code: str) -> Done:
    path = tmp_path / "settings"
    path.write_text(text)
    return run(code, SOFTGPU_INSTRUMENT=str(path))


def test_calls_in_the_log(tmp_path: Path) -> None:
    instrument = Instrument(log=tmp_path / "a log", calls=True)
    shown = under(instrument, BEGIN + TAKE + r"""
result, pointer = take()
found = c_void_p()
cuda.cuGetProcAddress_v2(b'a "\xe9\\' + b"x" * 300, byref(found), 12000, c_uint64(0), None)
cuda.cuMemsetD8_v2(pointer, 255, c_size_t(3))
cuda.cuStreamCreateWithPriority(byref(found), 1, -2)
cuda.cuGetErrorName(77777, None)
cuda.cuGetProcAddress_v2(None, None, 0, c_uint64(0), None)
cuda.cuCtxResetPersistingL2Cache()
show([hex(context.value), hex(pointer.value), hex(found.value), os.getpid()])
""").shown
    head, *calls = records(instrument)
    assert head["process"] == shown[3]
    assert [call["call"] for call in calls] == [
        "cuInit", "cuCtxCreate_v2", "cuMemAlloc_v2", "cuGetProcAddress_v2", "cuMemsetD8_v2",
        "cuStreamCreateWithPriority", "cuGetErrorName", "cuGetProcAddress_v2", "cuCtxResetPersistingL2Cache",
    ]
    init, create, take, look, fill, stream, name, nothing, refused = calls
    assert init["arguments"] == {"Flags": 0} and "answer" not in init
    assert create["answer"] == shown[0] and create["result"] == "CUDA_SUCCESS"
    assert take["arguments"]["bytesize"] == 1000 and take["answer"] == shown[1]
    assert look["arguments"]["symbol"] == 'a "\xe9\\' + "x" * 195 and look["arguments"]["driverVersion"] == 12000
    assert fill["arguments"] == {"dstDevice": shown[1], "uc": 255, "N": 3}
    assert stream["arguments"]["priority"] == -2 and stream["answer"] == shown[2]
    assert name["result"] == "CUDA_ERROR_INVALID_VALUE" and name["arguments"] == {"error": 77777, "pStr": "0x0"}
    assert nothing["arguments"]["symbol"] is None and nothing["result"] == "CUDA_ERROR_INVALID_VALUE"
    assert refused["result"] == "CUDA_ERROR_NOT_SUPPORTED"
    for call in calls:
        assert call["thread"] == 1 and call["system_thread"] == shown[3] and call["duration_ns"] < 60e9
    assert [call["start_ns"] for call in calls] == sorted(call["start_ns"] for call in calls)


def test_a_log_for_each_process(tmp_path: Path) -> None:
    instrument = Instrument(log=tmp_path / "log", calls=True)
    shown = under(instrument, """
cuda.cuInit(0)
child = os.fork()
if not child:
    cuda.cuDeviceGetCount(byref(c_int()))
    os._exit(0)
os.waitpid(child, 0)
cuda.cuInit(0)
show([os.getpid(), child])
""").shown
    logs = [[json.loads(line) for line in (tmp_path / f"log.{process}").read_text().splitlines()] for process in shown]
    assert [[head["process"], *[call["call"] for call in calls]] for head, *calls in logs] == [
        [shown[0], "cuInit", "cuInit"], [shown[1], "cuDeviceGetCount"],
    ]
    assert logs[1][1]["result"] == "CUDA_ERROR_NOT_INITIALIZED"


@pytest.mark.parametrize(("rules", "expected"), [
    ([Fail("cuMemAlloc", 2, result="CUDA_ERROR_OUT_OF_MEMORY")], [0, 2, 0, 0]),
    ([Fail("cuMemAlloc_v2", 3, onwards=True, result=2)], [0, 0, 2, 2]),
    ([Fail("*", 4, result=700)], [0, 700, 0, 0]),
    ([Fail("cuMemAlloc", 1, result=1), Fail("cuMemAlloc", 2, result=2), Fail("cuMemAlloc", 1, True, result=3)],
     [1, 2, 3, 3]),
    ([Fail("cuMemAllocHost", 1, onwards=True)], [0, 0, 0, 0]),
], ids=["second", "from third", "any", "first that says so", "another"])
def test_calls_that_fail(rules: list[Fail | Delay], expected: list[int], tmp_path: Path) -> None:
    instrument = Instrument(log=tmp_path / "log", calls=True, rules=rules)
    shown = under(instrument, BEGIN + TAKE + """
found = [take() for _ in range(4)]
unused, total = c_size_t(), c_size_t()
cuda.cuMemGetInfo_v2(byref(unused), byref(total))
show([[result for result, _ in found], [pointer.value != 0 for _, pointer in found], total.value - unused.value])
""").shown
    assert shown == [expected, [not result for result in expected], 1024 * expected.count(0)]
    calls = [record for record in records(instrument) if record.get("call") == "cuMemAlloc_v2"]
    assert [call.get("made", True) for call in calls] == [not result for result in expected]


def test_only_calls_of_one_thread_fail() -> None:
    instrument = Instrument(rules=[Fail("cuMemGetInfo", 2, thread=2, result="CUDA_ERROR_UNKNOWN")])
    assert under(instrument, BEGIN + """
import threading
def ask(found):
    for _ in range(3):
        cuda.cuCtxSetCurrent(context)
        found.append(cuda.cuMemGetInfo_v2(byref(c_size_t()), byref(c_size_t())))
def begin():
    found = []
    thread = threading.Thread(target=ask, args=[found])
    thread.start()
    thread.join()
    return found
first = []
ask(first)
show([first, begin(), begin()])
""").shown == [[0, 0, 0], [0, 999, 0], [0, 0, 0]]


def test_calls_that_come_late(tmp_path: Path) -> None:
    rules = [Delay("cuDeviceGetCount", 2, seconds=0.1), Delay("cuDeviceGetCount", 2, seconds=0.05),
             Fail("cuDeviceGetCount", 2)]
    instrument = Instrument(log=tmp_path / "log", calls=True, rules=rules)
    shown = under(instrument, "cuda.cuInit(0)\nshow([cuda.cuDeviceGetCount(byref(c_int())) for _ in range(3)])").shown
    assert shown == [0, 999, 0]
    took = [record["duration_ns"] for record in records(instrument) if record.get("call") == "cuDeviceGetCount"]
    assert took[1] >= 150e6 and took[0] < 50e6 and took[2] < 50e6


PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 to, .param .u64 from, .param .u64 sum)
{
  .reg .b32 %r<5>; .reg .b64 %d<6>;
  ld.param.u64 %d1, [to]; ld.param.u64 %d2, [from]; ld.param.u64 %d3, [sum];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d4, %r1, 8;
  add.u64 %d1, %d1, %d4; add.u64 %d2, %d2, %d4;
  ld.global.u32 %r2, [%d2]; st.global.u32 [%d1], %r2; red.global.add.u32 [%d3], %r2;
  ret;
}
"""


def test_what_launches_access(tmp_path: Path) -> None:
    """Each thread reads and writes the first half of eight bytes."""
    instrument = Instrument(log=tmp_path / "log", accesses=True)
    shown = under(instrument, BEGIN + TAKE + f"""
module, add = c_void_p(), c_void_p()
assert cuda.cuModuleLoadData(byref(module), {PTX!r}) == 0
assert cuda.cuModuleGetFunction(byref(add), module, b"add") == 0
given = [take()[1] for _ in range(3)]
arguments = (c_void_p * 3)(*[ctypes.addressof(pointer) for pointer in given])
assert cuda.cuLaunchKernel(add, 1, 1, 1, 5, 1, 1, 64, None, arguments, None) == 0
assert cuda.cuCtxSynchronize() == 0
given[1].value += 1 << 50
cuda.cuLaunchKernel(add, 1, 1, 1, 5, 1, 1, 0, None, arguments, None)
show([pointer.value for pointer in given])
assert cuda.cuCtxSynchronize() == 700
""").shown
    target, source, total = shown[0], shown[1] - (1 << 50), shown[2]
    launched, failed = records(instrument)[1:]
    assert launched["launch"] == "add" and launched["device"] == 0 and launched["outcome"] == 0
    assert [launched["grid"], launched["block"], launched["shared"]] == [[1, 1, 1], [5, 1, 1], 64]
    assert launched["read"] == [[hex(source + 8 * n), hex(source + 8 * n + 4)] for n in range(5)]
    assert launched["written"] == [[hex(target + 8 * n), hex(target + 8 * n + 4)] for n in range(5)]
    assert launched["atomic"] == [[hex(total), hex(total + 4)]]
    assert failed["outcome"] == 1 and failed["written"] == []


def expected_work(line: str) -> dict[str, Any]:
    """As ``c/work.c`` prints it, with the digests that the log has instead of bytes."""
    record: dict[str, Any] = json.loads(line)
    for name, digest, most in [("delivered", "sha256", 0), ("parameters", "parameters_sha256", 4096)]:
        given = bytes.fromhex(record.get(name, ""))
        if len(given) > most:
            record[digest] = hashlib.sha256(given).hexdigest()
            del record[name]
    return record


@pytest.mark.parametrize("kind", ["", *native.SANITIZERS], ids=lambda kind: kind or "plain")
def test_work_by_every_route(kind: str, tmp_path: Path) -> None:
    instrument = Instrument(log=tmp_path / "log", work=True)
    with instrument.variables() as variables:
        done = run_program(build_program("work", kind, tmp_path), variables)
    assert done.returncode == 0, done.stderr
    found = records(instrument)[1:]
    ends = [record.pop("end_ns") for record in found]
    assert ends == sorted(ends)
    expected = [expected_work(line) for line in done.stdout.splitlines()]
    assert {record["work"] for record in expected} == set(SCHEMA["$defs"]["work"]["properties"]["work"]["enum"])
    assert found == expected


LOOK_UP = """
def look(name, version=13000, flags=0):
    found, status = c_void_p(), c_int()
    assert cuda.cuGetProcAddress_v2(name, byref(found), version, c_uint64(flags), byref(status)) == 0
    symbols = [s for s in ("cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuMemcpyHtoD_v2",
                           "cuMemcpyHtoD_v2_ptds")
               if ctypes.cast(getattr(cuda, s), c_void_p).value == found.value]
    return [symbols[0] if symbols else bool(found.value), status.value]
show([value("cuDriverGetVersion", c_int), look(b"cuCtxCreate"), look(b"cuGreenCtxCreate"),
      look(b"cuMemcpyHtoD", 13000, 2), look(b"cuGreenCtxCreate", 11000), look(b"cuNoSuch"),
      hasattr(cuda, "cuGreenCtxCreate")])
"""


@pytest.mark.parametrize(("version", "expected"), [
    (12050, ["cuCtxCreate_v4", 0, True, 0, "cuMemcpyHtoD_v2_ptds", 0, False, 2]),
    (12020, ["cuCtxCreate_v3", 0, False, 1, "cuMemcpyHtoD_v2_ptds", 0, False, 1]),
    (6050, ["cuCtxCreate_v2", 0, False, 1, "cuMemcpyHtoD_v2", 0, False, 1]),
])
def test_functions_newer_than_the_driver_are_not_found(version: int, expected: list[Any]) -> None:
    pairs = [[expected[n], expected[n + 1]] for n in range(0, 8, 2)]
    told = under(Instrument(version=version), LOOK_UP, SOFTGPU_DRIVER_VERSION="11000").shown
    assert told == [version, *pairs, [False, 1], True]
    assert run(LOOK_UP, SOFTGPU_DRIVER_VERSION=str(version)).shown == told


def test_handles_and_addresses_come_back_at_once() -> None:
    shown = under(Instrument(reuse=True), BEGIN + TAKE + """
def twice(make, drop, count=3):
    made = [make() for _ in range(count)]
    for handle in made:
        drop(handle)
    again = [make() for _ in range(count)]
    return again == made[::-1] and len(set(made)) == count
def handle(name, *arguments):
    found = c_void_p()
    assert getattr(cuda, name)(byref(found), *arguments) == 0
    return found.value
def popped(device):
    made = handle("cuCtxCreate_v2", 0, device)
    assert cuda.cuCtxPopCurrent_v2(None) == 0
    return made
def memory(bytes):
    return lambda: take(bytes)[1].value
def clean(bytes):
    pointer = take(bytes)[1]
    text = create_string_buffer(b"x" * bytes)
    cuda.cuMemcpyDtoH_v2(text, pointer, c_size_t(bytes))
    return text.raw.count(0) >= bytes
free = lambda pointer: cuda.cuMemFree_v2(c_uint64(pointer))
show([twice(lambda: handle("cuStreamCreate", 0), lambda s: cuda.cuStreamDestroy_v2(c_void_p(s))),
      twice(lambda: handle("cuEventCreate", 0), lambda s: cuda.cuEventDestroy_v2(c_void_p(s))),
      twice(lambda: popped(1), lambda s: cuda.cuCtxDestroy_v2(c_void_p(s))),
      twice(memory(1000), free), twice(memory(5000), free),
      twice(memory(3 << 20), free, 100), clean(5000)])
""").shown
    assert shown == [True, True, True, True, True, False, True]


def test_memory_whose_address_is_kept_is_there_for_others() -> None:
    assert under(Instrument(reuse=True), BEGIN + TAKE + """
gib = 1 << 30
for size in (79, 40, 20, 60, 78):
    result, pointer = take(size * gib)
    assert result == 0, size
    cuda.cuMemFree_v2(pointer)
show(take(80 * gib)[0])
""").shown == 0


def test_what_is_left(tmp_path: Path) -> None:
    code = BEGIN + TAKE + """
pointers = [take(), take(), take(1)]
cuda.cuMemFree_v2(pointers[1][1])
host = c_void_p()
cuda.cuMemAllocHost_v2(byref(host), c_size_t(77))
events = [value("cuEventCreate", c_void_p, 0) for _ in range(3)]
cuda.cuEventDestroy_v2(c_void_p(events[0]))
stream = value("cuStreamCreate", c_void_p, 0)
show(0)
"""
    instrument = Instrument(log=tmp_path / "log", left=True)
    assert under(instrument, code).errors == ""
    left = records(instrument)[-1]["left"]
    assert {name: count for name, count in left.items() if count} == {
        "contexts": 1, "streams": 1, "events": 2, "device allocations": 2, "bytes of device allocations": 1001,
        "host allocations": 1, "bytes of host allocations": 77,
    }
    lines = under(Instrument(left=True), code).errors.splitlines()
    assert lines[0] == "softgpu: left at exit: contexts: 1" and len(lines) == 7


INTERPOSER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int cuInit(unsigned);
int cuDriverGetVersion(int *);
static int calls;
void *dlopen(const char *name, int flags) {
  static void *(*real)(const char *, int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
  if (!calls++) {
    int version, asked = cuDriverGetVersion(&version), begun = cuInit(0);
    fprintf(stderr, "inside: %d %d\n", asked, begun);
  }
  return real(name, flags);
}
int main(void) { return cuInit(0); }
"""


def test_a_library_that_the_loader_call_comes_back_to(tmp_path: Path) -> None:
    """As one that stands before ``dlopen`` does when it starts on first use."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(INTERPOSER)
    subprocess.run([native.compiler(), "-rdynamic", source, "-o", program, driver.build(PYTHON),
                    f"-Wl,-rpath,{driver.LIBRARY.parent}"], check=True)
    with Instrument(loader=True).variables() as variables:
        done = subprocess.run([program], env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "softgpu: cuDriverGetVersion was called while cuInit calls the loader",
        "softgpu: cuInit was called while cuInit calls the loader",
        f"inside: 0 {NOT_PERMITTED}",
    ]


@pytest.mark.parametrize("kind", native.SANITIZERS)
@pytest.mark.parametrize("name", ["contexts", "streams"])
def test_threads(name: str, kind: str, tmp_path: Path) -> None:
    """Programs whose threads call side by side, with all that does not make calls fail."""
    instrument = Instrument(tmp_path / "log", calls=True, work=True, left=True, reuse=True, loader=True,
                            rules=[Fail("cuMemAlloc", 10 ** 9), Delay("cuEventRecord", 2, thread=2)])
    with instrument.variables() as variables:
        done = run_program(build_program(name, kind, tmp_path), variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    logged = instrument.records()
    assert len(logged) > 1000 and len({record["thread"] for record in logged if "call" in record}) > 3
    assert name != "streams" or any("work" in record for record in logged)
    assert logged[-1]["left"]["streams"] == 0


@pytest.mark.parametrize(("line", "message"), [
    ("faill cuMemAlloc 1 2", "no setting has this name"),
    ("fail cuMemAloc 1 2", "there is no such function"),
    ("fail", "there is no such function"),
    ("fail cuMemAlloc 0 2", "calls are numbered 1, 2, 3"),
    ("fail cuMemAlloc + 2", "calls are numbered 1, 2, 3"),
    ("fail cuMemAlloc 1 CUDA_SUCCESS", "an error is the name or number of a CUresult that is not 0"),
    ("fail cuMemAlloc 1 12345", "an error is the name or number"),
    ("fail cuMemAlloc 1", "an error is the name or number"),
    ("fail cuMemAlloc 1 2 threads 2", "behind it there can only be 'thread' and a number"),
    ("fail cuMemAlloc 1 2 thread 0", "threads are numbered"),
    ("fail cuMemAlloc 1 2 thread 1 2", "there is more on this line than belongs there"),
    ("delay cuMemAlloc 1 1.5", "a time is a whole number of microseconds"),
    ("delay cuMemAlloc 1 3600000001", "a time is a whole number of microseconds, up to an hour"),
    ("version 12.4", "a version is a number like 12040"),
    ("reuse 1", "there is more on this line than belongs there"),
    ("log", "a log needs the name of a file"),
])
def test_lines_that_cannot_be(tmp_path: Path, line: str, message: str) -> None:
    done = with_file(tmp_path, f"# a file\n\n  loader\n{line}\n", "show([cuda.cuInit(0), cuda.cuInit(0)])")
    assert done.shown == [NO_DEVICE, NO_DEVICE]
    assert done.errors.startswith(f"softgpu: {tmp_path}/settings:4: {message}") and done.errors.count("\n") == 1


def test_files_that_cannot_be(tmp_path: Path) -> None:
    done = with_file(tmp_path, "work\n", "show(cuda.cuInit(0))")
    assert done.shown == NO_DEVICE and "calls, accesses and work need a log" in done.errors
    done = run("show(cuda.cuInit(0))", SOFTGPU_INSTRUMENT=str(tmp_path / "none"))
    assert done.shown == NO_DEVICE and "none cannot be read: No such file or directory" in done.errors
    done = with_file(tmp_path, f"calls\nlog {tmp_path}/no/log\n", "show([cuda.cuInit(0), cuda.cuInit(0)])")
    assert done.shown == [0, 0] and done.errors.count("cannot be written: No such file or directory") == 1


@pytest.mark.parametrize(("instrument", "message"), [
    (Instrument(rules=[Fail("cuMemAloc")]), "cuMemAloc: the driver has no such function"),
    (Instrument(rules=[Fail("cuMemAlloc", 0)]), "cuMemAlloc: calls and threads are numbered from 1"),
    (Instrument(rules=[Delay("*", thread=0)]), "calls and threads are numbered from 1"),
    (Instrument(rules=[Delay("*", seconds=1e-9)]), "a delay is between a microsecond and an hour"),
    (Instrument(work=True), "calls, accesses and work need a log"),
    (Instrument(log=Path("/a\nb")), "a log's name has no blanks around it and is one line"),
    (Instrument(version=999), "999: a version is a number like 12040"),
])
def test_what_python_refuses(instrument: Instrument, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstrumentError, match=message):
        instrument.write(tmp_path / "settings")


def test_all_that_python_writes_is_read(tmp_path: Path) -> None:
    rules = [Fail("cuMemAlloc", 7, True, 3, "CUDA_ERROR_UNKNOWN"), Fail("*", result=1, call=10 ** 15),
             Delay("cuInit", seconds=3600, call=9), Delay("cuMemcpyHtoD_v2_ptds", seconds=1e-6, onwards=True)]
    instrument = Instrument(tmp_path / "log", True, True, True, True, rules, 12040, True, True)
    assert under(instrument, "show([cuda.cuInit(0), value('cuDriverGetVersion', c_int)])").shown == [0, 12040]


def test_whether_the_modelled_clock_kept_up(tmp_path: Path) -> None:
    instrument = Instrument(log=tmp_path / "log")
    done = under(instrument, BEGIN + TAKE + "cuda.cuMemsetD8_v2(take()[1], 255, c_size_t(3))\n"
                                            "show(cuda.cuCtxSynchronize())", SOFTGPU_CLOCK="modelled:100000")
    assert done.shown == 0
    record = records(instrument)[-1]
    assert (record["clock"] == "kept up") == ("kept up" in done.errors)
    assert record["operations"] == 1
    assert record["took_ns"] == pytest.approx(1e5 * 900, rel=0.01), "0.9 us for a fill"
