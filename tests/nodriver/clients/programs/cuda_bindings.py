"""The driver through cuda.bindings: modules from PTX of NVRTC, launches, streams, events, copies, attributes."""

from __future__ import annotations

import ctypes

import numpy as np
from checks import check, run
from cuda.bindings import driver, nvrtc

SOURCE = r"""
extern "C" __device__ int total;
__constant__ float weights[4];
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void mixed(double *out, char c, short s, long long l, float2 f, double d) {
  out[0] = c; out[1] = s; out[2] = l; out[3] = f.x; out[4] = f.y; out[5] = d;
}
extern "C" __global__ void reversed(int *data) {
  extern __shared__ int held[];
  held[threadIdx.x] = data[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  data[blockIdx.x * blockDim.x + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void places(int *out) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  unsigned w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
  out[(z * h + y) * w + x] = x + 100 * y + 10000 * z;
}
extern "C" __global__ void weighted(float *out) {
  out[threadIdx.x] = weights[threadIdx.x % 4] * threadIdx.x;
  atomicAdd(&total, (int)threadIdx.x);
}
"""


def call(result: tuple) -> object:
    """The value of a call that must succeed."""
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]


def image(capability: str) -> bytes:
    program = call(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"source.cu", 0, [], []))
    call(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=compute_{capability}".encode()]))
    text = b" " * call(nvrtc.nvrtcGetPTXSize(program))
    call(nvrtc.nvrtcGetPTX(program, text))
    call(nvrtc.nvrtcDestroyProgram(program))
    return text


call(driver.cuInit(0))
DEVICE = call(driver.cuDeviceGet(0))
CONTEXT = call(driver.cuDevicePrimaryCtxRetain(DEVICE))
call(driver.cuCtxSetCurrent(CONTEXT))
MODULE = call(driver.cuModuleLoadData(np.char.array(image("80"))))


def function(name: str) -> object:
    return call(driver.cuModuleGetFunction(MODULE, name.encode()))


def on_device(array: np.ndarray) -> object:
    pointer = call(driver.cuMemAlloc(array.nbytes))
    call(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    return pointer


def back(pointer: object, like: np.ndarray) -> np.ndarray:
    array = np.empty_like(like)
    call(driver.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
    return array


def launch(
    name: str, grid: tuple, block: tuple, values: tuple, kinds: tuple, shared: int = 0, stream: object = 0
) -> None:
    call(driver.cuLaunchKernel(function(name), *grid, *block, shared, stream, (values, kinds), 0))


@check
def machine() -> None:
    assert call(driver.cuDeviceGetCount()) == 2
    assert call(driver.cuDriverGetVersion()) >= 13000
    assert b"A100" in call(driver.cuDeviceGetName(100, DEVICE))
    major = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    assert [call(driver.cuDeviceGetAttribute(major, call(driver.cuDeviceGet(i)))) for i in range(2)] == [8, 8]
    free, total = call(driver.cuMemGetInfo())
    assert 0 < free <= total == call(driver.cuDeviceTotalMem(DEVICE))


@check
def launch_with_pointers_and_numbers() -> None:
    n = 10007
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    px, py = on_device(x), on_device(y)
    launch("saxpy", (-(-n // 256), 1, 1), (256, 1, 1), (py, px, 2.5, n), (None, None, ctypes.c_float, ctypes.c_int))
    assert (back(py, y) == np.float32(2.5) * x + 1).all()


@check
def parameters_of_every_width() -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_float))
        _align_ = 8

    out = on_device(np.zeros(6))
    pair = Pair(1.5, -2.5)
    addresses = [
        ctypes.c_void_p(int(out)),
        ctypes.c_char(7),
        ctypes.c_short(-300),
        ctypes.c_longlong(1 << 40),
        pair,
        ctypes.c_double(0.1),
    ]
    packed = (ctypes.c_void_p * 6)(*[ctypes.addressof(one) for one in addresses])
    call(driver.cuLaunchKernel(function("mixed"), 1, 1, 1, 1, 1, 1, 0, 0, ctypes.addressof(packed), 0))
    assert back(out, np.zeros(6)).tolist() == [7, -300, float(1 << 40), 1.5, -2.5, 0.1]


@check
def shared_memory_of_the_launch() -> None:
    data = np.arange(1024, dtype=np.int32)
    pointer = on_device(data)
    launch("reversed", (4, 1, 1), (256, 1, 1), (pointer,), (None,), shared=1024)
    assert (back(pointer, data) == data.reshape(4, 256)[:, ::-1].ravel()).all()


@check
def grids_of_three_dimensions() -> None:
    out = np.zeros((6, 8, 12), np.int32)
    pointer = on_device(out)
    launch("places", (3, 2, 3), (4, 4, 2), (pointer,), (None,))
    z, y, x = np.indices(out.shape)
    assert (back(pointer, out) == x + 100 * y + 10000 * z).all()


@check
def variables_of_a_module() -> None:
    address, size = call(driver.cuModuleGetGlobal(MODULE, b"weights"))
    assert size == 16
    weights = np.array([1, 2, 3, 4], np.float32)
    call(driver.cuMemcpyHtoD(address, weights.ctypes.data, size))
    out = on_device(np.zeros(64, np.float32))
    launch("weighted", (1, 1, 1), (64, 1, 1), (out,), (None,))
    assert (back(out, np.zeros(64, np.float32)) == np.tile(weights, 16) * np.arange(64)).all()
    total, _ = call(driver.cuModuleGetGlobal(MODULE, b"total"))
    assert back(total, np.zeros(1, np.int32))[0] == 64 * 63 // 2


@check
def streams_and_events() -> None:
    n = 1 << 20
    streams = [call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)) for _ in range(2)]
    y = on_device(np.zeros(n, np.float32))
    x = on_device(np.ones(n, np.float32))
    first, last = (call(driver.cuEventCreate(0)) for _ in range(2))
    call(driver.cuEventRecord(first, streams[0]))
    for step in range(20):
        stream = streams[step % 2]
        launch(
            "saxpy",
            (n // 256, 1, 1),
            (256, 1, 1),
            (y, x, 1.0, n),
            (None, None, ctypes.c_float, ctypes.c_int),
            stream=stream,
        )
        call(driver.cuEventRecord(last, stream))
        call(driver.cuStreamWaitEvent(streams[(step + 1) % 2], last, 0))
    call(driver.cuEventSynchronize(last))
    assert (back(y, np.zeros(n, np.float32)) == 20).all()
    assert call(driver.cuEventElapsedTime(first, last)) > 0
    for stream in streams:
        call(driver.cuStreamDestroy(stream))


@check
def library_and_kernel() -> None:
    library = call(driver.cuLibraryLoadData(image("80"), [], [], 0, [], [], 0))
    kernel = call(driver.cuLibraryGetKernel(library, b"saxpy"))
    assert (
        call(
            driver.cuKernelGetAttribute(
                driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, DEVICE
            )
        )
        == 1024
    )
    assert call(driver.cuKernelGetParamInfo(kernel, 2))[0] == 16
    y = on_device(np.zeros(8, np.float32))
    x = on_device(np.ones(8, np.float32))
    call(
        driver.cuLaunchKernel(
            kernel, 1, 1, 1, 8, 1, 1, 0, 0, ((y, x, 3.0, 8), (None, None, ctypes.c_float, ctypes.c_int)), 0
        )
    )
    assert (back(y, np.zeros(8, np.float32)) == 3).all()
    call(driver.cuLibraryUnload(library))


@check
def what_is_wrong_is_said() -> None:
    assert driver.cuModuleGetFunction(MODULE, b"missing")[0] == driver.CUresult.CUDA_ERROR_NOT_FOUND
    assert driver.cuModuleLoadData(b"no PTX\0")[0] in (
        driver.CUresult.CUDA_ERROR_INVALID_PTX,
        driver.CUresult.CUDA_ERROR_INVALID_IMAGE,
    )
    wrong = driver.cuLaunchKernel(function("saxpy"), 1, 1, 1, 2048, 1, 1, 0, 0, 0, 0)
    assert wrong[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE


@check
def a_graph_of_a_stream() -> None:
    stream = call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    n = 4096
    x, y = on_device(np.ones(n, np.float32)), on_device(np.zeros(n, np.float32))
    out = np.zeros(n, np.float32)
    pinned = call(driver.cuMemHostAlloc(n * 4, 0))
    call(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    for _ in range(3):
        launch(
            "saxpy",
            (n // 256, 1, 1),
            (256, 1, 1),
            (y, x, 2.0, n),
            (None, None, ctypes.c_float, ctypes.c_int),
            stream=stream,
        )
    call(driver.cuMemcpyDtoHAsync(pinned, y, n * 4, stream))
    graph = call(driver.cuStreamEndCapture(stream))
    ready = call(driver.cuGraphInstantiate(graph, 0))
    for _ in range(5):
        call(driver.cuGraphLaunch(ready, stream))
    call(driver.cuStreamSynchronize(stream))
    ctypes.memmove(out.ctypes.data, int(pinned), n * 4)
    assert (out == 30).all()


run()
