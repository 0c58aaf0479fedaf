"""The null driver: all functions of the list, found by symbol and by version, and the answers that programs need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tessera.driver_api import by_name, form_of, functions
from tests import null_driver
from tests.nodriver.driver.client import HEAD

SECONDS = 60


def run(code: str) -> Any:
    """What Python code shows of the null driver, which is ``cuda``."""
    done = subprocess.run([sys.executable, "-c", HEAD + code, null_driver.build()], capture_output=True, text=True,
                          timeout=SECONDS, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_exports_the_list() -> None:
    listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", null_driver.build()], check=True,
                            capture_output=True, text=True).stdout
    assert sorted(line.split()[0] for line in listed.splitlines()) == [f.symbol for f in functions()]
    shown = subprocess.run(["readelf", "-d", null_driver.build()], check=True, capture_output=True, text=True).stdout
    assert "Library soname: [libcuda.so.1]" in shown


def test_each_answers_success() -> None:
    """All but those that are asked for what there is not, as here with the address of a buffer for every argument."""
    asked = sorted({f.symbol for f in functions()} - {"cuMemFreeHost", "cuDeviceGetName"})
    assert run(f"""
buffer = create_string_buffer(4096)
show({{symbol: result for symbol in {asked!r} if (result := getattr(cuda, symbol)(*6 * [byref(buffer)]))}})
""") == {
        "cuDeviceGet": 101, "cuGetExportTable": 500, "cuGetProcAddress": 1, "cuGetProcAddress_v2": 1,
        "cuFuncGetParamInfo": 1, "cuKernelGetParamInfo": 1, "cuMemAllocHost_v2": 2, "cuMemHostAlloc": 2,
    }


@pytest.mark.parametrize("per_thread", [False, True])
@pytest.mark.parametrize("version", [3020, 7000, 12000, 13000])
def test_it_finds_its_functions_by_version(version: int, per_thread: bool) -> None:
    expected = {name: found.symbol if (found := form_of(name, version, per_thread)) else "" for name in by_name()}
    assert run(f"""
wrong, found, status = [], c_void_p(), c_int()
for name, symbol in {expected!r}.items():
    result = cuda.cuGetProcAddress_v2(name.encode(), byref(found), {version}, c_uint64({2 if per_thread else 0}),
                                      byref(status))
    there = ctypes.cast(getattr(cuda, symbol), c_void_p).value if symbol else None
    if (result, found.value, status.value) != (0, there, 0 if symbol else 2):
        wrong.append([name, symbol])
older = cuda.cuGetProcAddress(b"cuInit", byref(found), {version}, c_uint64(0))
show([wrong, older, found.value == ctypes.cast(cuda.cuInit, c_void_p).value])
""") == [[], 0, True]


def test_handles_and_addresses_differ() -> None:
    makers = ["cuMemAlloc_v2", "cuModuleGetFunction", "cuModuleLoadData", "cuStreamCreate", "cuEventCreate",
              "cuLibraryGetKernel", "cuKernelGetFunction", "cuMemAllocAsync", "cuGraphInstantiateWithFlags"]
    assert run(f"""
found = [value(name, c_uint64, c_void_p(64)) for name in {makers!r} for _ in range(3)]
batch = c_uint64(7)
cuda.cuMemcpyBatchAsync(byref(batch))
show([len(set(found)), min(found) > 0, batch.value, cuda.cuMemAlloc_v2(None, c_size_t(64))])
""") == [3 * len(makers), True, 7, 1]


def test_what_programs_ask() -> None:
    assert run("""
contexts = [value(*words) for words in (("cuDevicePrimaryCtxRetain", c_void_p, 0), ("cuCtxGetCurrent", c_void_p))]
offset, size, parameters, host = c_size_t(), c_size_t(), [], c_void_p()
for index in range(5):
    result = cuda.cuFuncGetParamInfo(c_void_p(1), c_size_t(index), byref(offset), byref(size))
    parameters.append([result, offset.value, size.value])
cuda.cuMemAllocHost_v2(byref(host), c_size_t(64))
ctypes.memset(host, 1, 64)
show([value("cuDriverGetVersion", c_int), value("cuDeviceGetCount", c_int), value("cuCtxGetDevice", c_int),
      contexts[0] == contexts[1] != None, parameters, cuda.cuMemFreeHost(host)])
""") == [13000, 1, 0, True, [[0, 0, 8], [0, 8, 8], [0, 16, 8], [0, 24, 4], [1, 24, 4]], 0]
