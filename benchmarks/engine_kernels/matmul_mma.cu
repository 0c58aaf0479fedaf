// C[m][n] = A[m][k] B[k][n] by tensor cores with sums in single precision. Tiles of 64 x 64 x 32 for four warps of 32 x 32,
// two stages of asynchronous copies; sizes are multiples of the tile.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

// A thread's four results of each of a warp's 2 x 4 matrices of 16 x 8, as the manual lays them out.
__device__ __forceinline__ void store_tile(float* c, int n, const float (&sum)[2][4][4]) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.y * 64 + warp / 2 * 32 + lane / 4, column = blockIdx.x * 64 + warp % 2 * 32 + lane % 4 * 2;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++) {
      float* to = c + (size_t)(row + i * 16) * n + column + j * 8;
      *(float2*)to = make_float2(sum[i][j][0], sum[i][j][1]);
      *(float2*)(to + (size_t)8 * n) = make_float2(sum[i][j][2], sum[i][j][3]);
    }
}

extern "C" __global__ void __launch_bounds__(128)
matmul_f16(float* c, const __half* a, const __half* b, int n, int k) {
  __shared__ __align__(16) __half as[2][64][40], bs[2][32][72];
  int t = threadIdx.x, lane = t % 32, warp_row = t / 64 * 32, warp_column = t / 32 % 2 * 32;
  a += (size_t)blockIdx.y * 64 * k;
  b += blockIdx.x * 64;
  auto fetch = [&](int stage, int k0) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int e = t + i * 128;
      __pipeline_memcpy_async(&as[stage][e / 4][e % 4 * 8], &a[(size_t)(e / 4) * k + k0 + e % 4 * 8], 16);
      __pipeline_memcpy_async(&bs[stage][e / 8][e % 8 * 8], &b[(size_t)(k0 + e / 8) * n + e % 8 * 8], 16);
    }
    __pipeline_commit();
  };
  float sum[2][4][4] = {};
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 32, stage ^= 1) {
    if (k0 + 32 < k) fetch(stage ^ 1, k0 + 32);
    __pipeline_wait_prior(k0 + 32 < k ? 1 : 0);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 32; s += 16) {
      unsigned left[2][4], right[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        unsigned at = __cvta_generic_to_shared(&as[stage][warp_row + i * 16 + lane % 16][s + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(left[i][0]), "=r"(left[i][1]), "=r"(left[i][2]), "=r"(left[i][3]) : "r"(at));
      }
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        unsigned at = __cvta_generic_to_shared(&bs[stage][s + lane % 16][warp_column + j * 8 + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(right[j][0]), "=r"(right[j][1]), "=r"(right[j + 1][0]), "=r"(right[j + 1][1]) : "r"(at));
      }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
              : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]), "r"(right[j][0]), "r"(right[j][1]));
    }
    __syncthreads();
  }
  store_tile(c, n, sum);
}

__device__ __forceinline__ unsigned tf32(float x) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}

extern "C" __global__ void __launch_bounds__(128)
matmul_tf32(float* c, const float* a, const float* b, int n, int k) {
  __shared__ __align__(16) float as[2][64][36], bs[2][32][72];
  int t = threadIdx.x, lane = t % 32, warp_row = t / 64 * 32, warp_column = t / 32 % 2 * 32;
  int group = lane / 4, member = lane % 4;
  a += (size_t)blockIdx.y * 64 * k;
  b += blockIdx.x * 64;
  auto fetch = [&](int stage, int k0) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int e = t + i * 128;
      __pipeline_memcpy_async(&as[stage][e / 8][e % 8 * 4], &a[(size_t)(e / 8) * k + k0 + e % 8 * 4], 16);
      __pipeline_memcpy_async(&bs[stage][e / 16][e % 16 * 4], &b[(size_t)(k0 + e / 16) * n + e % 16 * 4], 16);
    }
    __pipeline_commit();
  };
  float sum[2][4][4] = {};
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 32, stage ^= 1) {
    if (k0 + 32 < k) fetch(stage ^ 1, k0 + 32);
    __pipeline_wait_prior(k0 + 32 < k ? 1 : 0);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 32; s += 8) {
      unsigned left[2][4], right[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int r = 0; r < 4; r++)
          left[i][r] = tf32(as[stage][warp_row + i * 16 + group + r % 2 * 8][s + member + r / 2 * 4]);
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int r = 0; r < 2; r++) right[j][r] = tf32(bs[stage][s + member + r * 4][warp_column + j * 8 + group]);
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile(
              "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
              : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]), "r"(right[j][0]), "r"(right[j][1]));
    }
    __syncthreads();
  }
  store_tile(c, n, sum);
}
