"""NVIDIA's run-time library makes sure by private tables of NVIDIA's driver that it runs on that one. This driver has
none and does not pretend to: here it is shown that a program then fails cleanly, with what the driver said."""

from __future__ import annotations

import json
import subprocess
import sys

import softgpu
from tools import driver
from tools.venv import PYTHON

NO_SUCH_TABLE = 500  # CUDA_ERROR_NOT_FOUND, which the run-time library calls cudaErrorSymbolNotFound
PROGRAM = """
import ctypes, json, sys
cudart = ctypes.CDLL(sys.argv[1])
count, pointer, version = ctypes.c_int(-1), ctypes.c_void_p(), ctypes.c_int()
cudart.cudaGetErrorName.restype = ctypes.c_char_p
results = [cudart.cudaGetDeviceCount(ctypes.byref(count)), cudart.cudaSetDevice(0), cudart.cudaFree(None),
           cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1)), cudart.cudaDeviceSynchronize()]
print(json.dumps([results, cudart.cudaGetErrorName(results[0]).decode(), count.value, pointer.value,
                  [line for line in open("/proc/self/maps") if line.endswith("/softgpu/lib/libcuda.so.1\\n")] != []]))
"""


def test_the_run_time_library_refuses_and_nothing_else_happens() -> None:
    library = driver.headers(PYTHON).parent / "lib" / "libcudart.so.13"
    done = subprocess.run([sys.executable, "-c", PROGRAM, library], env=softgpu.environment("A100-80G"), check=False,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    results, name, _, pointer, loaded = json.loads(done.stdout)
    assert loaded, "it was this driver that it looked at"
    assert (results, name) == ([NO_SUCH_TABLE] * 5, "cudaErrorSymbolNotFound")
    assert pointer is None
