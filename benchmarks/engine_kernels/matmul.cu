// C[m][n] = A[m][k] B[k][n] in single precision. The blocked kernels take sizes that are multiples of their tiles.

extern "C" __global__ void __launch_bounds__(256)
matmul_tiled(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][16];
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[row * k + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = column < n && k0 + threadIdx.y < k ? b[(k0 + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// A tile of TILE x TILE results for 256 threads, each with SIDE x SIDE of them, by steps of DEPTH.
template <int TILE, int SIDE, int DEPTH>
__device__ __forceinline__ void blocked(float* c, const float* a, const float* b, int n, int k) {
  __shared__ __align__(16) float as[DEPTH][TILE], bs[DEPTH][TILE];
  int t = threadIdx.x, row = t / 16 * SIDE, column = t % 16 * SIDE;
  int a_row = t / (DEPTH / 4), a_column = t % (DEPTH / 4) * 4;
  int b_row = t / (TILE / 4), b_column = t % (TILE / 4) * 4;
  a += (size_t)blockIdx.y * TILE * k;
  b += blockIdx.x * TILE;
  float sum[SIDE][SIDE] = {};
  for (int k0 = 0; k0 < k; k0 += DEPTH) {
    float4 four = *(const float4*)&a[(size_t)a_row * k + k0 + a_column];
    as[a_column + 0][a_row] = four.x;
    as[a_column + 1][a_row] = four.y;
    as[a_column + 2][a_row] = four.z;
    as[a_column + 3][a_row] = four.w;
    *(float4*)&bs[b_row][b_column] = *(const float4*)&b[(size_t)(k0 + b_row) * n + b_column];
    __syncthreads();
#pragma unroll
    for (int s = 0; s < DEPTH; s++) {
      float left[SIDE], right[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; i += 4) {
        *(float4*)&left[i] = *(const float4*)&as[s][row + i];
        *(float4*)&right[i] = *(const float4*)&bs[s][column + i];
      }
#pragma unroll
      for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) sum[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  c += (size_t)(blockIdx.y * TILE + row) * n + blockIdx.x * TILE + column;
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j += 4)
      *(float4*)&c[(size_t)i * n + j] = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

extern "C" __global__ void __launch_bounds__(256)
matmul_blocked_64(float* c, const float* a, const float* b, int n, int k) {
  blocked<64, 4, 16>(c, a, b, n, k);
}

extern "C" __global__ void __launch_bounds__(256)
matmul_blocked_128(float* c, const float* a, const float* b, int n, int k) {
  blocked<128, 8, 8>(c, a, b, n, k);
}
