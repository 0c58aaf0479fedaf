// A kernel that no reading of its PTX can bound: the addresses it reads from are in memory.
//   nvcc -ptx -arch=compute_80 -o examples/gather_rows.ptx examples/gather_rows.cu

// out[i] = rows[i][column]
extern "C" __global__ void gather_rows(float *out, const float *const *rows, int column, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = rows[i][column];
}
