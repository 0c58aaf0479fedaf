// Softmax of the rows of a matrix: a block for each row, and a warp for each row.

__device__ float warp_max(float v) {
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

__device__ float warp_sum(float v) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// 256 threads.
extern "C" __global__ void __launch_bounds__(256) softmax_block(float* y, const float* x, int columns) {
  __shared__ float parts[8];
  const float* from = x + (size_t)blockIdx.x * columns;
  float* to = y + (size_t)blockIdx.x * columns;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += 256) most = fmaxf(most, from[i]);
  most = warp_max(most);
  if (lane == 0) parts[warp] = most;
  __syncthreads();
  most = parts[0];
  for (int i = 1; i < 8; i++) most = fmaxf(most, parts[i]);
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 256) {
    float e = expf(from[i] - most);
    to[i] = e;
    sum += e;
  }
  sum = warp_sum(sum);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; i++) sum += parts[i];
  float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < columns; i += 256) to[i] *= scale;
}

extern "C" __global__ void softmax_warp(float* y, const float* x, int rows, int columns) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* from = x + (size_t)row * columns;
  float* to = y + (size_t)row * columns;
  float most = -INFINITY;
  for (int i = lane; i < columns; i += 32) most = fmaxf(most, from[i]);
  most = warp_max(most);
  float sum = 0;
  for (int i = lane; i < columns; i += 32) {
    float e = expf(from[i] - most);
    to[i] = e;
    sum += e;
  }
  float scale = 1.0f / warp_sum(sum);
  for (int i = lane; i < columns; i += 32) to[i] *= scale;
}
