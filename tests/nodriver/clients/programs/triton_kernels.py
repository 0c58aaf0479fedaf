"""Triton without another framework: kernels on memory of cuda.bindings, with tensor cores and asynchronous copies."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from checks import check, run
from cuda.bindings import driver
from triton_sources import add, attention, counted, matmul, softmax

RANDOM = np.random.default_rng(3)
NAMES = {np.dtype(np.float32): tl.float32, np.dtype(np.float16): tl.float16, np.dtype(np.int32): tl.int32}


def call(result: tuple) -> object:
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]


class Array:
    """Memory of the device with what Triton asks of a tensor."""

    def __init__(self, array: np.ndarray) -> None:
        self.like, self.dtype = array, NAMES[array.dtype]
        self.pointer = call(driver.cuMemAlloc(array.nbytes))
        call(driver.cuMemcpyHtoD(self.pointer, np.ascontiguousarray(array).ctypes.data, array.nbytes))

    def data_ptr(self) -> int:
        return int(self.pointer)

    def numpy(self) -> np.ndarray:
        found = np.empty_like(self.like)
        call(driver.cuMemcpyDtoH(found.ctypes.data, self.pointer, found.nbytes))
        return found


call(driver.cuInit(0))
call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(call(driver.cuDeviceGet(0))))))


@check
def target() -> None:
    found = triton.runtime.driver.active.get_current_target()
    assert (found.backend, found.arch, found.warp_size) == ("cuda", 80, 32)


@check
def addition() -> None:
    for n in (1, 1000, 98432):
        a, b = RANDOM.standard_normal((2, n)).astype(np.float32)
        out = Array(np.zeros(n, np.float32))
        add[(triton.cdiv(n, 1024),)](out, Array(a), Array(b), n, BLOCK=1024)
        assert (out.numpy() == a + b).all()


@check
def softmax_of_rows() -> None:
    for rows, columns in ((33, 200), (7, 1000)):
        x = RANDOM.standard_normal((rows, columns)).astype(np.float32)
        out = Array(np.zeros_like(x))
        softmax[(rows,)](out, Array(x), columns, columns, BLOCK=triton.next_power_of_2(columns))
        e = np.exp(x - x.max(1, keepdims=True))
        assert np.allclose(out.numpy(), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@check
def products_of_matrices() -> None:
    for kind, tolerance in ((np.float16, 2e-3), (np.float32, 4e-3)):
        m, n, k = 100, 80, 96
        a, b = RANDOM.standard_normal((m, k)).astype(kind), RANDOM.standard_normal((k, n)).astype(kind)
        out = Array(np.zeros((m, n), np.float32))
        handle = matmul[(triton.cdiv(m, 64), triton.cdiv(n, 32))](
            Array(a), Array(b), out, m, n, k, M=64, N=32, K=32, num_stages=3, num_warps=4)
        assert "mma.sync" in handle.asm["ptx"] and "cp.async" in handle.asm["ptx"]
        expected = a.astype(np.float64) @ b.astype(np.float64)
        assert np.abs(out.numpy() - expected).max() < tolerance * np.abs(expected).max()


@check
def flash_attention() -> None:
    heads, length, width = 3, 128, 64
    q, k, v = RANDOM.standard_normal((3, heads, length, width)).astype(np.float16)
    for causal in (False, True):
        out = Array(np.zeros((heads, length, width), np.float32))
        attention[(length // 64, heads)](Array(q), Array(k), Array(v), out, width**-0.5, length, M=64, N=32, D=width,
                                         CAUSAL=causal, num_stages=2, num_warps=4)
        scores = (q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1)) * width**-0.5
        if causal:
            scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        expected = e / e.sum(-1, keepdims=True) @ v.astype(np.float64)
        assert np.abs(out.numpy() - expected).max() < 5e-3


@check
def atomics() -> None:
    ids = RANDOM.integers(0, 16, 3000).astype(np.int32)
    out = Array(np.zeros(16, np.int32))
    counted[(triton.cdiv(3000, 256),)](out, Array(ids), 3000, BLOCK=256)
    assert (out.numpy() == np.bincount(ids, minlength=16)).all()


run()
