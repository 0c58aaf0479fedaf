"""What the programs share: calls that must succeed, a device with memory and kernels, waits with a deadline."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver

from tests.device.area import LINE, Mapping, until


def call(answer: tuple[Any, ...]) -> Any:
    """What a function of the driver gives; raises RuntimeError unless it succeeds."""
    result, *values = answer
    if result != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver returns {result.name}")
    return values[0] if len(values) == 1 else tuple(values)


def main(function: Callable[..., Any]) -> None:
    """Run a program with its arguments and print what it reports. Ends at once, whatever the driver still waits for."""
    status = 0
    try:
        print(json.dumps(function(*sys.argv[1:])), flush=True)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        status = 1
    os._exit(status)


class Device:
    """This process's context on a device, current in this thread, and a stream, on which all happens: what the default
    stream does is not ordered with it."""

    def __init__(self, number: int) -> None:
        call(driver.cuInit(0))
        self.handle = call(driver.cuDeviceGet(number))
        call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(self.handle))))
        self.stream = call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def allocate(self, size: int) -> int:
        return int(call(driver.cuMemAlloc(size)))

    def pinned(self, words: int) -> tuple[int, np.ndarray[Any, Any]]:
        """Host memory that asynchronous copies do not have to wait for: its address, and its 32-bit words."""
        address = int(call(driver.cuMemHostAlloc(words * 4, driver.CU_MEMHOSTALLOC_PORTABLE)))
        return address, np.frombuffer((ctypes.c_uint32 * words).from_address(address), np.uint32)

    def write(self, address: int, data: np.ndarray[Any, Any]) -> None:
        call(driver.cuMemcpyHtoDAsync(address, data.ctypes.data, data.nbytes, self.stream))
        self.wait()

    def read(self, address: int, size: int) -> np.ndarray[Any, Any]:
        data = np.empty(size, np.uint8)
        call(driver.cuMemcpyDtoHAsync(data.ctypes.data, address, size, self.stream))
        self.wait()
        return data

    def kernel(self, image: bytes, name: bytes) -> Any:
        """A kernel of a module of PTX, on the device now: a driver that loads one when it is launched first waits for
        the device, which may wait for what stands behind the launch."""
        kernel = call(driver.cuModuleGetFunction(call(driver.cuModuleLoadData(image)), name))
        call(driver.cuFuncLoad(kernel))
        return kernel

    def launch(self, kernel: Any, grid: tuple[int, int, int], block: tuple[int, int, int], *values: Any) -> None:
        """On the stream; integers are addresses, other parameters ctypes' objects."""
        held = [ctypes.c_uint64(value) if isinstance(value, int) else value for value in values]
        packed = (ctypes.c_void_p * len(held))(*[ctypes.addressof(value) for value in held])
        call(driver.cuLaunchKernel(kernel, *grid, *block, 0, self.stream, ctypes.addressof(packed), 0))

    def wait(self) -> None:
        """For all that the stream has to do; raises TimeoutError."""
        busy = driver.CUresult.CUDA_ERROR_NOT_READY

        def done() -> bool:
            answer = driver.cuStreamQuery(self.stream)
            return answer[0] != busy and call(answer) is not None

        until(done, "the work of a stream")


class Area(Mapping):
    """A shared file, registered with the driver: ``address`` in this process, ``on_device`` for its GPU."""

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        flags = driver.CU_MEMHOSTREGISTER_PORTABLE | driver.CU_MEMHOSTREGISTER_DEVICEMAP
        call(driver.cuMemHostRegister(self.address, self.size, flags))
        self.on_device = int(call(driver.cuMemHostGetDevicePointer(self.address, 0)))
        self.bytes = np.frombuffer(self.memory, np.uint8)

    def stream_waits(self, device: Device, number: int, value: int) -> None:
        """The device's stream waits until a flag has at least a value."""
        least = driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        call(driver.cuStreamWaitValue32(device.stream, self.on_device + number * LINE, value, least))

    def stream_writes(self, device: Device, number: int, value: int) -> None:
        """The device's stream sets a flag, after all that it did before."""
        flags = driver.CUstreamWriteValue_flags.CU_STREAM_WRITE_VALUE_DEFAULT
        call(driver.cuStreamWriteValue32(device.stream, self.on_device + number * LINE, value, flags))
