/* The device code of image.c, compiled by nvcc into a fatbin. */
__constant__ float bias[2];
__device__ unsigned long long launches;

extern "C" __global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float left[16][17], right[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int step = 0; step < n; step += 16) {
    left[threadIdx.y][threadIdx.x] = row < n && step + threadIdx.x < n ? a[row * n + step + threadIdx.x] : 0;
    right[threadIdx.y][threadIdx.x] = step + threadIdx.y < n && column < n ? b[(step + threadIdx.y) * n + column] : 0;
    __syncthreads();
    for (int k = 0; k < 16; k++)
      sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n)
    c[row * n + column] = sum + bias[column % 2];
  if (!blockIdx.x && !blockIdx.y && !threadIdx.x && !threadIdx.y)
    atomicAdd(&launches, 1ull);
}
