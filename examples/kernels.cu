// Two kernels whose reads and writes are known at every launch.
//   nvcc -ptx -arch=compute_80 -o examples/kernels.ptx examples/kernels.cu

constexpr int TILE = 16;

// y = a * x + y for the first n elements, one thread each.
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// C (m x n) = A (m x k) * B (k x n), row-major, all three a multiple of TILE; one thread per element of C.
extern "C" __global__ void matmul_tiled(float *C, const float *A, const float *B, int m, int n, int k)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int tile = 0; tile < k; tile += TILE) {
        a[threadIdx.y][threadIdx.x] = A[row * k + tile + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        C[row * n + column] = sum;
}
