"""numba-cuda: kernels of Python functions, device arrays, shared memory, atomics, streams, events, both devices."""

from __future__ import annotations

import math

import numpy as np
from checks import check, run
from numba import cuda, float32, int32

RANDOM = np.random.default_rng(5)


@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def total(out, a):
    held = cuda.shared.array(256, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    held[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    step = 128
    while step:
        if t < step:
            held[t] += held[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, held[0])


@cuda.jit
def histogram(out, a):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        cuda.atomic.add(out, a[i], 1)
        cuda.atomic.max(out, 32, a[i])


@cuda.jit
def product(c, a, b):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    row, column = cuda.grid(2)
    y, x = cuda.threadIdx.x, cuda.threadIdx.y
    sum_ = float32(0)
    for step in range((a.shape[1] + 15) // 16):
        left[y, x] = a[row, step * 16 + x] if row < a.shape[0] and step * 16 + x < a.shape[1] else 0
        right[y, x] = b[step * 16 + y, column] if column < b.shape[1] and step * 16 + y < b.shape[0] else 0
        cuda.syncthreads()
        for k in range(16):
            sum_ += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = sum_


@cuda.jit
def functions(out, x):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = math.sin(x[i])
        out[1, i] = math.exp(x[i])
        out[2, i] = math.log(abs(x[i]) + 1)
        out[3, i] = math.sqrt(abs(x[i]))
        out[4, i] = math.tanh(x[i])
        out[5, i] = math.pow(abs(x[i]), 1.5)
        out[6, i] = math.erf(x[i])
        out[7, i] = math.atan2(x[i], 2.0)
        out[8, i] = math.floor(x[i] * 3)


@cuda.jit
def warps(out, a):
    i = cuda.grid(1)
    value = a[i]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if cuda.laneid == 0:
        out[i // 32] = value


@cuda.jit(device=True)
def squared(x):
    return x * x


@cuda.jit
def sorted_rows(data):
    held = cuda.local.array(8, int32)
    i = cuda.grid(1)
    if i < data.shape[0]:
        for k in range(8):
            held[k] = data[i, k]
        for k in range(1, 8):
            j = k
            while j > 0 and held[j - 1] > held[j]:
                held[j - 1], held[j] = held[j], held[j - 1]
                j -= 1
        for k in range(8):
            data[i, k] = squared(held[k])


@check
def arrays_of_the_host() -> None:
    a, b = RANDOM.standard_normal((2, 1000)).astype(np.float32)
    out = np.zeros_like(a)
    add[4, 256](out, a, b)
    assert (out == a + b).all()


@check
def every_type() -> None:
    for kind in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.float32, np.float64, np.complex64):
        a, b = (RANDOM.integers(0, 50, 100).astype(kind) for _ in range(2))
        out = np.zeros_like(a)
        add[1, 128](out, a, b)
        assert (out == a + b).all(), kind


@check
def device_arrays_and_streams() -> None:
    stream = cuda.stream()
    a, b = RANDOM.standard_normal((2, 5000))
    da, db = cuda.to_device(a, stream), cuda.to_device(b, stream)
    out = cuda.device_array_like(da, stream)
    begin, end = cuda.event(), cuda.event()
    begin.record(stream)
    add[40, 128, stream](out, da, db)
    add[40, 128, stream](out, out, db)
    end.record(stream)
    found = out.copy_to_host(stream=stream)
    stream.synchronize()
    assert (found == a + b + b).all()
    assert begin.elapsed_time(end) >= 0


@check
def views_and_pinned_memory() -> None:
    pinned = cuda.pinned_array(64, np.float32)
    pinned[:] = np.arange(64)
    whole = cuda.to_device(pinned)
    out = cuda.device_array(32, np.float32)
    add[1, 32](out, whole[::2], whole[1::2])
    assert (out.copy_to_host() == pinned[::2] + pinned[1::2]).all()


@check
def reduction() -> None:
    a = np.arange(10000, dtype=np.float32) % 7
    out = np.zeros(1, np.float32)
    total[40, 256](out, a)
    assert out[0] == a.sum()


@check
def counting() -> None:
    a = RANDOM.integers(0, 32, 20000).astype(np.int32)
    out = np.zeros(33, np.int32)
    histogram[8, 128](out, a)
    assert (out[:32] == np.bincount(a, minlength=32)).all() and out[32] == 31


@check
def matrix_product() -> None:
    a, b = RANDOM.integers(-4, 5, (50, 37)).astype(np.float32), RANDOM.integers(-4, 5, (37, 45)).astype(np.float32)
    c = np.zeros((50, 45), np.float32)
    product[(4, 3), (16, 16)](c, a, b)
    assert (c == a @ b).all()


@check
def mathematics() -> None:
    for kind, tolerance in ((np.float64, 1e-13), (np.float32, 3e-6)):
        x = RANDOM.standard_normal(500).astype(kind)
        out = np.zeros((9, 500), kind)
        functions[4, 128](out, x)
        wide = x.astype(np.float64)
        expected = [
            np.sin(wide),
            np.exp(wide),
            np.log(np.abs(wide) + 1),
            np.sqrt(np.abs(wide)),
            np.tanh(wide),
            np.abs(wide) ** 1.5,
            [math.erf(v) for v in wide],
            np.arctan2(wide, 2),
            np.floor(x * kind(3)),
        ]
        assert np.allclose(out, expected, rtol=tolerance, atol=tolerance)


@check
def sums_in_warps() -> None:
    a = RANDOM.integers(0, 100, 256).astype(np.int32)
    out = np.zeros(8, np.int32)
    warps[2, 128](out, a)
    assert (out == a.reshape(8, 32).sum(1)).all()


@check
def local_arrays_and_device_functions() -> None:
    data = RANDOM.integers(-50, 50, (70, 8)).astype(np.int32)
    expected = np.sort(data, 1) ** 2
    sorted_rows[2, 64](data)
    assert (data == expected).all()


@check
def both_devices() -> None:
    for number in range(2):
        with cuda.gpus[number]:
            a = np.arange(100, dtype=np.float32)
            out = cuda.device_array_like(a)
            add[1, 128](out, cuda.to_device(a), cuda.to_device(a))
            assert (out.copy_to_host() == 2 * a).all()


@check
def reduce_and_vectorize() -> None:
    adder = cuda.reduce(lambda a, b: a + b)
    assert adder(np.arange(3000, dtype=np.float64)) == 3000 * 2999 / 2


run()
