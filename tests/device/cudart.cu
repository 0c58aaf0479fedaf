// A program of nvcc as most are: with the run-time library inside. It computes 3 * x + y, and says which error it got.

#include <cstdio>
#include <vector>

__global__ void add(unsigned *y, const unsigned *x, unsigned count) {
  unsigned n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < count) y[n] += 3 * x[n];
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorName(error));
  std::exit(1);
}

int main() {
  const unsigned count = 10007;
  std::vector<unsigned> x(count), y(count);
  for (unsigned n = 0; n < count; n++) x[n] = n * 7, y[n] = n + 5;
  unsigned *there_x, *there_y;
  check(cudaMalloc(&there_x, count * sizeof *there_x));
  check(cudaMalloc(&there_y, count * sizeof *there_y));
  check(cudaMemcpy(there_x, x.data(), count * sizeof *there_x, cudaMemcpyHostToDevice));
  check(cudaMemcpy(there_y, y.data(), count * sizeof *there_y, cudaMemcpyHostToDevice));
  add<<<(count + 255) / 256, 256>>>(there_y, there_x, count);
  check(cudaGetLastError());
  check(cudaMemcpy(y.data(), there_y, count * sizeof *there_y, cudaMemcpyDeviceToHost));
  for (unsigned n = 0; n < count; n++)
    if (y[n] != n + 5 + 21 * n) return std::printf("element %u is %u\n", n, y[n]), 2;
  std::puts("right");
  return 0;
}
