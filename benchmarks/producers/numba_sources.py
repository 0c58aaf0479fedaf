"""numba-cuda kernels; imported only where numba-cuda is installed. ``SIGNATURES`` says how each is compiled."""

from __future__ import annotations

from numba import cuda, float32, float64, int32


def add_rows(out, x, row):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = x[i, j] + row[j]


def smooth(out, x):
    i = cuda.grid(1)
    n = x.size
    if i > 0 and i < n - 1:
        out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0


def scale_stride(x, a):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        x[i] *= a


def transpose_tile(out, x):
    tile = cuda.shared.array((8, 9), float32)
    i = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    j = cuda.blockIdx.x * 8 + cuda.threadIdx.x
    if i < x.shape[0] and j < x.shape[1]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[i, j]
    cuda.syncthreads()
    i = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    j = cuda.blockIdx.y * 8 + cuda.threadIdx.x
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def count_values(bins, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i] % bins.size, 1)


SIGNATURES = {
    add_rows: (float32[:, ::1], float32[:, ::1], float32[::1]),
    smooth: (float64[::1], float64[::1]),
    scale_stride: (float32[:], float32),
    transpose_tile: (float32[:, :], float32[:, :]),
    count_values: (int32[::1], int32[::1]),
}
