"""cuda.core: programs from C++ and PTX, launches, buffers, streams, events, both devices."""

from __future__ import annotations

import numpy as np
from checks import check, run
from cuda.core import (
    Device,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

SOURCE = r"""
template <typename T> __global__ void scale(T *data, T factor, size_t n) {
  size_t step = gridDim.x * (size_t)blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step) data[i] *= factor;
}
extern "C" __global__ void add(float *out, const float *a, const float *b, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
"""


def view(buffer: object, kind: type) -> np.ndarray:
    """The numbers of a buffer of the host."""
    return np.from_dlpack(buffer).view(kind)


def compiled(device: Device) -> object:
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    program = Program(SOURCE, code_type="c++", options=options)
    return program.compile("ptx", name_expressions=("scale<float>", "scale<double>"))


@check
def devices() -> None:
    first, second = Device(0), Device(1)
    assert (first.compute_capability, second.compute_capability) == ((8, 0), (8, 9))
    assert "A100" in first.name and "L40S" in second.name
    assert first.properties.max_threads_per_block == 1024 and first.properties.warp_size == 32
    assert first.uuid != second.uuid


@check
def templates_on_both_devices() -> None:
    for device in (Device(0), Device(1)):
        device.set_current()
        module = compiled(device)
        stream = device.create_stream()
        for kind in (np.float32, np.float64):
            kernel = module.get_kernel(f"scale<{'float' if kind is np.float32 else 'double'}>")
            n = 5000
            host = LegacyPinnedMemoryResource().allocate(n * np.dtype(kind).itemsize, stream=stream)
            numbers = view(host, kind)
            numbers[:] = np.arange(n)
            buffer = device.memory_resource.allocate(host.size, stream=stream)
            buffer.copy_from(host, stream=stream)
            launch(stream, LaunchConfig(grid=7, block=128), kernel, buffer, kind(1.5), n)
            buffer.copy_to(host, stream=stream)
            stream.sync()
            assert (numbers == np.arange(n, dtype=kind) * kind(1.5)).all()
            buffer.close(stream)
        stream.close()


@check
def events_between_streams() -> None:
    device = Device(0)
    device.set_current()
    kernel = compiled(device).get_kernel("add")
    first, second = device.create_stream(), device.create_stream()
    n = 1 << 16
    host = LegacyPinnedMemoryResource().allocate(n * 4, stream=first)
    view(host, np.float32)[:] = 1
    a, b, c = (device.memory_resource.allocate(n * 4, stream=first) for _ in range(3))
    begin = first.record(options=EventOptions(timing_enabled=True))
    a.copy_from(host, stream=first)
    b.copy_from(host, stream=first)
    launch(first, LaunchConfig(grid=n // 256, block=256), kernel, c, a, b, np.uint32(n))
    done = first.record(options=EventOptions(timing_enabled=True))
    second.wait(done)
    launch(second, LaunchConfig(grid=n // 256, block=256), kernel, a, c, b, np.uint32(n))
    a.copy_to(host, stream=second)
    second.sync()
    assert done.is_done and done - begin > 0
    assert (view(host, np.float32) == 3).all()


@check
def kernels_describe_themselves() -> None:
    device = Device(0)
    device.set_current()
    kernel = compiled(device).get_kernel("add")
    assert kernel.num_arguments == 4
    assert [(one.offset, one.size) for one in kernel.arguments_info] == [(0, 8), (8, 8), (16, 8), (24, 4)]
    assert kernel.attributes.max_threads_per_block == 1024
    assert kernel.occupancy.max_active_blocks_per_multiprocessor(256, 0) > 0


run()
