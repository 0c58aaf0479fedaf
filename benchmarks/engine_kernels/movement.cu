// A sum by warps and shared memory, and a transpose by tiles of shared memory.

// Sums of parts, one for each block of 256 threads; a second launch of one block adds those.
extern "C" __global__ void __launch_bounds__(256) sum(float* part, const float* x, int n) {
  __shared__ float warps[8];
  float s = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) s += x[i];
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < 8 ? warps[threadIdx.x] : 0;
    for (int o = 4; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x == 0) part[blockIdx.x] = s;
  }
}

// Blocks of 32 x 8 threads; one column more than the tile has, so that its columns are in different banks.
extern "C" __global__ void transpose(float* y, const float* x, int rows, int columns) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (r + k < rows && c < columns) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(r + k) * columns + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (r + k < columns && c < rows) y[(size_t)(r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
}
