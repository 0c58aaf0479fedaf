"""A program on the driver API: copies, launches, a graph; then it goes on for ever if it is asked to.

    python recording_program.py [endless]
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver as cuda

N = 1024
PTX = Path(__file__).resolve().parents[3] / "examples" / "kernels.ptx"


def call(result: tuple[Any, ...]) -> Any:
    """The value of a call that must succeed."""
    assert int(result[0]) == 0, result[0]
    return None if len(result) == 1 else result[1]


def main() -> None:
    call(cuda.cuInit(0))
    call(cuda.cuCtxSetCurrent(call(cuda.cuDevicePrimaryCtxRetain(0))))
    saxpy = call(cuda.cuModuleGetFunction(call(cuda.cuModuleLoad(str(PTX).encode())), b"saxpy"))
    stream = call(cuda.cuStreamCreate(1))
    x, y = (call(cuda.cuMemAlloc(4 * N)) for _ in range(2))
    pinned = call(cuda.cuMemHostAlloc(4 * N, 0))
    ones, found = np.ones(N, np.float32), np.zeros(N, np.float32)
    for vector in (x, y):
        call(cuda.cuMemcpyHtoD(vector, ones.ctypes.data, 4 * N))

    def step() -> None:
        kinds = (None, None, ctypes.c_float, ctypes.c_int)
        call(cuda.cuLaunchKernel(saxpy, N // 256, 1, 1, 256, 1, 1, 0, stream, ((y, x, 1.0, N), kinds), 0))

    for _ in range(4):
        step()
        call(cuda.cuMemcpyDtoHAsync(pinned, y, 4 * N, stream))
        call(cuda.cuStreamSynchronize(stream))
    call(cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    step()
    step()
    ready = call(cuda.cuGraphInstantiate(call(cuda.cuStreamEndCapture(stream)), 0))
    for _ in range(3):
        call(cuda.cuGraphLaunch(ready, stream))
    call(cuda.cuStreamSynchronize(stream))
    call(cuda.cuMemcpyDtoH(found.ctypes.data, y, 4 * N))
    assert (found == 11).all()
    print("went well", flush=True)
    while sys.argv[1:] == ["endless"]:
        time.sleep(0.01)
        step()
        call(cuda.cuStreamSynchronize(stream))


main()
